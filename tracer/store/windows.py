"""The requests of a run one after the other: what each turn's window kept, lost and gained, in one pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..model import ToolCall, Turn, Usage
from .read import texts
from .requests import answer_messages
from .rows import USAGE, Connection, Row, select
from .text import decode, encode, loads

_PARTS = ("system", "tools", "params")
_TURNS = (
    "select number, base, keep, mode, api, message_count, response_blob, system_blob, tools_blob, params_blob "
    "from base.turns where run = ? order by number"
)
_SPANS = (
    "select s.position, s.first_turn, s.last_turn, b.role, b.text, b.length, replace(b.hash::varchar, '-', '') as hash "
    "from base.spans as s join base.blobs as b on b.id = s.blob where s.run = ? order by s.first_turn, s.position"
)
_SAID = (
    "select number, agent, provider, model, request_model, started_at, ended_at, message_count, text, thinking, "  # noqa: S608 - our names
    f"request_flags_json, response_flags_json, usage_origin, usage_partial, {', '.join(USAGE)} "
    "from base.turns where run = ? order by number"
)
_CALLS = "select turn, id, name, arguments_raw, state, origin from base.calls where run = ? order by turn, position"


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A message as it stood in one request after another: the same object as long as it stood there.

    Attributes:
        text: Its exact JSON text; None where content was not kept (then ``length`` and ``role`` are all there is).
        hash: BLAKE2b-16 of the text, in hex.
    """

    hash: str
    text: str | None
    role: str | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """How a turn's window comes from the one before: ``kept`` messages, then ``added`` for ``dropped``, then the rest.

    Attributes:
        kept: Leading messages that stayed as they were.
        dropped, added: What stood and what stands behind them; messages after those stayed.
        count: Messages in this window.
        system, tools, params: The exact JSON texts, None where there are none; the same object while unchanged.
    """

    number: int
    kept: int
    dropped: tuple[Sent, ...]
    added: tuple[Sent, ...]
    count: int
    system: str | None
    tools: str | None
    params: str | None


def steps(con: Connection, run: str, last: int | None = None) -> Iterator[Step]:
    """The steps of a run's turns in order, up to turn ``last``; messages that only a server held are among them."""
    rows = [r for r in select(con, _TURNS, [encode(run)]) if last is None or r["number"] <= last]
    spans = _Spans(select(con, _SPANS, [encode(run)]))
    bodies = texts(con, list({r[f"{name}_blob"] for r in rows for name in _PARTS} - {None}))
    held = _Held(con, rows)
    before: list[Sent] = []
    for row in rows:
        low, high = spans.move(row["number"])
        now = held.window(row, spans.listed)
        if now is None:  # the client sent all of it
            now = spans.window()
            if len(now) != len(spans.listed) or held.differs:
                low, high = 0, max(len(now), len(before))
        else:
            low, high = 0, max(len(now), len(before))
        low, old, new = _changed(before, now, low, high)
        system, tools, params = (bodies.get(row[f"{name}_blob"]) for name in _PARTS)
        yield Step(row["number"], low, old, new, len(now), system, tools, params)
        before = now
        held.keep(row["number"], now)


def said(con: Connection, run: str) -> list[Turn]:
    """Turns with what the model said, of which model, at what usage, and the calls without their results.

    A fourth of the time that whole turns take.
    """
    calls: dict[int, list[ToolCall]] = {}
    for turn, call, name, raw, state, origin in con.execute(_CALLS, [encode(run)]).fetchall():
        raw = "{}" if raw is None else decode(raw)
        given = {"arguments_raw": raw, "state": state, "origin": origin}
        calls.setdefault(turn, []).append(ToolCall(decode(call), decode(name), **given))
    found = []
    for row in select(con, _SAID, [encode(run)]):
        usage = Usage(
            **{name: row.pop(name) for name in USAGE},
            origin=row.pop("usage_origin") or "missing",
            partial=bool(row.pop("usage_partial")),
        )
        flags = [*(loads(row.pop("request_flags_json")) or ()), *(loads(row.pop("response_flags_json")) or ())]
        own = tuple(calls.get(row["number"], ()))
        found.append(Turn(run, **row, usage=usage, flags=tuple(dict.fromkeys(flags)), tool_calls=own))
    return found


