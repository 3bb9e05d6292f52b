"""What a tool's result was in Python where JSON does not say it, and the same object made again on replay.

A shape is JSON: None for a text; ``{"is": TYPE}`` else, where TYPE is ``json`` for what JSON holds as it is, or
``module.QualName``; what is inside and no plain JSON has its own shape, ``all`` for every item or ``in`` by key.
``text`` says that the record of it is a text, and no JSON in a text.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

from . import tape

Shape = Mapping[str, Any]

_DEEP = 60
_MOST = 10_000
"""Values that are looked at in one result: some milliseconds; what is beyond comes back as its JSON."""
_PLAIN = (str, bool, int, float, type(None))
_OTHER_KEYS = "dict[int]"


def shape(value: Any) -> dict[str, Any] | None:
    """The shape of a tool's result; None for a text."""
    if isinstance(value, str):
        return None
    made = _Look().shape(value) or {"is": "json"}
    if not isinstance(value, (dict, list, tuple, *_PLAIN)) and isinstance(tape.plain(value), str):
        made["text"] = True
    return made


class _Look:
    """One look at a result: not into itself again, not deeper and not longer than is worth it."""

    def __init__(self) -> None:
        self._within: set[int] = set()
        self._left = _MOST

    def shape(self, value: Any) -> dict[str, Any] | None:
        """The shape of a value; None where its JSON says all, and beyond the bounds."""
        if isinstance(value, _PLAIN) or len(self._within) > _DEEP or id(value) in self._within or self._left <= 0:
            return None
        self._left -= 1
        self._within.add(id(value))
        try:
            return self._of(value)
        finally:
            self._within.discard(id(value))

    def _of(self, value: Any) -> dict[str, Any] | None:
        inside: dict[str, Any] = {}
        if isinstance(value, dict):
            inside = self._parts(list(value.items()))
            kind = _OTHER_KEYS if value and all(type(k) is int for k in list(value)) else None
        elif isinstance(value, (list, tuple, set, frozenset)):
            inside = self._parts(enumerate(list(value)))
            kind = None if isinstance(value, list) else _name(type(value))
            if inside and len(inside) == len(value) and all(s == inside["0"] for s in inside.values()):
                return {"is": kind or "json", "all": inside["0"]}
        elif dataclasses.is_dataclass(value):
            inside = self._parts(tape.fields(value).items())
            kind = _name(type(value))
        else:
            kind = _name(type(value))
        if kind is None and not inside:
            return None
        return {"is": kind or "json", **({"in": inside} if inside else {})}

    def _parts(self, items: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        return {str(k): s for k, v in items if (s := self.shape(v))}


def _name(kind: type) -> str:
    module = "pathlib" if kind.__module__ == "pathlib._local" else kind.__module__  # where Python 3.13 keeps it
    return f"{module}.{kind.__qualname__}"


class Lost(Exception):
    """A type that cannot be made again here. Its text is the type's name."""


def again(value: Any, made: Shape | None) -> tuple[Any, tuple[str, ...]]:
    """A recorded result as the tool gave it.

    Args:
        value: The result as JSON; or the text of that JSON, which is what the model saw.
        made: Its shape.

    Returns:
        The result, and names of types in it that cannot be made again: what JSON holds of them stands there.
    """
    if not isinstance(made, Mapping):
        return value, ()
    lost: dict[str, None] = {}
    if isinstance(value, str) and not made.get("text"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return _made(value, made, lost), tuple(lost)
    return _made(value, made, lost), tuple(lost)


def _made(value: Any, made: Shape, lost: dict[str, None]) -> Any:
    within, every = made.get("in"), made.get("all")
    if isinstance(value, list) and isinstance(every, Mapping):
        value = [_made(v, every, lost) for v in value]
    elif isinstance(within, Mapping) and isinstance(value, list):
        value = [_made(v, s, lost) if (s := within.get(str(i))) else v for i, v in enumerate(value)]
    elif isinstance(within, Mapping) and isinstance(value, dict):
        value = {k: _made(v, s, lost) if (s := within.get(k)) else v for k, v in value.items()}
    kind = str(made.get("is"))
    if kind == "json":
        return value
    try:
        return _one(kind, value)
    except Exception:  # a class that is not here, or that has changed
        lost[kind] = None
        return value


def _one(kind: str, value: Any) -> Any:
    if kind == _OTHER_KEYS:
        return {int(k): v for k, v in value.items()}
    if kind in _TEXTS:
        return _TEXTS[kind](value)
    found = _found(kind)
    if found is None:
        raise Lost(kind)
    if issubclass(found, Enum):
        return found(value)
    if dataclasses.is_dataclass(found):
        return _with(found, value)
    if issubclass(found, tuple):
        return found(*value) if hasattr(found, "_fields") else found(value)
    if issubclass(found, (set, frozenset)):
        return found(value)
    return _model(found, value)


def _with(found: type, values: Mapping[str, Any]) -> Any:
    """An instance with these fields; its ``__init__`` does not run a second time."""
    made: Any = object.__new__(found)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _model(found: Any, value: Any) -> Any:
    """An instance of a pydantic model (what was None was left out of the record)."""
    fields = found.model_fields
    missing = {n: None for n, f in fields.items() if n not in value and f.is_required()}
    try:
        return found.model_validate({**missing, **value}, by_alias=True, by_name=True)
    except TypeError:  # pydantic before 2.11
        return found.model_validate({**missing, **value})


def _found(kind: str) -> type | None:
    """A class by its full name, where its module is loaded."""
    parts = kind.split(".")
    for at in range(len(parts) - 1, 0, -1):
        value: Any = sys.modules.get(".".join(parts[:at]))
        if value is not None:
            for step in parts[at:]:
                value = getattr(value, step, None)
            return value if isinstance(value, type) else None
    return None


_TEXTS: dict[str, Any] = {
    "datetime.datetime": datetime.fromisoformat,
    "datetime.date": date.fromisoformat,
    "datetime.time": time.fromisoformat,
    "builtins.bytes": lambda text: text.encode("utf-8"),
    "decimal.Decimal": Decimal,
    "uuid.UUID": UUID,
    "pathlib.PosixPath": Path,
    "pathlib.WindowsPath": Path,
    "pathlib.PurePosixPath": PurePosixPath,
    "pathlib.PureWindowsPath": PureWindowsPath,
}
"""Types whose record is one text, and how they are made of it."""
