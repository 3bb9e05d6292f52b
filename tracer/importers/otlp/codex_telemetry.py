"""Codex's own telemetry: the conversation is in log records, without the assistant's words and the request bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...model import Usage
from ..calls.model_call import ModelCall, ToolSpan
from . import figures
from .blocks import arguments
from .figures import number, text
from .wire import RawEvent

_PREFIX = "codex."


def owns(log: RawEvent) -> bool:
    """True for a log record of Codex."""
    return log.name.startswith(_PREFIX)


def read(logs: Iterable[RawEvent]) -> Iterator[ModelCall | ToolSpan]:
    """Calls and tools of every conversation in these log records."""
    talks: dict[str, list[RawEvent]] = {}
    for log in logs:
        name = text(log.attributes.get("conversation.id")) or f"{log.trace}"
        talks.setdefault(name, []).append(log)
    for name, events in talks.items():
        events.sort(key=lambda e: e.at or 0)
        yield from _Talk(name).read(events)


class _Talk:
    """One conversation: a model call ends with ``response.completed``; the tools after it are what it asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._messages: list[dict[str, Any]] = []
        self._attempts: list[dict[str, Any]] = []
        self._begun: int | None = None
        self._count = 0

    def read(self, events: list[RawEvent]) -> Iterator[ModelCall | ToolSpan]:
        """The events in order."""
        done = [i for i, e in enumerate(events) if _completed(e)]
        ends = [*done[1:], len(events)][: len(done)]
        tools = {i: [e for e in events[i:end] if _kind(e) == "tool_result"] for i, end in zip(done, ends, strict=True)}
        for index, event in enumerate(events):
            kind = _kind(event)
            if kind == "user_prompt" and text(event.attributes.get("prompt")):
                self._messages.append({"role": "user", "content": event.attributes["prompt"]})
            elif kind == "api_request":
                self._attempt(event)
            elif index in tools:
                yield self._call(event, tools[index])
                for one in tools[index]:
                    yield _tool(one, self._name)

    def _attempt(self, event: RawEvent) -> None:
        given = event.attributes
        waited = number(given.get("duration_ms"))
        begun = event.at - waited * 1000 if event.at is not None and waited is not None else event.at
        self._begun = self._begun or begun
        status = number(given.get("http.response.status_code"))
        self._attempts.append({"status": status, "error": text(given.get("error.message")), "started_at": begun})

    def _call(self, event: RawEvent, tools: list[RawEvent]) -> ModelCall:
        given = event.attributes
        self._count += 1
        asked = [
            {
                "type": "tool_use",
                "id": text(t.attributes.get("call_id")) or "",
                "name": text(t.attributes.get("tool_name")) or "",
                "input": arguments(t.attributes.get("arguments")),
            }
            for t in tools
        ]
        call = ModelCall(
            key=f"codex:{self._name}:{self._count}",
            messages=tuple(self._messages),
            response={"type": "message", "role": "assistant", "content": asked} if asked else None,
            usage=_usage(given),
            provider="openai",
            model=text(given.get("model")) or text(given.get("slug")),
            started_at=self._begun,
            ended_at=event.at,
            attempts=tuple(self._attempts),
            trace_id=event.trace,
            parent_span_id=None,
            scope="codex",
            name="codex.sse_event",
            conversation=self._name,
            agent="codex",
            service=text(event.resource.get("service.name")),
            flags=("assistant_text_not_kept",),
        )
        results = [
            {"type": "tool_result", "tool_use_id": a["id"], "content": text(t.attributes.get("output")) or ""}
            for a, t in zip(asked, tools, strict=True)
        ]
        self._messages += (
            [{"role": "assistant", "content": asked}, {"role": "user", "content": results}] if asked else []
        )
        self._attempts, self._begun = [], None
        return call


def _tool(event: RawEvent, conversation: str) -> ToolSpan:
    given = event.attributes
    waited = number(given.get("duration_ms"))
    success = given.get("success")
    return ToolSpan(
        key=f"codex:{conversation}:{given.get('call_id')}",
        name=text(given.get("tool_name")) or "",
        call=text(given.get("call_id")),
        arguments=arguments(given.get("arguments")),
        result=given.get("output"),
        is_error=True if success in (False, "false") else None,  # "true" is said of commands that failed, too
        started_at=event.at - waited * 1000 if event.at is not None and waited is not None else None,
        ended_at=event.at,
        trace_id=event.trace,
        conversation=conversation,
        scope="codex",
    )


def _usage(given: Any) -> Usage | None:
    return figures.split(
        total=number(given.get("input_token_count")),
        output=number(given.get("output_token_count")),
        read=number(given.get("cached_token_count")),
        reasoning=number(given.get("reasoning_token_count")),
        raw={k: v for k, v in given.items() if k.endswith("_token_count")},
    )


def _kind(event: RawEvent) -> str:
    return event.name.removeprefix(_PREFIX)


def _completed(event: RawEvent) -> bool:
    return _kind(event) == "sse_event" and event.attributes.get("event.kind") == "response.completed"
