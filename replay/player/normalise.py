"""The normal form of requests: equal for two that ask the same by the rules of the match mode."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Literal

from ...tracer.canonical import canonical, digest
from ...tracer.errors import UsageError
from .recorded import RecordedRuns
from .rules import REMINDERS, Surroundings, Where, around, steps
from .settings import Match

Part = Literal["system", "tools", "params"]
PARTS: tuple[Part, ...] = ("system", "tools", "params")

CACHE_CONTROL, BLOCKS, TOOL_ORDER, IDS_BY_NAME = "cache-control", "string-or-blocks", "tool-order", "ids"

_DATA = frozenset({"input", "arguments", "args", "input_schema", "parameters", "schema", "action", "operation"})
_CONTENT = ("content", "output")
_TEXT = ("text", "input_text", "output_text")
_ID_NAMES = frozenset({"user_id", "session_id", "conversation_id", "request_id", "trace_id", "run_id", "thread_id"})
CLIENT = "client_metadata"
"""What a program tells the provider of itself, its turn and its session (Codex); the model does not see it."""
_ID_PARAMS = frozenset({"user", "safety_identifier", "prompt_cache_key"})
SAMPLING = frozenset(
    {
        "temperature", "top_p", "top_k", "seed", "max_tokens", "max_completion_tokens", "max_output_tokens", "stop",
        "stop_sequences", "frequency_penalty", "presence_penalty", "logit_bias", "thinking", "reasoning",
        "reasoning_effort", "verbosity",
    }
)  # fmt: skip
PROMPTERS = ("system", "developer")


class NotJson(ValueError):
    """A request holds what JSON has no word for (NaN, Infinity), or is none at all."""


def decoded(text: str) -> Any:
    """A JSON text's value.

    Raises:
        NotJson: It holds NaN or an infinity, or is no JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except NotJson:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson(f"no JSON ({error})") from None


def _refuse(name: str) -> Any:
    raise NotJson(f"{name}, which JSON does not have (a server refuses it)")


class Normaliser:
    """Brings messages and parts into normal form. ``match``: exact knows no rule, dialogue knows one more."""

    def __init__(
        self,
        match: Match = "normalised",
        surroundings: Surroundings | None = None,
        users: Sequence[tuple[str, Callable[[str], str]]] = (),
    ) -> None:
        self.match = match
        self._steps = () if match == "exact" else steps(surroundings or Surroundings(), users)

    def text(self, text: str, where: Where = "open") -> str:
        """A text with placeholders for what may differ."""
        for _, step in self._steps:
            text, _ = step(text, where)
        return text

    def used(self, recorded: str, got: str, where: Where) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The rules by which two texts are equal, and the ids that stand for each other; nothing when they are not."""
        names: list[str] = []
        pairs: list[tuple[str, str]] = []
        for name, step in self._steps:
            differ = recorded != got
            recorded, left = step(recorded, where)
            got, right = step(got, where)
            if left != right or (differ and recorded == got):  # the same reminder, at another place
                names.append(name)
                if name == IDS_BY_NAME and len(left) == len(right):
                    pairs += [(a, b) for a, b in zip(left, right, strict=True) if a != b]
        return (tuple(names), tuple(pairs)) if recorded == got else ((), ())

    def digest_message(self, text: str) -> str:
        """What two messages have in common that are the same."""
        return digest(canonical(self.message(decoded(text))))

    def digest_part(self, part: Part, text: str | None) -> str | None:
        """The same for system, tools or parameters."""
        return None if text is None else digest(canonical(self.part(part, decoded(text))))

    def message(self, value: Any) -> Any:
        """The normal form of a message."""
        if self.match == "exact":
            return value
        if self.match == "dialogue" and isinstance(value, dict) and value.get("role") in PROMPTERS:
            return {"role": value["role"]}
        return self._walk(value, "open")

    def part(self, part: Part, value: Any) -> Any:
        """The normal form of system, tools or parameters."""
        if self.match == "exact":
            return value
        if part == "system":
            return "<system>" if self.match == "dialogue" else self._walk(self.blocks(value), "open")
        if part == "tools":
            return self._tools(value)
        return self._params(value)

    def _tools(self, value: Any) -> Any:
        if self.match == "dialogue":
            value = without_descriptions(value)
        walked = self._walk(value, "open")
        return sorted(walked, key=canonical) if isinstance(walked, list) else walked

    def _params(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return self._walk(value, "data")
        kept = {
            k: v for k, v in value.items() if not (self.match == "dialogue" and k in SAMPLING) and k != "cache_control"
        }
        return {k: "<id>" if is_id_name(k, v, top=True) else self._param(k, v) for k, v in kept.items()}

    def _param(self, name: str, value: Any) -> Any:
        if name == CLIENT and isinstance(value, dict):
            return dict.fromkeys(value, "<id>")
        if name == "metadata" and isinstance(value, dict):
            return {k: "<id>" if is_id_name(k, v) else self._walk(v, "data") for k, v in value.items()}
        return self._walk(value, "data")

    def _walk(self, value: Any, where: Where) -> Any:
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, list):
            items = self.speaking(value, where)
            return [self._walk(v, where) for v in items]
        if not isinstance(value, dict):
            return value
        return {
            k: self._walk(self.member(k, v, where), inside(value, k, where))
            for k, v in value.items()
            if not is_mark(k, where)
        }

    def member(self, key: str, value: Any, where: Where) -> Any:
        """A member as it is compared: content that is a string becomes the block that it stands for."""
        return self.blocks(value) if where == "open" and key in _CONTENT else value

    def blocks(self, value: Any) -> Any:
        """Content as blocks, those of plain text all of one type."""
        if isinstance(value, str):
            return [{"type": "text", "text": value}]
        if not isinstance(value, list):
            return value
        return [
            {**b, "type": "text"} if _is_text(b) and set(b) <= {"type", "text", "cache_control"} else b for b in value
        ]

    def speaking(self, items: list[Any], where: Where) -> list[Any]:
        """A list without the text blocks that hold nothing but a reminder."""
        return items if where == "data" else [v for v in items if not self.only_reminder(v, where)]

    def only_reminder(self, block: Any, where: Where) -> bool:
        """True for a text block of which the reminders rule leaves nothing (or that is empty as it is)."""
        if not self._steps or not _is_text(block):
            return False
        return not dict(self._steps)[REMINDERS](block["text"], where)[0]


def inside(holder: dict[str, Any], key: str, where: Where) -> Where:
    """Where the member of an object stands."""
    if where == "data" or key in _DATA:
        return "data"
    if key == "response" and "name" in holder:  # Google's functionResponse
        return "data"
    if key in _CONTENT and _is_result(holder):
        return "result"
    return where


def is_mark(key: str, where: Where) -> bool:
    """True for a mark that tells the provider's cache something, and the model nothing."""
    return key == "cache_control" and where != "data"


