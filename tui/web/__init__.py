"""The screen in a browser: a small server on loopback, and one app process for each page that is open."""

PORT = 8017
"""Always the same, so that a bookmark and an ssh tunnel hold; 8000 is where everybody else listens."""
