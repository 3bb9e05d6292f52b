"""Tables of an analysis as text, with bars for money and columns for days, and as JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .. import format as fmt
from .. import report, safe_text
from ..report import Column, Styled
from .bars import bar, columns

LIST_PRICE = "list price"  # how the note begins where that holds for all of a table

if TYPE_CHECKING:
    from ...replay.analytics import Overview, Table

SHORT = {
    "cost_usd": "$",
    "unpriced_turns": "unpriced",
    "cache_read": "read k",
    "cache_write_5m": "write k",
    "cache_write_1h": "1h k",
    "input": "in k",
    "output": "out k",
    "cache_hit_rate": "cache",
    "error_rate": "error %",
    "retry_rate": "retry %",
    "success_rate": "success",
    "cost_per_success": "$/success",
    "result_length": "result chars",
    "first_token_ms": "1st token",
    "tokens": "k tokens",
    "usd": "$",
}
HIDDEN = ("reasoning", "partial", "cache_read", "cache_write_5m", "cache_write_1h")
SPARED = (
    "execute_ms",
    "first_token_ms",
    "success_cost",
    "success_turns",
    "runs",
    "retry_rate",
    "result_length",
    "models",
    "generate_ms",
    "bar",
    "error_rate",
    "unpriced_turns",
    "success_rate",
)
"""What a narrow terminal does without, in this order."""
KEY = 28
"""Cells that a name is given at least, before columns of figures."""
ROWS = 200


@dataclass(frozen=True, slots=True)
class Days:
    """A value for each day, in order. ``priced``: the values are money, else turns."""

    days: tuple[date, ...]
    values: tuple[float, ...]
    priced: bool

    def written(self, value: float) -> str:
        """A value with its unit."""
        return fmt.money(value) if self.priced else fmt.counted(int(value), "turn")


def show(table: Table, by: Sequence[str] = (), *, rows: int = ROWS) -> None:
    """Prints a table: a bar beside the money, a chart of the days, then what a reader must know."""
    if not table.rows:
        report.note("nothing to count")
        return
    if tuple(by) == ("day",) and len(table.rows) > 1:
        _days(table)
    found = _columns(table, list(table)[:rows])
    if any(n.startswith(LIST_PRICE) for n in table.notes):
        found = [(replace(c, title=c.title.replace("$", "list $")), name, cells) for c, name, cells in found]
    left_out = _fit(found)
    report.table([c for c, _, _ in found], list(zip(*(cells for _, _, cells in found), strict=True)))
    if any("/" in c.title for c, _, _ in found):
        report.out(Styled("a/b: the median and the 95th percentile", "dim"))
    if left_out:
        report.note(f"not shown in a terminal this narrow: {', '.join(left_out)} (--format csv has all)")
    if len(table.rows) > rows:
        report.note(f"{rows:,} of {len(table.rows):,} rows: --format csv for all")
    for note in table.notes:
        report.out(Styled(note, "dim"))


def show_overview(found: Overview) -> None:
    """Prints the tables of a first look, short, with the commands that show more."""
    if not found.models.rows:
        report.note("nothing to count")
        return
    report.out(Styled("models", "bold"), Styled("   looptape stats --by model", "dim"))
    show(found.models, rows=8)
    if len(found.days.rows) > 1:
        report.out("")
        report.out(Styled("days", "bold"), Styled("   looptape stats --by day", "dim"))
        _days(found.days)
    if found.tasks.rows:
        report.out("")
        report.out(Styled("tasks", "bold"), Styled("   looptape stats --by task", "dim"))
        show(found.tasks, rows=8)
    _cycles(found)
    if found.confused.rows:
        report.out("")
        report.out(Styled("tools taken for another", "bold"), Styled("   a call failed, then another tool took its value", "dim"))  # fmt: skip
        show(found.confused, rows=8)
    if found.never_called.rows:
        report.out("")
        report.out(Styled("tools offered and never called", "bold"), Styled("   sent with every turn", "dim"))
        show(found.never_called, rows=8)


def as_json(table: Table) -> list[dict[str, Any]]:
    """Rows as JSON objects."""
    return [{name: _plain(value) for name, value in row.items()} for row in table]


def overview_json(found: Overview) -> dict[str, Any]:
    """The object of `stats --json` without --by."""
    names = ("models", "days", "tasks", "never_called", "confused", "cycles")
    tables = {name: getattr(found, name) for name in names}
    notes = list(dict.fromkeys(n for t in tables.values() for n in t.notes))
    shown = {("runs_with_cycles" if n == "cycles" else n): as_json(t) for n, t in tables.items()}
    return {**shown, "not_looked_at": found.not_looked_at, "notes": notes}


def _cycles(found: Overview) -> None:
    if found.cycles.rows:
        known = [v for v in found.cycles.column("usd") if v is not None]
        money = f", {fmt.money(sum(known))}" if known else ""
        turns = fmt.counted(sum(found.cycles.column("turns")), "turn")
        report.out("")
        said = f"wasted in cycles: {turns}{money} in {fmt.counted(len(found.cycles.rows), 'run')}"
        report.out(Styled(said, "bold"), Styled("   looptape runs --sort wasted", "dim"))
        show(found.cycles, rows=8)
    if found.not_looked_at:
        report.note(f"cycles were not looked for in {found.not_looked_at:,} older runs yet: run it again to go on")


def days_of(table: Table) -> Days | None:
    """Money (or turns) of every day from the first to the last, quiet days too; None without a known day."""
    known = {row["day"]: row for row in table if row["day"] is not None}
    if not known:
        return None
    first, last = min(known), max(known)
    days = tuple(first + timedelta(days=i) for i in range(min((last - first).days + 1, 3660)))
    priced = any(row["cost_usd"] is not None for row in known.values())
    name = "cost_usd" if priced else "turns"
    return Days(days, tuple(float((known.get(d) or {}).get(name) or 0) for d in days), priced)


def _days(table: Table) -> None:
    """The days as columns on one line."""
    found = days_of(table)
    if found is None:
        return
    most = max(found.values)
    peak = found.days[found.values.index(most)]
    chart = Styled(columns(found.values), "accent")
    report.out(
        f"{found.days[0]} ", chart, f" {found.days[-1]}", Styled(f"   most: {found.written(most)} on {peak}", "dim")
    )


Shown = tuple[Column, str, list[report.Part]]  # head, name of the field, cells


def _columns(table: Table, rows: Sequence[dict[str, Any]]) -> list[Shown]:
    """The columns to show: what is empty everywhere is left out, p50 and p95 stand in one."""
    kinds = {f.name: f.kind for f in table.fields}
    empty = {f.name for f in table.fields if f.kind not in ("text", "date", "time") and not any(table.column(f.name))}
    found: list[Shown] = []
    for name, kind in kinds.items():
        if name in HIDDEN or name in empty or name.endswith("_p95"):
            continue
        stem = name.removesuffix("_p50")
        right, grow = kind not in ("text", "list"), kind == "text"
        if stem != name:
            pairs = [(written(kind, r[name]), written(kind, r[f"{stem}_p95"])) for r in rows]
            head = Column(f"{titled(stem)} a/b", right=True)
            found.append((head, stem, [f"{a}/{b}" if a != fmt.MISSING else a for a, b in pairs]))
            continue
        found.append((Column(titled(name), right=right, grow=grow), name, [cell(kind, name, r) for r in rows]))
        if name in ("cost_usd", "usd"):
            most = max((float(v) for v in table.column(name) if v is not None), default=0)
            found.append((Column(""), "bar", [Styled(bar(float(r[name] or 0), most, 8), "accent") for r in rows]))
    return found


def cell(kind: str, name: str, row: Mapping[str, Any]) -> str:
    """A figure of a row; money that leaves turns out is marked with ``≥``."""
    text = written(kind, row[name])
    return (
        f"≥{text}"
        if name in ("cost_usd", "cost_per_success") and row[name] is not None and row.get("unpriced_turns")
        else text
    )


def _fit(found: list[Shown]) -> list[str]:
    """Takes columns out until a terminal is wide enough; returns the titles of those."""
    if not sys.stdout.isatty():
        return []
    room, gone = shutil.get_terminal_size().columns, []
    for name in SPARED:
        if sum(_wanted(*shown) + 2 for shown in found) - 2 <= room:
            break
        for shown in [s for s in found if s[1] == name]:
            found.remove(shown)
            gone.append(shown[0].title)
    return [title for title in gone if title]


def _wanted(column: Column, _: str, cells: Sequence[report.Part]) -> int:
    """Cells that a column needs; a long text can be cut, but not so short that two of them look alike."""
    width = max(safe_text.width(text) for text in (column.title, *(p.text if isinstance(p, Styled) else p for p in cells)))  # fmt: skip
    return min(width, KEY) if column.grow else width


def written(kind: str, value: Any) -> str:
    """A figure as a table has it, without its unit."""
    if value is None:
        return fmt.MISSING
    if kind == "money":
        return fmt.money(float(value), sign=False)
    if kind == "tokens":
        return fmt.thousands(value)
    if kind == "share":
        return f"{100 * value:.0f} %" if value >= 0.1 or not value else f"{100 * value:.1f} %"
    if kind == "ms":
        return fmt.duration(value)
    if kind == "time":
        return f"{value.replace(tzinfo=UTC).astimezone():%Y-%m-%d %H:%M}"
    if kind == "list":
        return ", ".join(value)
    if kind == "number":
        return f"{value:,.1f}".removesuffix(".0")
    return f"{value:,}" if isinstance(value, int) else str(value)


def titled(name: str) -> str:
    """The head of a column."""
    if name.startswith("tag."):
        return name
    said = SHORT.get(name) or name.removesuffix("_ms").replace("_", " ")
    return said.replace("cost", "$") if name != "cost_usd" else said


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    return value.isoformat() if isinstance(value, date) else value
