"""Findings of some runs, and the pages of the rules."""
