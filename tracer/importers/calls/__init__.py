"""Single model calls, from whatever told of them, assembled into runs."""
