"""A difference as lines of marked text: `-` and `+` for short values, words in their place for long ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...replay.diff import NOTHING, Change, Diff, Divergence
from ...replay.diff.words import hunks, words
from ...replay.message_parts import MessagePart, parts, role
from ..format import counted
from ..report import Part, Styled

LINES = 12  # of one change
_SHORT = 100  # characters of a value that is shown whole beside the other
_LONG, _ROWS = 1000, 5  # characters and lines of a value that came or went
_MARKS = {"removed": ("[-", "-]", "bad"), "added": ("{+", "+}", "good")}


def first(found: Divergence, what: str, kind: str, sides: str = "ab") -> str:
    """``first divergence: turn 5 of a, 6 of b: calls[1].arguments.path edited``. ``sides``: what they are called."""
    if found.change is None:
        side, number = (sides[0], found.a) if found.a is not None else (sides[1], found.b)
        return f"{what}: turn {number} is only in {side}"
    both = found.a == found.b or kind == "turns"
    turn = f"turn {found.a}" if both else f"turn {found.a} of {sides[0]}, {found.b} of {sides[1]}"
    where = title(found.change)
    return f"{what}: {where}" if kind == "turns" else f"{what}: {turn}: {where}"


def title(change: Change) -> str:
    """Path and kind of a change."""
    was = f" (was {change.was})" if change.was else ""
    return f"{change.path} {change.kind}{was}"


def lines(change: Change) -> Iterator[list[Part]]:
    """The lines that show it, at most `LINES` and then one that says how many more there are."""
    rows = list(whole(change))
    yield from rows[:LINES]
    if len(rows) > LINES:
        yield [Styled(f"… {len(rows) - LINES:,} more lines: --format json", "dim")]


def alone(found: Diff, side: str, number: int) -> str:
    """What a turn that stands alone did, on one line."""
    seen = (found.a if side == "a" else found.b).turns
    turn = next(s.turn for s in seen if s.turn.number == number)
    calls = " · ".join(f"{c.name} {c.arguments_raw}" for c in turn.tool_calls)
    return short(calls or turn.text or turn.status, 160)


def summary(found: Diff, sides: str = "ab") -> str:
    """``3 turns differ, 1 only in a, 12 the same``. ``sides``: what they are called."""
    differ = sum(1 for p in found.pairs if p.changes)
    only = [sum(1 for p in found.pairs if getattr(p, other) is None) for other in ("b", "a")]
    said = [f"{counted(differ, 'turn')} differ{'s' if differ == 1 else ''}"] if differ else []
    said += [f"{n:,} only in {side}" for n, side in zip(only, sides, strict=True) if n]
    same = sum(1 for p in found.pairs if p.same)
    return ", ".join([*said, f"{same:,} the same"])


def short(value: Any, limit: int = _SHORT) -> str:
    """A value on one line, cut and then ended by ``…``."""
    line = " ".join(as_text(value)[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def as_text(value: Any) -> str:
    """A value as words: texts as they are, messages by their parts, all else as JSON."""
    if isinstance(value, dict) and isinstance(value.get("role"), str):
        return "\n".join([f"{role(value)}:", *map(_part, parts(value))])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _part(part: MessagePart) -> str:
    if part.kind == "call":
        return f"→ {part.name or '?'} {part.text}"
    return f"= {part.text}" if part.kind == "result" else part.text


def whole(change: Change, around: int = 40) -> Iterator[list[Part]]:
    """All lines that show it; long equal stretches keep ``around`` characters beside each difference."""
    if change.kind == "reordered" and change.part == "messages":
        yield [short(change.b)]
    elif change.a is NOTHING or change.b is NOTHING:
        gone = change.b is NOTHING
        text = as_text(change.a if gone else change.b)
        kept = "\n".join(text[:_LONG].splitlines()[:_ROWS])
        cut = f" … {len(text) - len(kept):,} more characters" if len(text) > len(kept) + 1 else ""
        for row in (kept + cut).splitlines() or [""]:
            yield [Styled(f"{'-' if gone else '+'} {row}", "bad" if gone else "good")]
    else:
        yield from _both(as_text(change.a), as_text(change.b), around)


def _both(a: str, b: str, around: int) -> Iterator[list[Part]]:
    if max(len(a), len(b)) <= _SHORT and "\n" not in a + b:
        yield [Styled(f"- {a}", "bad")]
        yield [Styled(f"+ {b}", "good")]
        return
    line: list[Part] = []
    for run in hunks(words(a, b), around):
        begin, end, style = _MARKS.get(run.kind, ("", "", ""))
        rows = run.text.split("\n")
        for place, row in enumerate(rows):
            if place:
                yield line
                line = []
            text = f"{begin if not place else ''}{row}{end if place + 1 == len(rows) else ''}"
            if text:
                line.append(Styled(text, style) if style else text)
    if line:
        yield line
