"""Where looptape keeps things: the store directory and its parts."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """The store directory: ``$LOOPTAPE_HOME``, else the platform's data directory.

    The default follows platformdirs' rules, written out here so that a traced process needs
    nothing but the standard library.
    """
    given = os.environ.get("LOOPTAPE_HOME")
    if given:
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "looptape"
    base = os.environ.get("XDG_DATA_HOME", "").strip()
    root = Path(base) if base and os.path.isabs(base) else Path.home() / ".local" / "share"
    return root / "looptape"


def journal_dir(at: Path | None = None) -> Path:
    """The folder of this machine's live and undrained journals."""
    return (at or home()) / "journal"


def done_dir(at: Path | None = None) -> Path:
    """The folder of drained journals that wait for the next checkpoint."""
    return (at or home()) / "done"


def store_file(at: Path | None = None) -> Path:
    """The DuckDB file."""
    return (at or home()) / "store.duckdb"


def lock_file(at: Path | None = None) -> Path:
    """The file whose lock a drainer holds."""
    return (at or home()) / "drain.lock"


def make_private(folder: Path) -> Path:
    """Create a folder (and its parents) with mode 0700 where they are missing; raises OSError."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        if folder.parent == folder:
            break
        folder = folder.parent
    for part in reversed(missing):
        part.mkdir(mode=0o700, exist_ok=True)
    return missing[0] if missing else folder
