"""Files of running sessions: what is new in them, from where they were read last."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import import_path
from .context import Context, Source
from .growth import Growth, Mark, Replaced

if TYPE_CHECKING:
    from . import Store
    from .report import FileReport


def import_growth(
    store: Store, path: Path, mark: Mark | None, context: Context | None = None, *, strict: bool = False
) -> tuple[list[FileReport], Mark | None]:
    """Imports what a file gained since ``mark``; the store is then as if the whole file had been imported.

    Without a mark, or when the file is no longer the one that was marked (cut, rewritten, put in its place), or
    when the store does not hold what was read before, all of it is imported. Only the last answer of a session
    may be told as still open, where its file cannot tell whether it is over.

    Returns:
        The reports, whose turns and calls are the new ones; the next mark, None for files that cannot be followed.

    Raises:
        LooptapeError: As `import_path`.
    """
    known = mark if mark is not None and mark.fits(path) and _holds(store, mark) else None
    if not _is_plain(path):
        return import_path(store, path, strict=strict, context=context), None
    growth = Growth(known)
    try:
        reports = import_path(
            store,
            Source(str(path), (path,), growth=growth),
            format=known.format if known else None,
            strict=strict,
            context=context,
        )
    except Replaced:
        return import_growth(store, path, None, context, strict=strict)
    return reports, growth.mark()


def unread(path: Path, mark: Mark | None) -> int:
    """Octets of a file that an import of it has to read; raises OSError."""
    size = path.stat().st_size
    return size - mark.offset if mark is not None and mark.fits(path) else size


def _holds(store: Store, mark: Mark) -> bool:
    """True when no turn is missing of what was read before: somebody may have removed runs, or the whole store."""
    names = [run for run in mark.runs if run.isalnum()]
    if not names:
        return False
    listed = ", ".join(f"'{name}'" for name in names)
    found = dict(store.sql(f"select id, turns from runs where id in ({listed})")[2])  # noqa: S608 - letters and digits
    return all(found.get(run, -1) >= turns for run, turns in mark.runs.items())


def _is_plain(path: Path) -> bool:
    """True when the octets of the file are those of its lines."""
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError:
        return False  # said by the import
