"""Records of one imported run, built from its messages in the order of the file.

The messages of a request are rebuilt: what came before, the model's last answer, the results of its
calls (in one message, as the API wants them), then whatever else was said before the next answer.
Only the open turn and a few closed ones are kept, so that memory does not grow with the file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ... import tape
from ...model import BUCKETS
from ...providers import anthropic
from ...providers.answer import Answer
from ..numbers import Numbers
from ..writing import writer

API = anthropic.API
KEPT_TURNS = 16
_USAGE = (*BUCKETS, "origin", "partial")

_dumps = writer(check_circular=False)


@dataclass(slots=True)
class Turn:
    """A turn while it is read: the lines of one response id, put together."""

    number: int
    id: str
    start: tape.Record
    length: int
    message: dict[str, Any]
    content: list[Any] = field(default_factory=list)
    request_id: str | None = None
    ended_at: int | None = None
    flags: dict[str, None] = field(default_factory=dict)
    open_calls: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A tool result as it stands in a user message. ``returned``: what the tool gave its client."""

    call: str
    block: dict[str, Any]
    at: int | None
    error_class: str | None = None
    returned: Any = None


class Conversation:
    """One run in the making. Every method puts its records into ``out``, which the caller empties.

    Attributes:
        owners: Call id -> number of the turn that made it.
        silent: How many of these calls have no result so far.
        last: The last turn; it may still grow.
    """

    def __init__(self, run: str, out: list[tape.Record], agent: str | None = None) -> None:
        self.run = run
        self.out = out
        self.agent = agent
        self.turns = 0
        self.calls = 0
        self.parallel = 0
        self.started_at: int | None = None
        self.ended_at: int | None = None
        self.last: Turn | None = None
        self.last_answer = Answer()
        self.unanswered: dict[str, str] = {}
        self.owners = Numbers()
        self.answered = Numbers()
        self.silent = 0
        self.heard_since = False
        self._open: Turn | None = None
        self._recent: OrderedDict[str, Turn] = OrderedDict()
        self._closed = Numbers()
        self._results: list[Result] = []
        self._beside: list[Any] = []
        self._pending: list[str] = []
        self._base: Turn | None = None
        self._word_at: int | None = None
        self._user_turn = False
        self._compacted = False

    def see(self, at: int | None) -> None:
        """A line of this run has this time."""
        if at is not None:
            self.started_at = at if self.started_at is None else min(at, self.started_at)
            self.ended_at = at if self.ended_at is None else max(at, self.ended_at)

    def put(self, kind: str, **fields: Any) -> None:
        """A record of this run; fields that are None are left out."""
        self.out.append({"kind": kind, "run": self.run, **{k: v for k, v in fields.items() if v is not None}})

    def event(self, name: str, at: int | None, detail: dict[str, Any]) -> None:
        """Something that is no turn; it stands after the turn whose number it carries."""
        self.put("event", turn=self.turns or None, at=at, event=name, detail=detail)

    def say(self, message: dict[str, Any], at: int | None, *, prompt: bool) -> None:
        """A message that goes to the model with the next request; ``prompt``: a person's word."""
        self._pending_message(_dumps(message))
        self._word_at = at if at is not None else self._word_at
        self._user_turn |= prompt
        self.heard_since |= prompt

    def answers(self, call: str) -> bool:
        """A result of this call is there; True for the first."""
        first = self.answered.add(call)
        self.silent -= first and call in self.owners
        return first

    def results(self, found: Iterable[Result], beside: list[Any], at: int | None, *, prompt: bool) -> None:
        """Results of calls, with the other blocks of their message."""
        self._results.extend(found)
        self._beside.extend(beside)
        self._word_at = at if at is not None else self._word_at
        self._user_turn |= prompt

    def answer(self, message: dict[str, Any], at: int | None, request_id: str | None) -> Turn | None:
        """One line of the model's answer. Returns its turn; None when that was closed long ago."""
        name = message["id"]
        turn = self._open if self._open and self._open.id == name else self._recent.get(name)
        if turn is None:
            if name in self._closed:
                return None
            turn = self._begin(name, message, at)
        changed = _merge(turn, message)
        turn.request_id = turn.request_id or request_id
        if at is not None and not turn.closed:
            turn.ended_at = at if turn.ended_at is None else max(at, turn.ended_at)
        for block in message["content"]:
            if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                self._calls(turn, block["id"], str(block.get("name")))
        if turn.closed and changed:
            self._end(turn, _dumps(turn.content))
        return turn

    def _calls(self, turn: Turn, call: str, name: str) -> None:
        if call not in self.owners:
            turn.open_calls[call] = name
            self.owners[call] = turn.number
            self.silent += call not in self.answered

    def compact(self, at: int | None, detail: dict[str, Any]) -> None:
        """The message list starts anew here."""
        self.close()
        self.event("compaction", at, detail)
        self._pending, self._base, self._compacted = [], None, True
        self._user_turn = self.heard_since = False

    def close(self) -> None:
        """Ends the open turn: its answer and the results of its calls are all there."""
        turn, self._open = self._open, None
        if turn is not None:
            turn.closed = True
        results = self._flush_results(turn)
        if turn is None:
            self._pending += results
            return
        others, self._pending = self._pending, []
        content = _dumps(turn.content)
        self._pending_message('{"role":"assistant","content":' + content + "}")
        self._pending += results + others
        self.out.append(turn.start)
        self._end(turn, content)
        self.parallel += turn.calls > 1
        self.unanswered = dict(turn.open_calls)
        self._recent[turn.id] = turn
        if len(self._recent) > KEPT_TURNS:
            old, _ = self._recent.popitem(last=False)
            self._closed.add(old)

    def _begin(self, name: str, message: dict[str, Any], at: int | None) -> Turn:
        self.close()
        self.turns += 1
        base = self._base
        keep = base.length if base else 0
        began = self._word_at if self._word_at is not None and (at is None or self._word_at <= at) else at
        start = {
            "kind": "turn_start",
            "run": self.run,
            "turn": self.turns,
            "at": began,
            "keep": keep,
            "append": self._pending,
            "provider": anthropic.NAME,
            "api": API,
            "mode": "full",
            "user_turn": self._user_turn,
            "inherited": False,
        }
        if base:
            start["base"] = base.number
        if self.agent:
            start["agent"] = self.agent
        turn = Turn(self.turns, name, start, keep + len(self._pending), {}, ended_at=at)
        if self._compacted:
            turn.flags["compaction"] = None
        self._pending, self._user_turn, self._compacted, self.heard_since = [], False, False, False
        self._open = self._base = self.last = turn
        return turn

    def _end(self, turn: Turn, content: str) -> None:
        """The end of a turn whose content is this JSON text."""
        head = _dumps({k: v for k, v in turn.message.items() if k != "content"})
        body = tape.blob(f'{head[:-1]}{"," if len(head) > 2 else ""}"content":{content}}}')
        answer = anthropic.answer({**turn.message, "content": turn.content})
        calls = [_call(c, turn) for c in answer.calls]
        parse = "no_calls" if not calls else "ok" if all(c["valid"] for c in calls) else "invalid_arguments"
        if turn is self.last:
            self.last_answer = answer
        self.calls += len(calls) - turn.calls
        turn.calls = len(calls)
        usage = {name: getattr(answer.usage, name) for name in _USAGE}
        self.out.append(body)
        self.put(
            "turn_end",
            turn=turn.number,
            at=turn.ended_at,
            status="ok",
            stop_reason=answer.stop_reason,
            model=answer.model,
            response_id=turn.id,
            request_id=turn.request_id,
            response=body["hash"],
            calls=calls,
            usage=usage,
            usage_raw=answer.usage.raw,
            parse=parse,
            flags=list(turn.flags),
        )

    def _flush_results(self, turn: Turn | None) -> list[str]:
        """The gathered results as one message: its hash, after the record of it and of each result."""
        results, self._results = self._results, []
        beside, self._beside = self._beside, []
        if not results:
            return []
        message = tape.blob(_dumps({"role": "user", "content": [r.block for r in results] + beside}))
        self.out.append(message)
        for index, result in enumerate(results):
            owner = self.owners.get(result.call)
            if owner is None:
                continue
            if turn is not None:
                turn.open_calls.pop(result.call, None)
            self.unanswered.pop(result.call, None)
            # a result that came while the answer was still arriving: how long the tool took is not known
            early = bool(turn and turn.ended_at and result.at and result.at < turn.ended_at)
            self.put(
                "call_seen",
                turn=owner,
                call=result.call,
                at=None if early else result.at,
                message=message["hash"],
                path=f"$.content[{index}].content",
                is_error=result.block.get("is_error") is True,
                error_class=result.error_class,
                returned=result.returned,
            )
        return [message["hash"]]

    def _pending_message(self, text: str) -> None:
        record = tape.blob(text)
        self.out.append(record)
        self._pending.append(record["hash"])


def _merge(turn: Turn, message: dict[str, Any]) -> bool:
    """Adds a line to its turn: new blocks after the others, later fields over earlier ones."""
    length, usage = len(turn.content), turn.message.get("usage")
    for block in message["content"]:
        if block not in turn.content:
            turn.content.append(block)
    turn.message.update({k: v for k, v in message.items() if k != "content" and v is not None})
    new = message.get("usage")
    if isinstance(usage, dict) and isinstance(new, dict) and new is not usage:
        turn.message["usage"] = {**usage, **{k: v for k, v in new.items() if v is not None}}
    return length != len(turn.content) or usage != turn.message.get("usage")


def _call(call: Any, turn: Turn) -> dict[str, Any]:
    found = {"id": call.id, "name": call.name, "arguments_raw": call.arguments_raw, "valid": call.valid}
    if call.invalid_reason:
        found["invalid_reason"] = call.invalid_reason
    if call.provider_side:
        found.update(origin="provider", state="done", result=call.result, is_error=call.is_error)
    elif call.id in turn.open_calls:
        found["state"] = "no_result"
    return found
