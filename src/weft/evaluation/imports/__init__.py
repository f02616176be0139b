"""Results of other tools (evalscope, lmms-eval, VLMEvalKit) as scores of a suite: read, checked and kept in a home."""
