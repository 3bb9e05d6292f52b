"""OpenHands SDK events (1.x): a list, JSON lines, or the files of a conversation's `events` folder.

Actions of one model response share its id and are the parallel calls of one turn; a condensation forgets
messages and puts a summary in their place. Times carry no zone and are read as UTC.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...providers import openai_chat
from ...providers.answer import mapping, objects
from ..builder import RunBuilder
from ..context import Context, Source
from ..document import document, glimpse, text
from ..reading import micros
from ..reading import objects as objects_of_lines
from ..report import Notes
from .openhands_parts import STATE, batch_of, call_of, plain, snake, usages

FORMAT = "openhands"
TITLE = "OpenHands SDK events"

_SPOKEN = frozenset(
    {"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "UserRejectObservation", "AgentErrorEvent"}
)
_ASIDE = frozenset({"Condensation", "CondensationRequest", "ConversationErrorEvent", "PauseEvent", "InterruptEvent"})
_NOISE = frozenset({"TokenEvent", "StreamingDeltaEvent", "LLMCompletionLogEvent", "CondensationSummaryEvent"})
_ENDS = {
    "finished": ("completed", "the agent finished"),
    "error": ("failed", "the conversation ended in an error"),
    "stuck": ("halted", "OpenHands judged the agent to be stuck"),
    "paused": ("interrupted", "the conversation was paused"),
}


def recognise(head: bytes) -> bool:
    """True for an object, or a list or lines of them, with an event's kind, id, time and source."""
    value = glimpse(head)
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return False
    kinds = _SPOKEN | _ASIDE | _NOISE | {STATE}
    return isinstance(first.get("kind"), str) and first["kind"] in kinds and {"id", "timestamp"} <= first.keys()


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of the one conversation of the events."""
    events = _events(source, notes)
    if not events:
        return
    conversation = _Conversation(events, notes)
    yield from conversation.records()


def _events(source: Source, notes: Notes) -> list[dict[str, Any]]:
    if not source.head().lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return [event for _, event in objects_of_lines(source.lines(), notes)]
    value = document(source, notes)
    found = []
    for number, event in enumerate(value if isinstance(value, list) else (), 1):
        if isinstance(event, dict):
            notes.counts["objects"] += 1
            found.append(event)
        else:
            notes.skip(1, f"element {number} is no object")
    return found


@dataclass(slots=True)
class _Seen:
    """A message of the model's view and the events that it was made of."""

    events: frozenset[str]
    message: dict[str, Any]


