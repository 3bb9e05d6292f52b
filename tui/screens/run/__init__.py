"""One run: its turns as a list, over time, as a text."""
