"""From a `Question` to its verdicts: a model is asked and its reply read; a paper's own prompts come from the user's
checkout; OCR reads words in images."""
