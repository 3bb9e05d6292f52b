"""The turns that a fork inherits, as records of its own run that share the originals' texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...tracer.canonical import digest
from ...tracer.clock import now
from ...tracer.providers import Provider, by_api, gemini
from ...tracer.providers.answer import SeenResult
from ...tracer.redaction import redact
from ...tracer.tape import Record
from .start import KnownResult, Start

if TYPE_CHECKING:
    from ...tracer.store import Store

_OF_TURN = ("turn_start", "turn_end", "call_start", "call_end", "call_seen")
_OF_CALL = ("call_start", "call_end")
_ITS_OWN = ("fork", "engine")
_REFERRED = ("system", "tools", "params", "response", "message")
_SPAN_IDS = ("trace_id", "span_id", "parent_span_id", "chat_trace_id", "chat_span_id")


@dataclass(slots=True)
class Copy:
    """What is written for one new run.

    Attributes:
        content: False keeps texts out (`LOOPTAPE_CONTENT=none`): hash and length remain.
        blobs: Texts of the original by their hash, until they are needed.
        seen_at: When the results of the last inherited turn were seen in the original, by call id.
    """

    run: str
    start: Start
    content: bool
    blobs: dict[str, Record] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    seen_at: dict[str, int | None] = field(default_factory=dict)

    def text(self, out: list[Record], text: str) -> str:
        """The hash of a text; its blob is added to ``out`` when it is not written yet."""
        clean = redact(text)
        key = digest(clean)
        self.blobs.setdefault(key, {"kind": "blob", "hash": key, "text": clean})
        self.need(out, key)
        return key

    def need(self, out: list[Record], key: Any) -> None:
        """Adds the blob of this hash, if there is one and it is not written yet."""
        record = self.blobs.get(key) if isinstance(key, str) else None
        if record is None or key in self.written:
            return
        self.written.add(key)
        if not self.content and "text" in record:
            record = {"kind": "blob", "hash": key, "length": len(record["text"])}
        out.append(record)


def records(store: Store, copy: Copy, taped: Iterable[Record] | None = None) -> Iterator[list[Record]]:
    """The records of turns 1 to ``start.inherited``, a batch for each, then what the fork says of itself.

    Pieces of streams stay with the original; the answers are whole.

    Args:
        taped: What `of_run` gave, where several forks of the same turn are opened.
    """
    last = copy.start.inherited
    out: list[Record] = []
    number = 0
    for record in of_run(store, copy.start.run, last) if taped is None else taped:
        if record["kind"] == "blob":
            copy.blobs.setdefault(record["hash"], record)
            continue
        if record["turn"] != number and out:
            yield out
            out = []
        number = record["turn"]
        _add(copy, out, {**record, "run": copy.run})
    if number and number == last:
        _results_of_last(copy, out)
    yield [*out, *_events(store, copy), _told(copy)]


def of_run(store: Store, run: str, last: int) -> Iterator[Record]:
    """Blob and turn records of a run up to a turn, without its chunks; its sub-agents stay with the original."""
    from ...tracer.store.export import records_of

    for record in records_of(store, run):
        kind = record["kind"]
        if kind in _OF_TURN and (record.get("run") != run or record["turn"] > last):
            return
        if kind == "blob" or kind in _OF_TURN:
            yield record


def loads(text: str) -> Any:
    """JSON decoded, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _events(store: Store, copy: Copy) -> list[Record]:
    """What happened in the inherited turns and is no turn; what earlier forks said of themselves is theirs."""
    last = copy.start.inherited
    return [
        {"kind": "event", "run": copy.run, "turn": e.turn, "at": e.at, "event": e.kind, "detail": dict(e.detail)}
        for e in store.events(copy.start.run)
        if (e.turn or 0) <= last and e.kind not in _ITS_OWN
    ]


def _add(copy: Copy, out: list[Record], record: Record) -> None:
    kind = record["kind"]
    kept = copy.start.response is not None and record["turn"] == copy.start.turn
    if kind == "turn_start":
        record["inherited"] = True
        record.update({n: None for n in _SPAN_IDS if n in record})
    elif kind == "turn_end" and kept:
        record = _answered(copy, out, record)
    elif kind in _OF_CALL and kept and not _as_recorded(copy, record["call"]):
        return  # the call is another one now, or its result is
    elif kind == "call_seen" and record["turn"] == copy.start.inherited:
        copy.seen_at[record["call"]] = record.get("at")
        if kept or _in_request(copy, record["call"]) is not None:
            return  # said as the fork's own request has it: `_results_of_last`
    for key in (*record.get("append", ()), *(record.get(n) for n in _REFERRED)):
        copy.need(out, key)
    out.append(record)


