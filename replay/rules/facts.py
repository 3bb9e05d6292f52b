"""`RunFacts`: what the rules read of one run, worked out once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...tracer.canonical import canonical
from ...tracer.model import Event, Run, ToolCall, Turn
from ..cycles import CycleFinding, Declared, Waste, find_cycles
from ..cycles import kinds as tool_kinds
from ..cycles.outcomes import looks_failed
from ..cycles.whole import result_text
from ..recording import Incoming, Recording
from .failures import failure_class
from .group import Group

LIVE = frozenset({"sdk", "record", "proxy", "manual", "replay", "fork", "demo", "tape"})
"""Sources that saw the loop itself; the others are files that leave out what their format has no place for."""
SPEAKING = frozenset({"notice", "block", "stop"})
"""Rungs of a guard's ladder on which the loop learns something; a note is only written down."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools that a request offered. ``size``: characters of their schemas as JSON; ``key`` equal for equal sets."""

    names: tuple[str, ...]
    size: int
    key: int
    schemas: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A tool call, judged.

    Attributes:
        turn: Its turn's number; ``place`` counts the calls of the turn from 1.
        text: The result as the model saw it, as text; None while there is none.
        failed: By the flag, or by what a person would call an error at first sight; None without a result.
        failure: transient, permanent, semantic, denied, cancelled; None for what did not fail.
        effect: read, mutate, poll, actuate, bookkeeping, command or unknown; as declared where it is.
        check: A build or a test.
        command: The command line of a shell call.
        key: Equal for the same tool with the same arguments.
    """

    turn: int
    place: int
    call: ToolCall
    text: str | None
    failed: bool | None
    failure: str | None
    effect: str
    check: bool
    command: str | None
    key: str

    @property
    def name(self) -> str:
        """The tool."""
        return self.call.name

    @property
    def unanswered(self) -> bool:
        """True when the model never got a result for it, though one is due."""
        return (
            self.text is None
            and self.call.origin != "provider"
            and self.call.state in ("requested", "running", "no_result", "incomplete")
        )

    @property
    def short(self) -> str:
        """The call for people: ``search(q=revenue)``."""
        if self.command is not None:
            said = self.command
        elif isinstance(self.call.arguments, dict):
            said = ", ".join(f"{k}={_plain(v)}" for k, v in list(self.call.arguments.items())[:4])
        else:
            said = self.call.arguments_raw
        flat = " ".join(said[:300].split())
        return f"{self.name}({flat[:60]}{'…' if len(flat) > 60 else ''})"


@dataclass(frozen=True)
class RunFacts:
    """One run for the rules. ``turns`` are its own: inherited ones (of a fork, of a resumed session) are left out.

    Attributes:
        inherited: How many turns came from another run.
        incoming: By turn number, what was new in its request besides results of known calls.
        toolsets: By turn number, the tools offered; a turn whose request was not recorded is absent.
        systems: By turn number, equal values for equal system prompts.
        group: The runs that this one is compared with (its task, its project); never without itself.
        overrides: Thresholds that settings change: rule id to name to value.
    """

    run: Run
    turns: tuple[Turn, ...]
    inherited: int = 0
    events: tuple[Event, ...] = ()
    incoming: Mapping[int, tuple[Incoming, ...]] = field(default_factory=dict)
    toolsets: Mapping[int, ToolSet] = field(default_factory=dict)
    systems: Mapping[int, int] = field(default_factory=dict)
    group: Group = field(default_factory=lambda: Group(()))
    declared: Declared = field(default_factory=Declared)
    overrides: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    recording: Recording | None = None

    @property
    def foreign(self) -> bool:
        """True for a run read from another tool's file: what is missing there was not the loop's fault."""
        return self.run.source not in LIVE

    @cached_property
    def calls(self) -> tuple[CallFacts, ...]:
        """Every call, in order."""
        return tuple(
            _call_facts(turn.number, place, call, self.declared)
            for turn in self.turns
            for place, call in enumerate(turn.tool_calls, 1)
        )

    @cached_property
    def by_turn(self) -> Mapping[int, tuple[CallFacts, ...]]:
        """The calls of each turn that has some."""
        found: dict[int, list[CallFacts]] = {}
        for call in self.calls:
            found.setdefault(call.turn, []).append(call)
        return {number: tuple(calls) for number, calls in found.items()}

    @cached_property
    def cycles(self) -> tuple[CycleFinding, ...]:
        """The run's circles, by their first turn."""
        recording = self.recording or Recording(self.run, self.turns, self.events, self.incoming)
        return find_cycles(recording, declared=self.declared)

    @cached_property
    def compactions(self) -> frozenset[int]:
        """Turns before which the context was shortened."""
        found = {t.number for t in self.turns if "compaction" in t.flags}
        return frozenset(found | {e.turn for e in self.events if "compact" in e.kind and e.turn is not None})

    @cached_property
    def notices(self) -> frozenset[int]:
        """Turns at which something (a guard) told the model, blocked a call or stopped the loop."""
        spoken = [e for e in self.events if e.kind == "guard" and e.detail.get("rung") in SPEAKING]
        found = {e.turn for e in spoken if e.turn is not None}
        return frozenset(found | {t.number for t in self.turns if "injected" in t.flags})

    @property
    def ended_by(self) -> str:
        """``model`` (its own stop), ``cap``, ``guard``, ``failure``, ``cut`` (interrupted), ``running``, ``unknown``."""
        named = {"completed": "model", "limit": "cap", "halted": "guard", "failed": "failure", "interrupted": "cut"}
        return named.get(self.run.status, self.run.status)

    def window(self, turn: Turn) -> int | None:
        """Tokens that the model of a turn can read at most; None when no list says it."""
        from ...tracer.pricing import context_window

        return context_window(turn.provider, turn.model or turn.request_model)

    def thresholds(self, rule: str, defaults: Mapping[str, float]) -> Mapping[str, float]:
        """A rule's numbers, with what settings say in place of the defaults."""
        return {**defaults, **self.overrides.get(rule, {})}

    def turn(self, number: int) -> Turn | None:
        """The turn of that number."""
        return self._numbered.get(number)

    def waste(self, numbers: Iterable[int]) -> Waste:
        """What these turns took: tokens read and written, money, seconds from their beginning to the next turn's."""
        wanted = [t for n in sorted(set(numbers)) if (t := self._numbered.get(n)) is not None]
        tokens = [v for t in wanted for v in (t.usage.context, t.usage.output) if v is not None]
        costs = [t.cost_usd for t in wanted if t.cost_usd is not None]
        seconds = [s for t in wanted if (s := self._seconds(t)) is not None]
        return Waste(
            len(wanted),
            sum(tokens) if tokens else None,
            round(sum(costs), 6) if costs else None,
            round(sum(seconds), 3) if seconds else None,
        )

    @cached_property
    def _numbered(self) -> dict[int, Turn]:
        return {t.number: t for t in self.turns}

    def _seconds(self, turn: Turn) -> float | None:
        following = self._numbered.get(turn.number + 1)
        end = following.started_at if following is not None and not following.user_turn else turn.ended_at
        return (end - turn.started_at) / 1e6 if end is not None and turn.started_at is not None else None


