"""The turns of a run as data: columns and their cells. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...data.views import CallMark, TurnRow
from ...format import count, duration, money, short_tokens
from ...widgets.cells import Column, Span, Spans
from ...widgets.spark import phase_bar
from ..turn_sign import special, wrong
from .laps import WIDTH
from .turns import took

BAR = 6
MEANT = (
    ("!", "a finding begins here"),
    ("↻", "a cycle begins here; 2, 3 … its laps, the bracket its turns"),
    ("◆", "marked, for d"),
    ("/", "found by the search"),
    ("▒█", "time the model took, and time its tools took"),
    ("↳", "a call that started a sub-agent"),
    ("×2", "so many calls of one tool; ✗1: so many of them failed"),
)
"""The signs of the list beside those of a turn itself, in words."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of turns beside their rows, by number.

    Attributes:
        laps: Brackets of cycles. ``findings``, ``hits``, ``marks``: numbers of turns with them.
        longest: What a full bar stands for, in milliseconds.
    """

    laps: Mapping[int, str] = field(default_factory=dict)
    findings: Collection[int] = ()
    hits: Collection[int] = ()
    marks: Collection[int] = ()
    longest: float = 0.0


def columns(last: int, signs: Signs) -> tuple[Column, ...]:
    """What there is to show: brackets only where there are cycles, and numbers as wide as they are."""
    return (
        *((Column("laps", "↻", WIDTH, right=True, keep=8),) if signs.laps else ()),
        Column("number", "#", max(3, len(str(last))), right=True, keep=11),
        Column("signs", "", 3, keep=10),
        Column("phases", "G▒ E█", BAR, keep=5),
        Column("tool", "tools", 14, keep=10, grow=1),
        Column("context", "in", 5, right=True, keep=7),
        Column("fresh", "fresh", 5, right=True, keep=2),
        Column("read", "read", 5, right=True, keep=3),
        Column("written", "write", 5, right=True, keep=1),
        Column("output", "out", 5, right=True, keep=4),
        Column("cost", "$", 6, right=True, keep=6),
        Column("seconds", "s", 5, right=True, keep=8),
    )


def cells(row: TurnRow, column: str, signs: Signs) -> Spans:
    """A turn's spans for a column."""
    return _CELLS[column](row, signs)


def _signs(row: TurnRow, signs: Signs) -> Spans:
    """Three places: what is wrong (or else what is special), the finding, the mark or the search hit."""
    first, second = wrong(row), special(row)
    shown = [s for s in (first, second) if s] or [(" ", "dim")]
    found: Span | None = ("!", "accent_strong") if row.number in signs.findings else None
    last: Span | None = None
    if row.number in signs.marks:
        last = ("◆", "accent_strong")
    elif row.number in signs.hits:
        last = ("/", "accent_strong")
    if len(shown) == 1:
        shown.append(found or (" ", "dim"))
        shown.append(last or (" ", "dim"))
    else:  # rare: both, and the last place goes to whichever there is
        shown.append(last or found or (" ", "dim"))
    return tuple(shown)


def tools(row: TurnRow, _signs: Signs | None = None) -> Spans:
    """Names of the calls, equal ones counted; without calls the stop reason or the error."""
    if not row.calls:
        if row.status == "error":
            return ((row.error or "error", "bad"),)
        return ((row.stop_reason or row.status, "dim"),)
    spans: list[Span] = []
    for name, calls in _grouped(row.calls):
        if spans:
            spans.append((" ", "dim"))
        bad = sum(c.bad for c in calls)
        spans.append((name, "bad" if bad == len(calls) else "text"))
        if len(calls) > 1:
            spans.append((f"×{len(calls)}", "dim"))
        if bad:
            spans.append((" ✗" if bad == len(calls) else f" ✗{bad}", "bad_strong"))
        elif any(c.open for c in calls):
            spans.append((" ◌", "dim"))
        if any(c.child for c in calls):
            spans.append((" ↳", "accent"))
    return tuple(spans)


def seconds(ms: float | None) -> str:
    """Seconds for a column whose head says s: ``0.4``, ``61``, ``12:40``."""
    if ms is None:
        return "-"
    if ms < 99_950:
        return f"{ms / 1000:.1f}"
    return duration(ms) if ms < 3_600_000 else f"{count(ms / 3_600_000)} h"


def _small_money(usd: float | None) -> str:
    """``.09`` below a dollar, ``.0042`` below a cent: the head says $."""
    if usd is None:
        return "-"
    if usd == 0:
        return "0"
    return money(usd, sign=False).removeprefix("0") if usd < 1 else money(usd, sign=False)


def _number(row: TurnRow, _signs: Signs) -> Spans:
    return ((str(row.number), "text" if row.bad else "dim"),)


def _laps(row: TurnRow, signs: Signs) -> Spans:
    drawn = signs.laps.get(row.number)
    return ((drawn, "accent"),) if drawn else ()


def _phases(row: TurnRow, signs: Signs) -> Spans:
    bad = any(c.bad for c in row.calls)
    return phase_bar(row.generate_ms, row.execute_ms, signs.longest, BAR, bad=bad)


def _cost(row: TurnRow, _signs: Signs) -> Spans:
    return ((_small_money(row.cost_usd), "text" if row.cost_usd is not None else "faint"),)


def _tokens(name: str, role: str) -> Callable[[TurnRow, Signs], Spans]:
    def cell(row: TurnRow, _signs: Signs) -> Spans:
        value = getattr(row, name)
        return ((short_tokens(value), role if value else "faint"),)

    return cell


_CELLS: Mapping[str, Callable[[TurnRow, Signs], Spans]] = {
    "laps": _laps,
    "number": _number,
    "signs": _signs,
    "phases": _phases,
    "tool": tools,
    "context": _tokens("context", "text"),
    "fresh": _tokens("fresh", "dim"),
    "read": _tokens("read", "dim"),
    "written": _tokens("written", "dim"),
    "output": _tokens("output", "text"),
    "cost": _cost,
    "seconds": lambda row, _signs: ((seconds(took(row)), "dim"),),
}


def _grouped(calls: Sequence[CallMark]) -> list[tuple[str, list[CallMark]]]:
    groups: dict[str, list[CallMark]] = {}
    for call in calls:
        groups.setdefault(call.name, []).append(call)
    return list(groups.items())
