"""The store: schema, ingest, drain and queries. The only folder that imports duckdb."""

from __future__ import annotations

from .drain import SyncReport
from .filters import Filter
from .ingest import IngestReport
from .opening import memory_store, open_store, sync
from .requests import Wire
from .store import Store

__all__ = ["Filter", "IngestReport", "Store", "SyncReport", "Wire", "memory_store", "open_store", "sync"]
