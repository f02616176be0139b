"""Intervals for what is measured on dialogues, whose turns are not independent of each other."""
