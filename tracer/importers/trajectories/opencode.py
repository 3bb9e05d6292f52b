"""OpenCode sessions: rows of its store (tables session_v2 and session_message), dumped or in the SQLite file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import stable_id
from ...model import Usage
from ...providers import manual
from ...providers.answer import dumped, mapping, objects, text_of
from ..builder import RunBuilder
from ..codex.codex_lines import count
from ..context import Context, Source
from ..document import money
from ..reading import first_objects
from ..report import Notes
from . import opencode_rows as rows

FORMAT = "opencode"
TITLE = "OpenCode store (rows or SQLite file)"

_ENDS = {"succeeded": "completed", "completed": "completed", "failed": "failed", "interrupted": "interrupted"}
_OVER = ("completed", "error")
_LAST_MS = 2**43


def recognise(head: bytes) -> bool:
    """True for rows of its tables, and for a SQLite file whose first pages name both."""
    if head.startswith(rows.MAGIC):
        return rows.SESSIONS.encode() in head and rows.MESSAGES.encode() in head
    return any(
        v.get("table") in (rows.SESSIONS, rows.MESSAGES) and isinstance(v.get("row"), dict) for v in first_objects(head)
    )


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of every session in the file, a run each."""
    for row, messages in rows.sessions(source, notes):
        session = Session(row, notes, context)
        for message in messages:
            session.message(message)
            yield from session.run.drain()
        session.finish()
        yield from session.run.drain()


