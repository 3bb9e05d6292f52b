"""The head of a run: why it cost what it did, what it is and how it ended, context and cost as curves. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ....tracer.model import Run
from ...format import count, counted, duration, kinship, money, run_ms, run_title, short_tokens, sign
from ...safe_text import clean
from ...widgets.bars import HeadLine
from ...widgets.cells import Span, Spans, width_of
from ...widgets.spark import sparkline
from .answers import Seen, Why
from .search import Hits
from .turns import Turns

WIDE = 100
"""Columns from which on there is room for the caller behind the answer of why."""
LEAST = 8
"""Cells of a curve below which the second one is left out."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one stands: what the head says beside the facts of the run.

    Attributes:
        new: Turns that came since one left the end, while one does not follow.
        views: Name of the view that is shown; empty for the list of turns.
    """

    following: bool = False
    new: int = 0
    view: str = ""
    searching: bool = False


def head(turns: Turns, why: Why, seen: Seen, hits: Hits, standing: Standing, width: int, now: int) -> tuple[HeadLine, ...]:  # fmt: skip
    """The lines above the turns."""
    told = why.lines or ((("why  ", "accent_strong"), ("…", "faint")),)
    caller: list[Spans] = [((why.caller, "faint"),)] if why.caller and width >= WIDE else []
    signs = _signs(turns, seen, hits, standing)
    room = width - 4 - sum(width_of(s) + 3 for s in signs)
    return (
        *((line, caller if line is told[-1] else ()) for line in told),
        (_title(turns.view.run, width), [*_facts(turns, now), *_standing(standing)]),
        (_curves(turns, room), signs),
    )


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
        spans.append((f"  {kinship(run)} of {run.parent.run[:8]}{at}", "dim"))
    return tuple(spans)


def _title(run: Run, width: int) -> Spans:
    return (
        (clean(run_title(run), limit=max(24, width // 3)), "accent_strong"),
        (f"  {run.id[:8]}", "faint"),
        ("  ", "dim"),
        *status(run),
    )


def _facts(turns: Turns, now: int) -> list[Spans]:
    run = turns.view.run
    cost = money(run.cost_usd)
    if run.cost_usd is None and run.turns and not run.unpriced_turns:
        cost = "nothing of its own"
    if run.inclusive_cost_usd is not None and run.inclusive_cost_usd != run.cost_usd:
        inherits = run.parent is not None and run.parent.kind in ("fork", "resume")
        cost += f" ({money(run.inclusive_cost_usd)} with {'inherited turns' if inherits else 'sub-agents'})"
    if run.list_price:
        cost += " list price"
    facts = [", ".join(run.models), counted(run.turns, "turn"), cost, duration(run_ms(run, now))]
    return [((fact, "dim"),) for fact in facts if fact]


def _standing(standing: Standing) -> list[Spans]:
    said: list[Spans] = []
    if standing.view:
        said.append(((standing.view, "accent"),))
    if standing.following:
        said.append((("▶ following", "accent"),))
    elif standing.new:
        said.append(((f"▼ {counted(standing.new, 'new turn')}", "accent_strong"),))
    return said


def _curves(turns: Turns, room: int) -> Spans:
    """Context size and cost, turn by turn, with their ends, in so many cells; the cost only where there is room."""
    if not turns.view.whole:
        rows = turns.numbers
        return ((f"turns {rows[0]:,} to {rows[-1]:,} are here; the others are being read …", "dim"),)
    costs = [c for c in turns.costs if c is not None]
    context = f" {short_tokens(turns.ends[0])} → {short_tokens(turns.ends[1])}" if turns.ends else ""
    cost = f" up to {money(max(costs))}" if costs else ""
    alone = room - len("context ") - len(context)
    left = alone - len("   cost ") - len(cost)
    both = bool(turns.ends and costs) and left >= 2 * LEAST
    size = max(4, min(60, len(turns.rows), left // 2 if both else alone))
    spans: list[Span] = []
    if turns.ends:
        spans += [("context ", "dim"), (sparkline(turns.contexts, size), "bar"), (context, "dim")]
    if both:
        spans += [("   cost ", "dim"), (sparkline(turns.costs, size), "bar"), (cost, "dim")]
    return tuple(spans) or (("no token counts recorded", "faint"),)


def _signs(turns: Turns, seen: Seen, hits: Hits, standing: Standing) -> list[Spans]:
    """What there is to jump to, with the signs of the list."""
    said: list[Spans] = []
    if not turns.rows:
        return said
    if seen.trouble:
        said.append((("cycles and findings not known", "faint"),))
    if seen.findings:
        said.append((("! ", "accent_strong"), (counted(len(seen.findings), "finding"), "text")))
    if seen.cycles:
        said.append((("↻ ", "accent_strong"), (counted(len(seen.cycles), "cycle"), "text")))
    errors = len(turns.errors)
    said.append((((f"✗ {counted(errors, 'turn')} with errors", "bad")),) if errors else (("no errors", "dim"),))
    if standing.searching:
        said.append((("/ searching …", "dim"),))
    elif hits.text:
        found = f"{count(hits.count)} in {counted(len(hits.numbers), 'turn')}" if hits.count else "nothing found"
        said.append((("/ ", "accent_strong"), (found, "text")))
    return said
