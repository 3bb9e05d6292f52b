"""The first line of the list of runs: what it is of, how one looks at it, totals. Pure."""

from __future__ import annotations

from ...data.views import RunsView, RunsWanted
from ...format import counted, money
from ...safe_text import clean
from ...widgets.cells import Spans
from . import table as runs_table

_GROUPED = {"project": "by project", "list": "as a list"}


def left(place: str, room: int, demo: bool) -> Spans:
    """The name and the place."""
    said = clean(place, limit=min(48, max(10, room)))
    return (("looptape", "accent_strong"), (" demo" if demo else "", "accent"), (f"  {said}", "dim"))


def facts(view: RunsView | None, wanted: RunsWanted, width: int, *, follow: bool, filling: str) -> list[Spans]:
    """What stands at the right end, the most important last."""
    out: list[Spans] = []
    if filling:
        out.append(((filling, "dim"),))
    if wanted.sort != "time" or wanted.backwards:
        order = runs_table.order_named(wanted.sort)
        arrow = "▼" if order.falling != wanted.backwards else "▲"
        out.append(((f"{arrow} {order.says}", "accent"),))
    if wanted.grouping in _GROUPED:
        out.append(((_GROUPED[wanted.grouping], "accent"),))
    if follow:
        out.append((("▶ following", "accent"),))
    if view is None:
        return out
    shown, every = view.listing.shown, view.listing.every
    part = f"{shown.runs:,} of " if shown.runs != every.runs else ""
    out.append(((part + counted(every.runs, "run"), "strong"),))
    if shown.runs:
        priced = shown.cost_usd or shown.unpriced < shown.runs
        unpriced = f" + {shown.unpriced:,} unpriced" if shown.unpriced else ""
        out.append(((money(shown.cost_usd), "text"), (unpriced, "dim")) if priced else (("unpriced", "dim"),))
    if every.running:
        out.append(((f"● {every.running:,} running", "accent"),))
    if shown.circling:
        words = " in circles" if width >= 100 else ""
        out.append(((f"↻ {shown.circling:,}{words}", "bad"),))
    return out
