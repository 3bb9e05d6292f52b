"""Bedrock Converse bodies in the shape of Anthropic's blocks, which everything here can show.

Nothing is dropped: a block without a counterpart keeps its own key as its type (`{"image": x}` becomes
`{"type": "image", "image": x}`), members that nobody here knows stay beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model import Usage
from ...providers.answer import RequestParts, count, mapping, objects, text_of

PROVIDER = "aws"
BLOCKS = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint"})

_NOT_PARAMS = frozenset({"messages", "system", "toolConfig"})


def is_block(block: Any) -> bool:
    """True for a content block of Converse: one key that says its kind, and no ``type``."""
    return isinstance(block, dict) and "type" not in block and not BLOCKS.isdisjoint(block)


def request(body: Mapping[str, Any], model: str | None = None) -> RequestParts:
    """The parts of a request beside its messages; the model stands in the URL."""
    config = mapping(body.get("toolConfig"))
    params = {k: v for k, v in body.items() if k not in _NOT_PARAMS}
    if len(config) > 1:
        params["toolConfig"] = {k: v for k, v in config.items() if k != "tools"}
    system = body.get("system")
    return RequestParts(
        model=model or text_of(body.get("modelId")),
        system=[_block(b) for b in system] if isinstance(system, list) else system,
        tools=[_tool(t) for t in objects(config.get("tools"))] or None,
        params=params,
    )


def message(value: Any) -> Any:
    """A message with its blocks converted."""
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return value
    return {**value, "content": [_block(b) for b in value["content"]]}


def response(body: Mapping[str, Any], model: str | None = None) -> dict[str, Any]:
    """A response as a Message; metrics, trace and the like stay beside."""
    said = mapping(mapping(body.get("output")).get("message"))
    found: dict[str, Any] = {"type": "message", "role": "assistant", "content": message(said).get("content", [])}
    if model:
        found["model"] = model
    found["stop_reason"] = body.get("stopReason")
    raw = body.get("usage")
    if isinstance(raw, dict):
        found["usage"] = {k: v for k, v in _counts(raw).items() if v is not None}
    return found | {k: v for k, v in body.items() if k not in ("output", "stopReason", "usage")}


def usage(body: Mapping[str, Any]) -> Usage:
    """Tokens of a response: the three inputs are disjoint, as with Anthropic."""
    raw = body.get("usage")
    if not isinstance(raw, dict):
        return Usage()
    counts = _counts(raw)
    return Usage(
        input=counts["input_tokens"],
        cache_read=counts["cache_read_input_tokens"],
        cache_write_5m=counts["cache_creation_input_tokens"],
        output=counts["output_tokens"],
        origin="recorded",
        raw=raw,
    )


def _counts(raw: Mapping[str, Any]) -> dict[str, int | None]:
    def first(*names: str) -> int | None:
        return next((c for c in (count(raw.get(n)) for n in names) if c is not None), None)

    return {
        "input_tokens": first("inputTokens"),
        "output_tokens": first("outputTokens"),
        "cache_read_input_tokens": first("cacheReadInputTokens", "cacheReadInputTokenCount"),
        "cache_creation_input_tokens": first("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
    }


def _block(block: Any) -> Any:
    if not is_block(block):
        return block
    if isinstance(block.get("text"), str):
        return {"type": "text", **block}
    if isinstance(block.get("toolUse"), dict):
        use = block["toolUse"]
        rest = {k: v for k, v in use.items() if k not in ("toolUseId", "name", "input")}
        return {
            "type": "tool_use",
            "id": use.get("toolUseId"),
            "name": use.get("name"),
            "input": use.get("input"),
            **rest,
        }
    if isinstance(block.get("toolResult"), dict):
        return _result(block["toolResult"])
    thought = mapping(mapping(block.get("reasoningContent")).get("reasoningText"))
    if isinstance(thought.get("text"), str):
        return {"type": "thinking", "thinking": thought["text"], **{k: v for k, v in thought.items() if k != "text"}}
    return {"type": next(k for k in block if k in BLOCKS), **block}


def _result(result: Mapping[str, Any]) -> dict[str, Any]:
    content = result.get("content")
    found: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.get("toolUseId")}
    found["content"] = [_part(p) for p in content] if isinstance(content, list) else content
    if result.get("status") is not None:
        found["is_error"] = result["status"] == "error"
    return found | {k: v for k, v in result.items() if k not in ("toolUseId", "content", "status")}


def _part(part: Any) -> Any:
    if isinstance(part, dict) and "type" not in part and "json" in part:
        return {"type": "json", **part}
    return _block(part)


def _tool(tool: Mapping[str, Any]) -> Any:
    spec = mapping(tool.get("toolSpec"))
    if not isinstance(spec.get("name"), str):
        return tool
    rest = {k: v for k, v in spec.items() if k != "inputSchema"}
    return {**rest, "input_schema": mapping(spec.get("inputSchema")).get("json")}
