"""The turns of a run as data: columns, cells, the curves above them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...tracer.model import Run
from ..format import count, counted, duration, money, run_ms, run_title, short_tokens, sign
from ..safe_text import clean
from ..source import CallMark, RunView, TurnRow
from ..widgets.bars import HeadLine
from ..widgets.cells import Column, Span, Spans
from ..widgets.spark import phase_bar, sparkline

BAR = 6
COLUMNS = (
    Column("number", "#", 4, right=True, keep=10),
    Column("mark", " ", 1, keep=9),
    Column("phases", "G▒ E█", BAR, keep=7),
    Column("tool", "tool", 14, keep=10, grow=1),
    Column("tokens", "tok", 5, right=True, keep=6),
    Column("cost", "$", 6, right=True, keep=4),
    Column("seconds", "s", 5, right=True, keep=8),
)


def cells(row: TurnRow, column: str, longest_ms: float) -> Spans:
    """A turn's spans for a column. ``longest_ms``: what a full bar stands for."""
    if column == "number":
        return ((str(row.number), "dim" if not row.bad else "text"),)
    if column == "mark":
        return mark(row)
    if column == "phases":
        bad = any(c.bad for c in row.calls)
        return phase_bar(row.generate_ms, row.execute_ms, longest_ms, BAR, bad=bad)
    if column == "tool":
        return tools(row)
    if column == "tokens":
        return ((short_tokens(row.context), "text" if row.context is not None else "faint"),)
    if column == "cost":
        return ((_small_money(row.cost_usd), "text" if row.cost_usd is not None else "faint"),)
    return ((seconds(_took(row)), "dim"),)


def mark(row: TurnRow) -> Spans:
    """One sign for what is special about a turn; what is wrong comes first."""
    if row.bad:
        return (("✗", "bad_strong"),)
    if row.status == "open":
        return (("●", "accent"),)
    if row.status in ("abandoned", "cancelled", "interrupted"):
        return (("◌", "dim"),)
    if "compaction" in row.flags:
        return (("▤", "accent"),)
    if row.attempts > 1:
        return (("↻", "dim"),)
    if row.user_turn:
        return (("›", "accent"),)
    return (("⎇", "faint"),) if row.inherited else (("", "dim"),)


def tools(row: TurnRow) -> Spans:
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


def longest(rows: Sequence[TurnRow]) -> float:
    """What a full bar stands for: the 95th percentile of the turns' times, so that one outlier flattens nothing."""
    times = sorted(t for t in (_took(r) for r in rows) if t)
    return times[min(len(times) - 1, int(len(times) * 0.95))] if times else 0.0


def head(view: RunView, width: int, now: int) -> tuple[HeadLine, ...]:
    """The lines above the turns: what it is and how it ended; context and cost as curves."""
    run = view.run
    first_left: list[Span] = [
        (clean(run_title(run), limit=max(24, width // 3)), "accent_strong"),
        (f"  {run.id[:8]}", "faint"),
        ("  ", "dim"),
        *status(run),
    ]
    facts = [", ".join(run.models), counted(run.turns, "turn"), money(run.cost_usd), duration(run_ms(run, now))]
    if run.inclusive_cost_usd is not None and run.inclusive_cost_usd != run.cost_usd:
        facts[2] += f" ({money(run.inclusive_cost_usd)} with sub-agents)"
    if run.list_price:
        facts[2] += " list price"
    return (tuple(first_left), [((fact, "dim"),) for fact in facts if fact]), curves(view, width)


def status(run: Run) -> tuple[Span, ...]:
    """Sign, word and reason of a run's end."""
    bad = run.status in ("failed", "limit", "halted")
    role = "bad" if bad else "accent" if run.status == "running" else "dim"
    spans: list[Span] = [(f"{sign(run.status)} {run.status}", role)]
    if run.reason and run.reason != run.status:
        spans.append((f" · {run.reason}", role))
    if run.outcome and run.outcome.get("verdict"):
        spans.append((f"  outcome {run.outcome['verdict']}", "text"))
    if run.parent is not None:
        at = f" @{run.parent.turn}" if run.parent.turn else ""
        spans.append((f"  {run.parent.kind} of {run.parent.run[:8]}{at}", "dim"))
    return tuple(spans)


def curves(view: RunView, width: int) -> HeadLine:
    """Context size and cost, turn by turn, with their ends."""
    rows = view.turns
    contexts = [r.context for r in rows]
    costs = [r.cost_usd for r in rows]
    both = width >= 100
    room = max(4, min(60, (width - 72) // 2 if both else width - 48, len(rows)))
    known = [c for c in contexts if c is not None]
    spans: list[Span] = []
    if known:
        spans += [("context ", "dim"), (sparkline(contexts, room), "bar")]
        spans.append((f" {short_tokens(known[0])} → {short_tokens(known[-1])}", "dim"))
    if both and any(c is not None for c in costs):
        spans += [("   cost ", "dim"), (sparkline(costs, room), "bar")]
        spans.append((f" up to {money(max(c for c in costs if c is not None))}", "dim"))
    errors = sum(1 for r in rows if r.bad)
    said: Spans = ((f"✗ {counted(errors, 'turn')} with errors", "bad"),) if errors else (("no errors", "dim"),)
    return tuple(spans) or (("no token counts recorded", "faint"),), (said,) if rows else ()


def seconds(ms: float | None) -> str:
    """Seconds for a column whose head says s: ``0.4``, ``61``, ``12:40``."""
    if ms is None:
        return "-"
    if ms < 99_950:
        return f"{ms / 1000:.1f}"
    return duration(ms) if ms < 3_600_000 else f"{count(ms / 3_600_000)} h"


def _took(row: TurnRow) -> float | None:
    known = [v for v in (row.generate_ms, row.execute_ms) if v is not None]
    return sum(known) if known else None


def _small_money(usd: float | None) -> str:
    """``.09`` below a dollar, ``.0042`` below a cent: the head says $."""
    if usd is None:
        return "-"
    if usd == 0:
        return "0"
    return money(usd, sign=False).removeprefix("0") if usd < 1 else money(usd, sign=False)


def _grouped(calls: Sequence[CallMark]) -> list[tuple[str, list[CallMark]]]:
    groups: dict[str, list[CallMark]] = {}
    for call in calls:
        groups.setdefault(call.name, []).append(call)
    return list(groups.items())
