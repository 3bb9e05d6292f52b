"""A response object as the events of a stream: what `responses_stream.assemble` puts together, taken apart again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .answer import mapping, objects
from .sse import named, pieces

_MARKS = frozenset({"stream_cut", "stream_error"})
_ENDS = ("completed", "incomplete", "failed", "cancelled")
# Items whose one text is streamed: its key, and the name of its events.
_TEXTS = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "mcp_call": ("arguments", "response.mcp_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
    "code_interpreter_call": ("code", "response.code_interpreter_call_code"),
}
# Parts of an item: the key of the part's text, and the name of its events.
_PART_TEXTS = {
    "output_text": ("text", "response.output_text"),
    "refusal": ("refusal", "response.refusal"),
    "reasoning_text": ("text", "response.reasoning_text"),
    "summary_text": ("text", "response.reasoning_summary_text"),
}
# Lists of parts: the key of a part's place, and the stem of the events that open and close it.
_LISTS = {
    "summary": ("summary_index", "response.reasoning_summary_part"),
    "content": ("content_index", "response.content_part"),
}

Facts = dict[str, Any]


def stream(body: Mapping[str, Any], request: Any = None) -> list[bytes]:
    """The events of a response, one an item. A cut one ends where it was cut."""
    response = {k: v for k, v in body.items() if k not in _MARKS}
    start: Facts = {**response, "status": "in_progress", "output": []}
    start |= {k: None for k in ("usage", "error", "incomplete_details") if k in response}
    told: list[tuple[str, Facts]] = [
        ("response.created", {"response": start}),
        ("response.in_progress", {"response": start}),
    ]
    cut = bool(body.get("stream_cut") or body.get("stream_error"))
    for index, item in enumerate(objects(body.get("output"))):
        told += _item(index, item, cut=cut)
    if body.get("stream_error"):
        told.append(("error", mapping(body["stream_error"])))
    elif not cut and body.get("status", "completed") in _ENDS:
        told.append((f"response.{body.get('status', 'completed')}", {"response": response}))
    return [named({**more, "type": kind, "sequence_number": n}) for n, (kind, more) in enumerate(told)]


def _item(index: int, item: Facts, *, cut: bool) -> Iterator[tuple[str, Facts]]:
    kind = str(item.get("type"))
    key, stem = _TEXTS.get(kind, (None, ""))
    first = {**item, **({"status": "in_progress"} if "status" in item else {}), **({key: ""} if key else {})}
    lists = [name for name in _LISTS if kind in ("message", "reasoning") and isinstance(item.get(name), list)]
    yield "response.output_item.added", {"output_index": index, "item": first | {name: [] for name in lists}}
    place = {"output_index": index, "item_id": item.get("id")}
    if key:
        yield from _text(place, stem, key, item.get(key), {})
    for name in lists:
        for number, part in enumerate(objects(item[name])):
            yield from _part(place, name, number, part)
    if not (cut and item.get("status") in ("in_progress", "incomplete")):
        yield "response.output_item.done", {"output_index": index, "item": item}


def _part(place: Facts, name: str, number: int, part: Facts) -> Iterator[tuple[str, Facts]]:
    index_key, stem = _LISTS[name]
    here = {**place, index_key: number}
    key, texts = _PART_TEXTS.get(str(part.get("type")), (None, ""))
    empty = {**part, **({key: ""} if key else {}), **({"annotations": []} if "annotations" in part else {})}
    yield f"{stem}.added", {**here, "part": empty}
    if key:
        logged: Facts = {"logprobs": []} if texts == "response.output_text" else {}
        yield from _text(here, texts, key, part.get(key), logged)
    for position, annotation in enumerate(objects(part.get("annotations"))):
        told = {**here, "annotation_index": position, "annotation": annotation}
        yield "response.output_text.annotation.added", told
    yield f"{stem}.done", {**here, "part": part}


def _text(place: Facts, stem: str, key: str, text: Any, more: Facts) -> Iterator[tuple[str, Facts]]:
    for piece in pieces(text):
        yield f"{stem}.delta", {**place, **more, "delta": piece}
    yield f"{stem}.done", {**place, **more, key: text}
