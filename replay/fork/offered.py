"""Tool definitions where the recording has none: derived from the arguments that were seen, only when asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .paths import tool_name

_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object"))


def seen_tools(calls: Iterable[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """A JSON schema per tool out of (name, arguments as JSON text): every name seen, required where always there."""
    arguments: dict[str, list[Mapping[str, Any]]] = {}
    for name, raw in calls:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        found = arguments.setdefault(name, [])
        if isinstance(value, dict):
            found.append(value)
    return {name: _schema(found) for name, found in arguments.items() if name}


def definitions(api: str, schemas: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tool definitions of a provider with these schemas; the description says where they come from."""
    said = "Its definition is not in the recording: these are the arguments that it was called with."
    if api == "openai.chat":
        return [
            {"type": "function", "function": {"name": n, "description": said, "parameters": dict(s)}}
            for n, s in schemas.items()
        ]
    if api == "openai.responses":
        return [{"type": "function", "name": n, "description": said, "parameters": dict(s)} for n, s in schemas.items()]
    return [{"name": n, "description": said, "input_schema": dict(s)} for n, s in schemas.items()]


def names_of(tools: Any) -> list[str]:
    """The names in a request's tool definitions, in their order."""
    found: list[str] = []
    for tool in tools if isinstance(tools, list) else []:
        declared = tool.get("functionDeclarations") if isinstance(tool, dict) else None
        found += [n for t in (declared if isinstance(declared, list) else [tool]) if (n := tool_name(t))]
    return list(dict.fromkeys(found))


def _schema(seen: list[Mapping[str, Any]]) -> dict[str, Any]:
    properties: dict[str, dict[str, Any]] = {}
    for given in seen:
        for key, value in given.items():
            kind = next((word for type_, word in _TYPES if isinstance(value, type_)), None)
            known = properties.setdefault(key, {})
            if kind and known.get("type") not in (None, kind):
                known["type"] = "number" if {known["type"], kind} == {"integer", "number"} else None
            elif kind and "type" not in known:
                known["type"] = kind
    for known in properties.values():
        if known.get("type") is None:
            known.pop("type", None)
    required = sorted(k for k in properties if seen and all(k in given for given in seen))
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}
