"""How a run ended: its status and the reason, from what its last turn said."""

from __future__ import annotations

import asyncio
import sys

from .errors import LoopStopped, LooptapeStop
from .live import OpenRun, OpenTurn
from .quiet import words

Ending = tuple[str, str | None]


def of_block(run: OpenRun, error: BaseException | None) -> Ending:
    """The end of a `run()` block that was left with this exception, or without one."""
    if isinstance(error, LoopStopped):
        return error.status, words(error)
    if isinstance(error, (LooptapeStop, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit)):
        return "halted", _said(error)
    if error is not None and not (isinstance(error, SystemExit) and not error.code):
        return "failed", _said(error)
    turn = run.last
    if turn is not None and turn.in_flight:
        return "interrupted", f"the block ended during turn {turn.number}"
    return _after(run, turn)


def of_process(run: OpenRun) -> Ending:
    """The end of a run that nobody closed, when its process ends in good order."""
    turn = run.last
    if turn is not None and turn.in_flight:
        return "interrupted", f"the process ended during turn {turn.number}"
    raised = getattr(sys, "last_type", None)
    if raised is not None and turn is not None:
        return "failed", f"{raised.__name__}: the program ended with this exception after turn {turn.number}"
    return _after(run, turn)


def of_turn(turn: OpenTurn) -> Ending | None:
    """The end that a turn brings to a run without a `run()` block; None while calls are open."""
    if turn.status == "error":
        return "failed", turn.error
    if turn.status == "ok" and turn.end is not None:
        return turn.end, turn.stop_reason
    return None


def _after(run: OpenRun, turn: OpenTurn | None) -> Ending:
    """The loop stopped by itself after this turn, or caught what a guard stopped it with."""
    if run.stopped is not None:
        return run.stopped
    if turn is None:
        return "completed", "no turns"
    ended = of_turn(turn)
    if ended is not None:
        return ended
    if turn.status != "ok":
        return "interrupted", f"turn {turn.number} was {turn.status}"
    if turn.stop_reason in ("queued", "in_progress"):
        return "unknown", f"the answer of turn {turn.number} was still {turn.stop_reason}: it is made in the background"
    if not turn.calls and turn.stop_reason not in ("tool_use", "tool_calls", "pause_turn"):
        return "completed", turn.stop_reason or "the loop ended"
    cap = run.limits.get("turns")
    if cap is not None and run.turns >= cap:
        return "limit", f"turns: {run.turns} of {cap}, the last stop reason was {turn.stop_reason}"
    return "limit", f"the loop ended after turn {turn.number} with stop reason {turn.stop_reason}: a cap of its own"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {words(error)}".removesuffix(": ")
