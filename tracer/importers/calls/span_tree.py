"""Who stands above whom among spans: the nearest agent, tool and model call, the steps, parents that never came."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .model_call import AgentSpan, ModelCall, Span, ToolSpan

_Id = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class Place:
    """What a span stands in.

    Attributes:
        home: The nearest agent or tool above: calls of one home belong together.
        agent, tool: The nearest of each kind.
        call: A model call above with no agent or tool between: a wrapper of this one.
        steps: Names of the spans between it and its home that are no GenAI spans, outermost first.
        missing: Id of a parent that was not received.
    """

    home: AgentSpan | ToolSpan | None = None
    agent: AgentSpan | None = None
    tool: ToolSpan | None = None
    call: ModelCall | None = None
    steps: tuple[str, ...] = ()
    missing: str | None = None


class SpanTree:
    """Spans by id, in whatever order they came; parents may be late or absent."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans: dict[_Id, Span] = {}
        for span in spans:
            if span.span_id:
                self._spans.setdefault((span.trace_id, span.span_id), span)
        self._places: dict[_Id, Place] = {}

    def parent(self, span: Span) -> Span | None:
        """The span above, None for a root or when it was not received."""
        above = span.parent_span_id
        return self._spans.get((span.trace_id, above)) if above else None

    def place(self, span: Span) -> Place:
        """What the span stands in."""
        if span.span_id and (known := self._places.get((span.trace_id, span.span_id))) is not None:
            return known
        path: list[Span] = []
        seen: set[int] = set()
        current: Span | None = span
        while current is not None and id(current) not in seen and _id(current) not in self._places:
            seen.add(id(current))
            path.append(current)
            current = self.parent(current)
        if current is not None and id(current) not in seen:
            upper, place = current, self._places[_id(current)]
        else:
            upper = path.pop()
            place = Place(missing=upper.parent_span_id if current is None and upper.parent_span_id else None)
            self._keep(upper, place)
        for one in reversed(path):
            place = _inside(place, upper)
            self._keep(one, place)
            upper = one
        return place

    def _keep(self, span: Span, place: Place) -> None:
        if span.span_id:
            self._places[_id(span)] = place


def _id(span: Span) -> _Id:
    return span.trace_id, span.span_id or ""


def _inside(place: Place, above: Span) -> Place:
    """The place of what stands directly in ``above``, whose own place is given."""
    if isinstance(above, ModelCall):
        return Place(place.home, place.agent, place.tool, above, place.steps)
    if isinstance(above, ToolSpan):
        return Place(above, place.agent, above)
    if above.kind == "agent":
        return Place(above, above, place.tool)
    return Place(place.home, place.agent, place.tool, place.call, (*place.steps, above.name))
