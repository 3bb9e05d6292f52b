"""One file of the user's beside the views: opened to read, then every other way out is locked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import LooptapeError
from .rows import Connection

_READERS = {
    ".parquet": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
_DATABASES = (".duckdb", ".db", ".ddb")
_TAKEN = ("main", "base", "temp", "system", "store", "pg_catalog", "information_schema", "memory")


@dataclass(frozen=True, slots=True)
class Attached:
    """What a query may read besides the views.

    Attributes:
        name: Of the file's name: a table, or a database whose tables are ``name.table``.
        database: True for a DuckDB file.
    """

    name: str
    database: bool

    def holds(self, catalog: str, schema: str, table: str) -> bool:
        """True when a name as it stands in a query lies in the file."""
        if not self.database:
            return not catalog and schema in ("", "main", "temp") and table.lower() == self.name
        inner = schema if catalog else ""
        return (catalog or schema).lower() == self.name and inner not in ("pg_catalog", "information_schema")


def attach(con: Connection, path: Path, taken: tuple[str, ...]) -> Attached:
    """Makes a file readable on a connection that is still open to files, and closes it to all others.

    Raises:
        LooptapeError: ``bad-attachment``: there is no such file, or it is of no kind we can read (exit 2).
    """
    import duckdb

    path = path.expanduser().resolve()
    kind = path.suffix.lower()
    if not path.is_file():
        raise _bad(f"{path} is no file", "Name a DuckDB, Parquet, CSV or JSON file")
    if re.search(r"[*?\[\]]", str(path)):
        raise _bad(f"{path} holds one of * ? [ ], which stand for other files", "Give the file another name")
    if kind not in _READERS and kind not in _DATABASES:
        raise _bad(f"{path.name}: {kind or 'a file without an ending'} cannot be attached", f"Use {', '.join((*_DATABASES, *_READERS))}")  # fmt: skip
    name = re.sub(r"\W+", "_", path.stem).lower() or "file"
    if name[0].isdigit() or name in _TAKEN or name in taken:
        name = f"file_{name}"
    quoted = str(path).replace("'", "''")
    try:
        if kind in _DATABASES:
            con.execute(f"attach '{quoted}' as \"{name}\" (read_only)")
        else:
            con.execute("set allowed_paths = [?]", [str(path)])
            con.execute(f"create temp view \"{name}\" as select * from {_READERS[kind]}('{quoted}')")  # noqa: S608 - quoted above
        con.execute("set enable_external_access = false")
        con.execute("set lock_configuration = true")
    except duckdb.Error as error:
        raise _bad(f"{path.name} cannot be read ({str(error).splitlines()[0][:200]})", "Is it what its ending says?") from None  # fmt: skip
    return Attached(name, kind in _DATABASES)


def _bad(what: str, cure: str) -> LooptapeError:
    return LooptapeError("bad-attachment", what, cure, exit_code=2)
