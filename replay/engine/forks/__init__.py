"""A fork on the command line: what was asked for by words, planned, opened, and carried out by the loop."""
