"""Answers a program from a recording: what counts as the same call, in which order, and what was missed."""
