"""Search over everything recorded: prompts, thinking, arguments, results, answers, errors; each text once a run.

`Search` goes through the runs of a filter slice by slice, the first in its order first, so that the first hits are there
while the rest is still to be looked at. docs/search.md says what is looked for where.
"""

from __future__ import annotations

from .finding import Hit, RunHits, Search
from .places import PLACES
from .wanted import Needle, needle

__all__ = ["PLACES", "Hit", "Needle", "RunHits", "Search", "needle"]
