"""Answers told as lines of text: the command line prints them, the screens show them."""
