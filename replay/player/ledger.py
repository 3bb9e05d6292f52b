"""Which recorded turns and calls were asked for, and which one a request or call is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...tracer.canonical import canonical, digest
from ...tracer.live import OpenRun
from ...tracer.substitute import Asked, ToolAsked
from .normalise import PARTS, Normaliser, NotJson
from .recorded import RecordedCall, RecordedRuns, RecordedTurn

Key = tuple[object, ...]
Place = tuple[str, int]


class Texts:
    """Texts by hash with their normal digests: each is brought into normal form once, if ever."""

    def __init__(self, recorded: RecordedRuns, rules: Normaliser) -> None:
        self._recorded = recorded.texts
        self._more: dict[str, str] = {}
        self._rules = rules
        self._digests: dict[tuple[str, str], str] = {}
        self._messages: dict[str, str] = {}

    def learn(self, asked: Asked) -> None:
        """Keeps what a request says for the first time."""
        for key, text in asked.fresh.items():
            if key not in self._recorded:
                self._more[key] = text
        for part, said in zip(part_hashes(asked), asked.parts, strict=True):
            if part is not None and said is not None and part not in self._recorded:
                self._more[part] = said

    def text(self, key: str) -> str | None:
        """The text of a hash; None when it was said before the replay began."""
        found = self._recorded.get(key)
        return self._more.get(key) if found is None else found

    def messages(self, keys: Iterable[str]) -> tuple[str, ...]:
        """The normal digests of a message list."""
        known = self._messages
        return tuple(known.get(k) or known.setdefault(k, self.digest("message", k) or k) for k in keys)

    def digest(self, kind: str, key: str | None) -> str | None:
        """The normal digest of a message (``message``) or part; None for nothing."""
        if key is None:
            return None
        known = self._digests.get((kind, key))
        if known is None:
            text = self.text(key)
            known = self._digests[kind, key] = key if text is None else self._normal(kind, text)
        return known

    def _normal(self, kind: str, text: str) -> str:
        try:
            if kind == "message":
                return self._rules.digest_message(text)
            return self._rules.digest_part(kind, text) or ""  # type: ignore[arg-type]
        except NotJson:  # in a recording that somebody wrote by hand
            return digest(text)


class Ledger:
    """The turns and calls of a recording, each to be asked for once."""

    def __init__(self, recorded: RecordedRuns, rules: Normaliser) -> None:
        self.recorded = recorded
        self.rules = rules
        self.texts = Texts(recorded, rules)
        self.given: dict[Place, int] = {}
        self.calls_given: set[tuple[str, int, str]] = set()
        self.bound: dict[str, list[str]] = {}
        self.owners: dict[str, str] = {}
        self.turns: dict[Place, RecordedTurn] = {}
        self.last: dict[str, RecordedTurn] = {}
        self._begun_by: dict[Place, str] = {}
        self._rank = {r.id: i for i, r in enumerate(recorded.runs)}
        self._exact = _index((exact_key(t), t) for t in recorded.turns() if t.answered)
        self._normal: dict[Key, list[RecordedTurn]] | None = None
        self._calls = _index((call_key(c.name, c.arguments), c) for c in recorded.calls())
        self._calls_normal: dict[Key, list[RecordedCall]] | None = None

    # -- turns --------------------------------------------------------------------------------

    def candidates(self, asked: Asked) -> Iterator[RecordedTurn]:
        """The turns that are not yet given and that this request may be, the likeliest first."""
        exact = self._open(self._exact.get(asked_key(asked), ()), asked)
        runs = self.bound.get(asked.run.id, ())
        if exact and (not runs or exact[0].run in runs):
            yield exact[0]
        if self._normal is None:
            self._normal = _index(
                (self._normal_key(t.api, t.mode, t.hashes, t.parts), t) for t in self.recorded.turns() if t.answered
            )
        key = self._normal_key(asked.provider.API, asked.mode, asked.hashes, part_hashes(asked))
        yield from self._open([*exact, *self._normal.get(key, ())], asked)

    def expected(self, asked: Asked) -> RecordedTurn | None:
        """The turn that would have come next: of the run that this one follows, else the first open one of all."""
        for name in reversed(self.bound.get(asked.run.id, [])):
            run = self.recorded.run(name)
            left = [t for t in run.turns if self.is_open(t)] if run is not None else []
            if left:
                return left[0]
        left = self._open([t for t in self.recorded.turns() if t.api == asked.provider.API], asked)
        return left[0] if left else None

    def unanswered(self, asked: Asked) -> RecordedTurn | None:
        """A turn that asks the same and has no answer in the recording."""
        key = self._normal_key(asked.provider.API, asked.mode, asked.hashes, part_hashes(asked))
        for turn in self.recorded.turns():
            if not turn.answered and self._normal_key(turn.api, turn.mode, turn.hashes, turn.parts) == key:
                return turn
        return None

    def is_open(self, turn: RecordedTurn) -> bool:
        """Whether an answer of the turn has not been given yet."""
        return turn.answered and self.given.get(turn.key, 0) < len(turn.attempts)

    def give(self, turn: RecordedTurn, asked: Asked) -> int:
        """Notes the next attempt of a turn as given; its place in the attempts."""
        place = self.given.get(turn.key, 0)
        self.given[turn.key] = place + 1
        names = self.bound.setdefault(asked.run.id, [])
        if turn.run in names:
            names.remove(turn.run)
        names.append(turn.run)
        self.owners.setdefault(turn.run, asked.run.id)
        self.turns[asked.run.id, asked.turn.number] = self.last[asked.run.id] = turn
        self._begun_by[turn.key] = asked.run.id
        return place

    def _open(self, turns: Sequence[RecordedTurn], asked: Asked) -> list[RecordedTurn]:
        # a turn whose first attempt was given waits for the retry of that run
        mine = (None, asked.run.id)
        left = {t.key: t for t in turns if self.is_open(t) and self._begun_by.get(t.key) in mine}.values()
        return sorted(left, key=lambda t: self._preference(t, asked)) if len(left) > 1 else list(left)

    def _preference(self, turn: RecordedTurn, asked: Asked) -> tuple[object, ...]:
        """Begun turns first (a retry), then the run that this one follows, then runs that nobody follows."""
        mine = self.bound.get(asked.run.id, ())
        run = self.recorded.run(turn.run)
        return (
            self.given.get(turn.key, 0) == 0,
            turn.run not in mine,
            turn.run in self.owners,
            not self._same_parent(turn.run, asked.run),
            run is None or run.name != asked.run.name,
            self._rank.get(turn.run, 0),
            turn.number,
        )

    def _same_parent(self, recorded: str, run: OpenRun) -> bool:
        above, parent = self.recorded.parent_of(recorded), run.parent or {}
        if above is None or parent.get("kind") != "sub-agent":
            return above is None and parent.get("kind") != "sub-agent"
        return above[0] in self.bound.get(str(parent.get("run")), ()) and above[2] in (None, parent.get("call"))

    def _normal_key(self, api: str, mode: str, hashes: Iterable[str], parts: Sequence[str | None]) -> Key:
        digests = self.texts.digest
        return (
            api, mode, self.texts.messages(hashes),
            *(digests(name, part) for name, part in zip(PARTS, parts, strict=True)),
        )  # fmt: skip

    # -- calls --------------------------------------------------------------------------------

    def call(self, asked: ToolAsked) -> RecordedCall | None:
        """The recorded call that this one is, not yet given: by its id, else by name, arguments and occurrence."""
        key = call_key(asked.name, asked.arguments)
        turn = self.turns.get((asked.run.id, asked.turn or 0)) if asked.run is not None else None
        if turn is not None and asked.call is not None:
            named = next((c for c in turn.calls if c.id == asked.call), None)
            if named is not None and self._is_same(named, asked, key) and self.call_is_open(named):
                return named
        found = self._open_calls(self._calls.get(key, ()), asked)
        if not found:
            if self._calls_normal is None:
                self._calls_normal = _index((self._normal_call(c.name, c.arguments), c) for c in self.recorded.calls())
            found = self._open_calls(self._calls_normal.get(self._normal_call(asked.name, asked.arguments), ()), asked)
        return found[0] if found else None

    def calls_named(self, name: str) -> list[RecordedCall]:
        """Every recorded call of a tool."""
        return [c for c in self.recorded.calls() if c.name == name]

    def occurrences(self, asked: ToolAsked) -> int:
        """How many calls of this name with these arguments are recorded."""
        return len(self._calls.get(call_key(asked.name, asked.arguments), ()))

    def call_is_open(self, call: RecordedCall) -> bool:
        """Whether a call has not been given yet."""
        return (call.run, call.turn, call.id) not in self.calls_given

    def give_call(self, call: RecordedCall) -> None:
        """Notes a call as given."""
        self.calls_given.add((call.run, call.turn, call.id))

    def _is_same(self, call: RecordedCall, asked: ToolAsked, key: Key) -> bool:
        if call_key(call.name, call.arguments) == key:
            return True
        return self._normal_call(call.name, call.arguments) == self._normal_call(asked.name, asked.arguments)

    def _open_calls(self, calls: Sequence[RecordedCall], asked: ToolAsked) -> list[RecordedCall]:
        mine = self.bound.get(asked.run.id, ()) if asked.run is not None else ()
        left = [c for c in calls if self.call_is_open(c)]
        return sorted(
            left, key=lambda c: (c.run not in mine, (c.run, c.turn) not in self.given, self._rank.get(c.run, 0), c.turn)
        )

    def _normal_call(self, name: str, arguments: Any) -> Key:
        return name, digest(canonical(self.rules.part("params", {"input": arguments})))


def exact_key(turn: RecordedTurn) -> Key:
    """What makes two requests the same to the byte."""
    return turn.api, turn.mode, turn.hashes, turn.parts


def asked_key(asked: Asked) -> Key:
    """The same of a request."""
    return asked.provider.API, asked.mode, asked.hashes, part_hashes(asked)


def part_hashes(asked: Asked) -> tuple[str | None, str | None, str | None]:
    """The hashes of system, tools and parameters."""
    hashes = (h or (digest(t) if t is not None else None) for h, t in zip(asked.part_hashes, asked.parts, strict=True))
    return tuple(hashes)  # type: ignore[return-value]


def call_key(name: str, arguments: Any) -> Key:
    """What makes two calls the same: tool name and canonical arguments."""
    return name, canonical(arguments)


def _index(pairs: Iterable[tuple[Key, Any]]) -> dict[Key, list[Any]]:
    found: dict[Key, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
