"""Parents of runs: a run is never its own ancestor."""

from __future__ import annotations

from .batch import Batch
from .rows import select
from .text import encode

DEEPEST = 1000


def wrong(batch: Batch, run: str, parent: str) -> str | None:
    """Why this parent cannot be, as a warning; None when it can."""
    above: str | None = parent
    for _ in range(DEEPEST):
        if above is None:
            return None
        if above == run:
            who = "itself" if parent == run else f"{parent}, which comes from it,"
            return f"the recording names {who} as its parent: left out"
        above = _parent(batch, above)
    return f"the parent {parent} is nested more than {DEEPEST:,} deep: left out"


def _parent(batch: Batch, run: str) -> str | None:
    row = batch.runs.get(run)
    if row is None:
        found = select(batch.con, "select parent_run from base.runs where id = ?", [encode(run)])
        row = found[0] if found else {}
    return row.get("parent_run")
