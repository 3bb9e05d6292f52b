"""gzip and zstd opened on the way in, known by their first bytes; damage and bombs are named, never half read."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from ..errors import LooptapeError

# A file may unpack to this much whatever its size, and beyond it to so many times its size. Logs that repeat
# their whole history shrink a hundredfold; what shrinks more than this and is that long was made to hurt.
FREE_BYTES = 1 << 30
MAX_RATIO = 300

_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"


@contextlib.contextmanager
def unpacked(stream: IO[bytes], label: str) -> Iterator[IO[bytes]]:
    """The bytes that a stream holds, decompressed when its first bytes say so. It must be seekable.

    Raises:
        LooptapeError: ``no-zstd``; while reading, ``damaged-archive`` and ``unpacks-too-large``.
    """
    magic = stream.read(4)
    stream.seek(0)
    if magic.startswith(_GZIP):
        opened: Any = gzip.GzipFile(fileobj=stream, mode="rb")
        damage: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error, EOFError)
    elif magic == _ZSTD:
        module = zstd(label)
        opened, damage = module.ZstdFile(stream, "rb"), (module.ZstdError, EOFError)
    else:
        yield stream
        return
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    with opened:
        yield cast("IO[bytes]", io.BufferedReader(_Guarded(opened, damage, label, size), 1 << 18))


class _Guarded(io.RawIOBase):
    """A decompressor whose troubles are ours: one error names the file and what to do."""

    def __init__(self, stream: Any, damage: tuple[type[Exception], ...], label: str, size: int) -> None:
        self._stream = stream
        self._damage = damage
        self._label = label
        self._limit = max(FREE_BYTES, MAX_RATIO * size)
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data: bytes = self._stream.read(len(buffer))
        except self._damage as error:
            reason = str(error) or "it ends too early"
            raise LooptapeError(
                "damaged-archive",
                f"{self._label}: the compressed file is damaged or cut after {self._given:,} unpacked bytes ({reason})",
                "Nothing of it was imported; unpack what can still be read (gzip -dc, zstd -dc) and import that",
            ) from None
        self._given += len(data)
        if self._given > self._limit:
            raise LooptapeError(
                "unpacks-too-large",
                f"{self._label}: unpacks to more than {self._limit >> 20} MB, over {MAX_RATIO} times its size",
                "Nothing of it was imported; if it is meant to be so, unpack it and import the file that comes out",
            )
        buffer[: len(data)] = data
        return len(data)


def zstd(label: str) -> Any:
    """The standard library's module (Python 3.14 and later) or its backport of the same face."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise LooptapeError(
        "no-zstd",
        f"{label}: compressed with zstd, which Python opens from 3.14 on",
        "Install it with: pip install 'looptape[zstd]', or unpack the file with: zstd -d",
    )
