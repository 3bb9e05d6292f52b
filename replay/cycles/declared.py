"""What the author of a loop says of the tools, where names and results cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...tracer.errors import UsageError

EFFECTS = ("read", "mutate", "poll", "bookkeeping", "ignore")


@dataclass(frozen=True, slots=True)
class Declared:
    """Tools by name: what they do to the world, which arguments tell their calls apart.

    Attributes:
        effects: Tool name to ``read``, ``mutate``, ``poll``, ``bookkeeping``, or ``ignore`` (its calls are not looked at).
        keys: Tool name to the names of the arguments that count.
    """

    effects: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def from_settings(tools: Mapping[str, Any]) -> Declared:
    """Of the ``[tool.looptape.tools]`` table: ``name = "poll"`` or ``name = {effect = "read", key = ["path"]}``.

    Raises:
        UsageError: A tool has an effect that is none.
    """
    effects: dict[str, str] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for name, said in tools.items():
        effect = said.get("effect") if isinstance(said, Mapping) else said
        if effect is not None:
            if effect not in EFFECTS:
                raise UsageError(
                    "bad-setting",
                    f"tools.{name}: {effect!r} is no effect of a tool",
                    f"Use one of {', '.join(EFFECTS)}",
                )
            effects[name] = effect
        names = said.get("key") if isinstance(said, Mapping) else None
        if isinstance(names, str):
            names = [names]
        if isinstance(names, Iterable):
            keys[name] = tuple(str(n) for n in names)
    return Declared(effects, keys)
