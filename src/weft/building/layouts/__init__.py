"""Formats in which a build's dialogues are written. The same data are the same bytes."""
