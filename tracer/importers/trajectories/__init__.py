"""Trajectories of agents, benchmarks and command-line tools, one file a format."""
