"""How good judges are: calibration against exact references, agreement with people, and annotation by people."""
