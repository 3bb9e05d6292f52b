"""A model that says what a script tells it: a JSON file, a list of answers, or a function of the request."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....tracer.errors import LooptapeError, UsageError
from ..dialects import response_body
from .protocol import ModelAnswer, ModelError, ModelMiss

Script = Sequence[Any] | Callable[[Mapping[str, Any]], Any]
_SHORT = frozenset({"text", "calls", "usage", "stop", "model", "error"})


class Scripted:
    """Answers from a script, one entry a request, in any wire format.

    An entry is a whole response body; or ``{"text", "calls": [{"name", "arguments", "id"}], "usage", "stop"}``; or a
    text; or ``{"error": {"status", "message", "retry_after"}}``, which fails. A function is given the request's body
    and gives such an entry.
    """

    apis: tuple[str, ...] = ()
    """Any wire format."""
    limited_as: str | None = None
    """Nothing limits a script."""

    def __init__(self, script: Script, *, source: str | None = None, made: int = 0) -> None:
        self._script = script
        self._source = source
        self._next = made
        self._lock = threading.Lock()

    def ask(self, body: Mapping[str, Any], *, api: str, turn: int, timeout: float) -> ModelAnswer:
        """The next entry.

        Raises:
            ModelError: The entry says so.
            ModelMiss: The script is over.
        """
        with self._lock:
            index, self._next = self._next, self._next + 1
        if callable(self._script):
            entry = self._script(body)
        elif index < len(self._script):
            entry = self._script[index]
        else:
            count = len(self._script)
            said = f"{self._source or 'the script'} has {count} answer{'' if count == 1 else 's'}"
            raise ModelMiss(f"{said}, turn {turn} asks for one more. Add an answer, or lower --max-turns")
        return ModelAnswer(_answer(entry, body, api, turn))

    def spec(self) -> dict[str, Any]:
        """The file, or the answers themselves; a function cannot be found again."""
        if self._source is not None:
            return {"kind": "scripted", "source": self._source}
        return {"kind": "scripted", "answers": None if callable(self._script) else list(self._script)}

    def fresh(self, turns_made: int = 0) -> Scripted:
        """The same script from its beginning, or after so many answers."""
        return Scripted(self._script, source=self._source, made=turns_made)

    def close(self) -> None:
        """Nothing to let go of."""


def load(reference: str) -> Scripted:
    """The script in a file (a JSON list, or JSON Lines), or the list or function at ``module:NAME``.

    Raises:
        UsageError: There is no such file or name.
        LooptapeError: The file is no script (exit 3).
    """
    path = Path(reference)
    if path.is_file():
        return Scripted(_entries(path), source=str(path.resolve()))
    module, _, name = reference.partition(":")
    if not name:
        raise UsageError("no-script", f"there is no script {reference}", "Give a JSON file, or MODULE:NAME")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError("no-script", f"{reference} cannot be loaded ({error})") from None
    if not callable(found) and not isinstance(found, (list, tuple)):
        raise UsageError("no-script", f"{reference} is {type(found).__name__}, no list of answers and no function")
    return Scripted(found, source=reference)


def _entries(path: Path) -> list[Any]:
    text = path.read_text("utf-8")
    try:
        value = json.loads(text)
        listed = value if isinstance(value, list) else [value]
    except ValueError:
        try:
            listed = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            said = f"{path} is neither a JSON list nor JSON Lines ({error})"
            raise LooptapeError("bad-script", said, "One answer an entry") from None
    return listed


def _answer(entry: Any, body: Mapping[str, Any], api: str, turn: int) -> dict[str, Any]:
    if isinstance(entry, str):
        entry = {"text": entry}
    if not isinstance(entry, dict):
        raise ModelMiss(f"the script's answer for turn {turn} is {type(entry).__name__}, no object and no text")
    if not set(entry) <= _SHORT:
        return dict(entry)
    error = entry.get("error")
    if error is not None:
        told: dict[str, Any] = error if isinstance(error, dict) else {"message": str(error)}
        status = told.get("status")
        transient = told.get("transient", status in (408, 409, 429) or (isinstance(status, int) and status >= 500))
        raise ModelError(
            str(told.get("message") or f"scripted failure {status or ''}".strip()),
            status=status,
            kind=str(told.get("type") or "scripted_error"),
            transient=bool(transient),
            retry_after=told.get("retry_after"),
            too_long=bool(told.get("too_long")),
        )
    return response_body(
        api,
        text=entry.get("text"),
        calls=entry.get("calls") or (),
        turn=turn,
        usage=entry.get("usage"),
        model=entry.get("model") or body.get("model") or "scripted",
        stop=entry.get("stop"),
    )
