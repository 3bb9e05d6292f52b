"""Gemini CLI chats: one JSON document a session, each answer with its thoughts, tokens, calls and their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...model import Usage
from ...providers import manual
from ...providers.answer import dumped, mapping, objects, text_of
from ..builder import RunBuilder
from ..codex.codex_lines import count
from ..context import Context, Source
from ..document import document, glimpse
from ..reading import micros
from ..report import Notes

FORMAT = "gemini-cli"
TITLE = "Gemini CLI chat"

TITLE_LENGTH = 120
_NOT_SAID = ("info", "warning", "error")
_ENDS = ("error", "failed", "cancelled")


def recognise(head: bytes) -> bool:
    """True for a document with a session id, a project hash and a list of messages."""
    value = glimpse(head)
    if not isinstance(value, dict) or not isinstance(value.get("sessionId"), str):
        return False
    return "projectHash" in value and ("messages" in value or "startTime" in value)


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of the one chat."""
    value = document(source, notes)
    if not isinstance(value, dict):
        if value is not None:
            notes.skip(1, "not a JSON object")
        return
    notes.counts["objects"] += 1
    chat = Chat(value, notes, context)
    for message in chat.messages:
        chat.message(message)
        yield from chat.run.drain()
    chat.finish()
    yield from chat.run.drain()


class Chat:
    """One chat while it is read."""

    def __init__(self, value: dict[str, Any], notes: Notes, context: Context) -> None:
        name = text_of(value.get("sessionId")) or digest(canonical(value))
        self.messages = objects(value.get("messages"))
        self._value = value
        self._notes = notes
        self._context = context
        self._title: str | None = text_of(value.get("summary"))
        self._waiting = False
        self._failed: str | None = None
        self._asked_at: int | None = None
        self._last_at: int | None = None
        self._pending = 0
        project = text_of(value.get("projectHash"))
        self.run = RunBuilder(
            stable_id(FORMAT, name),
            api=manual.API,
            source=FORMAT,
            provider="google",
            started_at=micros(value.get("startTime")),
            agent=FORMAT,
            session=name,
            tags={"project_hash": project} if project else None,
            list_price=True,
        )
        notes.runs[self.run.run] = None
        lost = len(value["messages"]) - len(self.messages) if isinstance(value.get("messages"), list) else 0
        if lost:
            notes.warn(f"{lost} messages are no JSON objects and were left out")

    def message(self, message: dict[str, Any]) -> None:
        """One message of the document."""
        kind, at = message.get("type"), micros(message.get("timestamp"))
        if at is not None:
            self._last_at = at if self._last_at is None else max(at, self._last_at)
        if kind == "user":
            self._user(message, at)
        elif kind == "gemini":
            self._gemini(message, at)
        elif kind in _NOT_SAID:
            self._notes.counts["events"] += 1
            text = _text(message.get("content"))
            self.run.event(str(kind), at, text=text)
            self._failed = text if kind == "error" else self._failed
        else:
            self._notes.strange(f"message {str(kind)[:60]}")
            self.run.event("not_understood", at, record=message)

    def finish(self) -> None:
        """The end of the document."""
        run, notes = self.run, self._notes
        notes.turns += run.turns
        notes.tool_calls += run.calls
        notes.counts["calls_without_result"] += len(run.unanswered)
        end = max((t for t in (self._last_at, micros(self._value.get("lastUpdated"))) if t is not None), default=None)
        known = self._context.ended.get(run.run)
        if known is not None and end is not None and end < known:
            return  # the store holds a longer copy: nothing is said about the end
        if self._title:
            run.update(title=_line(self._title))
        status, reason = self._ending()
        run.end(status, reason, end)

    def _user(self, message: dict[str, Any], at: int | None) -> None:
        content = _content(message.get("content"))
        self._notes.counts["prompts"] += 1
        self.run.message({"role": "user", "content": content}, prompt=True)
        self._title = self._title or _text(content)
        self._asked_at = at
        self._waiting, self._failed = True, None

    def _gemini(self, message: dict[str, Any], at: int | None) -> None:
        name = text_of(message.get("id"))
        calls = objects(message.get("toolCalls"))
        names = [text_of(c.get("id")) or f"{name or self.run.turns + 1}-{i}" for i, c in enumerate(calls)]
        content = [*_thoughts(message.get("thoughts")), *_blocks(message.get("content"))]
        for call, call_id in zip(calls, names, strict=True):
            given = call.get("args")
            content.append(
                {
                    "type": "tool_use",
                    "id": call_id,
                    "name": str(call.get("name")),
                    "input": given if given is not None else {},
                }
            )
        model = text_of(message.get("model"))
        body = {"id": name, "role": "assistant", "model": model, "content": content, "usage": message.get("tokens")}
        asked = self._asked_at
        self.run.turn(
            message={"role": "assistant", "content": content},
            response={k: v for k, v in body.items() if v is not None},
            usage=usage(message.get("tokens")),
            at=asked if asked is not None and (at is None or asked <= at) else None,
            ended_at=at,
            model=model,
        )
        self._asked_at, self._waiting, self._failed = None, False, None
        self._results(calls, names, at)

    def _results(self, calls: list[dict[str, Any]], names: list[str], ended: int | None) -> None:
        """The results, all in the one message with which they go back to the model."""
        blocks, told = [], []
        for call, name in zip(calls, names, strict=True):
            if call.get("result") is None and call.get("status") not in _ENDS:
                continue
            content, failed = _result(call.get("result"))
            failed = failed or call.get("status") in ("error", "failed")
            cancelled = call.get("status") == "cancelled"
            blocks.append(
                {"type": "tool_result", "tool_use_id": name, "content": content, "is_error": failed or cancelled}
            )
            told.append((call, name, content, cancelled))
            self._notes.counts["tool_results"] += 1
            self._notes.counts["tool_errors"] += failed
        message = {"role": "user", "content": blocks}
        for index, (call, name, content, cancelled) in enumerate(told):
            at, shown = micros(call.get("timestamp")), call.get("resultDisplay")
            if at is not None:
                self._asked_at = max(at, self._asked_at or 0)
            self.run.result(
                name,
                message=message,
                path=f"$.content[{index}].content",
                is_error=blocks[index]["is_error"],
                error_class="cancelled" if cancelled else None,
                # the message may be dated after its calls: how long a tool took is then not known
                at=at if at is not None and (ended is None or at > ended) else None,
                returned=shown if shown != content else None,
                join=index == 0,
            )

    def _ending(self) -> tuple[str, str]:
        run = self.run
        if self._failed is not None:
            return "failed", _line(self._failed) or "the client reported an error"
        if run.unanswered:
            return "interrupted", f"no result for {', '.join(list(run.unanswered)[:3])}: the run ended before it came"
        if self._waiting:
            return "interrupted", "the last prompt has no answer"
        if not run.turns:
            return "unknown", "no model call in the file"
        if run.last.calls:
            return "interrupted", f"no request follows the results of turn {run.turns}"
        return "completed", "an answer without calls"


