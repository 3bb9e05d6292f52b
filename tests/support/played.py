"""A recording written down by a test, as tape records, and a program that asks a player for what it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from looptape.replay.player import tape_runs
from looptape.replay.player.events import Events
from looptape.replay.player.player import Player
from looptape.replay.player.settings import ReplaySettings
from looptape.replay.verdict import Verdict, judge
from looptape.tracer import substitute, tape
from looptape.tracer.canonical import digest
from looptape.tracer.live import OpenRun, OpenTurn
from looptape.tracer.providers import by_api
from looptape.tracer.requests import Incoming, take_apart
from looptape.tracer.substitute import Asked, ToolAsked

ROOT = "a" * 16
START = 1_764_400_000_000_000
"""2025-11-29 in microseconds: the zero of every time in a `Turn`."""
ANTHROPIC = "anthropic.messages"


@dataclass
class Turn:
    """One recorded model call with the tools that ran after it.

    ``ran``: call id to what it returned and from when to when it ran; ``raised``: to class and words of an exception;
    ``at``: from when to when the model was asked, ten a turn where nothing is said. ``response`` None: never answered.
    """

    body: dict[str, Any]
    response: dict[str, Any] | None
    ran: Mapping[str, tuple[Any, int, int]] = field(default_factory=dict)
    raised: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    attempts: Sequence[dict[str, Any]] = ()
    side_effect: str = "unknown"
    at: tuple[int, int] | None = None


def user(content: Any) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": content}


def request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request of Anthropic's API."""
    return {"model": "acme-large-1", "max_tokens": 100, "messages": list(messages), **more}


