"""Phenomena of the papers, shown with the tiny model: each is a table and a plot."""

from weft_tabletop.demos.exposure_bias import show_exposure_bias
from weft_tabletop.demos.memory import show_memory
from weft_tabletop.demos.scaling import show_scaling
from weft_tabletop.demos.training import show_decoupled, show_memory_curve

# Each with its default number of samples.
DEMOS = {
    "exposure-bias": (show_exposure_bias, 300),
    "memory": (show_memory, 150),
    "test-time-scaling": (show_scaling, 200),
}
FROM_LOGS = {"memory-curve": show_memory_curve, "decoupled": show_decoupled}  # of training runs: nothing is evaluated
