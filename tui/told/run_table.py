"""The list of runs as plain text: one line a run, totals below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...tracer.model import Run, add_usage
from .. import format as fmt
from .. import report
from ..report import Column, Part, Styled
from ..safe_text import clean

TITLE = 60
COLUMNS = (
    Column(""),
    Column("run", grow=True),
    Column("id"),
    Column("when", right=True),
    Column("turns", right=True),
    Column("calls", right=True),
    Column("err", right=True),
    Column("in k", right=True),
    Column("cache", right=True),
    Column("out k", right=True),
    Column("$", right=True),
    Column("time", right=True),
    Column("signs", grow=True),
)


def show(runs: Sequence[Run], now: int, *, totals: bool = True) -> None:
    """Prints the table; ``now`` in µs. Children follow their parent, indented, where both are listed."""
    rows = [_row(run, depth, now) for run, depth in nested(runs)]
    columns = [replace(c, title="list $") if c.title == "$" and all(r.list_price for r in runs) else c for c in COLUMNS]
    if totals and len(runs) > 1:
        rows.append(_totals(runs))
    report.table(columns, rows)


def nested(runs: Sequence[Run]) -> list[tuple[Run, int]]:
    """The runs in their order, each followed by its listed children, with their depth."""
    ids = {run.id for run in runs}
    children: dict[str, list[Run]] = {}
    roots = []
    for run in runs:
        if run.parent and run.parent.run in ids and run.parent.run != run.id:
            children.setdefault(run.parent.run, []).append(run)
        else:
            roots.append(run)
    done: list[tuple[Run, int]] = []
    seen: set[str] = set()

    def add(run: Run, depth: int) -> None:
        if run.id in seen:
            return
        seen.add(run.id)
        done.append((run, depth))
        for child in sorted(children.get(run.id, []), key=lambda r: r.started_at or 0):
            add(child, min(depth + 1, 8))

    for run in roots:
        add(run, 0)
    for run in runs:  # parents in a circle: nobody of them is a root
        add(run, 0)
    return done


def _row(run: Run, depth: int, now: int) -> list[Part]:
    title = ("  " * depth + "└ " if depth else "") + clean(fmt.run_title(run), limit=TITLE)
    return [
        Styled(fmt.sign(run.status), fmt.STYLES.get(run.status, "dim")),
        title,
        Styled(run.id[:8], "dim"),
        fmt.ago(run.ended_at if run.started_at is None else run.started_at, now),
        fmt.count(run.turns),
        fmt.count(run.tool_calls),
        Styled(fmt.count(run.errors), "bad") if run.errors else "0",
        fmt.thousands(run.usage.context),
        fmt.cache_share(run.usage),
        fmt.thousands(run.usage.output),
        fmt.run_money(run),
        fmt.duration(fmt.run_ms(run, now)),
        fmt.run_signs(run),
    ]


def _totals(runs: Sequence[Run]) -> list[Part]:
    usage = add_usage([r.usage for r in runs])
    costs = [r.cost_usd for r in runs if r.cost_usd is not None]
    unpriced = sum(r.unpriced_turns for r in runs)
    said = [f"partial: {fmt.counted(unpriced, 'turn')} not priced"] if unpriced else []
    listed = sum(r.list_price for r in runs)
    if listed:
        said.append("list prices" if listed == len(runs) else f"list prices in {listed:,} of {len(runs):,} runs")
    cells = [
        "",
        fmt.counted(len(runs), "run"),
        "",
        "",
        fmt.count(sum(r.turns for r in runs)),
        fmt.count(sum(r.tool_calls for r in runs)),
        fmt.count(sum(r.errors for r in runs)),
        fmt.thousands(usage.context),
        fmt.cache_share(usage),
        fmt.thousands(usage.output),
        fmt.money(sum(costs), sign=False) + ("+" if unpriced else "") if costs else fmt.MISSING,
        "",
        " · ".join(said),
    ]
    return [Styled(c, "dim") for c in cells]
