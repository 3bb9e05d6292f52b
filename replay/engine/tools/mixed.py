"""Several toolboxes as one: per tool name, by namespace, with one for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....tracer.errors import UsageError
from ..toolbox import SEPARATOR, Definition, ToolAsked, Toolbox, ToolMiss, ToolResult


@dataclass(frozen=True, slots=True)
class Mixed:
    """Each call goes to the toolbox of its name, else to the one for the rest, else it is a miss.

    A toolbox may be told by one name (``{"search": box}``) or by all names of a namespace (``{"files__*": box}``).
    """

    by_name: Mapping[str, Toolbox]
    rest: Toolbox | None = None

    def definitions(self) -> Sequence[Definition]:
        """Those of every part that calls would reach."""
        found: dict[str, Definition] = {}
        for pattern, box in self.by_name.items():
            for definition in box.definitions():
                if self._of(definition.name) is box and _fits(pattern, definition.name):
                    found.setdefault(definition.name, definition)
        for definition in self.rest.definitions() if self.rest else ():
            if self._of(definition.name) is self.rest:
                found.setdefault(definition.name, definition)
        return tuple(found.values())

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """What the responsible part has."""
        box = self._of(asked.name)
        return box.served(asked) if box is not None else None

    def call(self, asked: ToolAsked) -> ToolResult:
        """Runs it in the responsible part."""
        box = self._of(asked.name)
        if box is None:
            raise ToolMiss(f"nothing here runs {asked.name}. Name a source for it: --tool {asked.name}=...")
        return box.call(asked)

    def spec(self) -> dict[str, Any]:
        """Those of the parts."""
        parts = {name: box.spec() for name, box in self.by_name.items()}
        return {"kind": "mixed", "by_name": parts, "rest": self.rest.spec() if self.rest else None}

    def close(self) -> None:
        """Closes every part."""
        for box in {id(b): b for b in (*self.by_name.values(), *([self.rest] if self.rest else []))}.values():
            box.close()

    def _of(self, name: str) -> Toolbox | None:
        if name in self.by_name:
            return self.by_name[name]
        for pattern, box in self.by_name.items():
            if _fits(pattern, name):
                return box
        return self.rest


def mixed(
    live: Toolbox,
    recorded: Toolbox,
    choice: Mapping[str, Toolbox | str],
    *,
    rest: str = "recorded",
) -> Mixed:
    """Recorded and live tools in one toolbox, as the user named them.

    Args:
        choice: Per tool: ``recorded``, ``live`` or a toolbox of its own (a `Stub`).
        rest: Where every other tool goes. With ``live`` only those that declare to change nothing do.

    Raises:
        UsageError: ``live-tools-not-named``: tools that may change something would run live without being named.
    """
    by_name: dict[str, Toolbox] = {}
    for name, wanted in choice.items():
        by_name[name] = (live if wanted == "live" else recorded) if isinstance(wanted, str) else wanted
    if rest != "live":
        return Mixed(by_name, recorded)
    unnamed = [d.name for d in live.definitions() if d.name not in by_name and d.side_effect not in ("read", "poll")]
    if unnamed:
        raise UsageError(
            "live-tools-not-named",
            f"these tools may change something and are not named to run live: {', '.join(unnamed)}",
            f"Say each: {' '.join(f'--tool {n}=live' for n in unnamed[:3])}, or leave them recorded: --tool NAME=recorded",
        )
    return Mixed(by_name, live)


@dataclass(frozen=True, slots=True)
class Namespaced:
    """The tools of another toolbox under a namespace: ``read`` of ``files`` is ``files__read``."""

    namespace: str
    inner: Toolbox
    _prefix: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prefix", f"{self.namespace}{SEPARATOR}")

    def definitions(self) -> Sequence[Definition]:
        """The inner ones, with the namespace before their names."""
        return tuple(replace(d, name=self._prefix + d.name) for d in self.inner.definitions())

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """What the inner one has."""
        return self.inner.served(self._inner_call(asked))

    def call(self, asked: ToolAsked) -> ToolResult:
        """Runs it under its own name."""
        if not asked.name.startswith(self._prefix):
            raise ToolMiss(f"{asked.name} is not in the namespace {self.namespace}")
        return self.inner.call(self._inner_call(asked))

    def spec(self) -> dict[str, Any]:
        """With the inner one's."""
        return {"kind": "namespaced", "namespace": self.namespace, "inner": self.inner.spec()}

    def close(self) -> None:
        """Closes the inner one."""
        self.inner.close()

    def _inner_call(self, asked: ToolAsked) -> ToolAsked:
        return replace(asked, name=asked.name.removeprefix(self._prefix))


def _fits(pattern: str, name: str) -> bool:
    return pattern == name or (pattern.endswith("*") and name.startswith(pattern[:-1]))
