"""A draft made into a request that can be sent, with everything that it lacks or that was done to it said by name."""

from __future__ import annotations

import json
import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from ...tracer.canonical import canonical
from ...tracer.errors import UsageError
from ...tracer.model import ToolCall
from ...tracer.providers import by_api, gemini
from . import dialects
from .align import places
from .asked import asked
from .draft import Draft
from .offered import definitions, seen_tools
from .pairing import NO_RESULT, unanswered, with_errors, without_orphans
from .shapes import answer_messages, calls_of, result_messages, results_of
from .start import KnownResult, OpenCall, Stage, Start
from .thoughts import sendable

SEEN = ("sdk", "record", "proxy", "demo", "vcr", "claude-bodies", "replay", "fork")
"""Sources that saw the whole request: what they lack was not sent."""
_WIRE = ("anthropic.messages", "openai.chat", "openai.responses")
_KNOWN = (*_WIRE, gemini.API)
_SECRET = re.compile(r"\[redacted:([a-z0-9-]+)\]")


@dataclass(slots=True)
class _Work:
    """What is being put together."""

    api: str
    body: dict[str, Any]
    messages: list[Any]
    lacks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Turn N's answer where it is kept: its calls, and the results that are there."""

    calls: tuple[OpenCall, ...] = ()
    known: dict[str, KnownResult] = field(default_factory=dict)

    @property
    def pending(self) -> tuple[OpenCall, ...]:
        return tuple(c for c in self.calls if c.id not in self.known)


def start(given: Draft, *, seen: bool = False, api: str | None = None, run_open: bool = False) -> Start:
    """The start of a fork from a draft, edited or not.

    Args:
        seen: Offer tools whose definitions the recording lacks, with schemas derived from the arguments seen.
        api: Another wire format than the recording's, for a model that speaks only that.
        run_open: Calls of the kept answer that have no result are to be run, instead of an error result.

    Raises:
        UsageError: An edited answer calls no tool and nothing follows it.
    """
    draft = given.copy()
    work = _Work(draft.api, draft.body, draft.messages, notes=list(draft.notes))
    answer, stage = _Answer(), _stage(draft)
    if draft.response is not None:
        answer = _answer(draft, work, run_open=run_open)
        stage = "execute" if answer.pending else "resume"
        _go_on(draft, work, answer, stage)
    _chosen_shape(work, api)
    _without_lost_thinking(draft, work)
    missing = _paired(work, draft, last_is_open=stage == "execute")
    _system(work, draft)
    _tools(work, draft, seen=seen)
    _parameters(work, draft)
    _secrets(work)
    _cut(work, draft)
    inherited = draft.number - (draft.response is None)
    waiting = {c.id for c in answer.pending}
    return Start(
        run=draft.run, turn=draft.number, api=work.api, body=_ordered(work), stage=stage, inherited=inherited,
        response=draft.response, calls=tuple(c.id for c in answer.calls), pending=answer.pending, known=answer.known,
        asked=asked(draft.turns, inherited, dropped=draft.dropped, waiting=waiting), unanswered=missing,
        lacks=tuple(work.lacks), notes=tuple(work.notes), edits=draft.edits, source=draft.source,
    )  # fmt: skip


def _stage(draft: Draft) -> Stage:
    return "generate" if draft.response is None else "resume"


def _answer(draft: Draft, work: _Work, *, run_open: bool) -> _Answer:
    """A recorded result holds while its call is the same; an edited call is to be run again."""
    found = by_api(draft.turn.api).answer(draft.response)
    calls = tuple(OpenCall(c.id, c.name, c.arguments_raw) for c in found.calls if not c.provider_side)
    recorded = {c.id: c for c in draft.turn.tool_calls}
    known: dict[str, KnownResult] = {}
    for number, call in enumerate(calls, 1):
        before = recorded.get(call.id)
        if call.id in draft.results:
            known[call.id] = draft.results[call.id]
        elif before is not None and _same(before, call) and (before.result is not None or not run_open):
            known[call.id] = _recorded(draft, work, call, before, number)
    return _Answer(calls, known)


