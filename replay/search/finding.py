"""The search itself: slices of runs, matches in their candidates, each text told once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...tracer.errors import UsageError
from ...tracer.store import Filter
from .places import PLACES, Candidate, candidates
from .wanted import Needle

if TYPE_CHECKING:
    from ...tracer.model import Run
    from ...tracer.store import Store
    from ...tracer.store.scan import Found, Scan

FIRST, STEADY, MOST = 16, 64, 32768  # runs of a slice: few at first, so that hits show soon
MANY = 2000  # hits of a slice after which slices do not grow: their texts are in memory together


@dataclass(frozen=True, slots=True)
class Hit:
    """A text of a run with what was looked for in it.

    Attributes:
        turn: The call's turn for arguments and results, the first turn whose request held it for prompts.
        where: One of `PLACES`. ``what``: who speaks (user, system, tool schemas, assistant), or the tool.
        before, match, after: The first match and what stands around it, as recorded.
        count: Matches in this text.
        call: The id of the call. ``position``: of the message in the request, from 1.
        last_turn: The last turn whose request carried it; None for the last of the run, and where it is no message.
    """

    run: str
    turn: int
    where: str
    what: str
    before: str
    match: str
    after: str
    count: int = 1
    call: str | None = None
    position: int | None = None
    last_turn: int | None = None


@dataclass(frozen=True, slots=True)
class RunHits:
    """A run with its hits, in the order of its turns; there is at least one."""

    run: Run
    hits: tuple[Hit, ...]


class Search:
    """Goes through the runs of a filter, in its order; iterate over it as far as you want.

    Attributes:
        total: Runs that the filter picks. ``looked``: those that were gone through until now.
    """

    def __init__(
        self, store: Store, sought: Needle, given: Filter | None = None, places: Collection[str] = PLACES
    ) -> None:
        """Raises UsageError: the pattern cannot be read, or a place is not known."""
        unknown = [place for place in places if place not in PLACES]
        if unknown:
            raise UsageError("bad-place", f"nothing is called {unknown[0]!r}", f"The places are {', '.join(PLACES)}")
        self._store, self._sought, self._places = store, sought, frozenset(places)
        self._scan = store.scan()
        self._scan.check(sought.plain)
        self._ids = store.ids(replace(given or Filter(), limit=0))
        self.total, self.looked = len(self._ids), 0

    def __iter__(self) -> Iterator[RunHits]:
        size = FIRST
        while self.looked < self.total:
            runs = self._ids[self.looked : self.looked + size]
            hits = _hits(self._scan, runs, self._sought, self._places)
            described = {r.id: r for r in self._store.runs(Filter(ids=tuple(hits), limit=0))} if hits else {}
            for run in runs:
                self.looked += 1
                if run in hits:
                    yield RunHits(described[run], tuple(sorted(hits[run], key=_place)))
            size = min(8 * size, MOST) if sum(map(len, hits.values())) < MANY else STEADY

    def unrecorded(self) -> int:
        """How many of the runs have messages of which only the hash was recorded, so that nothing is found in them."""
        return self._scan.unrecorded(self._ids) if self._ids else 0


def _hits(scan: Scan, runs: list[str], sought: Needle, places: frozenset[str]) -> dict[str, list[Hit]]:
    told: dict[tuple[str, str], list[str]] = {}
    calls: set[tuple[str, str, int, str | None]] = set()
    seen: set[tuple[str, ...]] = set()
    found: dict[str, list[Hit]] = {}
    late: list[tuple[Candidate, Found]] = []
    for one, match in _matched(scan, list(candidates(scan, runs, sought, places)), sought):
        if one.where == "results" and one.position is None:
            late.append((one, match))  # what the model saw of it comes first
            continue
        echo = _is_echo(one, told, calls)
        key = (one.run, one.where, one.what, one.call or "", one.texts[0])
        if not echo and key not in seen:
            found.setdefault(one.run, []).append(_hit(one, match))
        seen.add(key)
        calls.add((one.run, one.where, one.turn, one.call))
        if one.position is None:
            told.setdefault((one.run, one.where), []).append(one.texts[0])
    for one, match in late:
        if (one.run, one.where, one.turn, one.call) not in calls:
            found.setdefault(one.run, []).append(_hit(one, match))
    return found


def _matched(scan: Scan, given: list[Candidate], sought: Needle) -> Iterator[tuple[Candidate, Found]]:
    texts = list(dict.fromkeys(text for one in given for text in one.texts))
    matches = dict(zip(texts, scan.matches(texts, sought.plain), strict=True)) if texts else {}
    for one in given:
        match = next((m for text in one.texts if (m := matches[text]) is not None), None)
        if match is not None:
            yield one, match


def _is_echo(
    one: Candidate, told: dict[tuple[str, str], list[str]], calls: set[tuple[str, str, int, str | None]]
) -> bool:
    """True for a message that carries what a turn of the run has said itself, and what was told there."""
    if one.position is None or one.where not in ("answers", "thinking", "arguments"):
        return False
    if one.where == "arguments" and one.call:
        return any((one.run, one.where, turn, one.call) in calls for turn in range(max(1, one.turn - 3), one.turn))
    own = one.texts[0].strip()
    return any(own in text for text in told.get((one.run, one.where), ()))


def _hit(one: Candidate, match: Found) -> Hit:
    return Hit(
        run=one.run,
        turn=one.turn,
        where=one.where,
        what=one.what,
        before=match.before,
        match=match.match,
        after=match.after,
        count=match.count,
        call=one.call,
        position=one.position or None,
        last_turn=one.last_turn,
    )


def _place(hit: Hit) -> tuple[int, int, int]:
    return hit.turn, PLACES.index(hit.where), hit.position or 0
