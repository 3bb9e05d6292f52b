"""`looptape fork RUN:N`: goes on from a turn with something changed, by the built-in loop, as a new run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import UsageError
from ...tracer.interrupts import told_to_end
from .. import report
from .fork_options import fork_options, named_tools
from .options import json_option, run_argument

if TYPE_CHECKING:
    from ...replay.engine.forks.choices import ToolChoice
    from ...replay.engine.forks.forking import Plan
    from ...replay.engine.forks.order import Order, Ready
    from ...replay.engine.toolbox import Toolbox
    from ...replay.fork.edits import Edit


@click.command("fork")
@run_argument()
@fork_options
@json_option
def command(run: str, as_json: bool, **given: Any) -> int:
    """Go on from turn N of a run (RUN:N) with something changed, as a new run that knows where it comes from.

    Turns before N are inherited. Model and tools are the recording's unless something else is named: after an
    edit the recording can only answer requests that are still the same, so it stops at the first other one and
    says what to name. RUN:N with N one past the last turn goes on after the end, where
    the last answer called tools.

    Ends with 1 when the fork misses an answer, fails, or its check does not pass.
    """
    from ...replay.engine.forks import order, telling

    fork = order.ready(_order(given), _plan(run))
    if given["dry_run"]:
        _show(fork, as_json)
        return report.FINE
    for line in (*fork.plan.diff(), *telling.story(fork)):
        report.note(_styled(line))
    with told_to_end():
        live = order.sources(fork.order)
        try:
            tools = _tools(fork, live)
            _confirm(fork, tools, yes=given["yes"])
        except BaseException:
            order.close(live)
            raise
        return _run(run, fork, tools, as_json, given)


def _order(given: dict[str, Any]) -> Order:
    """What the options ask for."""
    from ...replay.engine.forks.order import Order
    from ...replay.fork.edits import edit, turns_of

    edits: list[Edit] = [edit(text) for text in given["edit"]]
    if given["system"] is not None:
        edits.append(edit(f"system={given['system']}"))
    drop = turns_of(given["drop_turns"]) if given["drop_turns"] else ()
    return Order(
        tuple(edits), drop, given["model"], given["base_url"], given["tools"], named_tools(given["tool"]),
        given["tools_from"], given["mcp"], given["seen_tools"], given["max_turns"], given["max_cost"],
        given["max_seconds"], given["context"], given["window"],
    )  # fmt: skip


def _plan(run: str) -> Plan:
    from ...replay.engine.forks.forking import plan

    with _source(run) as (store, name, number):
        return plan(store, name, number)


def _source(run: str) -> Any:
    """The store, the run's id and N; open while the block lasts."""
    from contextlib import contextmanager

    from ...replay.reference import parse
    from .reading import found

    @contextmanager
    def opened() -> Any:
        named = parse(run)
        with found(named.base if named.path is None else str(named.path)) as one:
            if named.first is None or named.first != named.last:
                last = one.run.turns or 1
                raise UsageError("no-turn", "fork begins at one turn", f"Say which: looptape fork {named.base}:{last}")
            yield one.store, one.run.id, named.first

    return opened()


def _show(fork: Ready, as_json: bool) -> None:
    """What would run, and nothing else."""
    from ...replay.engine.forks import costs, order, telling

    if not (fork.order.modules or fork.order.commands):  # what those offer is not asked for here
        order.refuse_unknown(fork)
    if as_json:
        report.data({"run": None, "fork": _facts(fork), "live": fork.model.live})
        return
    for line in fork.plan.diff():
        report.out(_styled(line))
    for line in telling.story(fork):
        report.note(line)
    report.note(telling.will_run(fork, telling.tool_facts(fork.plan, fork.order)).words())
    cost = costs.estimate(fork)
    if cost is not None:
        report.note(cost.words())


def _styled(line: str) -> report.Styled:
    style = "good" if line.startswith("+") else "bad" if line.startswith("-") else "dim"
    return report.Styled(line, "bold" if line[:3] in ("+++", "---") else style)


def _tools(fork: Ready, live: list[Toolbox]) -> ToolChoice:
    from ...replay.engine.forks.order import tools

    made = tools(fork, live)
    if live and not made.live:
        report.note("note: the given tools run only when they are named: --tools live, or --tool NAME=live")
    return made


def _confirm(fork: Ready, tools: ToolChoice, *, yes: bool) -> None:
    """Asks before anything live runs. Raises UsageError where nobody can answer, click.Abort for no."""
    live = [fork.model.words(fork.start.body.get("model"))] if fork.model.live else []
    if tools.live:
        live.append(f"tools {', '.join(tools.live)}")
    if not live:
        return
    line = f"LIVE: {'; '.join(live)}. What is not named here comes from the recording"
    if yes:
        report.note(line)
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("not-confirmed", f"{line}. Nobody can be asked here", "Say --yes to run it, --dry-run to look")
    report.note(line)
    if not click.confirm("Run it?", default=False, err=True):
        raise click.Abort


def _run(run: str, fork: Ready, tools: ToolChoice, as_json: bool, given: dict[str, Any]) -> int:
    from ...replay.engine.forks import beside
    from ...replay.engine.forks.forking import carry_out, refuse_miss
    from ...replay.engine.forks.order import begun
    from ...replay.engine.policy import Hooks
    from .fork_outcome import exit_code, show, told

    count = given["samples"]
    with _source(run) as (store, _, _):
        model, runs = begun(store, fork, count)
    each = told if count > 1 else None
    came: list[beside.Said] = []
    hooks = Hooks(observer=lambda done: came.append(beside.of_done(done)))
    spread = carry_out(
        fork.start, runs, model, tools.box, fork.order.policy(), check=given["check"], told=each, hooks=hooks
    )
    refuse_miss(spread)
    first = spread.outcomes[0]
    verdict = beside.judge(fork, tools.live, came, first) if count == 1 else None
    if as_json:
        one = first.as_json() if verdict else None
        said = {"outcome": one, "verdict": verdict.as_json() if verdict else None, "spread": spread.as_json()}
        report.data({"run": first.run, "fork": _facts(fork), **said})
    else:
        show(fork.start, spread)
        for line in verdict.lines() if verdict else ():
            report.note(line)
    return exit_code(spread)


def _facts(fork: Ready) -> dict[str, Any]:
    start = fork.start
    return {
        "parent": {"run": start.run, "turn": start.turn, "kind": "fork"},
        "stage": start.stage,
        "inherited": start.inherited,
        "dropped": list(fork.plan.after.dropped),
        "api": start.api,
        "edits": list(start.edits),
        "diff": fork.plan.diff(),
        "lacks": list(start.lacks),
        "notes": list(start.notes),
        "pending": [{"id": c.id, "name": c.name} for c in start.pending],
    }
