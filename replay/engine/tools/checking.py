"""Is this a call that can be run? Its name, its arguments as JSON, its arguments against the schema."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ....tracer.errors import UsageError
from ..toolbox import SEPARATOR, Definition
from .example import example
from .telling import Failure

_SPLIT = re.compile(rf"{SEPARATOR}|[./:]")
MAX_ARGUMENTS = 4 << 20


def resolve(name: str, known: Mapping[str, Definition], offered: Collection[str]) -> str | Failure:
    """The name of the tool that a call means. A bare name means the one tool of any namespace that is called so.

    Args:
        known: Every tool there is.
        offered: Names that the model was shown in this turn.
    """
    if name in offered:
        return name
    bare = _SPLIT.split(name)[-1]
    same = [
        n for n in offered if n == bare or _SPLIT.split(n)[-1] == name or _SPLIT.sub(".", n) == _SPLIT.sub(".", name)
    ]
    if len(same) == 1 and name.strip():
        return same[0]
    if len(same) > 1:
        listed = ", ".join(sorted(same))
        return Failure("ambiguous_call", f"{name} may mean {listed}", argument="name", retry=f"call one of: {listed}")
    if name in known:
        return Failure(
            "unknown_tool",
            f"{name} is not offered in this turn",
            argument="name",
            retry=f"offered now: {_some(offered)}",
        )
    near = difflib.get_close_matches(name, list(offered), n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the tools are: {_some(offered)}"
    return Failure("unknown_tool", f"there is no tool {name!r}", argument="name", retry=hint if offered else None)


def read_arguments(raw: str, definition: Definition) -> dict[str, Any] | Failure:
    """The arguments of a call as JSON; a name that stands there twice makes them ambiguous."""
    if len(raw) > MAX_ARGUMENTS:
        return Failure("malformed_arguments", f"{len(raw)} characters of arguments are too many")
    try:
        value = json.loads(raw, object_pairs_hook=_object, parse_constant=_no_constant)
    except _Twice as twice:
        cause = f"the argument {twice.name} is given twice with different values: which one is meant?"
        return Failure("ambiguous_call", cause, argument=twice.name, retry=example(definition.schema, {}))
    except (ValueError, RecursionError) as error:
        cause = f"the arguments are not valid JSON ({error})"
        return Failure("malformed_arguments", cause, retry=example(definition.schema, {}))
    if not isinstance(value, dict):
        cause = f"the arguments are {_kind(value)}, not a JSON object"
        return Failure("malformed_arguments", cause, retry=example(definition.schema, {}))
    return value


def check(arguments: Mapping[str, Any], definition: Definition) -> Failure | None:
    """What is wrong with arguments, judged by the tool's schema; None when nothing is, or nobody knows a schema."""
    if definition.schema is None:
        return None
    validator = _validator(json.dumps(definition.schema, sort_keys=True))
    if validator is None:
        return None
    errors = sorted(validator.iter_errors(dict(arguments)), key=lambda e: (len(e.absolute_path), str(e.absolute_path)))
    if not errors:
        return None
    causes = [_cause(e) for e in errors[:3]]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    retry: Any = example(definition.schema, arguments)
    if retry is not None and next(validator.iter_errors(retry), None) is not None:
        retry = None  # what we cannot make valid we do not recommend
    if retry is None:
        retry = f"arguments must fit {json.dumps(definition.schema, ensure_ascii=False)}"
    kind = (
        "ambiguous_call" if errors[0].validator == "oneOf" and "more than one" in causes[0][1] else "invalid_arguments"
    )
    return Failure(kind, "; ".join(c[1] for c in causes) + more, argument=causes[0][0], retry=retry)


def check_schemas(definitions: Sequence[Definition]) -> list[str]:
    """Names of tools whose schema cannot be used to check arguments: said before anything runs."""
    return [
        d.name for d in definitions if d.schema is not None and _validator(json.dumps(d.schema, sort_keys=True)) is None
    ]


@lru_cache(maxsize=512)
def _validator(schema_text: str) -> Any | None:
    """A validator that follows no reference out of the schema (never the network); None for a bad schema."""
    try:
        from jsonschema import exceptions, validators
        from referencing import Registry
    except ImportError:
        raise UsageError(
            "no-jsonschema",
            "arguments of tools are checked with the package jsonschema, which is not installed",
            "pip install jsonschema",
        ) from None
    schema = json.loads(schema_text)
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        kind.check_schema(schema)
        made = kind(schema, registry=Registry())
        next(made.iter_errors({}), None)  # an unresolvable reference shows here, not in the middle of a run
    except (exceptions.SchemaError, RecursionError):
        return None
    except Exception:  # references of any library's kind that lead nowhere
        return None
    return made


def _cause(error: Any) -> tuple[str | None, str]:
    """The argument to blame and a sentence."""
    path = ".".join(str(p) for p in error.absolute_path)
    if error.validator == "required":
        missing = re.match(r"'(.+?)' is a required", error.message)
        name = missing.group(1) if missing else None
        where = f"{path}.{name}" if path and name else name
        return where, f"{where or 'an argument'} is missing"
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        extra = [k for k in error.instance if k not in error.schema.get("properties", {})]
        return (extra[0] if extra else path or None), f"unknown argument {', '.join(extra) or path}"
    if error.validator == "oneOf" and "valid under each of" in error.message:
        return path or None, f"{path or 'the arguments'} fit more than one of the allowed forms"
    got = json.dumps(error.instance, ensure_ascii=False, default=str)
    shown = got if len(got) <= 60 else got[:57] + "..."
    wanted = f"{error.validator} {json.dumps(error.validator_value, ensure_ascii=False, default=str)}"
    wanted = wanted if len(wanted) <= 120 else f"{error.validator}"
    return path or None, f"{path or 'the arguments'}: {shown} does not fit {wanted}"


class _Twice(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise _Twice(name)
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def _some(names: Collection[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:20]) + (f" and {len(listed) - 20} more" if len(listed) > 20 else "")
