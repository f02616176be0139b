"""Sizes that the networks have in torch and in numpy alike."""

CONTEXT = 384  # tokens of a planner
MAX_IMAGES = 2  # that a request shows
HEAD = 32  # numbers of one attention head
TIME_FREQUENCIES = 32
MODULATIONS = 6  # shift, scale and gate, for attention and for the feed-forward layer
STEPS = 12  # of a visualizer, from noise to image
