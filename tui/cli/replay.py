"""`looptape replay RUN -- COMMAND`: the program again, its model calls and tools answered from the recording."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import LooptapeError, UsageError
from .. import report
from .gate import Reports, gate, report_options
from .options import json_option, run_argument
from .program import WithProgram, how, program, refuse_undashed, replay_options

if TYPE_CHECKING:
    from ...replay.player.settings import ReplaySettings
    from ...replay.program.rerun import Rerun
    from ...replay.program.tape import Recording
    from ...replay.reference import Found


@click.command("replay", cls=WithProgram)
@run_argument("runs", nargs=-1)
@replay_options
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="RUN",
    help="Another run that the program makes (a second conversation, a process that it starts): answered too.",
)
@click.option(
    "--proxy", is_flag=True, help="Answer through the loopback proxy, also where the program could do without."
)
@click.option(
    "--resume",
    "going_on",
    is_flag=True,
    help="Go on with a run of the built-in loop (looptape fork) that was interrupted or met a limit. No program; "
    "--max-turns and --max-cost take the place of its limits and count the whole run.",
)
@report_options
@json_option
def command(
    runs: tuple[str, ...],
    others: tuple[str, ...],
    proxy: bool,
    going_on: bool,
    reports: Reports,
    as_json: bool,
    **given: Any,
) -> int:
    """Run a program again against the recording RUN: offline, unless something live is asked for by name.

    Of several recordings each is replayed by itself; the program finds its name in $LOOPTAPE_TAPE.

    Every model call is answered from the recording, streams, errors and retries as they happened, and so is
    every tool that is wrapped with @looptape.tool or looptape.tools. The verdict comes last, on stderr (with
    --json as one line of JSON after the program's own output).

    Without -- COMMAND the built-in loop makes each next request from the recorded answers and results.

    Ends with 1 if the verdict is bad, 2 if the program has recorded tools that are not wrapped, 3 if the
    recording cannot be replayed, else with the program's exit code.
    """
    from .replay_built_in import replay_whole, resume, tell

    run = runs[0]
    argv = program(f"replay {' '.join(runs)}")
    settings = how(given)
    if going_on:
        _alone(settings, plain=argv is None and not others and not proxy and len(runs) == 1 and not reports)
        return resume(run, settings.max_turns, settings.max_cost_usd, as_json=as_json)
    if argv is None:
        _one(runs, reports)
        recording = _joined((run, *others))
        opened, verdict = replay_whole(recording, begun(settings, recording))
        tell(opened, verdict, as_json=as_json)
        return report.FINE if verdict.ok else report.BAD
    if len(runs) > 1 or reports:
        return gate(runs, lambda one: _program((one, *others), argv, settings, proxy=proxy), reports, as_json=as_json)
    done = _program((run, *others), argv, settings, proxy=proxy)[1]
    tell(done.runs, done.verdict, as_json=as_json)
    return done.exit_code


def _one(runs: tuple[str, ...], reports: Reports) -> None:
    """Raises UsageError where no program is named for what needs one."""
    refuse_undashed(runs, "replay")
    if len(runs) > 1 or reports:
        raise UsageError(
            "no-command",
            "several recordings, --junit, --github and --summary are for a program that is replayed",
            f"Write it after two dashes: looptape replay {' '.join(runs)} -- python agent.py",
        )


def _alone(settings: ReplaySettings, *, plain: bool) -> None:
    from ...replay.player.settings import ReplaySettings

    capped = replace(ReplaySettings(), max_turns=settings.max_turns, max_cost_usd=settings.max_cost_usd)
    if not plain or settings != replace(capped, normalisers=settings.normalisers):
        raise UsageError(
            "usage",
            "--resume goes on with one run of the built-in loop as it was begun: no program; of the options only "
            "--max-turns and --max-cost",
            "Leave the rest out",
        )


def _program(
    runs: tuple[str, ...], argv: tuple[str, ...], settings: ReplaySettings, *, proxy: bool
) -> tuple[Recording, Rerun]:
    from ...replay.program.rerun import rerun

    recording = _joined(runs)
    return recording, rerun(recording, argv, begun(settings, recording), proxy=proxy, verb=f"replay {runs[0]}")


def _joined(runs: tuple[str, ...]) -> Recording:
    from ...replay.program.tape import joined

    return joined([chosen(run) for run in runs])


def chosen(run: str) -> Recording:
    """The recording of a reference or a tape file, read whole; the store is closed again."""
    from ...replay.program.tape import of_found, of_path
    from ...replay.reference import parse
    from .reading import found

    named = parse(run)
    recording = of_path(named)
    if recording is None:
        with found(run) as one:
            if named.back is not None:
                one = _no_replay(one)
            recording = of_found(one, run)
    return recording


def _no_replay(one: Found) -> Found:
    """What `last` means here: a replay that stopped, or that had nothing new, stands for what it replayed."""
    run = one.run
    while run.source == "replay" and run.parent is not None:
        turns = one.store.turns(run.id)
        if run.status == "completed" and not all(t.inherited for t in turns):
            break  # it went on live: that is a recording of its own
        try:
            run = one.store.run(run.parent.run)
        except LooptapeError:  # its original was pruned
            break
    if run is one.run:
        return one
    report.note(f"that is a replay of {run.id}{f' ({run.name})' if run.name else ''}: replaying that one")
    return replace(one, run=run)


def begun(settings: ReplaySettings, recording: Recording) -> ReplaySettings:
    """The settings with the turn of RUN:N in them, held against the turns that are there.

    Raises:
        UsageError: There is no such turn, or a model is to be live and nothing says from where.
    """
    from ...replay.program.tape import starting_at

    settings = starting_at(settings, recording.first)
    turns = recording.turns
    if settings.model != "recorded" and settings.from_turn is None:
        raise UsageError(
            "usage",
            f"--model {settings.model} needs a turn to start from",
            f"Add --from N (1 to {turns + 1}); --from 1 makes every turn live",
        )
    if settings.from_turn is not None and settings.from_turn > turns + 1:
        raise UsageError(
            "no-turn",
            f"the recording has {turns} turns, nothing starts at {settings.from_turn}",
            f"Try --from {turns + 1}",
        )
    return settings
