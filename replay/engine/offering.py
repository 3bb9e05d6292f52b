"""Which tools the model is shown in a turn, and which calls may be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from . import dialects
from .policy import Policy, Subset
from .toolbox import Definition, Toolbox
from .tools.checking import check_schemas


class Offering:
    """The tools of one run. Schemas are those that the model is shown; how a tool may be run its toolbox says.

    Attributes:
        notes: What was done to the request's tools, or cannot be done with them: one line each.
    """

    def __init__(self, api: str, given: Any, tools: Toolbox, policy: Policy, subset: Subset | None) -> None:
        self._api = api
        self._subset = subset
        self.notes: list[str] = []
        able = {d.name: d for d in tools.definitions()}
        shown = {d.name: d for d in dialects.definitions(api, given)}
        undescribed = not given
        if given is None and able:
            described = [d for d in able.values() if d.schema is not None]
            given = dialects.tool_objects(api, described) if described else None
            shown = {d.name: d for d in described}
            if described:
                self.notes.append(
                    f"the request had no tools: {', '.join(shown)} are offered as their source describes them"
                )
        self._given = given
        self._known = {name: _with(d, able.get(name)) for name, d in shown.items()}
        if undescribed:  # nobody described them to the model: calls of what the toolbox has are taken all the same
            self._known = {**able, **self._known}
        self._allowed = {n for n in self._known if not policy.only or any(fnmatchcase(n, p) for p in policy.only)}
        self._offered = frozenset(self._allowed)
        self._changes = given is not None and (len(self._allowed) < len(self._known) or bool(self.notes))
        for name in check_schemas(list(self._known.values())):
            self.notes.append(f"the schema of {name} cannot be used: its arguments are not checked")
            self._known[name] = replace(self._known[name], schema=None)

    def choose(self, turn: int) -> list[Any] | None:
        """The tools of this turn's request; None when they are as the request has them."""
        names = self._allowed
        if self._subset is not None:
            listed = [self._known[n] for n in self._known if n in self._allowed]
            names = self._allowed & set(self._subset(turn, listed))
        self._offered = frozenset(names)
        if self._given is None or (not self._changes and names == set(self._known)):
            return None
        return dialects.only(self._api, self._given, names)

    @property
    def names(self) -> tuple[Mapping[str, Definition], Sequence[str]]:
        """Every tool that is known, and the names that were offered last."""
        return self._known, sorted(self._offered)


def _with(shown: Definition, able: Definition | None) -> Definition:
    """What the model was shown, with what the toolbox says of running it."""
    if able is None:
        return shown
    schema = shown.schema if shown.schema is not None else able.schema
    return replace(able, schema=schema, description=shown.description or able.description)
