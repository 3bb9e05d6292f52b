"""Arguments that fit a schema, made from the given ones as far as they will do: what a valid retry looks like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 4
_PLAIN = {"string": "...", "integer": 1, "number": 1.0, "boolean": True, "null": None}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip


def example(schema: Mapping[str, Any] | None, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments for this schema: what was given where it fits, examples for what is missing. None without a schema."""
    if not isinstance(schema, Mapping):
        return None
    made = _object(schema, given, schema, 0)
    return made if isinstance(made, dict) else None


def _object(schema: Mapping[str, Any], given: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    told = given if isinstance(given, Mapping) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    required = [r for r in required if isinstance(r, str)] if isinstance(required, list) else []
    made: dict[str, Any] = {}
    for name, part in properties.items():
        if name in told:
            made[name] = _value(part, told[name], root, depth + 1)
        elif name in required:
            made[name] = _value(part, None, root, depth + 1)
    for name in required:
        made.setdefault(name, told.get(name, "..."))
    if schema.get("additionalProperties") is not False:
        made.update({k: v for k, v in told.items() if k not in properties})
    return made


def _value(schema: Any, given: Any, root: Mapping[str, Any], depth: int) -> Any:
    """The given value if it fits as far as we look, else an example."""
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return given if given in choices else choices[0]
    for form in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(form), list) and schema[form]:
            return _value({**schema[form][0]} if isinstance(schema[form][0], dict) else {}, given, root, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in schema:
        return _object(schema, given, root, depth) if depth < MAX_DEPTH else {}
    if kind == "array":
        items = given if isinstance(given, list) else [None] * max(1, int(schema.get("minItems") or 0))
        return [_value(schema.get("items"), item, root, depth + 1) for item in items[:20]] if depth < MAX_DEPTH else []
    if _is(given, kind):
        return _inside(schema, given)
    converted = _converted(kind, given)
    if converted is not None:
        return _inside(schema, converted)
    fallback = schema.get("default", (schema.get("examples") or [None])[0])
    return fallback if fallback is not None else _inside(schema, _PLAIN.get(str(kind), "..."))


def _inside(schema: Mapping[str, Any], value: Any) -> Any:
    """A number brought between its bounds, a text to its length."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        for bound, pick in (("minimum", max), ("maximum", min)):
            limit = schema.get(bound)
            if isinstance(limit, (int, float)):
                value = pick(value, limit)
        return value
    if isinstance(value, str):
        longest, least = schema.get("maxLength"), schema.get("minLength")
        value = value[:longest] if isinstance(longest, int) else value
        return value.ljust(least, ".") if isinstance(least, int) else value
    return value


def _is(value: Any, kind: Any) -> bool:
    if value is None or (isinstance(value, bool) and kind in ("integer", "number")):
        return bool(kind == "null")
    return kind is None or isinstance(value, _TYPES.get(str(kind), (object,)))


def _converted(kind: Any, given: Any) -> Any:
    """``"5"`` where 5 is wanted, 5 where ``"5"`` is: the commonest slip."""
    try:
        if kind == "integer" and isinstance(given, str):
            return int(given)
        if kind == "number" and isinstance(given, str):
            return float(given)
        if kind == "string" and isinstance(given, (int, float)) and not isinstance(given, bool):
            return str(given)
        if kind == "boolean" and isinstance(given, str) and given.lower() in ("true", "false"):
            return given.lower() == "true"
    except ValueError:
        return None
    return None


def _resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with its local reference followed."""
    for _ in range(8):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        found: Any = root
        for step in reference[2:].split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        schema = found
    return dict(schema) if isinstance(schema, Mapping) else {}
