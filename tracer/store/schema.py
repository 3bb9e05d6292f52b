"""The numbered migrations of the store and its `meta` table. Additive only: old columns stay."""

from __future__ import annotations

from importlib.resources import files

from ..errors import LooptapeError
from .rows import Connection

MIGRATIONS = (
    "001_tables.sql",
    "002_otlp.sql",
    "003_replay.sql",
    "004_costs.sql",
    "005_results.sql",
    "006_places.sql",
)
VERSION = len(MIGRATIONS)
READER = 1  # the oldest schema version whose readers can still read what we write


def version(con: Connection) -> int:
    """The schema version of an open store; 0 for an empty file."""
    return int(_meta(con).get("schema_version", 0))


def check(con: Connection, *, write: bool) -> int:
    """The version of the store.

    Raises:
        LooptapeError: ``store-newer``: a newer looptape wrote it, and we may not write to it (or not even read it).
    """
    meta = _meta(con)
    found = int(meta.get("schema_version", 0))
    if found > VERSION and (write or int(meta.get("reader_version", found)) > VERSION):
        raise newer(found)
    return found


def newer(found: int) -> LooptapeError:
    """The error for a store of a newer schema."""
    return LooptapeError(
        "store-newer",
        f"the store was written by a newer looptape (schema {found}, this one knows {VERSION})",
        "Upgrade looptape; recording goes on meanwhile and nothing is lost",
    )


def migrate(con: Connection) -> None:
    """Brings the store to our version in one transaction; the views are made anew."""
    found = check(con, write=True)
    if found >= VERSION:
        return
    con.begin()
    try:
        for name in MIGRATIONS[found:]:
            con.execute(_script(name))
        con.execute(_script("views.sql"))
        con.execute("delete from base.meta where key in ('schema_version', 'reader_version')")
        con.execute(
            "insert into base.meta values ('schema_version', ?), ('reader_version', ?)",
            [str(VERSION), str(READER)],
        )
        con.commit()
    except BaseException:
        con.rollback()
        raise


def _meta(con: Connection) -> dict[str, str]:
    import duckdb

    try:
        return dict(con.execute("select key, value from base.meta").fetchall())
    except duckdb.CatalogException:  # an empty file
        return {}


def _script(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")
