"""The JSON Schema of a function's arguments, from its signature and type hints."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

KEY = "idempotency_key"
"""A parameter of this name is filled by the loop, with the same text in every attempt of a call."""

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(function: Callable[..., Any]) -> tuple[dict[str, Any] | None, bool]:
    """Schema of the arguments, and whether it takes an idempotency key. No schema where there is no signature."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None, False
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # hints that name what is not there
        hints = {}
    properties: dict[str, Any] = {}
    required: list[str] = []
    open_end = keyed = False
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            open_end = True
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        elif name == KEY:
            keyed = True
        else:
            properties[name] = of_hint(hints.get(name, Any))
            if parameter.default is inspect.Parameter.empty:
                required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if not open_end:
        schema["additionalProperties"] = False
    return schema, keyed


def of_hint(hint: Any) -> dict[str, Any]:
    """The schema of one type; an empty one allows anything."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        schema = of_hint(arguments[0])
        told = next((a for a in arguments[1:] if isinstance(a, str)), None)
        return {**schema, "description": told} if told else schema
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_hint(a) for a in arguments]}
    if hint in (list, tuple, set) or origin in (list, tuple, set, frozenset, Sequence):
        items = [a for a in arguments if a is not Ellipsis]
        return {"type": "array", **({"items": of_hint(items[0])} if len(items) == 1 else {})}
    if hint is dict or origin in (dict, Mapping):
        return {"type": "object"}
    make = getattr(hint, "model_json_schema", None)
    if callable(make):
        made = make()
        return made if isinstance(made, dict) and "$defs" not in made else {"type": "object"}
    return {}
