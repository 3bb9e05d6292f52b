"""The API a loop uses: `run()` names a run, `run.turn()` records a turn by hand, `configure()` sets redaction."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import endings, given, redaction, spans, tape
from .calls import STOPPED, Inside, RunningCall, end_call, start_call
from .clock import new_id
from .live import OpenRun, OpenTurn, PendingCall, Where, call_key, leave, where
from .model import Limits
from .process import here, quietly, recorder
from .providers import Answer, manual
from .providers.answer import call_of
from .quiet import words
from .recorder import Recorder


def run(
    name: str | None = None,
    *,
    session: str | None = None,
    task: str | None = None,
    agent: str | None = None,
    tags: Mapping[str, str] | None = None,
    limits: Limits | Mapping[str, float] | None = None,
) -> Run:
    """One run of a loop, as a context manager: everything recorded inside belongs to it.

    Entered once more it is a new run with its own id that resumes the one before. Names, tags and
    limits of other types become texts and numbers; what cannot is left out, never an error.

    Args:
        name: What to call it in lists; ``RUN`` references accept it.
        session: Groups the runs of one conversation.
        task: Groups runs that do the same job; the name otherwise.
        agent: The agent's name, for multi-agent programs.
        tags: Short texts by name.
        limits: The caps the loop enforces itself, as `Limits` or by its names; recorded, so that a run that
            ends at one says so.

    With recording off the block runs all the same.
    """
    return Run(name, session=session, task=task, agent=agent, tags=tags, limits=limits)


def configure(*, redact: Sequence[redaction.Redact] = ()) -> None:
    """Settings of this process.

    Args:
        redact: Functions ``str -> str`` that run after the built-in ones over every text before it is
            written. A function that raises costs the text it was given.
    """
    redaction.add(given.listed(redact))


class Run:
    """A run that is being recorded. Use `run()` to make one."""

    def __init__(self, name: Any, *, session: Any, task: Any, agent: Any, tags: Any, limits: Any) -> None:
        name = given.text(name)
        self._given: dict[str, Any] = {"task": given.text(task) or name, "tags": given.tags(tags)}
        self._open = OpenRun(id=new_id(), explicit=True, session=given.text(session), agent=given.text(agent))
        self._open.name = name or self._open.name
        self._open.limits = given.limits(limits)
        self._unused = [self._open]
        self._active: Recorder | None = None
        self._blocks: list[_Block] = []

    @property
    def id(self) -> str:
        """The run's id, 16 hex digits."""
        return self._open.id

    def __enter__(self) -> Run:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit(error)

    @quietly
    def _enter(self) -> None:
        active = recorder()
        if active is None:
            return
        opened, above = self._fresh(), here()
        if opened.parent is None and above is not None:
            opened.parent = {
                "run": above.run.id,
                "turn": above.call.turn if above.call else (above.run.turns or None),
                "call": above.call.id if above.call else None,
                "kind": "sub-agent",
            }
            opened.session = opened.session or above.run.session
        opened.above = above
        self._open, self._active = opened, active
        active.open_run(opened, **self._given)
        block = _Block(opened, where.set(Where(opened)))
        self._blocks.append(block)
        if opened.span is not None:
            block.span = spans.enter(opened.span.span)

    def _fresh(self) -> OpenRun:
        """The run to open: the one that was made; once that has been entered, another that resumes it."""
        before = self._open
        with contextlib.suppress(IndexError):  # another thread may enter the same object just now
            if self._unused.pop().pid == os.getpid():
                return before
        opened = OpenRun(id=new_id(), explicit=True, limits=before.limits)
        opened.name, opened.session, opened.agent = before.name, before.session, before.agent
        if before.ended:
            opened.follow(before)
        return opened

    @quietly
    def _exit(self, error: BaseException | None) -> None:
        active, block = self._active, self._leaving()
        if active is None or block is None:
            return
        same_context = leave(block.token)
        if block.span is not None:
            spans.leave(block.span, same_context=same_context)
        opened = active.adopt(block.run)
        with active.lock:
            active.end_run(opened, *endings.of_block(opened, error))

    def _leaving(self) -> _Block | None:
        """The block that is left: this context's, where several threads share the object; else the last entered."""
        place = where.get()
        for block in reversed(self._blocks):
            if place is not None and place.run is block.run:
                self._blocks.remove(block)
                return block
        return self._blocks.pop() if self._blocks else None

    def _mine(self, active: Recorder) -> OpenRun:
        """The run of this context's block; outside of the blocks the one that was entered last."""
        place = where.get()
        entered = [b.run for b in self._blocks]
        while place is not None and place.run not in entered:
            place = place.run.above
        return active.adopt(place.run if place is not None else self._open)

    @quietly
    def outcome(self, verdict: str, note: str | None = None, *, score: float | None = None) -> None:
        """Says how the run went, in the block or after it.

        Args:
            verdict: Your word for it: ``pass``, ``fail``, ``partial``, ...
            note: One sentence.
            score: A number, if there is one.
        """
        if self._active is not None:
            told = {
                "verdict": redaction.redact(given.text(verdict) or ""),
                "note": redaction.redact(said) if (said := given.text(note)) else said,
                "score": given.number(score),
            }
            self._active.update_run(self._mine(self._active), outcome={k: v for k, v in told.items() if v is not None})

    @quietly
    def tag(self, **tags: str) -> None:
        """Adds tags to the run."""
        if self._active is not None:
            self._active.update_run(self._mine(self._active), tags=given.tags(tags))

    def turn(self, *, agent: str | None = None) -> Turn:
        """A turn that the loop records by hand (a provider without a recorded client, a ReAct loop).

        Use as a context manager around GENERATE and the tools that follow it.
        """
        opened = self._mine(self._active) if self._active is not None else self._open
        return Turn(self._active, opened, agent)


