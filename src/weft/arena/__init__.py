"""Battles between models: verdict files read and written, and their tables."""
