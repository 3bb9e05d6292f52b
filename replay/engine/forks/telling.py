"""A fork in words before it runs: where it starts, what it lacks, what will run live and what will not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....tracer.model import SideEffect
from ...fork.offered import names_of
from ..toolbox import Definition
from .choices import ModelChoice
from .forking import Plan
from .order import Order, Ready

_STAGES = {"generate": "asks the model for", "execute": "keeps the answer of", "resume": "keeps answer and results of"}
_NAMED = 8
RECORDED, LIVE, STUB, ERROR = "recorded", "live", "stub", "stub error"


@dataclass(frozen=True, slots=True)
class ToolFact:
    """A tool that the fork may be asked for.

    Attributes:
        how: ``recorded``, ``live``, ``stub`` or ``stub error``.
        text: What the stub gives.
        calls: Its calls in the recording.
        offered: It stands in the request's tool definitions.
        able: A source of live tools has it.
        effect: What is known of its side effect.
    """

    name: str
    how: str = RECORDED
    text: str = ""
    calls: int = 0
    offered: bool = True
    able: bool = False
    effect: SideEffect = "unknown"


def story(fork: Ready) -> list[str]:
    """Where it starts, in one line; then what the recording lacks and what was done about it, a line each."""
    start = fork.start
    gone = fork.plan.after.dropped
    dropped = f", without turn{'' if len(gone) == 1 else 's'} {', '.join(map(str, gone))}" if gone else ""
    first = f"fork of {start.run}:{start.turn}: {beginning(fork)}{dropped}"
    return [first, *(f"lacks: {line}" for line in start.lacks), *(f"note: {line}" for line in start.notes)]


def beginning(fork: Ready) -> str:
    """``asks the model for turn 7; turns 1 to 6 inherited``."""
    start = fork.start
    numbers = "turn 1" if start.inherited == 1 else f"turns 1 to {start.inherited}"
    inherited = f"{numbers} inherited" if start.inherited else "nothing inherited"
    return f"{_STAGES[start.stage]} turn {start.turn}; {inherited}"


def hindered(fork: Ready) -> str:
    """Why the recording will hardly answer, in one sentence; empty where it may."""
    before, after = fork.plan.before, fork.plan.after
    same = (before.body, before.response, before.results) == (after.body, after.response, after.results)
    if same or fork.model.kind != RECORDED:
        return ""
    return "What is asked is not what was recorded any more: the recording ends the fork there"


def tool_facts(plan: Plan, order: Order, able: Sequence[Definition] = ()) -> tuple[ToolFact, ...]:
    """Every tool that is offered, was called, or could run live, the offered ones first.

    Args:
        able: The live tools of the order's sources (`order.source_tools`).
    """
    offered = names_of(plan.after.body.get("tools"))
    calls: dict[str, int] = {}
    effects: dict[str, SideEffect] = {d.name: d.side_effect for d in able}
    for turn in plan.turns:
        for call in turn.tool_calls:
            if call.origin != "provider":
                calls[call.name] = calls.get(call.name, 0) + 1
                if effects.get(call.name, "unknown") == "unknown":
                    effects[call.name] = call.side_effect
    sources = {d.name: d for d in able}
    names = dict.fromkeys([*offered, *calls, *sources])
    return tuple(
        ToolFact(
            name, *how(name, order, sources), calls.get(name, 0), name in offered, name in sources,
            effects.get(name, "unknown"),
        )
        for name in names
    )  # fmt: skip


def how(name: str, order: Order, able: Mapping[str, Definition]) -> tuple[str, str]:
    """How a tool is answered under an order, and the text of its stub."""
    word = order.named.get(name, order.rest if name in able else RECORDED)
    kind, _, text = word.partition(":")
    text = text[1:] if text.startswith("@@") else text
    if kind == "error":
        return ERROR, text
    return (STUB, text) if kind == STUB else (kind, "")


@dataclass(frozen=True, slots=True)
class WillRun:
    """What of a fork would really run (the model as `model_words` says it, tools by name), and what would not."""

    live: tuple[str, ...]
    still: tuple[str, ...]

    def words(self) -> str:
        """``Will run live: the model claude-x (api.anthropic.com). Will not run: book_refund (stub).``"""
        return f"Will run live: {listed(self.live)}. Will not run: {listed(self.still)}."


def will_run(fork: Ready, facts: Iterable[ToolFact]) -> WillRun:
    """What of a fork would really run."""
    live: list[str] = []
    still: list[str] = []
    (live if fork.model.live else still).append(model_words(fork.model, fork.model_name))
    for fact in facts:
        if fact.how == LIVE:
            live.append(fact.name)
        elif fact.offered or fact.calls or fact.name in fork.order.named:
            still.append(f"{fact.name} ({fact.how})")
    return WillRun(tuple(live), tuple(still))


def model_words(choice: ModelChoice, name: str | None) -> str:
    """The model, and where it is asked."""
    return f"the model {name or '(no name)'} ({choice.host})" if choice.live else f"the model ({choice.kind})"


def listed(names: Sequence[str]) -> str:
    """The first names and how many more there are; ``nothing`` for none."""
    if not names:
        return "nothing"
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
