"""Forks: what the model saw at a turn, rebuilt from the record, edited, as the start of a new run."""