def is_id_name(key: str, value: Any, *, top: bool = False) -> bool:
    """True for parameters that name a user or a session, whatever their form."""
    return isinstance(value, str) and key in (_ID_PARAMS if top else _ID_NAMES)


def without_descriptions(value: Any) -> Any:
    """Tool definitions without what describes them in words."""
    if isinstance(value, list):
        return [without_descriptions(v) for v in value]
    if isinstance(value, dict):
        return {k: without_descriptions(v) for k, v in value.items() if not (k == "description" and isinstance(v, str))}
    return value


def of(recorded: RecordedRuns, match: Match, names: Sequence[str] = ()) -> Normaliser:
    """The normaliser of a replay in this process. ``names``: the user's functions, ``module:function``.

    Raises:
        UsageError: Such a function is not there.
    """
    if match == "exact":
        return Normaliser(match)
    roots = [os.environ.get("PWD"), _cwd(), *(r.project for r in recorded.runs)]
    times = [recorded.recorded_at, *(at for r in recorded.runs for at in (r.started_at, r.ended_at))]
    surroundings = around(roots, [*times, time.time_ns() // 1000])
    return Normaliser(match, surroundings, users(names))


def users(names: Sequence[str]) -> list[tuple[str, Callable[[str], str]]]:
    """The user's functions: those of installed packages (entry point ``looptape.normalisers``), then these.

    Raises:
        UsageError: One is not there, or cannot be called.
    """
    from importlib.metadata import entry_points

    found: list[tuple[str, Callable[[str], str]]] = []
    for entry in entry_points(group="looptape.normalisers"):
        found.append((f"normaliser {entry.name}", _callable(entry.value, entry.load)))
    for name in names:
        found.append((f"normaliser {name}", _callable(name, lambda name=name: _named(name))))  # type: ignore[misc]
    return found


def _callable(name: str, load: Callable[[], Any]) -> Callable[[str], str]:
    try:
        function = load()
    except Exception as error:  # the user's module may raise what it likes
        raise UsageError("bad-normaliser", f"the normaliser {name} cannot be loaded ({type(error).__name__}: {error})",
                         "Write it as module:function, a function of a text that gives a text") from None  # fmt: skip
    if not callable(function):
        raise UsageError("bad-normaliser", f"the normaliser {name} is no function")
    return function  # type: ignore[no-any-return]


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _TEXT and isinstance(block.get("text"), str)


def _is_result(holder: dict[str, Any]) -> bool:
    kind = holder.get("type")
    return holder.get("role") in ("tool", "function") or (
        isinstance(kind, str) and kind.endswith(("tool_result", "_output"))
    )
