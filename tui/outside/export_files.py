"""Files that a command writes: private, and whole or not there."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ...tracer.canonical import digest
from ...tracer.errors import LooptapeError


def file_name(run: str) -> str:
    """A run's id as a file name: ids of foreign tapes may hold anything, also a path."""
    return run if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", run) else digest(run)


def write_texts(path: Path, texts: Iterator[str]) -> None:
    """Writes texts as UTF-8, lone surrogates as they are. Raises as `write_bytes` does."""
    write_bytes(path, (text.encode("utf-8", "surrogatepass") for text in texts))


def write_bytes(path: Path, parts: Iterator[bytes]) -> None:
    """Writes beside the file and moves it there, so that a failure leaves no half file.

    A link is followed. What is no file (a pipe, a device) cannot be replaced and is written to as it is.

    Raises:
        LooptapeError: The file cannot be written (exit 2).
    """
    if not path.name or path.is_dir():
        raise LooptapeError("bad-output", f"{path} is a folder", "Name a file in it", exit_code=2)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as out:
                out.writelines(parts)
        else:
            write_whole(Path(os.path.realpath(path)), parts)
    except OSError as error:
        raise LooptapeError(
            "bad-output", f"{path}: {error.strerror}", "Name a file that can be written", exit_code=2
        ) from None


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Writes beside the file, for its owner alone, and moves it there; a link is replaced. Raises OSError."""
    number, name = tempfile.mkstemp(prefix=".looptape-", suffix=".new", dir=path.parent)  # 0600
    try:
        with os.fdopen(number, "wb") as out:
            out.writelines(parts)
        os.replace(name, path)
    finally:
        with suppress(OSError):
            os.unlink(name)
