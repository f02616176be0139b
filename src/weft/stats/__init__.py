"""Intervals by dialogue, paired tests, repeated judgements, agreement, and means from a judge's values and some of
people's."""
