"""The version of looptape; pyproject.toml has it too, and a test holds them equal."""

__version__ = "0.1.0"
