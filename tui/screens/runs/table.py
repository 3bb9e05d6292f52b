"""The list of runs as data: columns, cells, orders. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....tracer.model import Run, Usage
from ...format import ago as ago_or_date
from ...format import (
    cache_share,
    count,
    duration,
    local,
    money,
    percent,
    run_ms,
    run_signs,
    run_title,
    short_tokens,
    sign,
    thousands,
)
from ...widgets.cells import Column, Spans
from ...widgets.spark import sparkline
from .lines import HEAD, Row

if TYPE_CHECKING:
    from ....replay.listing import Facts, Totals

BARS = 8
NARROW, WIDE = 110, 160
"""Cells of the screen: below the first the signs take less room, from the second on titles are words."""
COLUMNS = (
    Column("sign", " ", 1, keep=20),
    Column("run", "run", 16, keep=20, grow=3, most=56),
    Column("when", "when", 7, right=True, keep=16),
    Column("turns", "turns", 5, right=True, keep=18),
    Column("calls", "calls", 5, right=True, keep=6),
    Column("errors", "err", 3, right=True, keep=17),
    Column("cycles", "↻", 2, right=True, keep=13),
    Column("findings", "!", 3, right=True, keep=12),
    Column("input", "in k", 6, right=True, keep=9),
    Column("cache", "cache", 5, right=True, keep=7),
    Column("output", "out k", 5, right=True, keep=5),
    Column("cost", "$  ", 8, right=True, keep=15),
    Column("time", "time", 7, right=True, keep=4),
    Column("context", "context", BARS + 6, keep=8),
    Column("task", "task", 12, keep=2, grow=1, most=24),
    Column("outcome", "outcome", 7, keep=3),
    Column("project", "project", 12, keep=2, grow=1, most=30),
    Column("model", "model", 17, keep=0, grow=1, most=30),
    Column("source", "source", 11, keep=1, most=16),
    Column("signs", "signs", 22, keep=14, grow=6),
)
_NARROW = {"signs": Column("signs", "signs", 14, keep=14, grow=6)}
_WIDE = {
    "cycles": Column("cycles", "cycles", 6, right=True, keep=13),
    "findings": Column("findings", "findings", 8, right=True, keep=12),
}


MEANT = (
    ("●", "it runs"),
    ("✓", "completed"),
    ("✗", "failed, or stopped at a limit"),
    ("■", "halted: by a guard, a budget, or where a replay had no answer"),
    ("◌", "interrupted"),
    ("?", "nothing tells how it ended"),
    ("↻", "cycles: how often it went in circles"),
    ("!", "findings of the rules; empty: not looked for yet"),
    ("└", "a fork, a replay or a sub-agent of the run above"),
    ("⎇", "a fork or a replay, and the turn it began at"),
    ("↳", "a sub-agent, and the turn that started it"),
    ("⚠", "remarks on what was recorded or imported: the transcript has them"),
    ("+", "behind a cost: turns without a price are not in it"),
    ("◆", "marked, for d"),
)
"""The signs of the list in words."""


@dataclass(frozen=True, slots=True)
class Order:
    """A way to sort: the store's name of it, the column that shows it, and words for it."""

    sort: str
    column: str
    says: str
    falling: bool = True


ORDERS = (
    Order("time", "when", "when it began"),
    Order("name", "run", "name", falling=False),
    Order("status", "sign", "status", falling=False),
    Order("turns", "turns", "turns"),
    Order("calls", "calls", "tool calls"),
    Order("errors", "errors", "errors"),
    Order("cycles", "cycles", "cycles"),
    Order("wasted", "", "what cycles wasted, in $"),
    Order("findings", "findings", "findings"),
    Order("input", "input", "tokens read"),
    Order("cache", "cache", "share from the cache"),
    Order("output", "output", "tokens written"),
    Order("cost", "cost", "cost"),
    Order("duration", "time", "time it took"),
    Order("context", "context", "how full its window was"),
    Order("task", "task", "task", falling=False),
    Order("outcome", "outcome", "outcome", falling=False),
    Order("project", "project", "project", falling=False),
    Order("model", "model", "model", falling=False),
    Order("source", "source", "source", falling=False),
)


