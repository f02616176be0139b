"""The arena: battles between stored runs, and scores of their single answers.

A judge compares two stored answers to one item, or scores one answer by itself. The package draws the battles, builds
the judge's questions, reads and writes verdict files, and computes win rates and ratings.
"""
