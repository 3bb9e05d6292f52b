"""The members of an Inspect .eval file (a zip, its entries deflated or zstd) as streams, checked while they are read."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from ...errors import LooptapeError
from ..compressed import FREE_BYTES, MAX_RATIO, zstd
from ..report import Notes

_ZSTD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, struct.error, OverflowError)


class Archive:
    """An open .eval file. Names of members are only names: nothing is ever written under one.

    Raises:
        LooptapeError: It is no zip file, or one that was never finished (``damaged-archive``).
    """

    def __init__(self, stream: IO[bytes], label: str, notes: Notes) -> None:
        self._stream = stream
        self._label = label
        self._notes = notes
        try:
            self._zip = zipfile.ZipFile(stream)
        except (*_DAMAGE, NotImplementedError) as error:
            raise LooptapeError(
                "damaged-archive",
                f"{label}: the .eval file cannot be opened ({error}); one that is still written has no table of contents",
                "Nothing of it was imported; wait for the eval to end, or repair it with: inspect log recover",
            ) from None
        # a member that was written again stands twice in the table: the last one counts
        self._members = {m.filename: (number, m) for number, m in enumerate(self._zip.infolist(), 1)}

    def names(self) -> list[str]:
        """The names of all members, in the order of the table of contents."""
        return [name for name, _ in sorted(self._members.items(), key=lambda pair: pair[1][0])]

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[tuple[int, IO[bytes]] | None]:
        """A member's position and bytes; None when it is not there or cannot be used, which is then noted.

        Raises:
            LooptapeError: It is compressed with zstd and nothing here can open that (``no-zstd``).
            Damaged: While it is read: it cannot be unpacked, its checksum is wrong, it grows too large.
        """
        number, member = self._members.get(name, (0, None))
        if member is None or member.flag_bits & 1:
            if member is not None:
                self._notes.skip(number, f"{said(name)} is encrypted")
            yield None
            return
        with contextlib.ExitStack() as stack:
            try:
                raw = stack.enter_context(self._unpacked(member))
            except NotImplementedError:
                method = member.compress_type
                self._notes.skip(number, f"{said(name)} is compressed in a way that is not known (method {method})")
                raw = None
            except _DAMAGE as error:
                self._notes.skip(number, f"{said(name)} is damaged ({str(error)[:120] or 'cut'})")
                raw = None
            yield (
                None if raw is None else (number, cast("IO[bytes]", io.BufferedReader(_Checked(raw, member), 1 << 18)))
            )

    def _unpacked(self, member: zipfile.ZipInfo) -> IO[bytes]:
        if member.compress_type != _ZSTD:
            return self._zip.open(member)
        return cast("IO[bytes]", zstd(self._label).ZstdFile(cast("Any", _Stretch(self._stream, member)), "rb"))


class Damaged(ValueError):
    """A member that cannot be read to its end; the text goes on after "member NAME"."""


def said(name: str) -> str:
    """A member as people are told of it."""
    return f"member {name[:100]!r}"


class _Checked(io.RawIOBase):
    """What a member unpacks to: within a limit, and at its end held against its checksum."""

    def __init__(self, stream: IO[bytes], member: zipfile.ZipInfo) -> None:
        self._stream = stream
        self._sum = member.CRC
        self._limit = max(FREE_BYTES, MAX_RATIO * member.compress_size)
        self._given = self._crc = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except Exception as error:  # of three libraries, whose words for damage are many
            raise Damaged(f"is damaged ({str(error)[:120] or 'cut'})") from None
        self._given += len(data)
        if self._given > self._limit:
            raise Damaged(f"unpacks to more than {self._limit >> 20} MB, over {MAX_RATIO} times its size")
        self._crc = zlib.crc32(data, self._crc)
        if not data and self._crc != self._sum:
            raise Damaged("is damaged (its checksum is wrong)")
        buffer[: len(data)] = data
        return len(data)


class _Stretch:
    """The packed bytes of one member as a stream; zipfile itself opens zstd only from Python 3.14 on."""

    def __init__(self, stream: IO[bytes], member: zipfile.ZipInfo) -> None:
        stream.seek(member.header_offset)
        magic, name, extra = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
        if magic != b"PK\x03\x04":
            raise ValueError("its local header is missing")
        stream.seek(name + extra, 1)
        self._stream = stream
        self._left = member.compress_size

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes."""
        data = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data
