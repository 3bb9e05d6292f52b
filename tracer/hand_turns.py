"""Turns and tool calls that a loop records by hand: a provider without a recorded client, a ReAct loop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextvars import Token
from types import TracebackType
from typing import Any

from . import given, hand_served, tape
from .calls import STOPPED, Inside, RunningCall, end_call, start_call
from .live import OpenRun, OpenTurn, PendingCall, Where, call_key, leave, where
from .process import here, quietly
from .providers import Answer, manual
from .providers.answer import call_of
from .quiet import words
from .recorder import Recorder
from .substitute import installed


class Turn:
    """A turn recorded by hand. Use `run.turn()` to make one."""

    def __init__(self, active: Recorder | None, opened: OpenRun, agent: str | None) -> None:
        self._active = active
        self._run = opened
        self._agent = agent
        self._turn: OpenTurn | None = None
        self._answered = False
        self._given: Mapping[str, Any] | BaseException | None = None
        self._taken = False
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

    @property
    def served(self) -> Mapping[str, Any] | None:
        """On replay the recorded answer of this turn, in place of a model call; else None.

            answer = turn.served or my_model(messages)

        It has what `response` was told: ``content`` (a list of blocks), ``stop_reason``, ``usage``, ``id``, ``model``.

        Raises:
            Exception: The model call failed in the recording: of the same builtin class, else a RuntimeError of that name.
        """
        self._taken = True
        if isinstance(self._given, BaseException):
            raise self._given
        return self._given

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
        standing_in = installed()
        if standing_in is not None and self._turn is not None:
            self._given = hand_served.answer(standing_in, self._turn, raw)

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
        if self._given is not None and not self._taken:
            raise hand_served.NotTaken(self._turn.number)
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
        with self._active.lock:  # tools of one turn may run in several threads
            self._turn.invented += 1
            invented = self._turn.invented
        call_id, name, arguments = _call_parts(self._call, f"call_{number}_{invented}", self._arguments)
        raw = arguments if isinstance(arguments, str) else json.dumps(tape.plain(arguments), ensure_ascii=False)
        with self._active.lock:
            call = self._run.pending.get(call_id)
            if call is not None:
                call.claimed = True
        if call is None:
            key = call_key(name, call_of(call_id, name, raw).arguments_raw)
            call = PendingCall(call_id, name, key, self._run, number, claimed=True, invented=True)
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
