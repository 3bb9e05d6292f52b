"""Claude Code's raw API bodies: a folder of whole requests and responses, named by the lines of its index.jsonl.

The one lossless source of its turns (system prompt, tool schemas, parameters, betas, thinking), written with
OTEL_LOG_RAW_API_BODIES=file:FOLDER.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import tape
from ...canonical import digest, stable_id
from ...errors import LooptapeError
from ...providers import anthropic
from ...providers.answer import mapping, objects, text_of
from ...redaction import redact
from ...streams import sse_events
from .. import reading
from ..calls.assembly import assemble
from ..calls.model_call import ModelCall
from ..context import Context, Source
from ..report import Notes

FORMAT = "claude-bodies"
TITLE = "Claude Code raw API bodies: a folder with index.jsonl"

INDEX = "index.jsonl"
REQUESTS, RESPONSES = ".request.json", ".response.json"
_AGENT_TOOLS = frozenset({"Task", "Agent"})
_REMINDER = "<system-reminder>"
_TITLE = 200


def recognise(head: bytes) -> bool:
    """True for an index whose lines name files of requests."""
    if b'"request_file"' not in head:
        return False
    return any("request_file" in v and "response_file" in v for v in reading.first_objects(head))


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """Every line with its two bodies is a turn; requests that extend each other are one run.

    Sub-agents and side questions (a title, a summary) have messages of their own and become runs of their own.
    """
    if source.path is None:
        raise LooptapeError(
            "no-folder",
            f"{source.label}: an index of raw bodies names files beside it, and standard input has none",
            "Import the folder, or its index.jsonl",
        )
    folder = _Folder(source, source.path.parent, notes)
    calls: list[ModelCall] = []
    for line, entry in reading.objects(source.lines(), notes):
        call = _call(line, entry, folder, notes)
        if call is not None:
            calls.append(call)
    left = folder.unnamed()
    if left:
        notes.warn(
            f"{left} request files are named by no line of {INDEX}: calls that ended without an answer, not imported"
        )
    owners: dict[str, tuple[str, int]] = {}
    for record in assemble(calls, source=FORMAT, notes=notes):
        if record["kind"] == "turn_end":
            owners.update({c["id"]: (record["run"], record["turn"]) for c in record["calls"]})
        yield record
    asked = _asked(calls)
    for call in calls:
        run = stable_id(FORMAT, call.key)
        if run in notes.runs:  # the first call of a run
            yield {"kind": "run_start", "run": run, **_origin(call, run, asked, owners, notes)}


def _call(line: int, entry: dict[str, Any], folder: _Folder, notes: Notes) -> ModelCall | None:
    if "request_file" not in entry:
        notes.strange(f"index line with {', '.join(sorted(map(str, entry))[:4])}"[:80])
        return None
    request = folder.body(line, entry.get("request_file"), "request")
    if request is None:
        return None
    response = folder.body(line, entry.get("response_file"), "response")
    parts = anthropic.request(request)
    messages = request.get("messages")
    said = anthropic.answer(response) if response is not None else None
    request_id = text_of(entry.get("request_id"))
    named = text_of(entry.get("message_id")) or (said.id if said else None)
    return ModelCall(
        key=named or request_id or text_of(entry.get("request_file")) or f"line {line}",
        api=anthropic.API,
        messages=tuple(messages) if isinstance(messages, list) else (),
        system=parts.system,
        tools=parts.tools,
        params=parts.params,
        response=response,
        model=parts.model or text_of(entry.get("model")),
        mode=parts.mode,
        previous=parts.previous,
        response_id=named,
        request_id=request_id,
        stream=parts.stream,
        lossless=True,
        ended_at=reading.micros(entry.get("timestamp")),
        conversation=text_of(entry.get("session_id")),
        step=text_of(entry.get("query_source")),
        flags=() if response is not None else ("answer_not_read",),
    )


class _Folder:
    """The files beside an index. Requests repeat their history: equal parts are kept once."""

    def __init__(self, source: Source, place: Path, notes: Notes) -> None:
        self._source = source
        self._notes = notes
        self._place = place
        self._kept: dict[str, Any] = {}
        self._named: set[str] = set()

    def body(self, line: int, name: Any, what: str) -> dict[str, Any] | None:
        """The decoded body in a file, secrets removed; None (noted) when it cannot be had."""
        if name is None:
            self._notes.skip(line, f"no {what} file is named")
            return None
        path = self._inside(name)
        if path is None:
            self._notes.skip(line, f"{what} file {str(name)[:80]!r} is not the name of a file in this folder")
            return None
        self._named.add(path.name)
        try:
            with self._source.open(path) as stream:
                raw = stream.read(reading.MAX_LINE_BYTES + 1)
        except OSError as error:
            self._notes.skip(line, f"{what} file {path.name}: {error.strerror or error}")
            return None
        except LooptapeError as error:  # one damaged file does not spoil the others
            self._notes.skip(line, error.what)
            return None
        if len(raw) > reading.MAX_LINE_BYTES:
            self._notes.skip(line, f"{what} file {path.name}: larger than {reading.MAX_LINE_BYTES >> 20} MB")
            return None
        return self._decoded(line, path.name, what, raw)

    def unnamed(self) -> int:
        """How many request files no line names."""
        return sum(p.name.endswith(REQUESTS) and p.name not in self._named for p in self._place.iterdir())

    def _decoded(self, line: int, name: str, what: str, raw: bytes) -> dict[str, Any] | None:
        try:
            value = reading.decode(raw, self._notes)
        except ValueError as error:
            value = anthropic.assemble(sse_events(raw.decode("utf-8", "replace")))[0] if what == "response" else None
            if value is None:
                self._notes.skip(line, f"{what} file {name}: {error}")
        if value is not None and not isinstance(value, dict):
            self._notes.skip(line, f"{what} file {name}: not a JSON object")
            value = None
        return self._shared(value) if isinstance(value, dict) else None

    def _shared(self, body: dict[str, Any]) -> dict[str, Any]:
        found = {k: self._once(v) for k, v in body.items() if k != "messages"}
        if "messages" in body:
            messages = body["messages"]
            found["messages"] = [self._once(m) for m in messages] if isinstance(messages, list) else None
        return found

    def _once(self, value: Any) -> Any:
        """The value without secrets, looked for once however often it is repeated."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        text = json.dumps(value)
        key = digest(text)
        if key not in self._kept:
            self._kept[key] = reading.clean(text.encode(), self._notes)
        return self._kept[key]

    def _inside(self, name: Any) -> Path | None:
        """The file of that name, if it lies in this folder and is no link to elsewhere."""
        if not isinstance(name, str) or not name or name in (".", "..") or not {"/", "\\", "\0"}.isdisjoint(name):
            return None
        path = self._place / name
        return path if path.is_file() and not path.is_symlink() else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call that starts a sub-agent."""

    call: str
    agent: str | None


def _asked(calls: Iterable[ModelCall]) -> dict[str, _Asked]:
    """Prompts of sub-agents and the calls that gave them."""
    found: dict[str, _Asked] = {}
    for call in calls:
        for block in objects(mapping(call.response).get("content")):
            prompt = text_of(mapping(block.get("input")).get("prompt"))
            if block.get("name") in _AGENT_TOOLS and prompt and isinstance(block.get("id"), str):
                found.setdefault(prompt.strip(), _Asked(block["id"], text_of(block["input"].get("subagent_type"))))
    return found


def _origin(
    call: ModelCall, run: str, asked: dict[str, _Asked], owners: dict[str, tuple[str, int]], notes: Notes
) -> dict[str, Any]:
    """Title of a run that begins with this call; the call that started it, when the prompt is word by word its."""
    content = mapping(call.messages[0]).get("content") if call.messages else None
    texts = [content] if isinstance(content, str) else [text_of(b.get("text")) or "" for b in objects(content)]
    words = [t.strip() for t in texts if t.strip() and not t.lstrip().startswith(_REMINDER)]
    found: dict[str, Any] = {"title": redact(words[-1][:_TITLE])} if words else {}
    by = next((asked[w] for w in words if w in asked), None)
    owner = owners.get(by.call) if by else None
    if by and owner and owner[0] != run:
        notes.counts["sub_agents"] += 1
        found["parent"] = {"run": owner[0], "turn": owner[1], "call": by.call, "kind": "sub-agent"}
        if by.agent:
            found["agent"] = by.agent
    return found


__all__ = ["FORMAT", "INDEX", "REQUESTS", "RESPONSES", "TITLE", "recognise", "records"]
