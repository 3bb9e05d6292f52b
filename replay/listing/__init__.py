"""What a list of runs shows: the order of all of them, whole rows of those looked at, facts kept beside them."""

from __future__ import annotations

from .facts import Facts, kept
from .order import GROUPINGS, HEAD, Line, Listing, Totals, lines, listing

__all__ = ["GROUPINGS", "HEAD", "Facts", "Line", "Listing", "Totals", "kept", "lines", "listing"]
