"""What stands above a turn in the run's right pane: findings, its cycle, sub-agents, search hits, its mark. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...format import counted, money
from ...widgets.blocks import Block, Head
from ...widgets.cells import Span
from .answers import Seen
from .laps import lap_of
from .search import Hits
from .turns import Turns

MOST = 6
"""Hits of a turn that are shown; the rest is counted."""
SHORT = 160
"""Characters of a finding that are shown: the turn below it matters more, and ! shows it whole."""
HANG = 10
_BLANKS = re.compile(r"\s+")


def notes(number: int, turns: Turns, seen: Seen, hits: Hits) -> tuple[Block, ...]:
    """The lines for one turn, and a blank one below them; nothing when there is nothing to say."""
    lines = (
        *_hits(number, hits),
        *_findings(number, seen),
        *_cycles(number, turns, seen),
        *_children(number, seen),
    )
    return (*lines, Head(())) if lines else ()


def _line(sign: str, word: str, *spans: Span) -> Head:
    return Head(((sign, "accent_strong"), (f" {word:<8}", "accent"), *spans), hang=HANG)


def _short(text: str) -> str:
    return text if len(text) <= SHORT else text[:SHORT].rsplit(" ", 1)[0] + " …"


def _findings(number: int, seen: Seen) -> Iterator[Block]:
    for one in seen.findings or ():
        if not one.first_turn <= number <= one.last_turn:
            continue
        wasted = []
        if one.wasted.turns:
            wasted.append(counted(one.wasted.turns, "turn"))
        if one.wasted.usd:
            wasted.append(money(one.wasted.usd))
        lost = f"  wasted {', '.join(wasted)}" if wasted else ""
        yield _line("!", one.rule, (f"{one.severity}: ", "bad" if one.severity == "error" else "dim"), (_short(one.message), "text"), (lost, "dim"))  # fmt: skip


def _cycles(number: int, turns: Turns, seen: Seen) -> Iterator[Block]:
    for one in seen.cycles:
        lap = lap_of(one, number)
        if lap is None:
            continue
        said: list[Span] = [(_short(one.sentence), "text")]
        if one.laps > 1:
            said.insert(0, (f"lap {lap} of {one.laps}: " if lap else f"{one.laps} laps: ", "dim"))
        after, spent = turns.since(one.detected_turn)
        known = f"  known at turn {one.detected_turn}"
        if after:
            known += f"; since then {counted(after, 'turn')}" + (f", {money(spent)}" if spent else "")
        yield _line("↻", "cycle", *said, (known, "dim"))


def _children(number: int, seen: Seen) -> Iterator[Block]:
    for place, child in enumerate(seen.children.get(number, ())):
        cost = money(float(child.usd)) if child.usd or not child.unpriced else "unpriced"
        said = f"  {counted(child.turns, 'turn')}, {cost} in all"
        key = "" if place else "  i opens it"
        yield _line("↳", "agent", (child.name or child.run[:8], "strong"), (said, "dim"), (key, "faint"))


def _hits(number: int, hits: Hits) -> Iterator[Block]:
    found = hits.by_turn.get(number, ())
    for hit in found[:MOST]:
        before, after = _BLANKS.sub(" ", hit.before[-60:]), _BLANKS.sub(" ", hit.after[:80])
        where = hit.where.removesuffix("s") + (f" of {hit.what}" if hit.what not in ("", "assistant") else "")
        yield _line(
            "/",
            "found",
            (f"in {where}: ", "dim"),
            (("…" if len(hit.before) > 60 else "") + before, "dim"),
            (hit.match, "hit"),
            (after + ("…" if len(hit.after) > 80 else ""), "dim"),
            (f"  ×{hit.count}" if hit.count > 1 else "", "dim"),
        )
    if len(found) > MOST:
        yield _line("/", "", (f"and in {counted(len(found) - MOST, 'more text')} of this turn", "dim"))
