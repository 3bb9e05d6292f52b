"""A JSON document too large to decode as a whole: the values that somebody wants of it, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal

from . import reading

CHUNK_BYTES = 1 << 18

# What is wanted of a value: None is the value itself; of a list or object some of its members, by key ("*" is every
# other key, and every item of a list). What is not named is read past.
Rule = Mapping[str, Any] | None
_PASS: Rule = {}

# a whole string, or else a bracket, or the quote of a string that ends beyond the buffer
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_AFTER_SCALAR = re.compile(rb"[,\]}\s]")
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
_QUOTE, _OPEN = ord('"'), frozenset(b"{[")


class Broken(ValueError):
    """The document goes wrong or ends too early; what came before is good. ``line`` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class Member:
    """A value that was wanted, or the begin or end of one that was taken apart.

    Attributes:
        path: Keys and (from 1) positions from the document to it; () is the document.
        raw: Its bytes, not decoded and not checked; None when they are more than the limit.
        line: Where it begins, from 1; of an ``end``, where that is.
    """

    kind: Literal["value", "begin", "end"]
    path: tuple[str | int, ...]
    raw: bytes | None
    line: int


def members(stream: IO[bytes], rule: Rule, limit: int) -> Iterator[Member]:
    """What the rule wants of the object that a stream holds, in order. Memory follows the largest value of it.

    Args:
        stream: From its beginning; need not be seekable. It is read to its end.
        rule: What to take apart, and what of it.
        limit: Bytes of one value; a longer one is read past and has no ``raw``.

    Raises:
        Broken: At the first place that is no JSON object.
    """
    scan = _Scan(stream, limit)
    if scan.peek() != b"{":
        raise Broken(scan.line(), "no JSON object")
    yield from _value(scan, (), rule)
    scan.end()


def _value(scan: _Scan, path: tuple[str | int, ...], rule: Rule) -> Iterator[Member]:
    first = scan.peek()
    if not rule or first not in (b"{", b"["):
        line, raw = scan.value(wanted=rule is not _PASS)
        if rule is not _PASS:
            yield Member("value", path, raw, line)
        return
    yield Member("begin", path, None, scan.line())
    scan.sign(first, "")
    if scan.peek() == (b"}" if first == b"{" else b"]"):
        scan.sign(b"}]", "")
    else:
        yield from (_pairs if first == b"{" else _items)(scan, path, rule)
    yield Member("end", path, None, scan.line())


def _pairs(scan: _Scan, path: tuple[str | int, ...], rule: Mapping[str, Any]) -> Iterator[Member]:
    others = rule.get("*", _PASS)
    sign = b","
    while sign == b",":
        key = _key(scan)
        scan.sign(b":", "no colon after a key")
        yield from _value(scan, (*path, key), rule.get(key, others))
        sign = scan.sign(b",}", "no comma between members")


def _items(scan: _Scan, path: tuple[str | int, ...], rule: Mapping[str, Any]) -> Iterator[Member]:
    others = rule.get("*", _PASS)
    sign, number = b",", 0
    while sign == b",":
        number += 1
        yield from _value(scan, (*path, number), others)
        sign = scan.sign(b",]", "no comma between items")


def _key(scan: _Scan) -> str:
    if scan.peek() != b'"':
        raise Broken(scan.line(), "a key is not a string")
    line, raw = scan.value()
    try:
        key = reading.decode(raw or b"")
    except ValueError:
        key = None
    if not isinstance(key, str):
        raise Broken(line, "a key is not a string")
    return key


class _Scan:
    """The stream from ``at`` (begin of what is wanted) over ``pos`` (how far we are); both within ``data``."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.stream = stream
        self.limit = limit
        self.data = stream.read(CHUNK_BYTES)
        self.at = self.pos = 3 if self.data.startswith(b"\xef\xbb\xbf") else 0
        self.over = False
        self._lines = 1
        self._counted = 0

    def line(self) -> int:
        """The line of ``at``."""
        self._lines += self.data.count(b"\n", self._counted, self.at)
        self._counted = self.at
        return self._lines

    def peek(self) -> bytes:
        """The next sign that is no space; empty at the end."""
        while (found := _NOT_SPACE.search(self.data, self.pos)) is None:
            self.at = self.pos = len(self.data)
            if not self.more():
                return b""
        self.at = self.pos = found.start()
        return found[0]

    def sign(self, allowed: bytes, reason: str) -> bytes:
        """The next sign, which must be one of these."""
        found = self.peek()
        if not found:
            raise self.cut()
        if found not in allowed:
            raise Broken(self.line(), reason)
        self.at = self.pos = self.pos + 1
        return found

    def end(self) -> None:
        """Nothing but space may follow."""
        if self.peek():
            raise Broken(self.line(), "what follows the document is not read")

    def value(self, *, wanted: bool = True) -> tuple[int, bytes | None]:
        """Line and bytes of the next value; of one that is not wanted nothing stays in memory."""
        first = self.peek()
        line, self.over = self.line(), not wanted
        if not first:
            raise self.cut()
        if first in b"{[":
            self._brackets()
        elif first == b'"':
            self.pos += 1
            self._string()
        else:
            self._scalar()
        kept = None if self.over or self.pos - self.at > self.limit else self.data[self.at : self.pos]
        self.at = self.pos
        return line, kept

    def more(self) -> bool:
        """Reads on; what lies before ``at`` goes, and all of a value that is over the limit."""
        if self.over or self.pos - self.at > self.limit:
            self.over, self.at = True, self.pos
        chunk = self.stream.read(max(CHUNK_BYTES, min(len(self.data) - self.at, self.limit)))
        self.line()
        self.data = self.data[self.at :] + chunk
        self.pos -= self.at
        self.at = self._counted = 0
        return bool(chunk)

    def cut(self) -> Broken:
        """The error for a document that ends inside something."""
        return Broken(self.line(), "incomplete tail: the document ends before it is whole")

    def _brackets(self) -> None:
        depth = 0
        while True:
            for found in _TOKEN.finditer(self.data, self.pos):
                sign = self.data[found.start()]
                if sign == _QUOTE:
                    if found.end() - found.start() == 1:
                        self.pos = found.end()
                        self._string()
                        break
                elif sign in _OPEN:
                    depth += 1
                else:
                    depth -= 1
                    if not depth:
                        self.pos = found.end()
                        return
            else:
                self.pos = len(self.data)
                if not self.more():
                    raise self.cut()

    def _string(self) -> None:
        """From inside a string to behind its closing quote."""
        while True:
            found = _IN_STRING.match(self.data, self.pos)
            self.pos = found.end() if found else self.pos
            if self.data[self.pos : self.pos + 1] == b'"':
                self.pos += 1
                return
            if not self.more():
                raise self.cut()

    def _scalar(self) -> None:
        while (found := _AFTER_SCALAR.search(self.data, self.pos)) is None:
            self.pos = len(self.data)
            if not self.more():
                return
        self.pos = found.start()
