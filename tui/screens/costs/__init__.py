"""Costs of some runs: charts and tables."""
