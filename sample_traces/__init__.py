"""Recorded tapes and the small loops that made them; they ship, feed the demo and the tests."""
