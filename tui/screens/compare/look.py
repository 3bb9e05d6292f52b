"""How a comparison looks: its columns by view, the cells of a line, the head."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ....replay.diff import NOTHING, Change, Diff
from ....replay.diff.words import words
from ...format import ago, counted, least_money, run_ms, run_title, sign
from ...format import duration as took
from ...told import diff_lines
from ...widgets.bars import HeadLine
from ...widgets.cells import Column, Span, Spans, cut, width_of
from .rows import Line

_TURNS = (
    Column("an", "A", 4, right=True, keep=9),
    Column("a", "", 26, grow=3, keep=9),
    Column("sign", " ", 1, keep=9),
    Column("bn", "B", 4, right=True, keep=9),
    Column("b", "", 26, grow=3, keep=9),
    Column("what", "first difference", 24, grow=1, keep=3, most=44),
)
_PARTS = (
    Column("label", "part", 14, grow=2, keep=9, most=44),
    Column("a", "A", 12, grow=3, keep=9),
    Column("sign", " ", 1, keep=9),
    Column("b", "B", 12, grow=3, keep=9),
    Column("what", "", 10, grow=1, keep=3, most=40),
)
_RESULTS = (
    Column("an", "A", 4, right=True, keep=9),
    Column("label", "tool", 10, grow=1, keep=8, most=24),
    Column("a", "result", 12, grow=3, keep=9),
    Column("sign", " ", 1, keep=9),
    Column("bn", "B", 4, right=True, keep=9),
    Column("b", "", 12, grow=3, keep=9),
)
_GIVEN = (
    _RESULTS[0],
    Column("label", "new in the request", 18, grow=2, keep=9, most=44),
    Column("a", "", 12, grow=3, keep=9),
    *_RESULTS[3:],
)
_TOTALS = (
    Column("label", "", 14, keep=9),
    Column("a", "A", 12, right=True, keep=9),
    Column("sign", " ", 1, keep=9),
    Column("b", "B", 12, right=True, keep=9),
    Column("what", "difference", 12, right=True, keep=9),
)
_NAME = 12
"""Cells that a name has at least in the head."""
WIDE = 100
"""Cells from which the head also counts what differs."""
_LEAD = 14
"""Characters kept at both ends of what is equal before the first difference of a line."""
_SIGN_ROLES = {"=": "faint", "…": "faint"}


def columns(view: str, kind: str) -> Sequence[Column]:
    """The columns of a view."""
    if view == "totals":
        return _TOTALS
    if kind == "turns":
        return _PARTS
    return {"turns": _TURNS, "requests": _GIVEN}.get(view, _RESULTS)


def cells(line: Line, column: str) -> Spans:
    """A line's spans in a column."""
    if line.folded:
        return ((f"… {line.folded:,} more", "dim"),) if column == "a" else ((" ", "dim"),)
    if column in ("an", "bn"):
        number = line.numbers[column == "bn"]
        return (("" if number is None else str(number), "dim" if line.same else "text"),)
    if column == "sign":
        return ((line.sign, _SIGN_ROLES.get(line.sign, "accent_strong")),)
    if column == "label":
        return ((line.label, "dim" if line.same else "text"),)
    if column == "what":
        return ((line.what, "dim"),)
    return _side(line, column == "b")


def _side(line: Line, right: bool) -> Spans:
    text, bad = (line.b, line.bad[1]) if right else (line.a, line.bad[0])
    lead: Spans = (("✗ ", "bad"),) if bad else ()
    if line.same or line.sign in "+-" or line.plain:
        return (*lead, (text, "dim" if line.same else "text"))
    kind = "added" if right else "removed"
    mine = [(how, piece) for how, piece in _words(line.a, line.b) if how in ("same", kind)]
    if (
        len(mine) > 1 and mine[0][0] == "same" and len(mine[0][1]) > 2 * _LEAD
    ):  # the difference must be within what is seen
        mine[0] = ("same", f"{mine[0][1][:_LEAD]}…{mine[0][1][-_LEAD:]}")
    return (*lead, *((piece, "changed" if how == kind else "text") for how, piece in mine))


@lru_cache(maxsize=512)
def _words(a: str, b: str) -> tuple[tuple[str, str], ...]:
    return tuple((run.kind, run.text) for run in words(a, b))


def head(found: Diff, side: int, now: int, width: int) -> tuple[HeadLine, ...]:
    """Both sides with their figures, and the first difference."""
    return (*(_whose(found, place, place == side, now, width) for place in (0, 1)), _first(found, width))


def _whose(found: Diff, place: int, chosen: bool, now: int, width: int) -> HeadLine:
    side, sums = (found.a, found.b)[place], found.totals[place]
    run = side.run
    lead: Spans = (
        ("▸ " if chosen else "  ", "accent_strong"),
        ("AB"[place], "accent_strong" if chosen else "dim"),
    )
    rest: list[Span] = [(f"  {run.id[:8]}", "faint")]
    if side.first is not None:
        rest.append((f"  turn {side.first}", "strong"))
    rest += [(f"  {ago(run.started_at, now)}", "dim"), (f"  {sign(run.status)} {run.status}", "bad" if run.status == "failed" else "dim")]  # fmt: skip
    facts = [_fact(run.models[0] if run.models else "")]
    facts += [_fact(took(run_ms(run, now))), _fact(counted(sums.turns, "turn"))] if side.first is None else []
    facts += [_fact(least_money(sums.cost_usd, sums.unpriced_turns))]
    name: Spans = ((f" {run_title(run)}", "strong"),)
    kept = [fact for fact in facts if fact]
    wanted = min(width_of((*lead, *name, *rest)), width * 3 // 4)
    while len(kept) > 1 and wanted + _facts_width(kept) > width:
        kept.pop(0)
    room = width - _facts_width(kept) - width_of((*lead, *rest))  # a long name is cut before the turn's number
    return (*lead, *cut(name, max(_NAME, room)), *rest), kept


def _facts_width(facts: Sequence[Spans]) -> int:
    """Cells of the facts at the right end, with what stands between and before them and the margins."""
    return sum(width_of(fact) + 3 for fact in facts) + 2


def _fact(text: str) -> Spans:
    return ((text, "dim"),) if text else ()


def _first(found: Diff, width: int) -> HeadLine:
    if found.first is None:
        whole = "this is the same turn" if found.kind == "turns" else "this is the same run"
        why = f"  {whole} on both sides" if found.a.name == found.b.name else ""
        return (("  no difference", "accent_strong"), (why, "dim")), ()
    said: Spans = (("  " + diff_lines.first(found.first, "first difference", found.kind, "AB"), "accent_strong"),)
    facts: list[Spans] = (
        [((diff_lines.summary(found, "AB"), "text"),)] if found.kind == "runs" and width >= WIDE else []
    )
    act = found.first_act
    if act is not None and act != found.first:
        more: Span = (f"  · {diff_lines.first(act, 'first different act', found.kind, 'AB')}", "dim")
        if width_of((*said, more, *(span for fact in facts for span in fact))) + 4 <= width:
            said = (*said, more)
    return said, facts


def value(line: Line, change: Change | None, side: int) -> tuple[str | None, str, object]:
    """What of a line can be copied: the whole value of a side, what it is, and its JSON if it has such a form."""
    if change is None:
        return (line.b if side else line.a) or None, line.label or "turn", None
    found = change.b if side else change.a
    if found is NOTHING:
        return None, change.path, None
    return diff_lines.as_text(found), change.path, None if isinstance(found, str) else found
