"""The list of runs as data: columns, cells, filter, order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ...tracer.model import Run
from ..format import ago as ago_or_date
from ..format import cache_share, count, duration, local, money, run_ms, run_signs, run_title, sign, thousands
from ..widgets.cells import Column, Spans

COLUMNS = (
    Column("sign", " ", 1, keep=10),
    Column("run", "run", 16, keep=10, grow=3, most=56),
    Column("when", "when", 7, right=True, keep=8),
    Column("turns", "turns", 5, right=True, keep=9),
    Column("calls", "calls", 5, right=True, keep=5),
    Column("errors", "err", 3, right=True, keep=9),
    Column("input", "in k", 6, right=True, keep=4),
    Column("cache", "cache", 5, right=True, keep=3),
    Column("output", "out k", 5, right=True, keep=4),
    Column("cost", "$  ", 9, right=True, keep=8),
    Column("time", "time", 7, right=True, keep=6),
    Column("model", "model", 20, keep=1, grow=1, most=30),
    Column("project", "project", 16, keep=0, grow=1, most=40),
    Column("signs", "signs", 14, keep=7, grow=3),
)

ORDERS = ("time", "cost", "turns", "errors", "name")
SORTED_COLUMN = {"time": "when", "cost": "cost", "turns": "turns", "errors": "errors", "name": "run"}


def cells(run: Run, column: str, now: int, under: AbstractSet[str] = frozenset()) -> Spans:
    """A run's spans for a column. ``now`` in µs since the epoch; ``under``: runs that stand below their parent."""
    if column == "run" and run.id in under:
        return (("└ ", "faint"), (run_title(run), "text"))
    return _CELLS[column](run, now)


def filtered(runs: Sequence[Run], hays: Sequence[str], text: str) -> Sequence[Run]:
    """The runs in whose ``hay`` every word of the text occurs."""
    words = text.casefold().split()
    return [run for run, own in zip(runs, hays, strict=True) if all(word in own for word in words)]


def hay(run: Run) -> str:
    """What a filter looks in: name, status, reason, model, project, task, tags, id, … and ``error`` where there are some."""
    words = (run.name, run.title, run.agent, run.status, run.reason, run.project, run.task, run.session, run.source)
    own = " ".join(filter(None, (run.id, *words, *run.models, "error" if run.errors else None)))
    if run.tags:
        own += " ".join(f" {name}:{value}" for name, value in run.tags.items())
    return own.casefold()


def ordered(runs: Sequence[Run], order: str) -> Sequence[Run]:
    """The runs by one of ``ORDERS``; the source gives them newest first, equal ones stay so."""
    if order == "cost":
        return sorted(runs, key=lambda r: -1.0 if r.cost_usd is None else r.cost_usd, reverse=True)
    if order == "turns":
        return sorted(runs, key=lambda r: r.turns, reverse=True)
    if order == "errors":
        return sorted(runs, key=lambda r: r.errors, reverse=True)
    if order == "name":
        return sorted(runs, key=lambda r: run_title(r).casefold())
    return runs


def family(runs: Sequence[Run]) -> tuple[Sequence[Run], AbstractSet[str]]:
    """The runs with children (forks, sub-agents) right below their parents, oldest child first; and who stands so."""
    here = {run.id for run in runs}
    children: dict[str, list[Run]] = {}
    for run in runs:
        if run.parent is not None and run.parent.run in here and run.parent.run != run.id:
            children.setdefault(run.parent.run, []).append(run)
    if not children:
        return runs, frozenset()
    under = {child.id for born in children.values() for child in born}
    out: list[Run] = []
    waiting = [run for run in reversed(runs) if run.id not in under]
    while waiting:
        run = waiting.pop()
        out.append(run)
        waiting += children.get(run.id, ())  # newest first, so that the oldest is taken first
    if len(out) < len(runs):  # parents in a circle: only broken data has that, and it is shown all the same
        known = {run.id for run in out}
        out += [run for run in runs if run.id not in known]
    return out, under


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of some runs. ``cost_usd`` counts what has a price; ``unpriced`` are the runs that have a turn without."""

    runs: int
    cost_usd: float
    running: int
    unpriced: int


def sums(runs: Sequence[Run]) -> Sums:
    """Totals of the runs' own costs (children are runs of their own, each counted once)."""
    return Sums(
        runs=len(runs),
        cost_usd=sum(r.cost_usd for r in runs if r.cost_usd is not None),
        running=sum(r.status == "running" for r in runs),
        unpriced=sum(1 for r in runs if r.unpriced_turns or (r.cost_usd is None and r.turns)),
    )


def when(at: int | None, now: int) -> str:
    """Relative under a fortnight, then a date of at most seven cells: ``29 Nov``, ``2025-11``."""
    if at is None or now - at < 14 * 86_400_000_000:
        return ago_or_date(at, now) if at is None or now >= at else "now"
    days = (now - at) / 86_400_000_000
    return f"{local(at):%d %b}" if days < 300 else f"{local(at):%Y-%m}"


def _status_role(run: Run) -> str:
    if run.status in ("failed", "limit", "halted"):
        return "bad"
    return "accent" if run.status == "running" else "dim"


def _signs(run: Run, _now: int) -> Spans:
    said = run_signs(run)
    bad = run.status in ("failed", "limit", "halted")
    role = "bad" if bad else "accent" if run.status == "running" else "dim"
    return ((said, role),)


def _cost(run: Run, _now: int) -> Spans:
    if run.cost_usd is None:
        return (("unpriced" if run.turns else "-", "faint"),)
    # Points stand under each other: below a cent there are four digits behind them, else two and two blanks.
    said = money(run.cost_usd, sign=False)
    if run.cost_usd >= 1000:
        return ((f"{run.cost_usd:,.0f}   ", "text"),)
    return ((said if "." in said[:2] and len(said) > 4 else f"{said}  ", "text"),)


_CELLS: dict[str, Callable[[Run, int], Spans]] = {
    "sign": lambda r, _: ((sign(r.status), _status_role(r)),),
    "run": lambda r, _: ((run_title(r), "text"),),
    "when": lambda r, now: ((when(r.started_at, now), "dim"),),
    "turns": lambda r, _: ((count(r.turns), "text"),),
    "calls": lambda r, _: ((count(r.tool_calls), "dim"),),
    "errors": lambda r, _: ((count(r.errors), "bad_strong") if r.errors else ("-", "faint"),),
    "input": lambda r, _: ((thousands(r.usage.context), "text"),),
    "cache": lambda r, _: ((cache_share(r.usage), "dim"),),
    "output": lambda r, _: ((thousands(r.usage.output), "text"),),
    "cost": _cost,
    "time": lambda r, now: ((duration(run_ms(r, now)), "dim"),),
    "model": lambda r, _: ((", ".join(r.models) or "-", "dim"),),
    "project": lambda r, _: ((_tail(r.project), "dim"),),
    "signs": _signs,
}


def _tail(project: str | None) -> str:
    return (project or "-").rstrip("/").rsplit("/", 1)[-1] or "/"
