"""Inputs from seeds for the recorded comparison, one module a system. Each has `released(checkout, python, work)`, which
runs the released scripts on them, and `weft(work)`, which needs no checkout; both give facts of the same parts."""