class Session:
    """One session while it is read."""

    def __init__(self, row: dict[str, Any], notes: Notes, context: Context) -> None:
        self._row = row
        self._notes = notes
        self._context = context
        self._name: str = str(row["id"])
        self._waiting = False
        self._outcome: str | None = None
        self._failed: str | None = None
        self._asked_at: int | None = None
        self._last_at: int | None = None
        self._flags: list[str] = []
        version = text_of(row.get("version"))
        model = _model(row.get("model"))
        self.run = RunBuilder(
            stable_id(FORMAT, self._name),
            api=manual.API,
            source=FORMAT,
            started_at=_micros(row.get("time_created")),
            provider=model[1],
            agent=text_of(row.get("agent")) or FORMAT,
            project=text_of(row.get("directory")),
            session=text_of(row.get("parent_id")) or self._name,
            title=text_of(row.get("title")),
            versions={FORMAT: version} if version else None,
            list_price=True,
            parent=self._parent(),
        )
        cost = money(row.get("cost"))
        if cost is not None:
            self.run.update(reported_cost_usd=cost)
        notes.runs[self.run.run] = None

    def message(self, row: dict[str, Any]) -> None:
        """One row of session_message."""
        kind, data = row.get("type"), mapping(row.get("data"))
        times = mapping(data.get("time"))
        at = _micros(times.get("created")) or _micros(row.get("time_created"))
        self._see(at)
        if kind == "user":
            self._notes.counts["prompts"] += 1
            self._heard(_said(data), at, prompt=True)
        elif kind in ("synthetic", "system"):
            self._heard(_said(data), at, prompt=False)
        elif kind == "assistant":
            self._assistant(row, data, at)
        elif kind == "shell":
            self._notes.counts["shell_commands"] += 1
            told = {k: data.get(k) for k in ("command", "exit", "status", "output")}
            self.run.event("user_shell", at, **{k: v for k, v in told.items() if v is not None})
        elif kind == "idle":
            self._outcome = text_of(data.get("outcome"))
        elif kind == "compaction":
            self._compaction(data, at)
        elif kind in ("agent-switched", "model-switched", "agent", "model"):
            self.run.event(str(kind), at, data=data)
        else:
            self._notes.strange(f"message {str(kind)[:60]}")
            self.run.event("not_understood", at, record=row)

    def finish(self) -> None:
        """The session's last row was read."""
        run, notes = self.run, self._notes
        notes.turns += run.turns
        notes.tool_calls += run.calls
        notes.counts["calls_without_result"] += len(run.unanswered)
        known = self._context.ended.get(run.run)
        if known is not None and self._last_at is not None and self._last_at < known:
            return  # the store holds a longer copy: nothing is said about the end
        status, reason = self._ending()
        run.end(status, reason, self._last_at)

    def _parent(self) -> dict[str, Any] | None:
        over, fork = text_of(self._row.get("parent_id")), text_of(self._row.get("fork_session_id"))
        if over is None and fork is None:
            return None
        call = self._context.agents.get((FORMAT, self._name))
        run, turn = self._context.calls.get(call or "", (stable_id(FORMAT, over or fork or ""), None))
        return {"run": run, "turn": turn, "call": call, "kind": "fork" if over is None else "sub-agent"}

    def _heard(self, content: Any, at: int | None, *, prompt: bool) -> None:
        self.run.message({"role": "user", "content": content}, prompt=prompt)
        self._asked_at = at
        if prompt:
            self._waiting, self._failed, self._outcome = True, None, None

    def _assistant(self, row: dict[str, Any], data: dict[str, Any], at: int | None) -> None:
        parts = objects(data.get("content"))
        name = text_of(row.get("id"))
        model, provider = _model(data.get("model"))
        content = [block for i, part in enumerate(parts) if (block := self._block(part, f"{name}-{i}")) is not None]
        times = mapping(data.get("time"))
        ended = _micros(times.get("streamed")) or _micros(times.get("completed"))
        self._see(_micros(times.get("completed")))
        error = data.get("error")
        stop = text_of(data.get("rawFinish")) or text_of(data.get("finish"))
        said = {
            "id": name, "role": "assistant", "model": model, "content": content, "stop_reason": stop,
            "usage": data.get("tokens"),
        }  # fmt: skip
        firsts = [t for p in parts if (t := _micros(mapping(p.get("time")).get("created"))) is not None]
        self.run.turn(
            message={"role": "assistant", "content": content},
            response={k: v for k, v in said.items() if v is not None},
            usage=usage(data.get("tokens")),
            at=at,
            ended_at=ended if ended is None or at is None or ended >= at else None,
            first_chunk_at=min(firsts, default=None),
            model=model,
            provider=provider,
            status="error" if error else "ok" if ended is not None else "interrupted",
            error=_error(error),
            error_type=text_of(mapping(error).get("name")) or text_of(mapping(error).get("type")),
            agent=text_of(data.get("agent")),
            reported_cost_usd=money(data.get("cost")),
            flags=self._flags,
        )
        self._flags = []
        self._waiting = False
        self._failed = (_error(error) or "the last model call failed") if error else None
        self._results([(p, f"{name}-{i}") for i, p in enumerate(parts) if p.get("type") == "tool"], ended)

    def _block(self, part: dict[str, Any], fallback: str) -> dict[str, Any] | None:
        kind = part.get("type")
        if kind == "text":
            return {"type": "text", "text": str(part.get("text") or "")}
        if kind == "reasoning":
            return {"type": "thinking", "thinking": str(part.get("text") or "")}
        if kind == "tool":
            given = mapping(part.get("state")).get("input")
            block = {"type": "tool_use", "id": text_of(part.get("id")) or fallback, "name": str(part.get("name"))}
            if isinstance(given, str):  # the call was cut while its arguments came
                return {**block, "input": {}, "partial_json": given, "incomplete": True}
            return {**block, "input": given if given is not None else {}}
        self._notes.strange(f"part {str(kind)[:60]}")
        return part

    def _results(self, tools: list[tuple[dict[str, Any], str]], ended: int | None) -> None:
        """The results of an answer, all in the one message with which they go back to the model."""
        blocks: list[dict[str, Any]] = []
        told: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        for part, fallback in tools:
            state, name = mapping(part.get("state")), text_of(part.get("id")) or fallback
            if state.get("status") not in _OVER:
                continue
            failed = _failed(state)
            content = state.get("content") if state.get("content") else _error(state.get("error")) or ""
            blocks.append({"type": "tool_result", "tool_use_id": name, "content": content, "is_error": failed})
            told.append((name, part, state))
            self._notes.counts["tool_results"] += 1
            self._notes.counts["tool_errors"] += failed
        message = {"role": "user", "content": blocks}
        for index, (name, part, state) in enumerate(told):
            times = mapping(part.get("time"))
            begun, done = _micros(times.get("ran")), _micros(times.get("completed"))
            self.run.result(
                name,
                message=message,
                path=f"$.content[{index}].content",
                is_error=blocks[index]["is_error"],
                at=done if done is not None and (ended is None or done >= ended) else None,
                returned=state.get("metadata") or None,
                join=index == 0,
            )
            if begun is not None and done is not None and begun <= done:
                self.run.measured(name, begun, done)
            self._see(done)
            self._child(name, state)

    def _child(self, call: str, state: dict[str, Any]) -> None:
        """Remembers which session a call began, as its metadata tells."""
        known = mapping(state.get("metadata"))
        child = text_of(known.get("sessionID")) or text_of(known.get("sessionId"))
        if child:
            self._context.agents[FORMAT, child] = call
            self._context.calls[call] = (self.run.run, self.run.turns)

    def _compaction(self, data: dict[str, Any], at: int | None) -> None:
        self._notes.counts["compactions"] += 1
        summary = text_of(data.get("summary")) or text_of(data.get("text"))
        self.run.event("compaction", at, trigger=data.get("reason") or data.get("auto"))
        self._flags = ["compaction"]
        if summary:
            self.run.restart()
            self.run.message({"role": "user", "content": summary})

    def _see(self, at: int | None) -> None:
        if at is not None:
            self._last_at = at if self._last_at is None else max(at, self._last_at)

    def _ending(self) -> tuple[str, str]:
        run = self.run
        outcome = self._outcome or (None if self._waiting else text_of(self._row.get("idle_outcome")))
        if self._failed is not None:
            return "failed", self._failed
        if run.unanswered:
            return "interrupted", f"no result for {', '.join(list(run.unanswered)[:3])}: the run ended before it came"
        if self._waiting:
            return "interrupted", "the last prompt has no answer"
        if not run.turns:
            return "unknown", "no model call in the file"
        if outcome is not None:
            return _ENDS.get(outcome, "unknown"), f"idle: {outcome}"
        if run.last.calls:
            return "interrupted", f"no request follows the results of turn {run.turns}"
        return "completed", run.last.stop_reason or "an answer without calls"


