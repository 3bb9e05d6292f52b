"""What settings say of the linter: ``[tool.looptape.lint]`` and ``[tool.looptape.tools]``.

[tool.looptape.lint]
select = ["L01", "L05"]         # only these
ignore = ["L09"]                # not these
L03 = { window_share = 0.6 }    # a threshold of a rule
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...tracer.errors import UsageError
from ...tracer.settings import tables
from ..cycles import Declared
from ..cycles.declared import from_settings
from .rule import thresholds_of


@dataclass(frozen=True, slots=True)
class Config:
    """Which rules look, with which numbers, at which tools.

    Attributes:
        select: Ids of the only rules wanted (a beginning stands for all that begin so); None for all.
        ignore: Ids of rules not wanted, likewise.
        overrides: Rule id to threshold name to number.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    overrides: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    declared: Declared = field(default_factory=Declared)

    def wants(self, rule: str) -> bool:
        """True when the rule is to look."""
        chosen = self.select is None or any(rule.startswith(s) for s in self.select)
        return chosen and not any(rule.startswith(i) for i in self.ignore)


def read_config(
    rules: Iterable[Any],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    cwd: Path | None = None,
) -> Config:
    """The settings of this directory, with what the command line says on top.

    Args:
        rules: The known rules.
        select, ignore: Ids; ``select`` takes the place of the settings' own, ``ignore`` is added to it.

    Raises:
        UsageError: A rule or threshold is unknown, or a value does not fit.
    """
    known = {rule.ID: rule for rule in rules}
    said = tables(cwd=cwd)
    lint, where = said.get("lint", ({}, "settings"))
    config = Config(declared=from_settings(said.get("tools", ({}, ""))[0]))
    overrides: dict[str, dict[str, float]] = {}
    for key, value in lint.items():
        place = f"{where}: lint.{key}"
        if key == "select":
            config = replace(config, select=_ids(value, known, place))
        elif key == "ignore":
            config = replace(config, ignore=_ids(value, known, place))
        elif key in known:
            overrides[key] = _numbers(value, known[key], place)
        else:
            raise _unknown(key, [*known, "select", "ignore"], place)
    if select:
        config = replace(config, select=_ids(list(select), known, "--select"))
    if ignore:
        config = replace(config, ignore=(*config.ignore, *_ids(list(ignore), known, "--ignore")))
    return replace(config, overrides=overrides)


def _ids(given: Any, known: Mapping[str, Any], place: str) -> tuple[str, ...]:
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list) or not all(isinstance(v, str) for v in given):
        raise UsageError("bad-setting", f"{place} is no list of rule ids", 'Write it as ["L01", "L05"]')
    found = [
        part.strip().upper() if part.strip().upper() in known else part.strip() for v in given for part in v.split(",")
    ]
    found = [part for part in found if part]
    for part in found:
        if not any(rule.startswith(part) for rule in known):
            raise _unknown(part, list(known), place)
    return tuple(found)


def _numbers(given: Any, rule: Any, place: str) -> dict[str, float]:
    defaults = thresholds_of(rule)
    if not isinstance(given, Mapping):
        raise UsageError("bad-setting", f"{place} is no table", f"Write {rule.ID} = {{ name = number }}")
    for name, value in given.items():
        if name not in defaults:
            raise _unknown(str(name), list(defaults), place, "threshold")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError("bad-setting", f"{place}.{name} is {value!r}", "Use a number")
    return {str(k): float(v) for k, v in given.items()}


def _unknown(name: str, known: Sequence[str], place: str, what: str = "rule") -> UsageError:
    close = difflib.get_close_matches(name, known, 1)
    cure = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(known) or 'none'}"
    return UsageError(f"unknown-{what}", f"{place}: there is no {what} {name!r}", cure)