def _changed(
    before: list[Sent], now: list[Sent], low: int, high: int
) -> tuple[int, tuple[Sent, ...], tuple[Sent, ...]]:
    """Where two windows begin to differ, and both stretches; the messages from ``high`` on are the same."""
    shortest = min(len(before), len(now))
    while low < shortest and low < high and before[low] is now[low]:
        low += 1
    if high >= max(len(before), len(now)) or len(before) != len(now):
        return low, tuple(before[low:]), tuple(now[low:])
    return low, tuple(before[low:high]), tuple(now[low:high])


class _Spans:
    """The list that the client sent, brought from turn to turn by its interval rows."""

    def __init__(self, rows: list[Row]) -> None:
        self.listed: list[Sent | None] = []
        self._at = 0
        self._starts: dict[int, list[tuple[int, Sent]]] = {}
        self._ends: dict[int, list[int]] = {}
        for row in rows:
            sent = Sent(row["hash"], row["text"], row["role"], row["length"])
            self._starts.setdefault(row["first_turn"], []).append((row["position"] - 1, sent))
            if row["last_turn"] is not None:
                self._ends.setdefault(row["last_turn"] + 1, []).append(row["position"] - 1)

    def window(self) -> list[Sent]:
        """The list as it is now."""
        return [s for s in self.listed if s is not None] if None in self.listed else list[Any](self.listed)

    def move(self, number: int) -> tuple[int, int]:
        """Goes on to a turn; the first place that changed and the end of what changed."""
        turns = range(self._at + 1, number + 1)  # a turn whose start was lost has spans that end before it too
        self._at = number
        ended = [place for n in turns for place in self._ends.get(n, ())]
        begun = [one for n in turns for one in self._starts.get(n, ())]
        places = [*ended, *(place for place, _ in begun)]
        if not places:
            return len(self.listed), len(self.listed)
        for place in ended:
            if place < len(self.listed):
                self.listed[place] = None
        for place, sent in begun:
            self.listed.extend([None] * (place + 1 - len(self.listed)))
            self.listed[place] = sent
        while self.listed and self.listed[-1] is None:
            self.listed.pop()
        return min(places), max(places) + 1


@dataclass(slots=True)
class _Held:
    """Windows of which the server held the beginning: the window of an earlier turn, its answer, then what was sent."""

    con: Connection
    rows: list[Row]
    differs: bool = False
    _of_turn: dict[int, list[Sent]] = field(default_factory=dict)
    _any: bool = field(init=False)
    _by_number: dict[int, Row] = field(init=False)

    def __post_init__(self) -> None:
        self._any = any(_is_held(r) for r in self.rows)
        self._by_number = {r["number"]: r for r in self.rows}

    def window(self, row: Row, listed: list[Sent | None]) -> list[Sent] | None:
        """The window of such a turn; None for a turn that the client sent whole."""
        base = row["base"] or row["number"] - 1
        if not _is_held(row) or base not in self._of_turn:
            return None
        self.differs = True
        earlier = self._by_number[base]
        body = texts(self.con, [earlier["response_blob"] or 0]).get(earlier["response_blob"])
        own = [s for s in listed if s is not None] if row["message_count"] is not None else []
        return [*self._of_turn[base], *map(_sent, answer_messages(earlier["api"], loads(body))), *own]

    def keep(self, number: int, window: list[Sent]) -> None:
        """Remembers a window that a later turn may stand on."""
        if self._any:
            self._of_turn[number] = window


def _is_held(row: Row) -> bool:
    # with keep > 0 the recorder knew the conversation and wrote it down whole
    return row["mode"] not in (None, "full") and not row["keep"]


def _sent(message: Any) -> Sent:
    from ..canonical import digest

    text = json.dumps(message, ensure_ascii=False)
    return Sent(digest(text), text, message.get("role") if isinstance(message, dict) else None, len(text))