def _recorded(draft: Draft, work: _Work, call: OpenCall, before: ToolCall, number: int) -> KnownResult:
    if before.result is not None:
        return KnownResult(call, before.result, before.is_error is True)
    work.lacks.append(
        f"no result of {call.name} ({call.id}), turn {draft.number}: an error result is put in; say another with "
        f"--edit 'turn[{draft.number}].calls[{number}].result=...'"
    )
    return KnownResult(call, NO_RESULT, True, "error")


def _same(before: ToolCall, call: OpenCall) -> bool:
    if before.name != call.name:
        return False
    return canonical(_loads(before.arguments_raw)) == canonical(_loads(call.arguments_raw))


def _go_on(draft: Draft, work: _Work, answer: _Answer, stage: Stage) -> None:
    """The kept answer, and at RESUME what came after it: as it was recorded, or just the results."""
    work.messages += deepcopy(answer_messages(draft.response))
    if stage == "execute":
        if draft.tail is not None and any(not list(results_of(m)) for m in draft.tail):
            work.notes.append(f"what turn {draft.number + 1}'s request brought besides results is left out")
        return
    if draft.tail is not None and {r.call for m in draft.tail for r in results_of(m)} >= set(answer.known):
        tail = deepcopy(list(draft.tail))
        for at in (r for m in tail for r in results_of(m)):
            if (known := answer.known.get(at.call)) is not None and known.origin == "edited":
                at.holder[at.key] = known.content
                at.holder.pop("is_error", None)
        work.messages += tail
    elif answer.calls:
        results = [(k.call.id, k.call.name, k.content, k.is_error) for k in (answer.known[c.id] for c in answer.calls)]
        work.messages += result_messages(draft.api, results)
    if work.messages and draft.tail is None and not answer.calls:
        raise UsageError(
            "nothing-follows",
            f"turn {draft.number} ends the run, and its answer calls no tool: nothing goes on from it",
            "Edit it so that it calls one, or fork an earlier turn",
        )


def _chosen_shape(work: _Work, wanted: str | None) -> None:
    """The nearest wire format where the recording's is no provider's, or another where the model needs it."""
    target = wanted or (work.api if work.api in _WIRE else "anthropic.messages")
    if target == work.api:
        return
    recorded = work.api if work.api in _KNOWN else "no provider's"
    if target == "anthropic.messages" and work.api not in _KNOWN and dialects.is_anthropic(work.messages):
        work.api = target
        work.notes.append(f"the recorded wire format is {recorded}: sent as {target}, the nearest")
        return
    convert = dialects.to_chat if target == "openai.chat" else dialects.to_anthropic
    if target == "openai.responses":
        raise UsageError("no-such-shape", f"a request of {recorded} cannot be sent as {target}", "Use openai.chat")
    work.body, lost = convert(work.body, work.messages)
    work.messages = work.body["messages"]
    why = "the model speaks it" if wanted else "the nearest"
    work.notes.append(f"the recorded wire format is {recorded}: sent as {target}, {why}")
    work.notes += lost
    work.api = target


def _without_lost_thinking(draft: Draft, work: _Work) -> None:
    work.messages, gone = sendable(work.api, work.messages)
    for reason, count in gone.items():
        work.lacks.append(f"{_many(count, 'thinking part')} {reason}: left out")
    if gone and work.api == "anthropic.messages" and work.body.get("thinking"):
        work.notes.append("thinking is on: a live model may refuse a tool call whose thinking was left out")


def _paired(work: _Work, draft: Draft, *, last_is_open: bool) -> tuple[OpenCall, ...]:
    work.messages, orphans = without_orphans(work.messages)
    if orphans:
        work.lacks.append(f"{_many(len(orphans), 'result')} without a call ({', '.join(orphans[:3])}): left out")
    missing = unanswered(work.messages, last_is_open=last_is_open)
    work.messages = with_errors(work.api, work.messages, missing)
    by_id = {c.id: (t.number, i) for t in draft.turns for i, c in enumerate(t.tool_calls, 1)}
    for _, call in missing:
        where = by_id.get(call.id)
        edit = f"; say another with --edit 'turn[{where[0]}].calls[{where[1]}].result=...'" if where else ""
        turn = f", turn {where[0]}" if where else ""
        work.lacks.append(f"no result of {call.name} ({call.id}){turn}: an error result is put in{edit}")
    return tuple(call for _, call in missing)


