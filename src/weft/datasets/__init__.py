"""Datasets looked at before anything is run: statistics of their records, and duplicates in them."""
