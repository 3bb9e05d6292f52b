"""The lines of a comparison: turns, requests, results and totals of both sides, each with its sign."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from ....replay.diff import NOTHING, Change, Diff, Pair
from ....replay.diff.sequences import gaps, matches
from ....replay.diff.side_lines import beside
from ....replay.message_parts import plain_text
from ....tracer.model import ToolCall, Turn
from ...format import counted, short_tokens
from ...told import diff_text
from ...told.diff_lines import as_text, short, title

VIEWS = ("turns", "requests", "results", "totals")
GIVEN = frozenset({"model", "params", "system", "tools", "messages", "history", "input"})
"""Parts of what the model was given, as against what it answered and what came back."""
LONGEST = 200
"""Characters of a side in a line."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a view.

    Attributes:
        key: Equal for the same line in another reading.
        sign: ``=``, ``≠``, ``-`` (only left), ``+`` (only right), ``?`` (not recorded), ``…`` (lines left out).
        a, b: What each side has, cut; ``bad``: which of them went wrong.
        numbers: The turns, None where a side has none.
        what: Where the difference is.
        label: What the line is about, in views that are not about turns.
        changes: What differs, to be told whole below.
        folded: Lines left out.
        plain: Figures: their words are not compared.
        texts: What both sides have, whole, where that does not differ; None where the line is about whole turns.
    """

    key: str
    sign: str
    a: str = ""
    b: str = ""
    bad: tuple[bool, bool] = (False, False)
    numbers: tuple[int | None, int | None] = (None, None)
    what: str = ""
    label: str = ""
    changes: tuple[Change, ...] = ()
    folded: int = 0
    plain: bool = False
    texts: tuple[str, str] | None = None

    @property
    def same(self) -> bool:
        """True when nothing is known to differ here."""
        return self.sign in "=…?"


def lines_of(found: Diff) -> dict[str, tuple[Line, ...]]:
    """The lines of every view."""
    if found.kind == "turns":
        request, answer = tuple(_request(found)), tuple(_answer(found))
        results = tuple(replace(line, label=f"result of {line.label}") for line in _results(found))
        return {
            "turns": (*request, *answer, *results),
            "requests": request,
            "results": results,
            "totals": tuple(_totals(found)),
        }
    return {
        "turns": tuple(_turns(found)),
        "requests": tuple(_given(found)),
        "results": tuple(_results(found)),
        "totals": tuple(_totals(found)),
    }


def fold(lines: Sequence[Line], around: int, opened: frozenset[str] = frozenset()) -> list[Line]:
    """The lines with long equal stretches folded, ``around`` kept beside each difference; one line is never folded.

    Where nothing differs, nothing is folded.
    """
    if all(line.same for line in lines):
        return list(lines)
    near = beside([line.same for line in lines], around)
    keep = [close or line.sign == "?" for close, line in zip(near, lines, strict=True)]
    found: list[Line] = []
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and not keep[end]:
            end += 1
        key = f"fold {lines[at].key}"
        if end - at > 1 and key not in opened:
            found.append(Line(key, "…", folded=end - at, numbers=lines[at].numbers))
        else:
            found += lines[at:end]
        if end < len(lines):
            found.append(lines[end])
        at = end + 1
    return found


def said(turn: Turn) -> tuple[str, bool]:
    """What a turn did, on one line, and whether it went wrong."""
    bad = turn.status == "error" or any(c.is_error or not c.valid for c in turn.tool_calls)
    calls = _calls(turn) if turn.tool_calls else ""
    return _line(calls or turn.text or turn.error or turn.status), bad


# the views


def _turns(found: Diff) -> Iterator[Line]:
    by_number = tuple({s.turn.number: s.turn for s in side.turns} for side in (found.a, found.b))
    for pair in found.pairs:
        turns = _both(pair, by_number)
        (a, bad_a), (b, bad_b) = (("", False) if t is None else said(t) for t in turns)
        what = "" if pair.a is None or pair.b is None else _where(pair.changes)
        yield Line(_key(pair), _sign(pair), a, b, (bad_a, bad_b), (pair.a, pair.b), what, changes=pair.changes)


def _given(found: Diff) -> Iterator[Line]:
    """Of two runs: every change of what the model was newly given, and the pairs where there is none."""
    by_number = tuple({s.turn.number: s for s in side.turns} for side in (found.a, found.b))
    for pair in found.pairs:
        mine = [c for c in pair.changes if c.part in GIVEN]
        numbers = pair.a, pair.b
        if pair.a is None or pair.b is None:
            yield Line(_key(pair), _sign(pair), numbers=numbers, label="the whole turn")
        elif not mine:
            seen = (by_number[0][pair.a], by_number[1][pair.b])
            news = ["\n\n".join(f"{who}: {text}" for who, text in one.incoming) for one in seen]
            yield Line(_key(pair), "=", numbers=numbers, label="the same", texts=(news[0], news[1]))
        for place, change in enumerate(mine):
            yield _change(f"{_key(pair)} {place}", change, numbers)


def _results(found: Diff) -> Iterator[Line]:
    """Every call with what it brought back."""
    by_number = tuple({s.turn.number: s.turn for s in side.turns} for side in (found.a, found.b))
    for pair in found.pairs:
        one, two = ([] if t is None else list(t.tool_calls) for t in _both(pair, by_number))
        for i, j in _paired(one, two):
            a, b = None if i is None else one[i], None if j is None else two[j]
            place = j if j is not None else i or 0
            yield _result(f"{_key(pair)} result {i}:{j}", pair, place, a, b)


def _paired(one: Sequence[ToolCall], two: Sequence[ToolCall]) -> Iterator[tuple[int | None, int | None]]:
    """Calls that ask the same, and between them those in the same place."""
    asked = [[(c.name, c.arguments_raw) for c in calls] for calls in (one, two)]
    for left, right, pair in gaps(matches(*asked), len(one), len(two)):
        yield from zip_longest(left, right)
        if pair:
            yield pair


def _result(key: str, pair: Pair, place: int, a: ToolCall | None, b: ToolCall | None) -> Line:
    whole = ["" if c is None else _brought(c) for c in (a, b)]
    texts = [_line(text) for text in whole]
    bad = (bool(a and a.is_error), bool(b and b.is_error))
    label = " / ".join(dict.fromkeys(c.name for c in (a, b) if c is not None))
    path = f"calls[{place + 1}]"
    mine = tuple(c for c in pair.changes if c.path.startswith(path) and c.part in ("result", "calls"))
    sign = "-" if b is None else "+" if a is None else "≠" if mine else "="
    if whole[0] != whole[1] and not any(c.part == "result" for c in mine):  # other calls: what they brought differs too
        kind = "dropped" if b is None else "inserted" if a is None else "edited"
        values = [NOTHING if c is None else text for c, text in zip((a, b), whole, strict=True)]
        mine, sign = (*mine, Change("result", kind, f"{path}.result", values[0], values[1])), sign.replace("=", "≠")
    both = (whole[0], whole[1]) if sign == "=" else None
    return Line(key, sign, texts[0], texts[1], bad, (pair.a, pair.b), _where(mine), label, mine, texts=both)


def _request(found: Diff) -> Iterator[Line]:
    """Of two turns: the parts of their requests, and every change of them."""
    numbers = found.pairs[0].a, found.pairs[0].b
    models = [s.turns[0].turn.model or s.turns[0].turn.request_model or "?" for s in (found.a, found.b)]
    mine = tuple(c for c in found.request if c.part == "model")
    yield _part("model", models, models, numbers, mine)
    a, b = (side.request for side in (found.a, found.b))
    if a is None or b is None:
        said = ["not recorded" if r is None else "recorded" for r in (a, b)]
        yield Line("request", "?", said[0], said[1], numbers=numbers, what="not compared", label="request", plain=True, texts=("", ""))  # fmt: skip
        return
    for part in ("params", "system", "tools", "messages"):
        mine = tuple(c for c in found.request if c.part == part)
        values = [getattr(r, part) for r in (a, b)]
        yield replace(
            _part(part, [_sized(part, v) for v in values], [_told(v) for v in values], numbers, mine),
            what=_counted(mine),
        )
        for place, change in enumerate(mine):
            yield _change(f"{part} {place}", change, numbers, indent="  ")


def _answer(found: Diff) -> Iterator[Line]:
    """Of two turns: what the model answered."""
    pair = found.pairs[0]
    numbers = pair.a, pair.b
    turns = [s.turns[0].turn for s in (found.a, found.b)]
    for part in ("thinking", "text"):
        texts = [getattr(t, part) or "" for t in turns]
        if any(texts):
            mine = tuple(c for c in pair.changes if c.part == part)
            yield _part(part, [_line(t) for t in texts], texts, numbers, mine)
    if any(t.tool_calls for t in turns):
        mine = tuple(c for c in pair.changes if c.part in ("calls", "arguments"))
        asked = ["\n".join(f"→ {c.name} {_asked(c)}" for c in t.tool_calls) for t in turns]
        yield replace(_part("calls", [_calls(t) for t in turns], asked, numbers, mine), what=_where(mine))
    mine = tuple(c for c in pair.changes if c.part == "status")
    ends = [t.stop_reason or t.status for t in turns]
    yield replace(_part("status", ends, [t.error or e for t, e in zip(turns, ends, strict=True)], numbers, mine), label="end", what=_where(mine))  # fmt: skip


def _part(
    part: str,
    said: Sequence[str],
    whole: Sequence[str],
    numbers: tuple[int | None, int | None],
    mine: tuple[Change, ...],
) -> Line:
    """A part of two turns: ``said`` in a line, ``whole`` below where it does not differ."""
    texts = None if mine else (whole[0], whole[1])
    return Line(part, "≠" if mine else "=", said[0], said[1], numbers=numbers, label=part, changes=mine, texts=texts)


def _totals(found: Diff) -> Iterator[Line]:
    for name, value, written in diff_text.TOTALS:
        a, b = (value(t) for t in found.totals)
        if a is None and b is None:
            continue
        sign = "=" if a == b else "≠"
        yield Line(name, sign, written(a), written(b), what=diff_text.difference(a, b, written), label=name, plain=True)


# words


def _change(key: str, change: Change, numbers: tuple[int | None, int | None], indent: str = "") -> Line:
    sign = "+" if change.a is NOTHING else "-" if change.b is NOTHING else "≠"
    a, b = ("" if v is NOTHING else _line(v) for v in (change.a, change.b))
    return Line(key, sign, a, b, (False, False), numbers, change.kind, indent + change.path, (change,))


def _both(pair: Pair, by_number: Sequence[dict[int, Turn]]) -> tuple[Turn | None, Turn | None]:
    a, b = (None if n is None else turns.get(n) for n, turns in zip((pair.a, pair.b), by_number, strict=True))
    return a, b


def _key(pair: Pair) -> str:
    return f"{'' if pair.a is None else pair.a}:{'' if pair.b is None else pair.b}"


def _sign(pair: Pair) -> str:
    if pair.b is None:
        return "-"
    return "+" if pair.a is None else "≠" if pair.changes else "="


def _where(changes: Sequence[Change]) -> str:
    """``calls[1].arguments.id``, ``system +2``: where the first difference is, and how many more there are."""
    if not changes:
        return ""
    more = f" +{len(changes) - 1}" if len(changes) > 1 else ""
    return f"{title(changes[0])}{more}"


def _counted(changes: Sequence[Change]) -> str:
    return counted(len(changes), "change") if changes else "unchanged"


def _brought(call: ToolCall) -> str:
    return plain_text(call.result) if call.result is not None else f"({call.state.replace('_', ' ')})"


def _calls(turn: Turn) -> str:
    return " · ".join(f"{c.name} {_asked(c)}" for c in turn.tool_calls) or "no call"


def _asked(call: ToolCall) -> str:
    """The arguments without idle blanks; as they are where they are no JSON, or long."""
    if not call.valid or call.arguments is None or len(call.arguments_raw) > 4 * LONGEST:
        return call.arguments_raw
    return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def _sized(part: str, value: Any) -> str:
    """How much a part of a request is."""
    if part == "messages":
        return counted(len(value), "message")
    if value in (None, "", {}, [], ()):
        return "none"
    if part == "tools" and isinstance(value, list):
        return counted(len(value), "tool")
    return f"{short_tokens(len(_told(value)))} characters"


def _told(value: Any) -> str:
    """A part of a request whole, as text."""
    if value in (None, "", {}, [], ()):
        return ""
    if isinstance(value, list | tuple) and all(isinstance(v, dict) and "role" in v for v in value):
        return "\n\n".join(as_text(v) for v in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _line(value: Any) -> str:
    """The beginning of a value, on one line."""
    return short(value, LONGEST)
