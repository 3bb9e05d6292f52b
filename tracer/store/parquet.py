"""Rows of a user's query as a Parquet file, written by a DuckDB in memory that knows nothing of the store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LooptapeError

if TYPE_CHECKING:
    import duckdb


def write(path: Path, names: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Writes the rows; columns of the same name get a number.

    Raises:
        LooptapeError: The file cannot be written (exit 2).
    """
    write_batches(path, names, types, [rows])


def write_batches(
    path: Path, names: Sequence[str], types: Sequence[str], batches: Iterable[Sequence[Sequence[Any]]]
) -> int:
    """The same with rows that come some at a time; returns how many came. What does not fit memory waits on disk."""
    import duckdb

    if not path.name or path.is_dir():
        raise LooptapeError("bad-output", f"{path} is a folder", "Name a file in it", exit_code=2)
    if path.exists() and not path.is_file():
        raise LooptapeError("bad-output", f"{path} is no file", "Name a file", exit_code=2)
    columns = ", ".join(f"{_quoted(n)} {_type(t)}" for n, t in zip(_unique(names), types, strict=True))
    count = 0
    with tempfile.TemporaryDirectory() as spill, duckdb.connect(":memory:", config={"temp_directory": spill}) as con:
        try:
            con.execute(f"create table rows ({columns})")
            with con.appender("rows") as appender:
                for rows in batches:
                    appender.append_rows([tuple(map(_value, row)) for row in rows])
                    count += len(rows)
            _copy(con, Path(os.path.realpath(path)))
        except (duckdb.Error, OSError) as error:
            said = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise LooptapeError(
                "bad-output", f"{path} cannot be written ({said})", "Name another file", exit_code=2
            ) from None
    return count


def _copy(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Writes beside the file and moves it there: whole, and for nobody else to read."""
    number, name = tempfile.mkstemp(prefix=".looptape-", suffix=".new", dir=path.parent)
    os.close(number)
    try:
        con.execute(f"copy rows to '{name.replace(chr(39), chr(39) * 2)}' (format parquet, use_tmp_file false)")
        os.replace(name, path)
    finally:
        with suppress(OSError):
            os.unlink(name)


def _unique(names: Sequence[str]) -> list[str]:
    """DuckDB's columns differ regardless of case."""
    found, seen = [], set[str]()
    for name in names:
        number, new = 1, name
        while new.lower() in seen:
            number += 1
            new = f"{name}_{number}"
        seen.add(new.lower())
        found.append(new)
    return found


def _type(name: str) -> str:
    return "VARCHAR" if name.upper() in ("NULL", '"NULL"', "JSON", "UNKNOWN") else name


def _value(value: Any) -> Any:
    """Lone surrogates have no UTF-8: they become their escapes."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
