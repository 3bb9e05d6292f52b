"""What was recorded as data frames: `looptape.df("turns", "model:claude* since:7d")`, `looptape.snapshot(path)`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..tracer.errors import LooptapeError
from .filters import parse, ready

# In order of preference: the frame's library, what DuckDB needs to make it, and the method that does.
_LIBRARIES = (
    ("polars", ("polars", "pyarrow"), "pl"),
    ("pandas", ("pandas",), "df"),
    ("pyarrow", ("pyarrow",), "to_arrow_table"),
)


def df(table: str = "runs", filter: str = "", *, library: str | None = None) -> Any:
    """A table of everything recorded until now as a frame of the library that is installed.

    Args:
        table: runs, turns, tool_calls, messages, attempts or events; columns as in docs/schema.md.
        filter: Which runs, in the filter language: ``model:claude* since:7d``; all of them by default.
        library: polars, pandas or pyarrow; by default the first of them that is installed.

    Returns:
        A ``polars.DataFrame``, a ``pandas.DataFrame`` or a ``pyarrow.Table``, with nothing left open.

    Raises:
        LooptapeError: None of the libraries is installed (``no-frames``), the filter is wrong, or the store is held.
    """
    method = _method(library)
    given = parse(filter)
    from ..tracer.store import Filter, open_store

    with open_store() as store:
        everything = given if filter.strip() else Filter(include_empty=True, limit=0)
        ready(store, everything)
        return store.frame(table, everything, method)


def snapshot(path: str | os.PathLike[str]) -> Path:
    """A consistent copy of everything recorded until now as a DuckDB file of its own; returns its path.

    ``duckdb.connect(path)`` may stay open as long as you like: it keeps nobody from recording or reading.

    Raises:
        LooptapeError: The file is there already or cannot be written, or another process holds the store.
    """
    from ..tracer.store import open_store

    target = Path(path).expanduser().absolute()
    with open_store() as store:
        store.copy_to(target)
    return target


def _method(library: str | None) -> str:
    known = [name for name, _, _ in _LIBRARIES]
    if library is not None and library not in known:
        raise LooptapeError(
            "no-frames", f"looptape makes no frames of {library!r}", f"Use {', '.join(known)}", exit_code=2
        )
    for name, needed, method in _LIBRARIES:
        if library in (None, name) and all(find_spec(module) for module in needed):
            return method
    what = f"{library} is not installed" if library else "none of polars, pandas and pyarrow is installed"
    needs = next((n for name, n, _ in _LIBRARIES if name == library), ("polars", "pyarrow"))
    raise LooptapeError(
        "no-frames", f"a data frame was asked for, but {what}", f"pip install {' '.join(needs)}", exit_code=2
    )
