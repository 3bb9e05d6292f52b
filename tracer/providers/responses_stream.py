"""OpenAI Responses streams: ``response.*`` events into the response object they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .answer import decoded, index_of, mapping, objects

_LAST = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

# Delta events whose text grows a plain key of the item.
_ITEM_TEXTS = {
    "response.function_call_arguments": "arguments",
    "response.mcp_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
    "response.code_interpreter_call_code": "code",
}
# Delta events whose text grows a part: the item's list, the event's index, the part's type and key.
_PART_TEXTS = {
    "response.output_text": ("content", "content_index", "output_text", "text"),
    "response.refusal": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("summary", "summary_index", "summary_text", "text"),
}


def assemble(events: Sequence[tuple[str | None, str]]) -> tuple[Any, bool]:
    """The response of the last event, or what came before the cut, marked ``stream_cut``.

    Items that were not finished have status ``in_progress``; an error event is kept as ``stream_error``.
    """
    body: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    whole = False
    for _, data in events:
        event = decoded(data)
        kind = event.get("type")
        if not isinstance(kind, str):
            continue
        if isinstance(event.get("response"), dict):
            body = {**body, **event["response"]}
            whole = whole or kind in _LAST
        elif kind in ("response.output_item.added", "response.output_item.done"):
            _put(items, event, done=kind.endswith("done"))
        elif kind == "error":
            nested = event.get("error")
            told = nested if isinstance(nested, dict) else {k: event.get(k) for k in ("code", "message", "param")}
            body["stream_error"] = told
        else:
            _grow(items, kind, event)
    if not body and not items:
        return None, False
    if not objects(body.get("output")):  # cut, or a server whose last event leaves the output out
        body["output"] = [items[i] for i in sorted(items)]
    if not whole:
        body["stream_cut"] = True
    return body, whole


def _put(items: dict[int, dict[str, Any]], event: Mapping[str, Any], *, done: bool) -> None:
    if isinstance(event.get("item"), dict):
        item = dict(event["item"])
        if not done:
            item.setdefault("status", "in_progress")
        items[index_of(event, "output_index")] = item


def _grow(items: dict[int, dict[str, Any]], kind: str, event: Mapping[str, Any]) -> None:
    """A delta or done event of an item: deltas append, done events say the whole text."""
    stem, _, verb = kind.rpartition(".")
    item = items.get(index_of(event, "output_index"))
    if item is None or verb not in ("delta", "done"):
        return
    if stem in _ITEM_TEXTS:
        _extend(item, _ITEM_TEXTS[stem], event, verb)
    elif stem in _PART_TEXTS:
        list_key, index_key, part_type, key = _PART_TEXTS[stem]
        _extend(_part(item, list_key, index_of(event, index_key), part_type), key, event, verb)


def _extend(target: dict[str, Any], key: str, event: Mapping[str, Any], verb: str) -> None:
    text = event.get("delta") if verb == "delta" else event.get(key)
    if isinstance(text, str):
        old = target.get(key)
        target[key] = old + text if verb == "delta" and isinstance(old, str) else text


def _part(item: dict[str, Any], list_key: str, index: int, part_type: str) -> dict[str, Any]:
    """The part at this index, made when no event announced it. Indexes far beyond the list get the next place."""
    parts = objects(item.get(list_key))
    if 0 <= index < len(parts):
        part = dict(parts[index])
        parts[index] = part
    else:
        part = {"type": part_type}
        parts.append(part)
    item[list_key] = parts
    return mapping(part)
