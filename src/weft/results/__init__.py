"""Stored runs and their results: one run with its tables, its summary, titles of runs, the list of runs, calibration
cards."""
