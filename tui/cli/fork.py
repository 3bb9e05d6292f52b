"""`looptape fork RUN:N`: goes on from a turn with something changed, by the built-in loop, as a new run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import UsageError
from .. import report
from .fork_options import fork_options, named_tools
from .options import json_option, run_argument

if TYPE_CHECKING:
    from ...replay.engine.forks.choices import ModelChoice, ToolChoice
    from ...replay.engine.forks.forking import Plan
    from ...replay.engine.policy import Policy
    from ...replay.engine.toolbox import Toolbox
    from ...replay.fork.edits import Edit
    from ...replay.fork.start import Start


@click.command("fork")
@run_argument()
@fork_options
@json_option
def command(run: str, as_json: bool, **given: Any) -> int:
    """Go on from turn N of a run (RUN:N) with something changed, as a new run that knows where it comes from.

    Turns before N are inherited. Model and tools are the recording's unless something else is named: after an
    edit the recording can only answer requests that are still the same, so it stops at the first other one and
    says what to name. RUN:N with N one past the last turn goes on after the end.

    Ends with 1 when the fork misses an answer, fails, or its check does not pass.
    """
    from ...replay.engine.forks.choices import model_choice

    plan = _plan(run, given)
    model = model_choice(given["model"], plan.before.api, given["base_url"])
    start = plan.start(api=model.api_for(plan.before.api), seen_tools=given["seen_tools"])
    if given["dry_run"]:
        _show(plan, start, model, as_json)
        return report.FINE
    _tell(plan, start)
    policy = _policy(given)
    live = _live_tools(given)
    try:
        tools = _tools(plan, given, live)
        _confirm(start, model, tools, yes=given["yes"])
    except BaseException:
        for box in live:
            box.close()
        raise
    return _run(run, plan, start, model, tools, policy, as_json, given)


def _plan(run: str, given: dict[str, Any]) -> Plan:
    from ...replay.engine.forks.forking import plan
    from ...replay.fork.edits import edit, turns_of

    edits: list[Edit] = [edit(text) for text in given["edit"]]
    if given["system"] is not None:
        edits.append(edit(f"system={given['system']}"))
    drop = turns_of(given["drop_turns"]) if given["drop_turns"] else ()
    with _source(run) as (store, name, number):
        return plan(store, name, number, edits, drop)


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


def _show(plan: Plan, start: Start, model: ModelChoice, as_json: bool) -> None:
    """What would run, and nothing else."""
    if as_json:
        report.data({"run": None, "fork": _facts(plan, start), "live": model.live})
        return
    for line in plan.diff():
        report.out(_styled(line))
    for line in _narration(plan, start):
        report.note(line)


def _tell(plan: Plan, start: Start) -> None:
    for line in plan.diff():
        report.note(_styled(line))
    for line in _narration(plan, start):
        report.note(line)


def _narration(plan: Plan, start: Start) -> list[str]:
    stage = {
        "generate": "asks the model for",
        "execute": "keeps the answer of",
        "resume": "keeps answer and results of",
    }
    dropped = f", without turns {', '.join(map(str, plan.after.dropped))}" if plan.after.dropped else ""
    numbers = "turn 1" if start.inherited == 1 else f"turns 1 to {start.inherited}"
    inherited = f"{numbers} inherited" if start.inherited else "nothing inherited"
    said = [f"fork of {start.run}:{start.turn}: {stage[start.stage]} turn {start.turn}; {inherited}{dropped}"]
    said += [f"lacks: {line}" for line in start.lacks]
    return said + [f"note: {line}" for line in start.notes]


def _styled(line: str) -> report.Styled:
    style = "good" if line.startswith("+") else "bad" if line.startswith("-") else "dim"
    return report.Styled(line, "bold" if line[:3] in ("+++", "---") else style)


def _policy(given: dict[str, Any]) -> Policy:
    from ...replay.engine.policy import Policy

    limits = {"max_turns": given["max_turns"], "max_seconds": given["max_seconds"], "max_cost_usd": given["max_cost"]}
    asked = {k: v for k, v in limits.items() if v is not None}
    return Policy(**asked, context=given["context"], window_tokens=given["window"])


def _live_tools(given: dict[str, Any]) -> list[Toolbox]:
    boxes: list[Toolbox] = []
    try:
        for reference in given["tools_from"]:
            from ...replay.engine.tools.registry import load

            boxes.append(load(reference))
        for line in given["mcp"]:
            from ...replay.engine.tools.mcp import connect

            boxes.append(connect(line))
    except BaseException:
        for box in boxes:
            box.close()
        raise
    return boxes


def _tools(plan: Plan, given: dict[str, Any], live: list[Toolbox]) -> ToolChoice:
    from ...replay.engine.forks.choices import tool_choice

    named = named_tools(given["tool"])
    made = tool_choice(plan.turns, f"run {plan.before.run}", rest=given["tools"], named=named, live=live)
    if live and not made.live:
        report.note("note: the given tools run only when they are named: --tools live, or --tool NAME=live")
    return made


def _confirm(start: Start, model: ModelChoice, tools: ToolChoice, *, yes: bool) -> None:
    """Asks before anything live runs. Raises UsageError where nobody can answer, click.Abort for no."""
    live = [model.words(start.body.get("model"))] if model.live else []
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


def _run(
    run: str,
    plan: Plan,
    start: Start,
    choice: ModelChoice,
    tools: ToolChoice,
    policy: Policy,
    as_json: bool,
    given: dict[str, Any],
) -> int:
    from ...replay.engine.forks.answers import recorded_model
    from ...replay.engine.forks.forking import carry_out, opened, refuse_miss
    from ...replay.engine.making import model_of
    from .fork_outcome import exit_code, show, told

    count = given["samples"]
    named = None if choice.kind == "recorded" else model_of(choice.spec)
    with _source(run) as (store, _, _):
        model = named or recorded_model(store, start, seen_tools=given["seen_tools"])
        runs = opened(store, start, policy, count)
    each = told if count > 1 else None
    spread = carry_out(start, runs, model, tools.box, policy, check=given["check"], told=each)
    refuse_miss(spread)
    if as_json:
        first = spread.outcomes[0]
        one = first.as_json() if count == 1 else None
        report.data({"run": first.run, "fork": _facts(plan, start), "outcome": one, "spread": spread.as_json()})
    else:
        show(start, spread)
    return exit_code(spread)


def _facts(plan: Plan, start: Start) -> dict[str, Any]:
    return {
        "parent": {"run": start.run, "turn": start.turn, "kind": "fork"},
        "stage": start.stage,
        "inherited": start.inherited,
        "dropped": list(plan.after.dropped),
        "api": start.api,
        "edits": list(start.edits),
        "diff": plan.diff(),
        "lacks": list(start.lacks),
        "notes": list(start.notes),
        "pending": [{"id": c.id, "name": c.name} for c in start.pending],
    }
