"""Raw message lists: what an agent of any kind holds in its hands anyway, saved as JSON or JSON Lines.

A request body or a message list of Anthropic, OpenAI Chat, OpenAI Responses or Bedrock Converse, alone or as
{"request", "response"}; one document, a list of them, or one a line; also one message a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest
from ...errors import LooptapeError
from ...providers.answer import text_of
from .. import reading
from ..calls.assembly import assemble
from ..calls.model_call import ModelCall
from ..context import Context, Source
from ..document import document, glimpse
from ..report import Notes
from . import raw_shapes, raw_talks
from .raw_shapes import Talk

FORMAT = "messages"
TITLE = "raw message lists and requests: Anthropic, OpenAI Chat and Responses, Bedrock Converse"

# messages and pairs are kept until the end of their file: only then it is known which belong together
MAX_KEPT_BYTES = 1 << 30


def recognise(head: bytes) -> bool:
    """True for a message, a request, a response, a pair of both, or a list of such."""
    value = glimpse(head)
    if isinstance(value, list):
        value = value[0] if value else None
    return raw_shapes.is_entry(value) or (raw_shapes.is_message(value) and raw_shapes.is_plain(value))


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """One run for every conversation: requests that extend each other are one."""
    growing = raw_talks.Growing(notes)
    messages: list[Any] = []
    pairs: list[Talk] = []
    kept = 0
    for line, size, value in _values(source, notes):
        if raw_shapes.is_message(value):  # first: a whole Anthropic response is a message too
            messages.append(value)
        elif raw_shapes.is_entry(value):
            talk = raw_shapes.talk_of(value)
            if talk.response is None:
                for whole in growing.add(talk):
                    yield from raw_talks.records(whole, notes, FORMAT)
                continue
            pairs.append(talk)
        else:
            notes.strange(f"object with {', '.join(sorted(map(str, value))[:4])}"[:80])
            continue
        kept += size
        if kept > MAX_KEPT_BYTES:
            raise LooptapeError(
                "too-large",
                f"{source.label}: line {line}: more than {MAX_KEPT_BYTES >> 20} MB of messages that belong together",
                "Nothing of it was imported; split it into one file for each conversation",
            )
    for talk in [*growing.rest(), *([raw_shapes.bare(messages)] if messages else [])]:
        yield from raw_talks.records(talk, notes, FORMAT)
    if len(pairs) == 1:
        yield from raw_talks.records(pairs[0], notes, FORMAT)
    elif pairs:
        yield from assemble((_call(p) for p in pairs), source=FORMAT, notes=notes)
    _say(source, notes)


def _call(pair: Talk) -> ModelCall:
    parts = pair.parts
    response = pair.response or {}
    named = text_of(response.get("id"))
    return ModelCall(
        key=named or digest(canonical([pair.messages, response])),
        api=pair.api,
        provider=pair.provider,
        messages=tuple(pair.messages),
        system=parts.system if parts else None,
        tools=parts.tools if parts else None,
        params=parts.params if parts else None,
        model=parts.model if parts else None,
        mode=parts.mode if parts else "full",
        previous=parts.previous if parts else None,
        stream=parts.stream if parts else False,
        response=response,
        response_id=named,
        usage=pair.usage,
        lossless=True,
    )


def _values(source: Source, notes: Notes) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Line, size and value of every object: those of a list one by one, under the line where the list begins."""
    if not _is_document(source):
        for line, value in reading.objects(_measured(source, sizes := [0]), notes):
            yield line, sizes[0], value
        return
    value = document(source, notes)
    values = value if isinstance(value, list) else [] if value is None else [value]
    for number, entry in enumerate(values, 1):
        if isinstance(entry, dict):
            notes.counts["objects"] += 1
            yield 1, 0, entry
        else:
            notes.skip(1, f"element {number} of the list is no JSON object")


def _measured(source: Source, size: list[int]) -> Iterator[tuple[int, bytes | None]]:
    for line, raw in source.lines():
        size[0] = len(raw or b"")
        yield line, raw


def _is_document(source: Source) -> bool:
    """True when the file is one JSON value: a list, or an object that does not end with its line."""
    head = source.head()
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        return True
    first = next((line for line in head.splitlines() if line.strip()), b"")
    return not reading.first_objects(first) and raw_shapes.is_entry(glimpse(head))


def _say(source: Source, notes: Notes) -> None:
    if not notes.runs and notes.counts["objects"]:
        raise LooptapeError(
            "no-messages",
            f"{source.label}: no message, request or response in it ({', '.join(sorted(notes.unknown)) or 'nothing'})",
            "See docs/formats.md for the shapes that are read",
        )
    silent = notes.counts["answers_without_tokens"]
    if silent:
        notes.warn(f"{silent} of {notes.turns} answers have no token counts: messages alone do not hold them")
