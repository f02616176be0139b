"""Intervals that resample dialogues, paired tests, repeated judgements, agreement, and means from a judge's values and
some true ones."""