def _answered(copy: Copy, out: list[Record], record: Record) -> Record:
    """The end of turn N with the answer that the fork goes on from."""
    response = copy.start.response
    before = copy.blobs.get(record.get("response") or "", {})
    if loads(before.get("text") or "null") == response:
        return record
    answer = _shape(response).answer(response)
    calls = [
        {"id": c.id, "name": c.name, "arguments_raw": redact(c.arguments_raw) if copy.content else None,
         "valid": c.valid, "invalid_reason": c.invalid_reason}
        for c in answer.calls if not c.provider_side
    ]  # fmt: skip
    parse = "no_calls" if not calls else "ok" if all(c["valid"] for c in calls) else "invalid_arguments"
    flags = list(dict.fromkeys([*(record.get("flags") or ()), "edited"]))
    changed = copy.text(out, json.dumps(response, ensure_ascii=False))
    return {**record, "response": changed, "calls": calls, "flags": flags, "parse": parse}


def _shape(response: Any) -> Provider:
    """The provider whose answer this is, told by what it has."""
    keys = response if isinstance(response, dict) else {}
    if "choices" in keys:
        return by_api("openai.chat")
    if "output" in keys:
        return by_api("openai.responses")
    return by_api(gemini.API if "candidates" in keys else "anthropic.messages")


def _as_recorded(copy: Copy, call: str) -> bool:
    known = copy.start.known.get(call)
    return known is not None and known.origin == "recorded"


def _results_of_last(copy: Copy, out: list[Record]) -> None:
    """The results of the last inherited turn as the fork has them, at the times of the original.

    A time of now would make it look as if the tool had run since then.
    """
    ended = next((r for r in reversed(out) if r["kind"] == "turn_end"), {})
    measured = {r["call"] for r in out if r["kind"] == "call_end"}
    for call in ended.get("calls") or ():
        place = {"run": copy.run, "turn": copy.start.inherited, "call": call["id"]}
        at = copy.seen_at.get(call["id"]) or ended.get("at")
        known = copy.start.known.get(call["id"])
        if known is not None and known.origin == "edited":
            out.append({"kind": "call_start", **place, "name": call["name"], "at": None, "origin": "edited"})
        if (found := _in_request(copy, call["id"])) is not None:
            message, result = found
            key = copy.text(out, json.dumps(message, ensure_ascii=False, separators=(",", ":")))
            told = {"message": key, "path": result.path, "is_error": result.is_error}
            out.append({"kind": "call_seen", **place, "at": at, **told})
        elif known is not None and call["id"] not in measured:
            out.append(_ended(copy, place, at, known))


def _ended(copy: Copy, place: Record, at: int | None, known: KnownResult) -> Record:
    """A result that is known, but that no request has brought yet."""
    text = redact(known.content if isinstance(known.content, str) else json.dumps(known.content, ensure_ascii=False))
    record: Record = {"kind": "call_end", **place, "at": at, "is_error": known.is_error, "error_class": None,
                      "state": "done", "digest": digest(text), "length": len(text)}  # fmt: skip
    if copy.content:
        record["result"] = text if isinstance(known.content, str) else loads(text)
    return record


def _in_request(copy: Copy, call: str) -> tuple[Any, SeenResult] | None:
    """A call's result in the fork's first request, with its message: the latest, where an id is used twice."""
    provider = by_api(copy.start.api)
    for message in reversed(copy.start.body.get(provider.LIST_KEY) or ()):
        for result in provider.results(message):
            if result.call == call:
                return message, result
    return None


def _told(copy: Copy) -> Record:
    """What was changed and what is lacking, as an event of turn N."""
    start = copy.start
    detail = {
        "edits": [redact(e) for e in start.edits],
        "stage": start.stage,
        "lacks": [redact(x) for x in start.lacks],
        "notes": [redact(x) for x in start.notes],
        "results": {k.call.id: k.origin for k in start.known.values() if k.origin != "recorded"},
        "unanswered": [c.id for c in start.unanswered],
    }
    return {"kind": "event", "run": copy.run, "turn": start.turn, "at": now(), "event": "fork", "detail": detail}
