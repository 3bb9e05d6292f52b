"""The store: schema, ingest, drain and queries. The only folder that imports duckdb."""

from __future__ import annotations

from pathlib import Path

from .. import paths
from .drain import SyncReport
from .filters import Filter
from .ingest import IngestReport
from .lock import writable
from .opening import memory_store, open_store, sync
from .requests import Wire
from .store import Store


def check_home(home: Path) -> None:
    """Looks whether a store can be kept there, or is there to be read; leaves nothing behind.

    Raises:
        LooptapeError: It cannot, and why (``home-unusable``).
    """
    if not paths.store_file(home).is_file():
        writable(home)


__all__ = ["Filter", "IngestReport", "Store", "SyncReport", "Wire", "check_home", "memory_store", "open_store", "sync"]
