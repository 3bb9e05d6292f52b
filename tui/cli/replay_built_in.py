"""`looptape replay RUN` without a program: the built-in loop, offline, or going on with a run of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import format as fmt
from .. import report

if TYPE_CHECKING:
    from ...replay.player.settings import ReplaySettings
    from ...replay.program.tape import Recording
    from ...replay.verdict import Verdict


def replay_whole(recording: Recording, settings: ReplaySettings) -> tuple[list[str], Verdict]:
    """Replays a recording without its program. The new run's id (none where nothing is kept), and the verdict.

    Raises:
        UsageError: Something live was asked for, which needs the program or a fork.
    """
    from ...replay.engine.offline import replay_recorded
    from ...replay.program.recorder import home_for, recording_to, usual_home

    with home_for(None) as home, recording_to(home or usual_home()) as active:
        run, verdict = replay_recorded(recording.runs, settings, recorder=active)
    return [run] if run is not None and home is None else [], verdict


def resume(run: str, max_turns: int | None, max_cost_usd: float | None, *, as_json: bool) -> int:
    """Goes on with an interrupted run of the built-in loop.

    Args:
        max_turns, max_cost_usd: In place of the limits that it was begun with; None: as they were.

    Raises:
        UsageError: There is no such run, or it is none that can go on.
    """
    from ...replay.engine.resume import prepare
    from ...replay.program.recorder import home_for, recording_to, usual_home
    from .reading import found

    with found(run) as one:
        prepared = prepare(one.store, one.run.id)
    policy = prepared.policy
    policy = replace(
        policy,
        max_turns=policy.max_turns if max_turns is None else max_turns,
        max_cost_usd=policy.max_cost_usd if max_cost_usd is None else max_cost_usd,
    )
    prepared = replace(prepared, policy=policy)
    with home_for(None) as home, recording_to(home or usual_home()) as active:
        outcome = prepared.go(recorder=active)
    why = f"{outcome.reason}: {outcome.detail}" if outcome.detail else outcome.reason
    if as_json:
        cost = float(outcome.cost_usd) if outcome.cost_usd is not None else None
        facts = {"status": outcome.status, "reason": outcome.reason, "turns": outcome.turns, "cost_usd": cost}
        report.data({"run": outcome.run, "resumed": {**facts, "text": outcome.text}})
    else:
        report.out(f"{outcome.run}  {outcome.status}  {fmt.counted(outcome.turns, 'turn')} of its own  {why}")
        if outcome.text:
            report.block(outcome.text, indent="  ")
    if outcome.reason == "user":
        return report.INTERRUPTED
    return report.BAD if outcome.status == "failed" or outcome.reason == "miss" else report.FINE


def tell(runs: Sequence[str], verdict: Verdict, *, as_json: bool) -> None:
    """The verdict on stderr, with ``--json`` as one line on stdout too."""
    for text in verdict.lines():
        report.note(text)
    if runs:
        report.note(f"recorded as {runs[0]}: looptape show {runs[0]}")
    if as_json:
        report.data({"run": runs[0] if runs else None, "verdict": verdict.as_json()})