def _system(work: _Work, draft: Draft) -> None:
    body = work.body
    if work.api == "openai.chat" and "system" in body:
        work.messages.insert(0, {"role": "system", "content": body.pop("system")})
    spoken = any(isinstance(m, dict) and m.get("role") in ("system", "developer") for m in work.messages)
    if not (spoken or body.get("system") or body.get("instructions")) and draft.source not in SEEN:
        work.lacks.append("no system prompt in the recording; give one with --system @FILE")


def _tools(work: _Work, draft: Draft, *, seen: bool) -> None:
    calls = [(c.name, c.raw) for m in work.messages for c in calls_of(m)]
    if not calls and _called_in_words(draft):
        work.lacks.append(
            "this agent writes its calls as words: the built-in loop runs only tool calls, so it ends there"
        )
    if work.body.get("tools") or not calls:
        return
    schemas = seen_tools(calls)
    names = ", ".join(schemas)
    if seen:
        work.body["tools"] = definitions(work.api, schemas)
        work.notes.append(f"tool definitions derived from the arguments seen: {names}")
        return
    work.lacks.append(
        f"no tool definitions in the recording, though tools were called ({names}); --seen-tools offers them with "
        "schemas derived from the arguments seen, --edit tools=@FILE gives real ones"
    )


def _called_in_words(draft: Draft) -> bool:
    """The turn before called tools, its answer is in the request, and no call is."""
    before = [t for t in draft.turns[-2:-1] if any(c.origin != "provider" for c in t.tool_calls)]
    return bool(places(before, draft.messages)) if "compaction" not in draft.turn.flags else False


def _parameters(work: _Work, draft: Draft) -> None:
    model = draft.turn.request_model or draft.turn.model
    if not work.body.get("model"):
        if model:
            work.body["model"] = model
        else:
            work.lacks.append("no model named in the recording; name one with --model or --edit model=NAME")
    plain = {k for k in draft.body if k not in ("model", "system", "instructions", "tools", draft.list_key)}
    if not plain and draft.source not in SEEN:
        work.lacks.append("no request parameters (temperature, max_tokens, ...) in the recording")
    if work.api == "anthropic.messages" and not isinstance(work.body.get("max_tokens"), int):
        work.body["max_tokens"] = 8192
        work.notes.append("max_tokens is 8192: the API wants one and the recording has none")


def _secrets(work: _Work) -> None:
    text = json.dumps([work.messages, work.body.get("system"), work.body.get("tools")], ensure_ascii=False)
    found = Counter(_SECRET.findall(text))
    if found:
        said = ", ".join(f"{count} {kind}" for kind, count in found.most_common())
        work.lacks.append(f"secrets were removed from the recording: {said}; the model sees [redacted:...] there")


def _cut(work: _Work, draft: Draft) -> None:
    cut = [t.number for t in draft.turns if "truncated_at_source" in t.flags]
    if cut:
        work.lacks.append(f"the source cut texts of {_many(len(cut), 'turn')} (the first: {cut[0]})")
    if "history_incomplete" in draft.turn.flags:
        work.lacks.append("earlier messages are missing in the recording: the list is shorter than what was sent")


def _ordered(work: _Work) -> dict[str, Any]:
    """The body with its message list last but for nothing: as clients write it."""
    key = "input" if work.api == "openai.responses" else "messages"
    rest = {k: v for k, v in work.body.items() if k not in ("messages", "input", "contents")}
    return {**{k: rest[k] for k in ("model",) if k in rest}, **{k: v for k, v in rest.items() if k != "model"}, key: work.messages}  # fmt: skip


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
