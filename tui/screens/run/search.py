"""Search in one run: a text as it stands, in prompts, thinking, answers, arguments, results and errors of all its turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from ....replay.search import Hit
    from ....tracer.store import Store


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found: the hits by turn, the turns in order, how many matches there are in all."""

    text: str = ""
    by_turn: Mapping[int, Sequence[Hit]] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    count: int = 0


class Searched(Message):
    """A search is done."""

    def __init__(self, hits: Hits) -> None:
        super().__init__()
        self.hits = hits


def search(store: Store, run: str, text: str) -> Hits:
    """Where a text stands in a run (in a thread). A message counts for the turn whose request had it first."""
    from ....replay.search import Search, needle
    from ....tracer.store import Filter

    found: dict[int, list[Hit]] = {}
    for of_run in Search(store, needle(text), Filter(ids=(run,), limit=0)):
        for hit in of_run.hits:
            found.setdefault(hit.turn, []).append(hit)
    count = sum(hit.count for hits in found.values() for hit in hits)
    return Hits(text, found, tuple(sorted(found)), count)
