"""Battles between stored runs: who meets whom, what the judge is asked, verdict files, ratings and their tables."""