def usage(raw: Any) -> Usage:
    """OpenCode 2 counts are disjoint: cached tokens are beside input, reasoning beside output."""
    if not isinstance(raw, dict):
        return Usage()
    cache = mapping(raw.get("cache"))
    output, reasoning = count(raw.get("output")), count(raw.get("reasoning"))
    return Usage(
        input=count(raw.get("input")),
        cache_read=count(cache.get("read")),
        cache_write_5m=count(cache.get("write")),
        output=None if output is None else output + (reasoning or 0),
        reasoning=reasoning,
        origin="recorded",
        raw=raw,
    )


def _said(data: dict[str, Any]) -> Any:
    """The text; with what was attached beside it as blocks of its own."""
    text = text_of(data.get("text")) or ""
    more = [{"type": k, k: v} for k in ("files", "agents") if (v := data.get(k))]
    return [{"type": "text", "text": text}, *more] if more else text


def _failed(state: dict[str, Any]) -> bool:
    code = mapping(state.get("metadata")).get("exit")
    return state.get("status") == "error" or (isinstance(code, int) and not isinstance(code, bool) and code != 0)


def _error(value: Any) -> str | None:
    if not value:
        return None
    if isinstance(value, str):
        return value
    found = mapping(value)
    return text_of(found.get("message")) or text_of(mapping(found.get("data")).get("message")) or dumped(value)


def _model(value: Any) -> tuple[str | None, str | None]:
    """Model and provider; the session row keeps them as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None, None
    found = mapping(value)
    return text_of(found.get("id")) or text_of(found.get("modelID")), text_of(found.get("providerID"))


def _micros(value: Any) -> int | None:
    """Epoch milliseconds as microseconds."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < _LAST_MS
    return round(value * 1000) if known else None