class _Conversation:
    """One run while its events are read in order."""

    def __init__(self, events: list[dict[str, Any]], notes: Notes) -> None:
        self._events = events
        self._notes = notes
        self._batches: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in events:
            if event.get("kind") == "ActionEvent":
                self._batches[batch_of(event)].append(event)
        self._usage = usages(events)
        self._done: set[str] = set()
        self._view: list[_Seen] = []
        self._heard_at: int | None = None
        self._last_at: int | None = None
        self._flags: tuple[str, ...] = ()
        self._state: str | None = None
        self._last_tool: str | None = None
        first = text(events[0].get("id")) or digest(canonical(events[0]))
        self._run = RunBuilder(
            stable_id(FORMAT, first),
            api=openai_chat.API,
            source=FORMAT,
            provider="",
            started_at=micros(events[0].get("timestamp")),
            agent="openhands",
        )

    def records(self) -> Iterator[tape.Record]:
        """All of it."""
        notes, run = self._notes, self._run
        notes.runs[run.run] = None
        if any(isinstance(e.get("timestamp"), str) and "+" not in e["timestamp"][10:] for e in self._events):
            notes.warn("times without a zone: taken as UTC")
        for event in self._events:
            self._last_at = micros(event.get("timestamp")) or self._last_at
            self._take(event)
            yield from run.drain()
        notes.turns, notes.tool_calls = run.turns, run.calls
        if run.turns and not self._usage:
            notes.warn("no usage in the events: tokens and cost are unknown")
        run.end(*self._ending(), at=self._last_at)
        yield from run.drain()

    def _ending(self) -> tuple[str | None, str | None]:
        run = self._run
        if self._state in _ENDS:
            return _ENDS[self._state]
        if self._last_tool == "finish":
            return "completed", "the agent finished"
        if run.unanswered or (run.turns and not run.last.calls):
            return None, None  # the builder judges
        return "unknown", "the events do not tell how it ended"

    def _take(self, event: dict[str, Any]) -> None:
        kind = text(event.get("kind"))
        if kind == "SystemPromptEvent":
            parts = [event.get("system_prompt"), event.get("dynamic_context")]
            self._run.context(tools=event.get("tools") or None)
            self._say(event, {"role": "system", "content": [p for p in parts if isinstance(p, dict)]})
        elif kind == "MessageEvent":
            self._message(event)
        elif kind == "ActionEvent":
            self._actions(event)
        elif kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            self._result(event, kind)
        elif kind == "Condensation":
            self._condense(event)
        elif kind == STATE:
            if event.get("key") in ("execution_status", "agent_status"):
                self._state = text(event.get("value"))
        elif kind in _ASIDE:
            detail = {k: v for k, v in event.items() if k not in ("kind", "id", "timestamp", "source", "name", "at")}
            self._run.event(snake(str(kind)), at=micros(event.get("timestamp")), **detail)
        elif kind not in _NOISE:
            self._notes.strange(str(kind)[:80])

    def _message(self, event: dict[str, Any]) -> None:
        message = mapping(event.get("llm_message"))
        if message.get("role") == "assistant":
            self._turn([event], plain(message))
            return
        more = objects(event.get("extended_content"))
        content = message.get("content")
        sent = {**message, "content": [*content, *more]} if more and isinstance(content, list) else message
        self._notes.counts["prompts"] += event.get("source") == "user"
        self._say(event, plain(sent), prompt=event.get("source") == "user")

    def _actions(self, event: dict[str, Any]) -> None:
        name = batch_of(event)
        if name in self._done:
            return
        self._done.add(name)
        batch = self._batches[name]
        message: dict[str, Any] = {"role": "assistant", "content": batch[0].get("thought") or []}
        for key in ("reasoning_content", "thinking_blocks"):
            if batch[0].get(key):
                message[key] = batch[0][key]
        message["tool_calls"] = [call_of(action) for action in batch]
        self._notes.counts["parallel_turns"] += len(batch) > 1
        self._last_tool = text(batch[-1].get("tool_name"))
        self._turn(batch, message)

    def _turn(self, events: list[dict[str, Any]], message: dict[str, Any]) -> None:
        name = text(events[0].get("llm_response_id"))
        times = [at for e in events if (at := micros(e.get("timestamp"))) is not None]
        ended = max(times, default=None)
        began = self._heard_at if ended is None or self._heard_at is None or self._heard_at <= ended else None
        response = {"id": name, "choices": [{"index": 0, "message": message}]}
        model, usage = self._usage.get(name or "", (None, None))
        self._run.turn(
            message=message, response=response, at=began, ended_at=ended, flags=self._flags, model=model, usage=usage
        )
        self._flags = ()
        self._view.append(_Seen(frozenset(str(e.get("id")) for e in events), message))

    def _say(self, event: dict[str, Any], message: dict[str, Any], *, prompt: bool = False) -> None:
        self._run.message(message, prompt=prompt)
        self._hear(event, message)

    def _hear(self, event: dict[str, Any], message: dict[str, Any]) -> None:
        self._view.append(_Seen(frozenset({str(event.get("id"))}), message))
        self._heard_at = micros(event.get("timestamp")) or self._heard_at

    def _result(self, event: dict[str, Any], kind: str) -> None:
        call = str(event.get("tool_call_id"))
        message: dict[str, Any] = {"role": "tool", "tool_call_id": call, "name": event.get("tool_name")}
        returned, failed, error_class = None, None, None
        if kind == "UserRejectObservation":
            said = f"Action rejected: {event.get('rejection_reason')}"
            message["content"], failed, error_class = [{"type": "text", "text": said}], True, "denied"
        elif kind == "AgentErrorEvent":
            message["content"], failed = [{"type": "text", "text": str(event.get("error"))}], True
        else:
            seen = mapping(event.get("observation"))
            content = seen.get("content")
            message["content"] = content if isinstance(content, (str, list)) else canonical(seen)
            failed = seen["is_error"] if isinstance(seen.get("is_error"), bool) else None
            returned = {k: v for k, v in seen.items() if k not in ("content", "kind")} or None
        self._notes.counts["tool_results"] += 1
        self._notes.counts["tool_errors"] += failed is True
        found = self._run.result(
            call,
            message=message,
            path="$.content",
            is_error=failed,
            error_class=error_class,
            at=micros(event.get("timestamp")),
            returned=returned,
        )
        self._notes.counts["results_without_call"] += not found
        self._hear(event, message)

    def _condense(self, event: dict[str, Any]) -> None:
        """Forgotten messages go, the summary comes in at its place; what is equal at the start stays."""
        named = event.get("forgotten_event_ids")
        gone = {i for i in named if isinstance(i, str)} if isinstance(named, list) else set()
        view = [seen for seen in self._view if not seen.events <= gone]
        summary, place = text(event.get("summary")), event.get("summary_offset")
        if summary:
            at = place if isinstance(place, int) and 0 <= place <= len(view) else len(view)
            said = {"role": "user", "content": [{"type": "text", "text": summary}]}
            view.insert(at, _Seen(frozenset({f"summary of {event.get('id')}"}), said))
        same = next((i for i, (a, b) in enumerate(zip(self._view, view, strict=False)) if a is not b), len(view))
        self._run.restart(same)
        for seen in view[same:]:
            self._run.message(seen.message)
        self._view, self._flags = view, ("compaction",)
        self._notes.counts["compactions"] += 1
        self._run.event("compaction", at=micros(event.get("timestamp")), forgotten=len(gone), summary=summary)
