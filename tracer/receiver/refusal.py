"""What is refused, and how it is said: limits, foreign names, encodings, in the words of HTTP and of gRPC."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection
from urllib.parse import urlsplit

MAX_BODY = 64 << 20
"""Octets of a request, before and after it is unpacked."""
MAX_ITEMS = 100_000
"""Spans or log records of a request."""

_GRPC = {400: 3, 403: 7, 404: 12, 405: 12, 413: 8, 415: 12, 429: 8, 503: 14}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Refused(Exception):
    """The request is not taken. ``status``: as HTTP says it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    @property
    def grpc(self) -> int:
        """The status as gRPC says it."""
        return _GRPC.get(self.status, 13)

    def body(self, *, as_json: bool) -> bytes:
        """A google.rpc.Status, as OTLP wants it."""
        if as_json:
            return json.dumps({"code": self.grpc, "message": self.message}).encode()
        said = self.message.encode()
        return b"\x08" + bytes([self.grpc]) + b"\x12" + varint(len(said)) + said


def too_large(size: int | None = None) -> Refused:
    """413, with the limit."""
    given = "" if size is None else f" ({size:,} octets)"
    return Refused(413, f"the request is larger than {MAX_BODY >> 20} MB{given}: export smaller batches")


def check_host(host: str | None, allowed: Collection[str] = ()) -> None:
    """Only our own names: a page of the web that had its name point here (DNS rebinding) uses its own."""
    name = hostname(f"//{host}") if host else None
    if host and (name is None or (name not in _LOOPBACK and name not in allowed)):
        raise Refused(403, f"the host {host[:100]!r} is not this machine's loopback (--allow-host NAME lets it in)")


def check_origin(origin: str | None) -> None:
    """Pages of the web may not write here; those that this machine itself serves may."""
    if origin is not None and hostname(origin) not in _LOOPBACK:
        raise Refused(403, f"the origin {origin[:100]!r} may not write here")


def hostname(url: str) -> str | None:
    """The host of an address in lower case; None when it has none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def unpacked(data: bytes, encoding: str) -> bytes:
    """The request as it was before it was compressed, up to the limit.

    Raises:
        Refused: 413 beyond the limit, 415 for an unknown encoding, 400 for data that are not so encoded.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return data
    if name not in ("gzip", "x-gzip", "deflate"):
        raise Refused(415, f"content-encoding {encoding[:40]!r} is not known here: gzip, deflate or none")
    out: list[bytes] = []
    rest, room = data, MAX_BODY
    try:
        while rest:
            unpacker = zlib.decompressobj(15 + 32)  # gzip and zlib, told by their head
            out.append(unpacker.decompress(rest, room + 1))
            room -= len(out[-1])
            if room < 0:
                raise too_large()
            if not unpacker.eof:
                raise Refused(400, f"the {name} data are cut off")
            rest = unpacker.unused_data
    except zlib.error as error:
        raise Refused(400, f"these are no {name} data ({error})") from None
    return b"".join(out)


def varint(number: int) -> bytes:
    """A whole number as protobuf writes it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