def said(text: str, *calls: tuple[str, str, Any], message: str = "msg_1") -> dict[str, Any]:
    """An answer: a text, then calls as (id, name, arguments)."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
    return {
        "id": message, "type": "message", "role": "assistant", "model": "acme-large-1", "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5},
    }  # fmt: skip


def results(*pairs: tuple[str, Any]) -> dict[str, Any]:
    """The message that gives results back, by call id."""
    return user([{"type": "tool_result", "tool_use_id": call, "content": value} for call, value in pairs])


def then(body: dict[str, Any], answer: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    """The request that follows an answer."""
    heard = {"role": "assistant", "content": answer["content"]}
    return {**body, "messages": [*body["messages"], heard, *more]}


def write(path: Path, found: Sequence[tape.Record]) -> Path:
    """A tape file of records."""
    path.write_bytes(b"".join(map(tape.line, [tape.header(), *found])))
    return path


def records(
    turns: Sequence[Turn], *, run: str = ROOT, api: str = ANTHROPIC, parent: Any = None, ended: bool = True
) -> list[tape.Record]:
    """The tape of one run."""
    found: list[tape.Record] = [
        {
            "kind": "run_start",
            "run": run,
            "at": START,
            "name": "demo",
            "parent": parent,
            "source": "sdk",
            "project": "/home/dev/demo",
        }
    ]
    for number, turn in enumerate(turns, 1):
        found += _turn(turn, number, run, api)
    if ended:
        found.append({"kind": "run_end", "run": run, "at": START + 1000, "status": "completed", "reason": None})
    return found


def _turn(turn: Turn, number: int, run: str, api: str) -> list[tape.Record]:
    begun, done = turn.at or (number * 10, number * 10 + 1)
    incoming = _incoming(api, turn.body)
    messages, parts = incoming.texts, _part_texts(incoming)
    found = [tape.blob(text) for text in (*messages, *parts) if text is not None]
    place = {"run": run, "turn": number}
    asked = {
        "kind": "turn_start", **place, "at": START + begun, "keep": 0, "base": None, "append": [digest(m) for m in messages],
        **dict(zip(("system", "tools", "params"), (p and digest(p) for p in parts), strict=True)),
        "provider": by_api(api).NAME, "api": api, "model": incoming.parts.model, "stream": incoming.parts.stream,
        "mode": incoming.parts.mode,
    }  # fmt: skip
    found.append(asked)
    if turn.response is None and not turn.attempts:
        return found
    response = None if turn.response is None else json.dumps(turn.response, ensure_ascii=False)
    answer = None if turn.response is None else by_api(api).answer(turn.response)
    calls = [{"id": c.id, "name": c.name, "arguments_raw": c.arguments_raw} for c in answer.calls] if answer else []
    found += [tape.blob(response)] if response is not None else []
    found.append({
        "kind": "turn_end", **place, "at": START + done, "status": "ok" if answer else "error",
        "response": digest(response) if response is not None else None, "calls": calls,
        "attempts": list(turn.attempts) or [{"status": 200}],
    })  # fmt: skip
    for call in calls:
        found += _call(turn, call, place)
    return found


def _call(turn: Turn, call: dict[str, Any], place: dict[str, Any]) -> list[tape.Record]:
    if call["id"] not in turn.ran:
        return []
    value, begun, done = turn.ran[call["id"]]
    kind, words = turn.raised.get(call["id"], (None, None))
    told = f"{kind.rpartition('.')[2]}: {words}" if kind else value
    place = {**place, "call": call["id"]}
    return [
        {"kind": "call_start", **place, "name": call["name"], "at": START + begun, "origin": "live", "side_effect": turn.side_effect},
        {"kind": "call_end", **place, "at": START + done, "result": told, "is_error": bool(kind), "error_type": kind, "state": "done"},
    ]  # fmt: skip


class Program:
    """A program in front of a player. What it asks is read as the recorder reads it."""

    def __init__(self, found: Sequence[tape.Record], events: Events | None = None, **settings: Any) -> None:
        self.recorded = tape_runs.read(list(found))
        self.settings = ReplaySettings(**{"unwrapped": "run", **settings})
        self.events = events or Events(None)
        self.player = Player(self.recorded, self.settings, self.events)
        self._runs: dict[str, OpenRun] = {}

    def run(self, name: str = "new") -> OpenRun:
        """The run of this name, opened when it is asked for first."""
        if name not in self._runs:
            self._runs[name] = OpenRun(id=name, explicit=True, name=name)
            self.player.opened(self._runs[name])
        return self._runs[name]

    def asked(self, body: Any, *, run: str = "new", attempt: int = 1, api: str = ANTHROPIC) -> Asked:
        """A request as the player sees it."""
        opened = self.run(run)
        if attempt == 1:
            opened.turns += 1
            opened.last = OpenTurn(opened, opened.turns, START, api)
        assert opened.last is not None
        incoming = _incoming(api, body)
        texts, parts = incoming.texts, _part_texts(incoming)
        return Asked(
            by_api(api), "http://model.test/", {}, _raw(body), opened, opened.last, attempt,
            tuple(map(digest, texts)), {digest(t): t for t in texts}, parts, incoming.parts.model, incoming.parts.stream,
            incoming.parts.mode, tuple(p and digest(p) for p in parts),  # type: ignore[arg-type]  # there are three
        )  # fmt: skip

    def ask(self, body: Any, **more: Any) -> Any:
        """The decoded answer; None where the request would be sent."""
        reply = self.player.answer(self.asked(body, **more))
        if reply is None:
            return None
        if reply.hold is not None:
            reply.hold.wait()
            reply.hold.release()
        return json.loads(b"".join(reply.chunks))

    def tool(
        self, name: str, arguments: Any, call: str | None = None, *, turn: int | None = None, run: str = "new"
    ) -> Any:
        """What the tool is given; None where it would run. Raises what it raised."""
        if call is not None:
            turn = turn or self.run(run).turns or None
        reply = self.player.tool(ToolAsked(name, arguments, self.run(run), turn, call))
        if reply is None:
            return None
        if reply.hold is not None:
            reply.hold.wait()
            reply.hold.release()
        if reply.error is not None:
            raise reply.error
        return reply.value

    def verdict(self) -> Verdict:
        """The judgement so far."""
        return judge(self.recorded, self.settings, self.events.all())


def forget_wrapped(monkeypatch: Any) -> None:
    """For the rest of a test no tool is wrapped in this process."""
    monkeypatch.setattr(substitute, "_state", substitute._State())


def _raw(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _incoming(api: str, body: Any) -> Incoming:
    return take_apart(by_api(api), _raw(body), None)


def _part_texts(incoming: Incoming) -> tuple[str | None, str | None, str | None]:
    parts = incoming.parts
    system, tools, params = (
        None if value is None else json.dumps(value, ensure_ascii=False)
        for value in (parts.system, parts.tools, dict(parts.params))
    )
    return system, tools, params
