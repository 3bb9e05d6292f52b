"""`looptape diff` on screen: who is compared, the first divergence, every change with its text, totals side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...replay.diff import Change, Diff, Side, Totals
from ...tracer.model import BUCKETS
from .. import format as fmt
from .. import report
from ..report import Column, Styled
from . import diff_lines as lines

_LISTED = 6  # paths of a turn in the list

TOTALS: tuple[tuple[str, Callable[[Totals], float | None], Callable[[float | None], str]], ...] = (
    ("turns", lambda t: t.turns, fmt.count),
    ("tool calls", lambda t: t.tool_calls, fmt.count),
    ("errors", lambda t: t.errors, fmt.count),
    *((name.replace("_", " "), lambda t, n=name: getattr(t.usage, n), fmt.count) for name in BUCKETS),
    ("last window", lambda t: t.context, fmt.count),
    ("cost", lambda t: t.cost_usd, fmt.money),
    ("generate", lambda t: t.generate_ms, fmt.duration),
    ("execute", lambda t: t.execute_ms, fmt.duration),
)
"""Name, value and how it is written, in the order of the table."""


def show(found: Diff, limit: int) -> None:
    """Prints a comparison; at most ``limit`` changes with their texts (0: all)."""
    for mark, side in (("a", found.a), ("b", found.b)):
        report.out(Styled(mark, "bold"), "  ", whose(side))
    if found.first is None:
        report.out("no difference")
        return
    report.out(Styled(lines.first(found.first, "first divergence", found.kind), "bold"))
    if found.first.change is not None:
        _texts(found.first.change)
    if found.first_act is not None and found.first_act != found.first:
        report.out(lines.first(found.first_act, "first different act", found.kind))
        if found.first_act.change is not None:
            _texts(found.first_act.change)
    if found.kind == "runs":
        _pairs(found, limit)
    _changes(found, limit)
    show_totals(found)


def show_many(diffs: Sequence[Diff]) -> None:
    """Prints many against one as a table: a line a run."""
    report.out(Styled("a", "bold"), "  ", whose(diffs[0].a))
    columns = [
        Column("b"),
        *(Column(t, right=True) for t in ("turns", "calls", "errors", "cost")),
        Column("", grow=True),
    ]
    rows = []
    for one in diffs:
        b = one.totals[1]
        what = "no difference" if one.first is None else lines.first(one.first, "first divergence", one.kind)
        rows.append([one.b.name, f"{b.turns:,}", f"{b.tool_calls:,}", f"{b.errors:,}", fmt.money(b.cost_usd), what])
    report.table(columns, rows)
    worst = next((d for d in diffs if not d.same), None)
    if worst is not None:
        report.note(f"one of them whole: looptape diff {worst.a.name} {worst.b.name}")


def whose(side: Side) -> str:
    """A side on one line."""
    run = side.run
    said = [side.name, fmt.run_title(run)] if fmt.run_title(run) != side.name else [side.name]
    return "  ".join([*said, f"{run.status}{' ' + run.reason if run.reason else ''}", fmt.counted(run.turns, "turn")])


def labelled(found: Diff) -> Iterator[tuple[str, Change]]:
    """Every change with where it is: ``turn 5``, ``turn 5 of a, 6 of b``, ``request``."""
    for change in found.request:
        yield "request", change
    for pair in found.pairs:
        same = pair.a == pair.b
        where = (
            "answer" if found.kind == "turns" else f"turn {pair.a}" if same else f"turn {pair.a} of a, {pair.b} of b"
        )
        for change in pair.changes:
            yield where, change


def show_totals(found: Diff) -> None:
    """Prints both sums and what they differ by; rows of which nothing is known are left out."""
    rows = []
    for name, value, written in TOTALS:
        a, b = (value(t) for t in found.totals)
        if a is None and b is None:
            continue
        rows.append([name, written(a), written(b), difference(a, b, written)])
    report.table([Column("totals"), *(Column(t, right=True) for t in ("a", "b", "difference"))], rows)
    for mark, sums in zip("ab", found.totals, strict=True):
        if sums.unpriced_turns:
            report.out(Styled(f"{mark}: {fmt.counted(sums.unpriced_turns, 'unpriced turn')} not in the cost", "warn"))


def difference(a: float | None, b: float | None, written: Callable[[float | None], str]) -> str:
    """``+3``, ``-$0.20``, ``<1 ms`` (a difference too small for a sign), ``=``; nothing where one is not known."""
    if a is None or b is None:
        return ""
    said = written(abs(b - a))
    return "=" if a == b else said if said.startswith("<") else ("+" if b > a else "-") + said


def _pairs(found: Diff, limit: int) -> None:
    report.out(Styled("turns  ", "accent"), lines.summary(found))
    rows = []
    for pair in found.pairs:
        if pair.a is None or pair.b is None:
            side, number = ("a", pair.a) if pair.a is not None else ("b", pair.b)
            rows.append([_cell(pair.a), _cell(pair.b), f"only in {side}: {lines.alone(found, side, number or 0)}"])
        elif pair.changes:
            said = [lines.title(c) for c in pair.changes[:_LISTED]]
            more = [f"{len(pair.changes) - _LISTED} more"] if len(pair.changes) > _LISTED else []
            rows.append([_cell(pair.a), _cell(pair.b), " · ".join([*said, *more])])
    shown = rows[:limit] if limit else rows
    report.table([Column("a", right=True), Column("b", right=True), Column("", grow=True)], shown, indent="  ")
    if len(shown) < len(rows):
        report.out(Styled(f"  and {len(rows) - len(shown):,} more turns: --limit 0 for all", "dim"))


def _changes(found: Diff, limit: int) -> None:
    told = {id(d.change) for d in (found.first, found.first_act) if d is not None}
    rest = [(where, change) for where, change in labelled(found) if id(change) not in told]
    for where, change in rest[:limit] if limit else rest:
        report.out(Styled(f"{where}  ", "accent"), lines.title(change))
        _texts(change)
    if limit and len(rest) > limit:
        report.out(Styled(f"and {len(rest) - limit:,} more changes: --limit 0 for all", "dim"))


def _texts(change: Change) -> None:
    for parts in lines.lines(change):
        report.out("    ", *parts)


def _cell(number: int | None) -> str:
    return "-" if number is None else str(number)
