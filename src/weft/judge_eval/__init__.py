"""How good judges are: calibration against exact truth, agreement with people, and annotation by people."""