def order_named(sort: str) -> Order:
    """The order of that name; by time where there is none."""
    return next((o for o in ORDERS if o.sort == sort), ORDERS[0])


def columns(shown: Totals, grouping: str, width: int) -> tuple[Column, ...]:
    """The columns that have something to show in these runs, on a screen of so many cells."""
    left_out = {"project"} if grouping == "project" or not shown.projects else set()
    left_out |= {name for name, many in (("task", shown.tasks), ("outcome", shown.outcomes)) if not many}
    other = _NARROW if width < NARROW else _WIDE if width >= WIDE else {}
    return tuple(other.get(c.key, c) for c in COLUMNS if c.key not in left_out)


def cells(row: Row, column: str, now: int, marked: Collection[str] = (), *, outcome_elsewhere: bool = False) -> Spans:
    """A row's spans for a column.

    Args:
        now: Microseconds since the epoch.
        marked: Keys of runs that carry a mark.
        outcome_elsewhere: The outcome has a column of its own; else it stands among the signs.
    """
    if row.totals is not None:
        return _of_project(row, row.totals, column)
    if row.line is None:
        return (("…", "faint"),) if column == "run" else ()
    if column == "run":
        return _title(row, row.line.run, row.key in marked)
    if column in _FACTS:
        return _FACTS[column](row.line.facts)
    if column == "signs":
        return _signs(row.line.run, outcome_elsewhere)
    return _CELLS[column](row.line.run, now)


def counted(number: int | None, width: int) -> str:
    """A count in so many cells: ``9,840``, and ``30k`` or ``1k`` where that takes more."""
    said = (count(number), short_tokens(number), f"{(number or 0) // 1000}k")
    return next((one for one in said if len(one) <= width), said[-1])


def in_k(tokens: int | None, width: int) -> str:
    """Thousands of tokens in so many cells: ``4,906``, or ``402 M`` where that takes more."""
    said = thousands(tokens)
    return said if tokens is None or len(said) <= width else f"{tokens / 1_000_000:,.0f} M"


def when(at: int | None, now: int) -> str:
    """Relative under a fortnight, then a date of at most seven cells: ``29 Nov``, ``2025-11``."""
    if at is None or now - at < 14 * 86_400_000_000:
        return ago_or_date(at, now) if at is None or now >= at else "now"
    days = (now - at) / 86_400_000_000
    return f"{local(at):%d %b}" if days < 300 else f"{local(at):%Y-%m}"


def project_name(project: str | None) -> str:
    """The last part of a project's folder, also of one on Windows."""
    sign = "\\" if project and project[1:3] == ":\\" else "/"
    return (project or "-").rstrip(sign).rsplit(sign, 1)[-1] or "/"


def _title(row: Row, run: Run, marked: bool) -> Spans:
    branch = ("  " * min(row.depth - 1, 4) + "└ ", "faint") if row.depth else ("", "text")
    return (branch, ("◆ " if marked else "", "accent"), (run_title(run), "text"))


def _of_project(row: Row, sums: Totals, column: str) -> Spans:
    """A project's line: its sums where its runs have their figures."""
    if column == "sign":
        return (("▸" if row.folded else "▾", "accent"),)
    if column == "run":
        return ((project_name(row.key.removeprefix(HEAD)), "strong"),)
    if column == "when":
        return ((f"{sums.runs:,} run{'' if sums.runs == 1 else 's'}" if sums.runs < 100 else f"{sums.runs:,}", "dim"),)
    if column == "signs":
        return ((f"● {sums.running:,} running" if sums.running else "", "accent"),)
    if column == "cycles":
        return ((count(sums.circling) if sums.circling else "", "bad"),)
    usage = Usage(input=sums.context, cache_read=None)
    figures = {
        "turns": counted(sums.turns, 5),
        "calls": counted(sums.calls, 5),
        "errors": counted(sums.errors, 3) if sums.errors else "-",
        "input": in_k(usage.context, 6),
        "cache": percent(sums.cached, sums.context),
        "output": in_k(sums.output, 5),
    }
    if column == "cost":
        return ((_points(sums.cost_usd), "strong"),)
    return ((figures.get(column, ""), "strong"),)


