"""The figures of a run of the store with its sub-agents, or of all runs of a tape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...tracer.errors import LooptapeError
from ..reference import Found
from .figures import Figures, figures

if TYPE_CHECKING:
    from ...tracer.store import Store


def of_found(found: Found) -> Figures:
    """Of a run in an open store; its sub-agents count with it, what it inherited does not."""
    from ...tracer.store.export import family

    return figures(turn for run in family(found.store, found.run.id) for turn in found.store.turns(run))


def of_tape(file: Path) -> Figures:
    """Of everything that a tape (or a file of another known format) holds.

    Raises:
        LooptapeError: The file cannot be read, or holds no run.
    """
    from ...tracer.importers import import_path
    from ...tracer.store import Filter, memory_store

    store: Store = memory_store()
    try:
        reports = import_path(store, file)
        if not any(report.runs for report in reports):
            raise LooptapeError("no-recording", f"{file} holds no run", "Is it a tape?")
        return figures(turn for run in store.runs(Filter(limit=0, include_empty=True)) for turn in store.turns(run.id))
    finally:
        store.close()