def facts_of(recording: Recording, **more: Any) -> RunFacts:
    """The facts of a recording in memory. ``more``: fields of `RunFacts` (group, declared, toolsets, ...)."""
    own = tuple(t for t in recording.turns if not t.inherited)
    return RunFacts(
        recording.run, own, len(recording.turns) - len(own), recording.events, recording.incoming,
        recording=recording, **more,
    )  # fmt: skip


def call_key(name: str, arguments: Any, raw: str, loop_key: str | None = None) -> str:
    """Equal for the same tool with the same arguments, however they were written."""
    said = loop_key if loop_key is not None else canonical(arguments) if arguments is not None else raw
    return f"{name}\x1f{said}"


def tools_of(tools: Any) -> ToolSet | None:
    """The tool set of a request's ``tools``, whatever the provider's form; None when there is none."""
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        return None
    schemas = [t for t in _flat(tools) if isinstance(t, Mapping)]
    names = tuple(str(t.get("name") or t.get("type") or "?") for t in schemas)
    text = json.dumps(tools, ensure_ascii=False, sort_keys=True, default=str)
    return ToolSet(names, len(text), hash(text), tuple(schemas))


def _flat(tools: Sequence[Any]) -> Iterable[Any]:
    for tool in tools:
        if not isinstance(tool, Mapping):
            continue
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        if isinstance(declared, list):  # Gemini's form
            yield from declared
        else:  # Chat Completions keep it one level down
            yield tool["function"] if isinstance(tool.get("function"), Mapping) else tool


def _call_facts(turn: int, place: int, call: ToolCall, declared: Declared) -> CallFacts:
    arguments = call.arguments if call.valid and call.arguments is not None else call.arguments_raw
    command = tool_kinds.command_of(call.name, arguments)
    text = result_text(call.result)
    known = text is not None or call.is_error is not None
    failed = looks_failed(call.is_error, text) if known else None
    said = declared.effects.get(call.name) or (call.side_effect if call.side_effect != "unknown" else None)
    return CallFacts(
        turn=turn,
        place=place,
        call=call,
        text=text,
        failed=failed,
        failure=failure_class(call.error_class, text, command=command is not None) if failed else None,
        effect=said or tool_kinds.effect_of(call.name, arguments),
        check=tool_kinds.is_check(call.name, arguments),
        command=command,
        key=call_key(call.name, call.arguments if call.valid else None, call.arguments_raw, call.loop_key),
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