def _status_role(run: Run) -> str:
    if run.status in ("failed", "limit", "halted"):
        return "bad"
    return "accent" if run.status == "running" else "dim"


def _signs(run: Run, outcome_elsewhere: bool) -> Spans:
    shown = replace(run, outcome=None) if outcome_elsewhere and run.outcome else run
    if shown.cost_usd is None:  # the column of the cost says so
        shown = replace(shown, unpriced_turns=0)
    return ((run_signs(shown), _status_role(run)),)


def _cost(run: Run, _now: int) -> Spans:
    if run.cost_usd is None:
        return (("unpriced" if run.unpriced_turns else "-", "faint"),)
    said = _points(run.cost_usd)
    if run.unpriced_turns and said.endswith(" "):
        said = said[:-2] + "+ " if said.endswith("  ") else said
    return ((said, "text"),)


def _points(usd: float) -> str:
    """Points stand under each other: below a cent there are four digits behind them, else two and two blanks."""
    said = money(usd, sign=False)
    if usd >= 10_000:
        return f"{usd:,.0f}"
    return said if "." in said[:2] and len(said) > 4 else f"{said}  "


def _outcome(run: Run, _now: int) -> Spans:
    verdict = (run.outcome or {}).get("verdict")
    said = verdict if isinstance(verdict, str) else "" if verdict is None else str(verdict)
    return ((said, "bad" if said == "fail" else "dim"),)


def _cycles(facts: Facts) -> Spans:
    if facts.cycles is None:
        return ()
    return ((count(facts.cycles), "bad_strong") if facts.cycles else ("-", "faint"),)


def _findings(facts: Facts) -> Spans:
    if facts.findings is None:
        return ()
    role = {"error": "bad_strong", "warning": "text"}.get(facts.worst or "", "dim")
    return ((counted(facts.findings, 3), role) if facts.findings else ("-", "faint"),)


def _context(facts: Facts) -> Spans:
    """Bars to the scale of the window where it is known (full is full), else of the run's own; then how full it was at most."""
    if not facts.context:
        return ()
    top = facts.window or max(facts.bars, default=0)
    bars = sparkline((*facts.bars, top), BARS + 1)[:-1]
    full = facts.context / facts.window if facts.window else None
    said = short_tokens(facts.context) if full is None else percent(facts.context, facts.window)
    role = "bad" if full is not None and full >= 0.9 else "dim"
    return ((f"{bars:<{BARS}}", "bar"), (f" {said:>5}", role))


_FACTS: dict[str, Callable[[Facts], Spans]] = {"cycles": _cycles, "findings": _findings, "context": _context}
_CELLS: dict[str, Callable[[Run, int], Spans]] = {
    "sign": lambda r, _: ((sign(r.status), _status_role(r)),),
    "when": lambda r, now: ((when(r.started_at if r.started_at is not None else r.ended_at, now), "dim"),),
    "turns": lambda r, _: ((counted(r.turns, 5), "text"),),
    "calls": lambda r, _: ((counted(r.tool_calls, 5), "dim"),),
    "errors": lambda r, _: ((counted(r.errors, 3), "bad_strong") if r.errors else ("-", "faint"),),
    "input": lambda r, _: ((in_k(r.usage.context, 6), "text"),),
    "cache": lambda r, _: ((cache_share(r.usage), "dim"),),
    "output": lambda r, _: ((in_k(r.usage.output, 5), "text"),),
    "cost": _cost,
    "time": lambda r, now: ((duration(run_ms(r, now)), "dim"),),
    "task": lambda r, _: ((r.task or "", "dim"),),
    "outcome": _outcome,
    "model": lambda r, _: ((", ".join(r.models) or "-", "dim"),),
    "project": lambda r, _: ((project_name(r.project), "dim"),),
    "source": lambda r, _: ((r.source, "dim"),),
}
