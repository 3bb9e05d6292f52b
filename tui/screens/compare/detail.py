"""What differs in one line of a comparison, told whole: texts side by side, with the words that differ marked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....replay.diff import NOTHING, Change, Diff
from ....replay.diff.side_lines import Pieces, SideLine, folded, side_lines
from ....replay.diff.words import hunks
from ....replay.message_parts import plain_text
from ....tracer.model import Turn
from ...told.diff_lines import as_text, title
from ...widgets.cells import Spans
from ...widgets.side_pane import SideRow, heading
from .rows import Line

MOST = 200_000
"""Characters of a text that are compared word by word; what comes after is counted."""
ROWS = 4_000
"""Rows of a change that are shown; what comes after is counted."""
EDGE = 60
"""Characters kept beside a change in a very long line, for each line kept around it."""


@dataclass(frozen=True, slots=True)
class Look:
    """How much to show: equal lines ``around`` each change; ``raw``: JSON as it was, not laid out."""

    around: int = 3
    raw: bool = False


def detail(line: Line, found: Diff, look: Look) -> tuple[SideRow, ...]:
    """The rows of a line. Slow for long texts: in a thread."""
    if line.folded:
        return (heading((f"{line.folded:,} lines in which nothing differs", "text"), ("  Enter unfolds them", "dim")),)
    rows: list[SideRow] = []
    for change in line.changes:
        rows += [*_change(change, look), SideRow(whole=True)]
    if not rows:
        rows += _whole(line, found, look)
    return tuple(rows)


def _whole(line: Line, found: Diff, look: Look) -> Iterator[SideRow]:
    """A line without changes: what stands there on both sides, or on the only one."""
    if line.sign == "?":
        yield heading(("a request is not recorded: what the model was given cannot be compared", "text"))
        return
    if line.texts is not None:
        yield heading(("nothing differs here", "dim"))
        yield from _texts(_laid_out(line.texts[0], look), _laid_out(line.texts[1], look), look)
        return
    a, b = (
        next((s.turn for s in side.turns if s.turn.number == number), None)
        for side, number in zip((found.a, found.b), line.numbers, strict=True)
    )
    if a is None or b is None:
        where = "left" if a is not None else "right"
        yield heading((f"this turn is only on the {where}", "accent"))
    else:
        yield heading(("nothing differs here", "dim"))
    left, right = ("" if t is None else _told(t, look) for t in (a, b))
    if a is not None and b is not None:
        yield from _texts(left, right, look)
    else:
        yield from _alone(left or right, left=a is not None)


def _told(turn: Turn, look: Look) -> str:
    """A turn as text: what was said, called and brought back."""
    said = [turn.text] if turn.text else []
    for call in turn.tool_calls:
        said.append(f"→ {call.name} {_laid_out(call.arguments_raw, look)}")
        said.append(f"{'✗' if call.is_error else '='} {_laid_out(plain_text(call.result), look)}")
    if turn.error:
        said.append(f"✗ {turn.error}")
    return "\n".join(said)


def _change(change: Change, look: Look) -> Iterator[SideRow]:
    yield heading((title(change), "accent_strong"))
    a, b = ("" if v is NOTHING else _text(v, look) for v in (change.a, change.b))
    if change.a is NOTHING or change.b is NOTHING:
        yield from _alone(a or b, left=change.b is NOTHING)
    else:
        yield from _texts(a, b, look)


def _alone(text: str, *, left: bool) -> Iterator[SideRow]:
    rows = text[:MOST].split("\n")
    for row in rows[:ROWS]:
        spans: Spans = ((row[:MOST], "text"),)
        yield SideRow(spans, None, "-") if left else SideRow(None, spans, "+")
    missing = len(text) - sum(len(row) + 1 for row in rows[:ROWS]) + 1
    if missing > 0:
        yield heading((f"… {missing:,} more characters: y copies them, o opens them", "dim"))


def _texts(a: str, b: str, look: Look) -> Iterator[SideRow]:
    """Two texts side by side, long equal stretches folded."""
    lines = side_lines(a[:MOST], b[:MOST])
    rows = folded(lines, look.around) if any(not line.same for line in lines) else list(lines)
    for row in rows[:ROWS]:
        yield heading((f"⋯ {row:,} equal lines", "faint")) if isinstance(row, int) else _row(row, look)
    if len(rows) > ROWS:
        yield heading((f"… {len(rows) - ROWS:,} more rows: looptape diff shows all", "dim"))
    left_out = max(len(a), len(b)) - MOST
    if left_out > 0:
        note = "equal" if a[MOST:] == b[MOST:] else "not equal"
        yield heading((f"… {left_out:,} more characters, {note}, not compared word by word", "dim"))


def _row(line: SideLine, look: Look) -> SideRow:
    sign = " " if line.same else "+" if line.a is None else "-" if line.b is None else "≠"
    role = "dim" if line.same else "text"
    return SideRow(_spans(line.a, look, role), _spans(line.b, look, role), sign)


def _spans(pieces: Pieces | None, look: Look, role: str) -> Spans | None:
    if pieces is None:
        return None
    kept: Sequence[Any] = pieces if sum(len(p.text) for p in pieces) < 4 * EDGE else hunks(pieces, EDGE * (look.around + 1))  # fmt: skip
    return tuple((p.text, role if p.kind == "same" else "changed") for p in kept)


def _text(value: Any, look: Look) -> str:
    if isinstance(value, str):
        return _laid_out(value, look)
    if isinstance(value, dict) and isinstance(value.get("role"), str) and not look.raw:
        return as_text(value)
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False, default=str, indent=None if look.raw else 2)


def _laid_out(text: str, look: Look) -> str:
    """JSON with a member a line, so that lines can be compared; all else as it is."""
    if look.raw or not text.lstrip().startswith(("{", "[")) or len(text) > MOST:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text
