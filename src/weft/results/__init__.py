"""Runs and their results as the journal has them: one run with its tables, titles of runs, runs in a list, calibration
cards."""
