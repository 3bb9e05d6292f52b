"""One turn whole, in tabs."""
