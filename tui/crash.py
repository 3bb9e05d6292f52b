"""When the screen breaks: what went wrong into a private log, without anything of the user's data; one line for the user.

The log has the kinds of exceptions and the lines of our own code and its libraries. It has no message of an
exception and no value of a variable: a message often quotes what could not be read.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from datetime import datetime
from pathlib import Path

from ..tracer.errors import LooptapeError

FILE = "screen.log"
MOST = 200_000
"""Bytes after which the log begins anew; the one before it is kept as ``screen.log.1``."""


def log(home: Path | None, what: str, error: BaseException | None = None) -> Path | None:
    """Add an entry to the log; its path, None where nothing can be written.

    Args:
        home: The folder of the store; the folder for temporary files where it is None or cannot be written.
        what: What happened, in words of ours.
        error: The exception; its causes are written too.
    """
    entry = "".join(f"{line}\n" for line in _lines(what, error))
    for folder in (home, Path(tempfile.gettempdir())):
        if folder is not None:
            try:
                return _append(folder / (FILE if folder == home else f"looptape-{os.getuid()}-{FILE}"), entry)
            except OSError:
                continue
    return None


def ended(what: str, log_file: Path | None) -> LooptapeError:
    """The one line that a user gets when the screen is gone."""
    where = f"What is known of it: {log_file}" if log_file is not None else "There is no place for a log"
    return LooptapeError("tui-crash", what, where, exit_code=1)


def _append(path: Path, entry: str) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > MOST:
        path.replace(path.with_name(f"{path.name}.1"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(entry)
    return path


def _lines(what: str, error: BaseException | None) -> list[str]:
    from .. import __version__

    lines = [f"{datetime.now().astimezone().isoformat(timespec='seconds')} looptape {__version__}, {what}"]
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        lines.append(f"  {type(error).__module__}.{type(error).__qualname__}")
        lines += [f"    {_place(f.filename)}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)]
        held = getattr(error, "error", None)  # what Textual says of a worker holds the worker's own
        cause = error.__cause__ or (held if isinstance(held, BaseException) else None)
        error = cause or (None if error.__suppress_context__ else error.__context__)
    return lines


def _place(file: str) -> str:
    """A file of the program, as short as it is clear; a path of the user's own machine is not in it."""
    for folder in sorted({p for p in sys.path if p}, key=len, reverse=True):
        if file.startswith(folder.rstrip(os.sep) + os.sep):
            return file[len(folder.rstrip(os.sep)) + 1 :]
    ours = str(Path(__file__).parents[1])
    return f"looptape{file[len(ours) :]}" if file.startswith(ours) else Path(file).name
