"""Spans and log records of every dialect into model calls, tools and what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...canonical import canonical
from ..calls.model_call import AgentSpan, ModelCall, ToolSpan
from . import claude_telemetry, codex_telemetry, genai, logfire, mcp, openinference, traceloop
from .histories import Histories
from .wire import RawEvent, RawSpan

Item = ModelCall | ToolSpan | AgentSpan


# A span with none of these is no GenAI span in any dialect; what the dialects' `read` and `recognised` ask for.
_SPOKEN = frozenset(
    {
        openinference.KIND,
        mcp.METHOD,
        *traceloop.MARKS,
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.request.model",
    }
)


@dataclass(slots=True)
class Found:
    """What was found in one heap of spans and log records.

    Attributes:
        others: Spans that are no GenAI spans.
        scopes: The instrumentations seen.
        bad: Line and reason for what could not be understood.
    """

    calls: list[ModelCall] = field(default_factory=list)
    tools: list[ToolSpan] = field(default_factory=list)
    around: list[AgentSpan] = field(default_factory=list)
    others: int = 0
    scopes: dict[str, int] = field(default_factory=dict)
    bad: list[tuple[int, str]] = field(default_factory=list)

    def take(self, one: ModelCall | ToolSpan | AgentSpan) -> None:
        """Puts it where it belongs."""
        if isinstance(one, ModelCall):
            self.calls.append(one)
        elif isinstance(one, ToolSpan):
            self.tools.append(one)
        else:
            self.around.append(one)


def sorted_out(spans: Iterable[RawSpan], logs: Sequence[RawEvent]) -> Found:
    """Everything that these spans and log records tell."""
    found = Found()
    once, logs = _once(spans), _logs_once(logs)
    claude, pairs = [], []
    strays = _attached(once, logs)
    histories = Histories()
    for span in once.values():
        found.scopes[span.scope or "(no scope)"] = found.scopes.get(span.scope or "(no scope)", 0) + 1
        if claude_telemetry.owns(span):
            claude.append(span)
        elif logfire.owns(span):
            pairs.append(span)
        elif _SPOKEN.isdisjoint(span.attributes):  # most spans of a service: no dialect needs to look
            found.others += 1
            found.around.append(step(span))
        else:
            _guarded(found, span.line, span.name, _one, span, found, histories)
    _guarded(found, 1, "logfire spans", logfire.calls, pairs)
    _logs(strays, claude, logs, found)
    return found


def _guarded(found: Found, line: int, what: str, read: Callable[..., Iterable[Item]], *given: Any) -> None:
    """Takes what a dialect reads; values of a kind that nobody expects cost that span, and are named."""
    try:
        for one in read(*given):
            found.take(one)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError) as error:
        found.bad.append((line, f"{what[:80]}: not understood ({type(error).__name__}: {str(error)[:120]})"))


def _one(span: RawSpan, found: Found, histories: Histories) -> list[Item]:
    given = span.attributes
    one: Item | None
    if openinference.KIND in given:
        one = openinference.read(span)
    elif mcp.METHOD in given:
        one = mcp.read(span)
    elif traceloop.recognised(given):
        one = traceloop.read(span)
    else:
        one = genai.read(span, histories)
    if one is None:
        found.others += 1
        return [step(span)]
    return [one]


def _stray(span: RawSpan) -> list[Item]:
    one = genai.read(span)
    return [] if one is None else [one]


def step(span: RawSpan) -> AgentSpan:
    """A span that is no GenAI span."""
    return AgentSpan(
        key=span.key,
        name=span.name,
        started_at=span.start,
        ended_at=span.end,
        status="error" if span.code == 2 else "ok",
        error=span.message,
        trace_id=span.trace,
        span_id=span.span,
        parent_span_id=span.parent,
        service=span.service,
        scope=span.scope,
    )


def _once(spans: Iterable[RawSpan]) -> dict[str, RawSpan]:
    """Each span once: a later copy that is ended, or that has more attributes, wins."""
    out: dict[str, RawSpan] = {}
    for number, span in enumerate(spans):
        key = span.key if span.span else f"{span.key}:{number}"
        known = out.get(key)
        if known is None or (span.end or 0, len(span.attributes)) > (known.end or 0, len(known.attributes)):
            out[key] = span
    return out


def _logs_once(logs: Iterable[RawEvent]) -> list[RawEvent]:
    """Each log record once, whatever was exported again in another request or another file; they have no ids."""
    kept: list[RawEvent] = []
    most: dict[tuple[Any, ...], int] = {}
    here: dict[tuple[Any, ...], int] = {}
    for log in logs:
        key = (log.trace, log.span, log.at, log.name, canonical([log.body, log.attributes]))
        place = (log.file, log.line, key)
        here[place] = count = here.get(place, 0) + 1
        if count > most.get(key, 0):
            most[key] = count
            kept.append(log)
    return kept


def _attached(spans: dict[str, RawSpan], logs: Sequence[RawEvent]) -> list[RawEvent]:
    """Log records to the spans they name; the others are given back."""
    strays = []
    for log in sorted(logs, key=lambda e: e.at or 0):
        span = spans.get(f"{log.trace}:{log.span}")
        if span is None or claude_telemetry.owns(log) or codex_telemetry.owns(log):
            strays.append(log)
        else:
            span.logs.append(log)
    return strays


def _logs(strays: Sequence[RawEvent], claude: Sequence[RawSpan], logs: Sequence[RawEvent], found: Found) -> None:
    """Log records that say more than their span, or whose span was not received."""
    for log in logs:
        found.scopes.setdefault(log.scope or "(no scope)", 0)
    session = [log for log in strays if claude_telemetry.owns(log)]
    codex = [log for log in strays if codex_telemetry.owns(log)]
    _guarded(found, 1, "Claude Code telemetry", claude_telemetry.read, claude, session)
    _guarded(found, 1, "Codex telemetry", codex_telemetry.read, codex)
    rest = [log for log in strays if not claude_telemetry.owns(log) and not codex_telemetry.owns(log)]
    for span in _spans_of(rest):
        _guarded(found, span.line, span.name, _stray, span)


def _spans_of(logs: Sequence[RawEvent]) -> Iterator[RawSpan]:
    """A span in place of one that was not received, for GenAI log records that name the same."""
    groups: dict[str, list[RawEvent]] = {}
    for number, log in enumerate(logs):
        if log.name.startswith("gen_ai."):
            groups.setdefault(f"{log.trace}:{log.span}" if log.span else f"log:{number}", []).append(log)
    for group in groups.values():
        first = group[0]
        merged = {k: v for log in group for k, v in log.attributes.items() if k != "event.name"}
        merged.setdefault("gen_ai.operation.name", "chat")
        times = [log.at for log in group if log.at is not None]
        yield RawSpan(
            first.trace, first.span, None, "log records", 3, min(times, default=None), max(times, default=None),
            merged, [], 0, None, first.scope, "", first.resource, logs=group,
        )  # fmt: skip
