"""Files that a command writes: private, and whole or not there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
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

    Raises:
        LooptapeError: The file cannot be written (exit 2).
    """
    if not path.name or path.is_dir():
        raise LooptapeError("bad-output", f"{path} is a folder", "Name a file in it", exit_code=2)
    new = path.with_name(path.name + ".new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            for part in parts:
                out.write(part)
        new.replace(path)
    except OSError as error:
        raise LooptapeError(
            "bad-output", f"{path}: {error.strerror}", "Name a file that can be written", exit_code=2
        ) from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
