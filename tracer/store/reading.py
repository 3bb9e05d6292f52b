"""A glance at the store: read-only, drained by nobody, without waiting for anybody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import paths
from ..errors import LooptapeError
from .store import Store, open_reading


@contextmanager
def glance(home: Path | None = None) -> Iterator[Store]:
    """The store as it is on disk, for a program that may not wait (a loop about to start).

    Raises:
        LooptapeError: There is none (``no-store``), or it cannot be read now (``store-held``, ...).
    """
    home = home or paths.home()
    file = paths.store_file(home)
    if not file.exists():
        raise LooptapeError("no-store", f"there is no store in {home}", "looptape sync makes one")
    store = Store(home, file, 0.0)
    store.adopt(open_reading(file, home, 0.0))
    try:
        yield store
    finally:
        store.close()
