"""A snapshot: the store's file copied while nobody can write, its log folded in, for a notebook to keep open."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path

from ..errors import LooptapeError, UsageError
from .rows import Connection

_PIECE = 1 << 20


def copy(con: Connection, file: Path | None, path: Path, later: ExitStack) -> None:
    """Copies the file behind a reading connection; as long as that is open, no other process can write to it.

    The copy is whole or not there: it is made beside its place and moved.

    Args:
        later: Closed when the connection is: to close any descriptor of a file lets go the locks that this process
            has on it, and with them the connection's own.

    Raises:
        UsageError: Something is there already, or the store lies in memory.
        LooptapeError: The file cannot be written.
    """
    import duckdb

    if file is None:
        raise UsageError("usage", "a store in memory has no snapshot", "Import the file first")
    if path.exists():
        raise UsageError("file-exists", f"{path} is there already", "Remove it first, or name another file")
    con.execute("select 1")
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    log = file.with_name(file.name + ".wal")
    try:
        for source, target in ((file, new), (log, new.with_name(new.name + ".wal"))):
            if source.exists():
                opened = later.enter_context(source.open("rb"))
                with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copied:
                    shutil.copyfileobj(opened, copied, _PIECE)
        with duckdb.connect(str(new)) as fresh:  # replays the log and folds it in
            fresh.execute("checkpoint")
        new.rename(path)
    except (OSError, duckdb.Error) as error:
        said = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise LooptapeError("bad-output", f"{path}: {said}", "Name a file that can be written", exit_code=2) from None
    finally:
        for left in (new, new.with_name(new.name + ".wal")):
            with suppress(OSError):
                left.unlink(missing_ok=True)
