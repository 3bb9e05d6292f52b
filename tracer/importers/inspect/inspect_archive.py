"""The members of an Inspect .eval file (a zip, its entries deflated or zstd), each read whole within a limit."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from ...errors import LooptapeError
from ..compressed import zstd
from ..report import Notes

MAX_MEMBER_BYTES = 256 << 20
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

    def read(self, name: str) -> bytes | None:
        """A member's bytes; None when it is not there or cannot be used, which is then noted.

        Raises:
            LooptapeError: It is compressed with zstd and nothing here can open that (``no-zstd``).
        """
        if name not in self._members:
            return None
        number, member = self._members[name]
        said = f"member {name[:100]!r}"
        if member.flag_bits & 1:
            self._notes.skip(number, f"{said} is encrypted")
            return None
        try:
            data = b"".join(self._pieces(member))
        except NotImplementedError:
            self._notes.skip(number, f"{said} is compressed in a way that is not known (method {member.compress_type})")
        except _DAMAGE as error:
            self._notes.skip(number, f"{said} is damaged ({str(error)[:120] or 'cut'})")
        else:
            if len(data) <= MAX_MEMBER_BYTES:
                return data
            self._notes.skip(number, f"{said} unpacks to more than {MAX_MEMBER_BYTES >> 20} MB, the limit for one")
        return None

    def _pieces(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        """The content, at most a byte more than the limit; whole content is checked against its checksum."""
        if member.compress_type != _ZSTD:
            with self._zip.open(member) as opened:
                yield opened.read(MAX_MEMBER_BYTES + 1)
            return
        module = zstd(self._label)
        with module.ZstdFile(cast("Any", _Stretch(self._stream, member)), "rb") as opened:
            try:
                data: bytes = opened.read(MAX_MEMBER_BYTES + 1)
            except module.ZstdError as error:
                raise ValueError(str(error)) from None
        if len(data) <= MAX_MEMBER_BYTES and zlib.crc32(data) != member.CRC:
            raise ValueError("its checksum is wrong")
        yield data


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