def usage(raw: Any) -> Usage:
    """Gemini CLI counts: cached tokens are inside input, thoughts beside output, tool prompts beside input."""
    if not isinstance(raw, dict):
        return Usage()
    total, cached = count(raw.get("input")), count(raw.get("cached"))
    thoughts, output, tool = count(raw.get("thoughts")), count(raw.get("output")), count(raw.get("tool"))
    return Usage(
        input=None if total is None else max(0, total - (cached or 0)) + (tool or 0),
        cache_read=cached,
        output=None if output is None and thoughts is None else (output or 0) + (thoughts or 0),
        reasoning=thoughts,
        origin="recorded",
        raw=raw,
    )


def _result(value: Any) -> tuple[Any, bool]:
    """A result as the model saw it: the text where it is one, else JSON; and whether it is an error."""
    parts = value if isinstance(value, list) else [value]
    responses = [mapping(mapping(p).get("functionResponse")).get("response") for p in parts]
    if len(parts) == 1 and isinstance(responses[0], dict) and len(responses[0]) == 1:
        for key in ("output", "error"):
            if isinstance(text := responses[0].get(key), str):
                return text, key == "error"
    failed = any(isinstance(r, dict) and "error" in r and "output" not in r for r in responses)
    return ("" if value is None else dumped(value)), failed


def _thoughts(value: Any) -> list[dict[str, Any]]:
    found = []
    for thought in objects(value):
        parts = [t for key in ("subject", "description") if (t := text_of(thought.get(key)))]
        if parts:
            found.append({"type": "thinking", "thinking": "\n".join(parts)})
    return found


def _blocks(content: Any) -> list[Any]:
    content = _content(content)
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []


def _content(value: Any) -> Any:
    """A text, or parts as blocks; parts of other kinds stay as they are."""
    if isinstance(value, list):
        return [
            {"type": "text", "text": p if isinstance(p, str) else p["text"]}
            if isinstance(p, str) or isinstance(mapping(p).get("text"), str)
            else p
            for p in value
            if isinstance(p, (str, dict))
        ]
    return value if isinstance(value, str) else "" if value is None else dumped(value)


def _text(content: Any) -> str:
    content = _content(content)
    return content if isinstance(content, str) else "\n".join(str(mapping(p).get("text") or "") for p in content)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
