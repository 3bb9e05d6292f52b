"""Show: the command line and the terminal app, over what tracer stores and replay knows."""
