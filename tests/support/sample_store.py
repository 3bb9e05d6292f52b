"""A store with the sample tapes in it: the data of the demo, always the same."""

from __future__ import annotations

from pathlib import Path

from looptape.sample_traces import demo
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store

NOON = 1_789_992_000_000_000
"""A clock that stands: a little after the last sample tape."""


def filled(home: Path) -> Path:
    """Import the sample tapes into the store under a folder; the folder."""
    with open_store(home) as store:
        for tape in demo.tapes():
            import_path(store, tape)
    return home