@dataclass(slots=True, eq=False)
class _Block:
    """One time that a `run()` block was entered."""

    run: OpenRun
    token: Token[Where | None]
    span: tuple[object, Any] | None = None


class Turn:
    """A turn recorded by hand. Use `run.turn()` to make one."""

    def __init__(self, active: Recorder | None, opened: OpenRun, agent: str | None) -> None:
        self._active = active
        self._run = opened
        self._agent = agent
        self._turn: OpenTurn | None = None
        self._answered = False
        self._token: Token[Where | None] | None = None

    def __enter__(self) -> Turn:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._answered:
            self.failed(error)
        token, self._token = self._token, None
        if token is not None:
            leave(token)

    @quietly
    def _enter(self) -> None:
        """In a context that does not know of the run (a generator resumed in another) it is the run of this block."""
        place = here() if self._active is not None else None
        if self._active is not None and (place is None or place.run is not self._run):
            self._token = where.set(Where(self._run))

    @quietly
    def request(
        self,
        messages: Sequence[Any] | str,
        *,
        model: str | None = None,
        system: Any = None,
        tools: Any = None,
        **parameters: Any,
    ) -> None:
        """What goes to the model.

        Args:
            messages: The whole list as the model will see it (role and content, any provider's shape).
            model: The model's id.
            system: System text or blocks, if they are not in the list.
            tools: Tool definitions.
            **parameters: Everything else (temperature, max_tokens, ...).
        """
        if self._active is None:
            return
        listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else given.listed(messages)
        body = {"model": model, "system": system, "tools": tools, **parameters}
        body = {k: v for k, v in body.items() if v is not None} | {"messages": listed}
        raw = json.dumps(tape.plain(body), ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._turn = self._active.request(manual, raw, place=Where(self._run), agent=given.text(self._agent))

    @quietly
    def response(
        self,
        content: Any = None,
        *,
        stop_reason: str | None = None,
        model: str | None = None,
        id: str | None = None,
        usage: Mapping[str, Any] | None = None,
        tool_calls: Sequence[Any] = (),
    ) -> None:
        """What the model answered.

        Args:
            content: The text, or a list of blocks (Anthropic's shape: text, thinking, tool_use).
            stop_reason: The provider's word. With ``end_turn``, ``stop`` and the like the run is complete.
            usage: Tokens in looptape's disjoint buckets (``input``, ``cache_read``, ``cache_write_5m``,
                ``cache_write_1h``, ``output``, ``reasoning``) or in the provider's own words
                (``input_tokens``, ``output_tokens``, ...).
            tool_calls: Calls that are not blocks of the content: mappings with id, name, arguments.
        """
        if self._active is None or self._turn is None:
            return
        figures = tape.plain(dict(usage) if isinstance(usage, Mapping) else usage) or None
        body = {"id": id, "model": model, "stop_reason": stop_reason, "usage": figures}
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else tape.plain(given.listed(content))
        for index, call in enumerate(tool_calls, 1):
            call_id, name, arguments = _call_parts(call, f"call_{self._turn.number}_{index}")
            blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": tape.plain(arguments)})
        body = {**{k: v for k, v in body.items() if v is not None}, "role": "assistant", "content": blocks}
        self._answered = True
        self._active.answered(self._turn, json.dumps(body, ensure_ascii=False), manual.answer(body))

    @quietly
    def failed(self, error: BaseException) -> None:
        """The model call failed for good."""
        if self._active is None or self._turn is None:
            return
        self._answered = True
        cancelled = isinstance(error, STOPPED)
        self._active.answered(
            self._turn,
            None,
            Answer(),
            status="cancelled" if cancelled else "error",
            error=words(error) or type(error).__name__,
            error_type=type(error).__name__,
        )

    def tool(self, call: Any, arguments: Any = None) -> ToolRun:
        """A tool call of this turn, as a context manager: exact times, and ``t.result(...)``.

        Args:
            call: A mapping or object with id, name and arguments (or input); or just the tool's name.
            arguments: The arguments when ``call`` is a name.
        """
        return ToolRun(self._active, self._run, self._turn, call, arguments)


class ToolRun:
    """A tool call recorded by hand. Use `turn.tool()` to make one."""

    def __init__(
        self, active: Recorder | None, opened: OpenRun, turn: OpenTurn | None, call: Any, arguments: Any
    ) -> None:
        self._active = active
        self._run = opened
        self._turn = turn
        self._call = call
        self._arguments = arguments
        self._running: RunningCall | None = None
        self._result: tuple[Any, bool | None] = (None, None)
        self._inside: Inside | None = None

    def __enter__(self) -> ToolRun:
        self._start()
        self._inside = Inside(self._running)
        self._inside.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inside is not None:
            self._inside.__exit__(kind, error, trace)
        self._end(error)

    def result(self, value: Any, *, is_error: bool | None = None) -> None:
        """What the tool gave back; ``is_error`` when the loop will tell the model that it failed."""
        self._result = (value, is_error)

    @quietly
    def _start(self) -> None:
        if self._active is None or self._turn is None:
            return
        number = self._turn.number
        self._turn.invented += 1
        call_id, name, arguments = _call_parts(self._call, f"call_{number}_{self._turn.invented}", self._arguments)
        raw = arguments if isinstance(arguments, str) else json.dumps(tape.plain(arguments), ensure_ascii=False)
        with self._active.lock:
            call = self._run.pending.get(call_id)
        if call is None:
            key = call_key(name, call_of(call_id, name, raw).arguments_raw)
            call = PendingCall(call_id, name, key, self._run, number, invented=True)
        call.claimed = True
        self._running = start_call(self._active, call, arguments_raw=raw if call.invented else None)

    @quietly
    def _end(self, error: BaseException | None) -> None:
        if self._running is not None:
            value, is_error = self._result
            end_call(self._running, value, error, is_error=None if error is not None else bool(is_error))


def _call_parts(call: Any, default_id: str, arguments: Any = None) -> tuple[str, str, Any]:
    """Id, name and arguments of a call given as a name, a mapping, or an SDK's object (also OpenAI's function calls)."""
    if isinstance(call, str):
        return default_id, call, arguments if arguments is not None else {}

    def get(holder: Any, *names: str) -> Any:
        for name in names:
            value = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if value is not None:
                return value
        return None

    function = get(call, "function") or call
    found = get(function, "arguments", "input", "args")
    if found is None:
        found = arguments if arguments is not None else {}
    return str(get(call, "id", "call_id", "tool_use_id") or default_id), str(get(function, "name") or "tool"), found
