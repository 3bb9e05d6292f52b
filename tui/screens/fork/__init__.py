"""Running on from a turn with something changed."""
