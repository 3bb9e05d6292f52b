"""The tables of the costs: columns out of an analysis, cells with bars, and the filter that a row stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....replay.analytics import Table
from ....replay.filters import written as quoted
from ... import format as fmt
from ...told.bars import bar
from ...told.stats_text import HIDDEN, LIST_PRICE, SPARED, cell, titled, written
from ...widgets.cells import Column, Span, Spans, width_of

Row = Mapping[str, Any]
BAR = 8
"""Cells of a bar."""
NAME = 26
"""Cells of a name that no other column takes away."""
_WIDTHS = {"ms": 7, "share": 7, "count": 6, "tokens": 7, "money": 8, "number": 6}
_TIMES = (("generate_ms", "generate"), ("execute_ms", "tools"), ("first_token_ms", "first token"))
FILTERS = {"model": "model", "tool": "tool", "project": "project", "task": "task", "outcome": "outcome"}
"""Tabs whose rows are a filter of the runs, with its key."""


@dataclass(frozen=True, slots=True)
class Bars:
    """The column that the bars show, and the largest value in it: looked for once, not in every cell."""

    column: str
    most: float


def key_of(row: Row) -> str:
    """What a row is recognised by: what it is about."""
    return str(next(iter(row.values())))


def columns(table: Table, by: str, names: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns of a table: what is empty everywhere is left out; p50 and p95 stand in one, a bar beside the money."""
    listed = any(n.startswith(LIST_PRICE) for n in table.notes)
    bars = bars_of(table)
    found: list[Column] = []
    for place, field in enumerate(table.fields):
        name = field.name
        if not place:
            found.append(Column(name, by, _named(table, names), keep=99, grow=3, most=48))
            continue
        known = [v for v in table.column(name) if v]
        if by == "run" and name == "runs":
            continue
        if name in HIDDEN or name.endswith("_p95") or not known or field.kind in ("list", "flag"):
            continue
        stem = name.removesuffix("_p50")
        head = titled(stem) + (" / p95" if stem != name else "")
        head = head.replace("$", "list $") if listed else head
        wide = _WIDTHS.get(field.kind, 8) * (2 if stem != name else 1)
        measured = name == bars.column
        found.append(Column(name, head, max(wide, len(head)), right=True, keep=90 if measured else _importance(stem)))
        if measured:
            found.append(Column("bar", "", BAR, keep=_importance("models")))  # names whole before bars
    return tuple(found)


def _named(table: Table, names: Mapping[str, str]) -> int:
    """Cells that the names need, up to a good length: long ones are cut, so that figures stay beside them."""
    column = table.fields[0].name
    longest = max((width_of(_name(row, column, names)) for row in table), default=0)
    return min(max(longest, 14), NAME)


def cells(row: Row, column: str, table: Table, names: Mapping[str, str], bars: Bars) -> Spans:
    """A row's spans in a column."""
    if column == "bar":
        return ((bar(float(row[bars.column] or 0), bars.most, BAR), "bar"),)
    field = next((f for f in table.fields if f.name == column), None)
    if field is None:
        return ()
    if field is table.fields[0]:
        return _name(row, column, names)
    value = row[column]
    if column.endswith("_p50"):
        high = written(field.kind, row[f"{column.removesuffix('_p50')}_p95"])
        return ((written(field.kind, value), "text"), (f" / {high}" if value is not None else "", "dim"))
    bad = column in ("errors", "invalid", "error_rate") and bool(value)
    return ((cell(field.kind, column, row), "bad" if bad else "text" if value else "dim"),)


def _name(row: Row, column: str, names: Mapping[str, str]) -> Spans:
    """What a row is about: ``Mon 2026-11-30``, a run's name with the beginning of its id."""
    value = row[column]
    if value is None:
        return (("not said", "dim"),)
    if column == "run":
        return ((names.get(value, value), "text"), (f"  {value[:8]}", "faint"))
    return ((f"{value:%a %Y-%m-%d}" if column == "day" else str(value), "text"),)


def runs_filter(by: str, row: Row) -> str | None:
    """The filter text of the runs behind a row; None where the filter language has none."""
    value = next(iter(row.values()))
    if value is None:
        return None
    if by == "day":
        return f"since:{value:%Y-%m-%d}"
    name = FILTERS.get(by)
    return None if name is None or '"' in str(value) else quoted([f"{name}:{value}"])


def total(whole: Row, *, listed: bool) -> Spans:
    """What all runs cost, marked where it is partial or a list price."""
    cost = whole["cost_usd"]
    text = fmt.least_money(None if cost is None else float(cost), whole["unpriced_turns"])
    return ("list price " if listed else "", "dim"), (text, "strong")


def overview(whole: Row, room: int) -> Spans:
    """The figures of all runs on one line, each with its unit; where room is short the last ones are left out."""
    read = [whole[n] for n in ("input", "cache_read", "cache_write_5m", "cache_write_1h") if whole[n] is not None]
    tokens = fmt.short_tokens(sum(read) if read else None), fmt.short_tokens(whole["output"])
    found: list[Spans] = [
        ((fmt.counted(whole["turns"], "turn"), "text"),),
        ((tokens[0], "text"), (" in ", "dim"), (tokens[1], "text"), (" out", "dim")),
        (("cache ", "dim"), (written("share", whole["cache_hit_rate"]), "text")),
        (("errors ", "dim"), (written("share", whole["error_rate"]), "bad" if whole["error_rate"] else "text")),
        (("retried ", "dim"), (written("share", whole["retry_rate"]), "text")),
        *(_quantiles(whole, n, said) for n, said in _TIMES if whole[f"{n}_p50"] is not None),
    ]
    line: list[Span] = []
    for spans in found:
        more = ((("   ", "dim"),) if line else ()) + spans
        if width_of((*line, *more)) > room:
            break
        line += more
    return tuple(line)


def _quantiles(whole: Row, stem: str, said: str) -> Spans:
    low, high = (written("ms", whole[f"{stem}_p{p}"]) for p in (50, 95))
    return (f"{said} ", "dim"), (low, "text"), (f", p95 {high}", "dim")


def bars_of(table: Table) -> Bars:
    """What the bars of a table show: money, else time, turns or calls."""
    names = [f.name for f in table.fields]
    known = (n for n in ("cost_usd", "ms_total", "turns", "calls") if n in names and any(table.column(n)))
    column = next(known, names[1])
    return Bars(column, max((float(v) for v in table.column(column) if v is not None), default=0.0))


def _importance(name: str) -> int:
    return 1 + SPARED.index(name) if name in SPARED else 50


def orders(table: Table) -> Sequence[str]:
    """The columns that a table can be sorted by."""
    return [f.name for f in table.fields if f.kind not in ("list", "flag") and f.name not in HIDDEN and any(v is not None for v in table.column(f.name))]  # fmt: skip


def combined(before: str, text: str) -> str:
    """A filter text with another pair: where it has one of that key already, the new one takes its place."""
    key = text.split(":", 1)[0] + ":"
    kept = [pair for pair in pairs_of(before) if not pair.startswith(key)]
    return " ".join([*kept, text])


def pairs_of(text: str) -> list[str]:
    """The parts of a filter text, quotes kept together."""
    return re.findall(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+', text)
