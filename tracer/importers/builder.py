"""One imported run, message by message and turn by turn, as tape records. For formats that are read in order.

run = RunBuilder(stable_id("gemini-cli", session), api=openai_chat.API, source="gemini-cli", name=...)
run.message({"role": "user", "content": "hi"}, prompt=True)
run.turn(message={...}, usage=..., at=..., ended_at=...)      # the answer; it joins the history
run.result(call_id, message={...}, path="$.content", is_error=False, at=...)
run.end("completed", "end_turn")
yield from run.drain()
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .. import tape
from ..model import BUCKETS, Usage
from ..providers import by_api
from ..providers.answer import Answer, AnswerCall
from ..redaction import redact
from .numbers import Numbers
from .writing import writer

END_FIELDS = (
    "status", "error", "error_type", "attempts", "first_chunk_at", "request_id", "reported_cost_usd",
)  # fmt: skip
MAX_WRITTEN = 20_000
_dumps = writer(default=str)


class RunBuilder:
    """Records of one run, in the order they are told.

    Args:
        run: The run's id, made from what identifies it in its source (`stable_id`).
        api: Name of the wire format of its messages (`providers.by_api`); ``manual`` where there is none.
        source: Where it comes from: the importer's FORMAT.
        provider: Who answered, where that is not the api's own provider; "" when the format does not tell.
        facts: Fields of the run_start record: name, title, agent, project, session, task, tags, parent,
            versions, git_commit, list_price. Texts are redacted here.
    """

    def __init__(
        self,
        run: str,
        *,
        api: str,
        source: str,
        started_at: int | None = None,
        provider: str | None = None,
        **facts: Any,
    ) -> None:
        self.run = run
        self.api = api
        self.turns = 0
        self.calls = 0
        self.unanswered: dict[str, int] = {}
        self.last: Answer = Answer()
        known = by_api(api)
        named = known.NAME if api == known.API else api
        self._name = (named if api != "manual" else None) if provider is None else provider or None
        self._out: list[tape.Record] = []
        self._written: set[str] = set()
        self._fresh: list[str] = []  # what joined the history since the last turn
        self._base = 0
        self._kept = 0
        self._user_turn = False
        self._parts: dict[str, str | None] = {"system": None, "tools": None, "params": None}
        self._owners = Numbers()
        self._put("run_start", at=started_at, source=source, **_clean(facts))

    def update(self, **facts: Any) -> None:
        """More about the run: outcome, title, tags, warnings."""
        self._put("run_update", **_clean(facts))

    def context(self, *, system: Any = None, tools: Any = None, params: Any = None) -> None:
        """What stands beside the messages from the next turn on; None leaves a part as it is."""
        for name, value in (("system", system), ("tools", tools), ("params", params)):
            if value is not None:
                self._parts[name] = self._blob(value)

    def message(self, message: Any, *, prompt: bool = False) -> str:
        """A message that the model sees from the next turn on (``prompt``: a person's word); gives its hash."""
        key = self._blob(message)
        self._fresh.append(key)
        self._user_turn |= prompt
        return key

    @property
    def length(self) -> int:
        """Messages in the history so far: what ``restart`` counts."""
        return self._kept + len(self._fresh)

    def owner(self, call: str) -> int | None:
        """The turn that made this call; None when no turn told so far did."""
        return self._owners.get(call)

    def restart(self, kept: int = 0) -> None:
        """The history is cut to its first ``kept`` messages (a compaction, a trimmed context)."""
        del self._fresh[max(0, kept - self._kept) :]
        self._kept = min(self._kept, kept)

    def turn(
        self,
        *,
        message: Any = None,
        response: Any = None,
        answer: Answer | None = None,
        usage: Usage | None = None,
        model: str | None = None,
        at: int | None = None,
        ended_at: int | None = None,
        api: str | None = None,
        provider: str | None = None,
        **more: Any,
    ) -> int:
        """A model call over the history so far; gives its number.

        Args:
            message: The answer as it joins the history; None when it does not.
            response: The response body in the api's shape, for `providers.by_api(api).answer`.
            answer: What the response says, where the api's reader cannot tell.
            usage: Tokens in disjoint buckets, where the response does not hold them.
            at, ended_at: Begin and end of GENERATE in µs; None when the format does not tell.
            api, provider: Of this call, where it differs from the run's (who served it, for prices).
            more: Fields of the turn_end record (those of ``END_FIELDS``) and of the turn_start record
                (agent, step, flags, inherited, mode, caller, trace_id, span_id, ...).
        """
        self.turns += 1
        said = answer or by_api(api or self.api).answer(response)
        self.last = said
        end = {name: more.pop(name) for name in END_FIELDS if name in more}
        self._put(
            "turn_start",
            turn=self.turns,
            at=at,
            keep=self._kept,
            base=self._base or None if self._kept else None,
            append=self._fresh,
            provider=provider or self._name,
            api=api or self.api,
            model=model,
            user_turn=self._user_turn,
            **self._parts,
            **{"mode": "full", "inherited": False, **more, "flags": list(more.get("flags", ()))},
        )
        self._base, self._kept, self._user_turn = self.turns, self.length, False
        self._fresh = []
        self._end(said, response, usage or said.usage, model, ended_at, end)
        if message is not None:
            self._fresh.append(self._blob(message))
        for call in said.calls:
            self._owners[call.id] = self.turns
            if not call.provider_side:
                self.unanswered[call.id] = self.turns
        self.calls += len(said.calls)
        return self.turns

    def result(
        self,
        call: str,
        *,
        message: Any = None,
        key: str | None = None,
        path: str,
        is_error: bool | None = None,
        error_class: str | None = None,
        at: int | None = None,
        returned: Any = None,
        join: bool = True,
    ) -> bool:
        """A tool result inside a message that goes to the model; False when no call of this run has that id.

        Args:
            key: The hash of the message, where it is known from `message`.
            path: JSONPath of the result within the message.
            returned: What the tool gave its client, where that differs from what the model saw.
            join: False when the message is already in the history (several results in one message).
        """
        key = key or self._blob(message)
        if join:
            self._fresh.append(key)
        owner = self._owners.get(call)
        if owner is None:
            return False
        self.unanswered.pop(call, None)
        self._put(
            "call_seen",
            turn=owner,
            call=call,
            at=at,
            message=key,
            path=path,
            is_error=is_error,
            error_class=error_class,
            returned=_clean_value(returned),
        )
        return True

    def owns(self, call: str) -> bool:
        """True when a turn so far made a call with this id."""
        return call in self._owners

    def unasked(self, call: str, name: str, arguments_raw: str | None) -> None:
        """A call of the last turn that only its tool tells of; `measured` and `result` know it from then on."""
        self._owners[call] = self.turns
        self.calls += 1
        raw = redact(arguments_raw) if arguments_raw else None
        self._put("call_start", turn=self.turns, call=call, name=redact(name), arguments_raw=raw)

    def measured(self, call: str, started_at: int | None, ended_at: int | None, **more: Any) -> None:
        """When a tool really ran, where the format tells. ``more``: fields of call_end (state, result, is_error, ...).

        A ``result`` without times is one that the model never saw.
        """
        owner = self._owners.get(call)
        if owner is None:
            return
        if started_at is not None:
            self._put("call_start", turn=owner, call=call, at=started_at)
        if ended_at is not None or "result" in more:
            self.unanswered.pop(call, None)
            self._put("call_end", turn=owner, call=call, at=ended_at, **_clean(more))

    def event(self, name: str, at: int | None = None, **detail: Any) -> None:
        """Something that is no turn; it stands after the turns so far."""
        self._put("event", turn=self.turns or None, at=at, event=name, detail=_clean(detail))

    def end(self, status: str | None = None, reason: str | None = None, at: int | None = None) -> None:
        """The run is over. Without a status it is judged: open calls are an interruption, else the last answer tells."""
        if status is None:
            status, reason = self._judged()
        self._put("run_end", at=at, status=status, reason=redact(reason) if reason else reason)

    def drain(self) -> Iterator[tape.Record]:
        """The records told so far; each once."""
        out, self._out = self._out, []
        yield from out

    def _judged(self) -> tuple[str, str | None]:
        if self.unanswered:
            return "interrupted", "the last calls have no result"
        if self.last.end is not None:
            return self.last.end, self.last.stop_reason
        return ("completed", "the last answer calls no tool") if self.turns else ("completed", "no turns")

    def _end(
        self, said: Answer, response: Any, usage: Usage, model: str | None, at: int | None, told: Mapping[str, Any]
    ) -> None:
        body = None if response is None else self._blob(response)
        calls = [_call(c) for c in said.calls]
        error = told.get("error") or said.error
        status = told.get("status", "ok")
        parse = "no_calls" if not calls else "ok" if all(c["valid"] for c in calls) else "invalid_arguments"
        self._put(
            "turn_end",
            turn=self.turns,
            at=at,
            status="error" if status == "ok" and (said.error or said.error_type) else status,
            error=redact(error) if error else None,
            error_type=told.get("error_type") or said.error_type,
            stop_reason=said.stop_reason,
            model=said.model or model,
            response_id=said.id,
            request_id=told.get("request_id") or said.request_id,
            response=body,
            first_chunk_at=told.get("first_chunk_at"),
            calls=calls,
            usage={**{n: getattr(usage, n) for n in BUCKETS}, "origin": usage.origin, "partial": usage.partial},
            usage_raw=usage.raw,
            attempts=[dict(a) for a in told.get("attempts", ())],
            parse=parse,
            reported_cost_usd=told.get("reported_cost_usd"),
        )

    def _blob(self, value: Any) -> str:
        record = tape.blob(redact(_dumps(value)))
        if record["hash"] not in self._written:
            if len(self._written) >= MAX_WRITTEN:
                self._written.clear()  # the store knows the others
            self._written.add(record["hash"])
            self._out.append(record)
        key: str = record["hash"]
        return key

    def _put(self, kind: str, **fields: Any) -> None:
        self._out.append({"kind": kind, "run": self.run, **{k: v for k, v in fields.items() if v is not None}})


def _call(call: AnswerCall) -> tape.Record:
    record: tape.Record = {
        "id": call.id,
        "name": call.name,
        "arguments_raw": redact(call.arguments_raw),
        "valid": call.valid,
        "invalid_reason": call.invalid_reason,
    }
    if call.state:
        record["state"] = call.state
    if call.provider_side:
        done = call.result is not None
        record |= {"origin": "provider", "state": "done" if done else "requested", "is_error": call.is_error}
        if done:
            record["result"] = _clean_value(call.result)
    return record


def _clean(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _clean_value(v) for k, v in fields.items()}


def _clean_value(value: Any) -> Any:
    """A value without secrets; other types than JSON's become text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return redact(value)
    text = _dumps(value)
    clean = redact(text)
    return value if clean == text else json.loads(clean)
