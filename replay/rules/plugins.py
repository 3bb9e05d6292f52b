"""Rules of other distributions, by the entry-point group ``looptape.rules``: their faults never break a lint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

GROUP = "looptape.rules"
_OFFERS = ("ID", "TITLE")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rules that could be loaded, and one line for each that could not."""

    rules: tuple[Any, ...] = ()
    troubles: tuple[str, ...] = ()


def installed(taken: Sequence[str]) -> Loaded:
    """The rules that other distributions offer.

    Args:
        taken: Ids that are ours: another rule of that id is left out, saying so.
    """
    from importlib.metadata import entry_points

    rules: list[Any] = []
    troubles: list[str] = []
    names = set(taken)
    for entry in entry_points(group=GROUP):
        owner = entry.dist.name if entry.dist is not None else entry.value
        try:
            rule = entry.load()
            lacking = [name for name in _OFFERS if not isinstance(getattr(rule, name, None), str)]
            if not callable(getattr(rule, "check", None)) and not callable(getattr(rule, "check_group", None)):
                lacking.append("check")
            if lacking:
                raise TypeError(f"it has no {', '.join(lacking)}")
            if rule.ID in names:
                raise ValueError(f"the id {rule.ID} is taken")
        except (Exception, SystemExit) as error:  # whatever a foreign module does when it is loaded
            troubles.append(f"the rule {entry.name} of {owner} does not work: {type(error).__name__}: {error}")
            continue
        names.add(rule.ID)
        rules.append(rule)
    return Loaded(tuple(rules), tuple(troubles))
