"""Results of other tools as scores of a suite: read, checked and kept in a home. The tools are evalscope, lmms-eval,
VLMEvalKit, and DPG-Bench's script."""
