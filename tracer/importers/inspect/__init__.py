"""Inspect logs: .json and .eval."""
