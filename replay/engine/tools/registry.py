"""Tools of a Python module: a mapping of names to functions, or a list of functions and tool objects."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ....tracer import tape
from ....tracer.errors import UsageError
from ....tracer.model import SideEffect
from ..toolbox import Definition, ToolAsked, TooLate, ToolMiss, ToolResult
from .signatures import KEY, schema_of

_EFFECTS = ("read", "mutate", "poll", "bookkeeping")


class Registry:
    """Live tools of this process.

    Each is a function (its signature and docstring tell schema and description), an object with ``name`` and one of
    ``func``, ``function``, ``fn``, ``run`` or ``call`` (most frameworks' tools), or a mapping with ``function`` and any
    of name, description, schema (also ``input_schema``, ``parameters``), side_effect, timeout. A function with a
    parameter ``idempotency_key`` is given one; the model does not see it.
    """

    def __init__(self, tools: Mapping[str, Any] | Iterable[Any], *, source: str | None = None) -> None:
        self._source = source
        self._functions: dict[str, Callable[..., Any]] = {}
        self._definitions: dict[str, Definition] = {}
        named = tools.items() if isinstance(tools, Mapping) else ((None, t) for t in tools)
        for name, tool in named:
            self._add(name, tool)

    def definitions(self) -> Sequence[Definition]:
        """The tools in their order."""
        return tuple(self._definitions.values())

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """None: they run."""
        return None

    def call(self, asked: ToolAsked) -> ToolResult:
        """Calls the function with the arguments by name; a coroutine is run to its end, within its time."""
        function = self._functions.get(asked.name)
        if function is None:
            raise ToolMiss(f"{self._source or 'the registry'} has no tool {asked.name}")
        arguments = dict(asked.arguments)
        if self._definitions[asked.name].keyed:
            arguments[KEY] = asked.key
        value = function(**arguments)
        if inspect.isawaitable(value):
            value = _awaited(value, asked.timeout)
        return value if isinstance(value, ToolResult) else ToolResult(content_of(value))

    def spec(self) -> dict[str, Any]:
        """The module it comes from; one that was given in code cannot be found again."""
        return {"kind": "registry", "source": self._source}

    def close(self) -> None:
        """Nothing to end."""

    def _add(self, name: str | None, tool: Any) -> None:
        told = dict(tool) if isinstance(tool, Mapping) else {}
        function = told.get("function") if told else _callable_of(tool)
        ours = getattr(function, "looptape_tool", {})
        name = (
            name or told.get("name") or ours.get("name") or _text(tool, "name") or getattr(function, "__name__", None)
        )
        if not callable(function) or not name:
            raise UsageError(
                "bad-tool",
                f"{self._source or 'the registry'} holds {type(tool).__name__} {name or ''}, which cannot be called",
                "Give functions, objects with a name and a function, or mappings with `function`",
            )
        if name in self._definitions:
            raise UsageError(
                "tool-twice", f"{self._source or 'the registry'} has two tools called {name}", "Rename one"
            )
        schema = told.get("schema") or told.get("input_schema") or told.get("parameters") or _schema(tool)
        made, keyed = schema_of(function)
        effect = told.get("side_effect") or ours.get("side_effect") or _text(tool, "side_effect")
        self._functions[name] = function
        self._definitions[name] = Definition(
            name,
            str(told.get("description") or _text(tool, "description") or inspect.getdoc(function) or ""),
            schema if isinstance(schema, Mapping) else made,
            cast(SideEffect, effect) if effect in _EFFECTS else "unknown",
            keyed,
            float(told["timeout"]) if told.get("timeout") else None,
        )


def load(reference: str) -> Registry:
    """The registry at ``module:NAME``; the working directory is looked in as well, as by ``python -m``.

    Raises:
        UsageError: There is no such module or name, it does not import, or it holds no tools.
    """
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise UsageError("bad-tools", f"{reference!r} names no tools", "Say MODULE:NAME, for example agent.tools:TOOLS")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            "bad-tools", f"{reference} cannot be loaded ({error})", "Is that its name, from here?"
        ) from None
    except Exception as error:  # the user's module fails in its own way
        said = f"{type(error).__name__}: {error}"
        raise UsageError("bad-tools", f"{module_name} fails when it is imported ({said})") from None
    if callable(found) and not isinstance(found, (Mapping, list, tuple)):
        found = [found]
    if not isinstance(found, (Mapping, list, tuple, set, frozenset)) or not found:
        raise UsageError("bad-tools", f"{reference} is {type(found).__name__}, no mapping or list of tools")
    return Registry(found, source=reference)


def content_of(value: Any) -> Any:
    """A tool's return value as a model is told it: text, or a list of content blocks as it is."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    plain = tape.plain(value)
    if isinstance(plain, list) and plain and all(isinstance(b, dict) and isinstance(b.get("type"), str) for b in plain):
        return plain
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _awaited(value: Any, timeout: float) -> Any:
    """What a coroutine comes to; it is cancelled when it takes too long."""

    async def within() -> Any:
        return await asyncio.wait_for(value, timeout)

    try:
        return asyncio.run(within())
    except TimeoutError as error:
        if str(error):
            raise  # the tool's own
        raise TooLate(f"no result after {timeout:g} s") from None


def _callable_of(tool: Any) -> Any:
    if inspect.isroutine(tool) or inspect.isclass(tool):
        return tool
    for name in ("func", "function", "fn", "coroutine", "run", "call"):
        found = getattr(tool, name, None)
        if callable(found):
            return found
    return tool if callable(tool) else None


def _text(tool: Any, name: str) -> str | None:
    found = getattr(tool, name, None) if not inspect.isroutine(tool) else None
    return found if isinstance(found, str) else None


def _schema(tool: Any) -> Mapping[str, Any] | None:
    for name in ("input_schema", "parameters", "args_schema", "inputSchema"):
        found = getattr(tool, name, None) if not inspect.isroutine(tool) else None
        if isinstance(found, Mapping):
            return found
        make = getattr(found, "model_json_schema", None)
        if callable(make):
            made = make()
            return made if isinstance(made, Mapping) else None
    return None
