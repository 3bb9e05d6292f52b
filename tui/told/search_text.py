"""Hits of a search as people read them: a head for each run, a line for each text, the match marked."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from .. import format as fmt
from .. import report
from ..report import Part, Styled
from ..safe_text import clean, width

if TYPE_CHECKING:
    from ...replay.search import Hit, RunHits

BEFORE, AFTER, MATCH = 40, 60, 80  # terminal cells of a line in a pipe; on a terminal what there is room for
PLACE = 28


def show(found: RunHits, count: int, *, first: bool) -> None:
    """The run and its first ``count`` hits; what is left out is told."""
    run = found.run
    if not first:
        report.out("")
    at = run.ended_at if run.started_at is None else run.started_at
    report.out(
        Styled(fmt.sign(run.status), fmt.STYLES.get(run.status, "dim")),
        "  ",
        Styled(clean(fmt.run_title(run), limit=60), "bold"),
        Styled(f"  {run.id[:8]}  {fmt.ago(at, time.time_ns() // 1000)}  {fmt.counted(run.turns, 'turn')}", "dim"),
    )
    for hit in found.hits[:count]:
        report.out(*_line(hit, run.turns))
    left = len(found.hits) - count
    if left > 0:
        report.out(Styled(f"      … {left:,} more in this run: add the filter text:{run.id}", "dim"))


def as_json(found: RunHits, count: int) -> dict[str, Any]:
    """The run with its first ``count`` hits as JSON has them; ``left_out`` says how many more it has."""
    run = found.run
    return {
        "run": run.id,
        "name": run.name,
        "title": run.title,
        "started_at": fmt.iso(run.started_at),
        "hits": [_hit(hit) for hit in found.hits[:count]],
        "left_out": len(found.hits) - count,
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "turn": hit.turn,
        "where": hit.where,
        "what": hit.what,
        "before": hit.before,
        "match": hit.match,
        "after": hit.after,
        "count": hit.count,
        "call": hit.call,
        "message": hit.position,
        "last_turn": hit.last_turn,
    }


def _line(hit: Hit, turns: int) -> list[Part]:
    """``   7  results read_file  …context «match» context…  3 times · until turn 9``."""
    place = clean(f"{hit.where} {hit.what}" if hit.what not in ("assistant", "?") else hit.where, limit=PLACE)
    said = [f"{hit.count:,} times"] if hit.count > 1 else []
    if hit.last_turn is not None and hit.last_turn < turns and hit.where != "results":
        said.append(f"until turn {hit.last_turn}")
    tail = f"  {' · '.join(said)}" if said else ""
    head = f"{hit.turn:>6}  {place:<{PLACE if sys.stdout.isatty() else 18}}  "
    room = _room(width(head) + width(tail))
    match = clean(hit.match, limit=min(MATCH, room))
    before, after = _around(hit, room - width(match) - 2)
    marked: list[Part] = [Styled(match, "accent")] if report.coloured(sys.stdout) else [f"«{match}»"]
    return [Styled(head, "dim"), before, *marked, after, Styled(tail, "dim")]


def _room(taken: int) -> int:
    if not sys.stdout.isatty():
        return BEFORE + MATCH + AFTER
    return max(30, shutil.get_terminal_size().columns - taken)


def _around(hit: Hit, room: int) -> tuple[str, str]:
    left = min(BEFORE, room // 3)
    before, after = clean(hit.before), clean(hit.after, limit=max(0, min(AFTER, room - left)))
    if width(before) > left:
        while before and width(before) > left - 1:
            before = before[max(1, (width(before) - left) // 2) :]
        before = f"…{before}"
    return before, after
