"""Phenomena of the papers, shown with the tiny model: each is a table and a plot."""

from weft_tabletop.demos.exposure_bias import exposure_bias
from weft_tabletop.demos.memory import memory
from weft_tabletop.demos.scaling import scaling

# with their usual samples
DEMOS = {"exposure-bias": (exposure_bias, 300), "memory": (memory, 150), "test-time-scaling": (scaling, 200)}
