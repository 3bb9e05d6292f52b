"""Where in a sample an event stands: its enclosing spans (or, in old logs, steps), and whose conversation it is part of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...providers.answer import objects, text_of

# event kinds that are known; those without a use here say nothing of the loop that other events do not
EVENTS = frozenset(
    {
        "anchor", "approval", "branch", "checkpoint", "compaction", "error", "info", "input", "interrupt", "logger",
        "model", "review", "sample_init", "sample_limit", "sandbox", "score", "score_edit", "span_begin", "span_end",
        "state", "step", "store", "subtask", "tool",
    }
)  # fmt: skip
MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Whose turn a model event is.

    Attributes:
        thread: None for the sample's own loop, else the key of a conversation inside it.
        call: The tool call that it runs in.
        name: What the conversation is called.
        step: The nearest solver, agent or scorer around it.
    """

    thread: str | None = None
    call: str | None = None
    name: str | None = None
    agent: str | None = None
    step: str | None = None


@dataclass(slots=True)
class _Span:
    parent: str | None
    kind: str | None
    name: str | None
    call: str | None = None


def flat(
    events: Iterable[dict[str, Any]], call: str | None = None, depth: int = 0
) -> Iterator[tuple[dict[str, Any], str | None]]:
    """All events in order, those inside others too (old logs), with the tool call that they are inside of."""
    for event in events:
        yield event, call
        inner = objects(event.get("events")) if depth < MAX_DEPTH else []
        if inner:
            own = text_of(event.get("id")) if event.get("event") == "tool" else None
            yield from flat(inner, own or call, depth + 1)


class Spans:
    """The spans seen so far."""

    def __init__(self) -> None:
        self._spans: dict[str, _Span] = {}
        self._steps: list[_Span] = []

    def take(self, event: Mapping[str, Any]) -> bool:
        """Notes a span or step; False when the event is none."""
        kind = event.get("event")
        name, of = text_of(event.get("name")), text_of(event.get("type"))
        if kind == "span_begin":
            self._spans.setdefault(str(event.get("id")), _Span(text_of(event.get("parent_id")), of, name))
        elif kind == "step" and event.get("action") == "begin":
            self._steps.append(_Span(None, of, name))
        elif kind == "step" and self._steps:
            self._steps.pop()
        return kind in ("span_begin", "span_end", "step")

    def tool(self, event: Mapping[str, Any], call: str) -> None:
        """A tool event: it comes right after the span of its call begins, or names the span of its agent."""
        agent = self._spans.get(str(event.get("agent_span_id")))
        if agent is not None:
            agent.call = call
        for span in reversed(self._spans.values()):
            mine = span.kind == "tool" and span.call is None and span.name == event.get("function")
            if mine and span.parent == event.get("span_id"):
                span.call = call
                return

    def place(self, event: Mapping[str, Any], nested: str | None) -> Place:
        """Where a model event stands."""
        around = list(self._around(event))
        agent = next((s.name for s in around if s.kind == "agent"), None)
        step = next((s.name for s in around if s.kind != "tool" and s.name), None)
        for span in around:
            if span.kind == "scorer":
                return Place(f"scorer {span.name}", None, span.name, agent, step)
            if span.call is not None:
                return Place(f"call {span.call}", span.call, agent or span.name, agent, step)
        if nested is not None:
            return Place(f"call {nested}", nested, agent, agent, step)
        return Place(None, None, None, agent, step)

    def _around(self, event: Mapping[str, Any]) -> Iterator[_Span]:
        key, seen = text_of(event.get("span_id")), 0
        while key is not None and (span := self._spans.get(key)) and seen < MAX_DEPTH:
            yield span
            key, seen = span.parent, seen + 1
        yield from reversed(self._steps)
