"""What is in an imported file: tools, models, tokens, secrets removed, what a replay will lack. Counted as records pass."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .. import tape
from ..model import BUCKETS

_MARK = "[redacted:"
_SECRET = re.compile(r"\[redacted:([a-z0-9-]+)\]")
# in JSON text a quotation mark of a string's own is escaped: these are found in the structure only
_THINKING = re.compile(r'"type":\s*"thinking"')
_SIGNED = re.compile(r'"signature":\s*"[^"]')
_SYSTEM = re.compile(r'"role":\s*"(?:system|developer)"')
_EDGE = 400


class _Turn:
    """What is kept of a turn until all is read: a later turn_end takes the place of an earlier one."""

    __slots__ = ("bare", "calls", "end", "inherited", "model", "tools", "usage", "whole")

    def __init__(self) -> None:
        self.inherited = self.tools = self.bare = self.end = self.whole = False
        self.model: str | None = None
        self.usage: tuple[int | None, ...] = ()
        self.calls: dict[str, str] = {}


class Summary:
    """Follows the records of one file. Turns that a fork inherited belong to the file they come from."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, int], _Turn] = {}
        self._secrets: dict[int, Counter[str]] = {}
        self._answered: set[tuple[str, int, str]] = set()
        self._system = False
        self._unsigned = False
        self._emptied = self._cut = 0

    def follow(self, records: Iterator[tape.Record]) -> Iterator[tape.Record]:
        """The records, unchanged."""
        for record in records:
            kind = record["kind"]
            if kind == "blob":
                self._blob(record)
            else:
                self._beside(record)
            if kind in ("turn_start", "turn_end", "call_start", "call_end", "call_seen"):
                self._turn(kind, record)
            yield record

    def facts(self) -> dict[str, Any]:
        """The fields of a `FileReport` that tell of the content."""
        own = [t for t in self._turns.values() if not t.inherited]
        tools = Counter(name for t in own for name in t.calls.values())
        secrets = sum(self._secrets.values(), Counter[str]())
        return {
            "tools": dict(sorted(tools.items(), key=lambda pair: (-pair[1], pair[0]))),
            "models": dict(Counter(t.model for t in own if t.model).most_common()),
            "tokens": _tokens(own),
            "secrets": dict(secrets.most_common()),
            "missing": tuple(self._missing(own)),
        }

    def _blob(self, record: tape.Record) -> None:
        text = record.get("text")
        if not isinstance(text, str):
            self._emptied += 1
            return
        if _MARK in text:
            self._found(text)
        if '"thinking"' in text and _THINKING.search(text) and not _SIGNED.search(text):
            self._unsigned = True
        if not self._system and _SYSTEM.search(text[:_EDGE] + text[-_EDGE:]):
            self._system = True

    def _beside(self, record: tape.Record) -> None:
        """What a record says itself: arguments, results that no model saw, errors, events. A title is a prompt's beginning."""
        for name, value in record.items():
            kind = type(value)
            if kind is str:
                if _MARK in value and name != "title":
                    self._found(value)
            elif (kind is dict or kind is list) and value:
                self._within(value)

    def _within(self, value: Any) -> None:
        todo = [value]
        while todo:
            node = todo.pop()
            for child in node.values() if isinstance(node, dict) else node:
                kind = type(child)
                if kind is str:
                    if _MARK in child:
                        self._found(child)
                elif kind is dict or kind is list:
                    todo.append(child)

    def _found(self, text: str) -> None:
        """A text with removed secrets, or JSON whose texts have them. One that comes again is counted once."""
        if text[:1] in ("{", "["):
            try:
                decoded = json.loads(text)
            except (ValueError, RecursionError):
                decoded = None
            if isinstance(decoded, (dict, list)):
                self._within(decoded)
                return
        self._secrets[hash(text)] = Counter(_SECRET.findall(text))

    def _turn(self, kind: str, record: tape.Record) -> None:
        run, number, call = record.get("run"), record.get("turn"), record.get("call")
        if not isinstance(run, str) or not isinstance(number, int):
            return  # the store says what is wrong with it
        turn = self._turns.get((run, number))
        if turn is None:
            turn = self._turns[run, number] = _Turn()
        if kind == "turn_start":
            self._start(turn, record)
        elif kind == "turn_end":
            _end(turn, record)
            self._answered |= {(run, number, i) for i in _provider_side(record)}
        elif isinstance(call, str):
            if kind != "call_start":
                self._answered.add((run, number, call))
            elif isinstance(record.get("name"), str):
                turn.calls[call] = record["name"]

    def _start(self, turn: _Turn, record: tape.Record) -> None:
        turn.inherited = bool(record.get("inherited"))
        turn.tools, turn.bare = bool(record.get("tools")), not record.get("params")
        turn.whole = bool(record.get("url"))  # its request was seen as it was sent: what is not in it was not sent
        turn.model = turn.model or _text(record.get("model"))
        self._system |= bool(record.get("system"))
        flags = record.get("flags")
        self._cut += isinstance(flags, list) and "truncated_at_source" in flags

    def _missing(self, own: list[_Turn]) -> Iterator[str]:
        if not own:
            return
        toolless = sum(1 for t in own if t.calls and not t.tools)
        if toolless:
            yield _of("tool definitions", toolless, len([t for t in own if t.calls]))
        if not self._system and not all(t.whole for t in own):
            yield "system prompt"
        bare = sum(t.bare for t in own)
        if bare:
            yield _of("request parameters", bare, len(own))
        unread = sum(1 for t in own if t.end and not any(n is not None for n in t.usage))
        if unread:
            yield _of("usage", unread, len(own))
        if self._unsigned:
            yield "signatures of thinking"
        calls = {(*key, c) for key, t in self._turns.items() if not t.inherited for c in t.calls}
        silent = len(calls - self._answered)
        if silent:
            yield _of("results", silent, len(calls), "calls")
        if self._cut:
            yield f"what was cut at the source ({self._cut:,} turns)"
        if self._emptied:
            yield f"texts ({self._emptied:,}), recorded without content"


def _end(turn: _Turn, record: tape.Record) -> None:
    turn.end = True
    turn.model = _text(record.get("model")) or turn.model
    usage = record.get("usage")
    if isinstance(usage, Mapping):
        turn.usage = tuple(_number(usage.get(name)) for name in BUCKETS)
    calls = record.get("calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping) and isinstance(call.get("id"), str):
            turn.calls[call["id"]] = str(call.get("name"))


def _provider_side(record: tape.Record) -> Iterator[str]:
    """Calls whose result is part of the answer."""
    calls = record.get("calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping) and call.get("origin") == "provider" and isinstance(call.get("id"), str):
            yield call["id"]


def _tokens(own: list[_Turn]) -> dict[str, int | None]:
    """Sums by bucket; None where no turn tells."""
    told = [t.usage for t in own if t.usage]
    columns = zip(*told, strict=True) if told else [()] * len(BUCKETS)
    known = [[n for n in column if n is not None] for column in columns]
    return {name: sum(numbers) if numbers else None for name, numbers in zip(BUCKETS, known, strict=True)}


def _of(what: str, part: int, whole: int, noun: str = "turns") -> str:
    return what if part == whole else f"{what} of {part:,} of {whole:,} {noun}"


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
