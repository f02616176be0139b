"""Training as data: examples, the views that make them from a dataset, mixes of sources, checkpoints and their logs.
Trainers are elsewhere; nothing here needs torch."""
