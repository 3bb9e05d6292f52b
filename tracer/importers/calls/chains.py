"""Model calls into conversations: turn k's input extends what turn k-1 asked and got; ids of traces only hint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...providers import by_api
from ...providers.answer import Answer
from .likeness import Atom, Known, answer_atoms, rolled
from .model_call import ModelCall
from .span_tree import Place, SpanTree

MOST = 200  # conversations that say the same
SLACK = 1_000_000  # µs by which clocks of one conversation may disagree

_Key = tuple[int, str | None]


@dataclass(slots=True, eq=False)
class Link:
    """A call at its place in a chain.

    Attributes:
        rolls: A hash of each leading part of the request's atoms.
        full: The hash of request and answer together; None when the answer is not known.
        told: The answer's atoms, None when there is nothing to look at.
    """

    call: ModelCall
    place: Place
    said: list[Atom]
    rolls: list[int]
    full: int | None
    told: list[Atom] | None = None
    flags: list[str] = field(default_factory=list)
    _answer: tuple[Any, Answer] | None = None

    @property
    def answer(self) -> Answer:
        """What the call answered, worked out once."""
        response = self.call.response
        if self._answer is None or self._answer[0] is not response:
            said = by_api(self.call.api).answer(response) if response is not None else Answer()
            self._answer = response, said
        return self._answer[1]

    @property
    def whole(self) -> int:
        """The hash of the whole request."""
        return self.rolls[-1] if self.rolls else 0


@dataclass(slots=True, eq=False)
class Chain:
    """Calls of one conversation in their order. ``parent``: the chain that a new prompt goes on with."""

    links: list[Link]
    parent: tuple[Chain, int] | None = None

    @property
    def last(self) -> Link:
        """The latest call."""
        return self.links[-1]


def chained(calls: Sequence[ModelCall], tree: SpanTree, known: Known) -> list[Chain]:
    """The conversations, in the order in which they began."""
    tails, hints = _Tails(), _Hints()
    chains: list[Chain] = []
    # of calls that begin at once the longer conversation may go on with the shorter one, never the other way round
    for call in sorted(calls, key=lambda c: (c.started_at, len(c.messages)) if c.started_at else (0, 0)):
        link = _link(call, tree, known)
        chain = tails.before(link) or hints.before(link)
        if chain is not None and _fresh_prompt(chain.last, link):
            chain = _started(chains, Chain([link], (chain, len(chain.links))))
        elif chain is not None:
            tails.drop(chain)
            chain.links.append(link)
        else:
            chain = _started(chains, Chain([link]))
        tails.add(chain)
        hints.add(chain)
    return _rejoined(chains, tails)


class _Tails:
    """The ends of all chains by what they said; each also by its trace, where many say the same at once."""

    def __init__(self) -> None:
        self._full: dict[_Key, list[Chain]] = {}
        self._asked: dict[_Key, list[Chain]] = {}
        self._answers: dict[str, Chain] = {}

    def add(self, chain: Chain) -> None:
        """A chain with a new end."""
        last = chain.last
        for trace in {None, last.call.trace_id}:
            if last.full is not None:
                _append(self._full, (last.full, trace), chain)
            if last.rolls:
                _append(self._asked, (last.whole, trace), chain)
        if last.call.response_id:
            self._answers[last.call.response_id] = chain

    def drop(self, chain: Chain) -> None:
        """Its end is no end any more."""
        last = chain.last
        for table, said in ((self._full, last.full), (self._asked, last.whole)):
            for trace in {None, last.call.trace_id}:
                found = table.get((said, trace)) if said is not None else None
                if found and chain in found:
                    found.remove(chain)

    def before(self, link: Link, without: Chain | None = None) -> Chain | None:
        """The chain that this call goes on with, by its words."""
        if link.call.previous:
            return self._answers.get(link.call.previous)
        for table in (self._full, self._asked):
            for length in range(len(link.rolls), 0, -1):
                for trace in (link.call.trace_id, None):
                    found = [
                        c
                        for c in table.get((link.rolls[length - 1], trace), ())
                        if c is not without and (table is self._full or _may_follow(c.last, link, length))
                    ]
                    if found:
                        return _nearest(found, link)
        return None


def _append(table: dict[_Key, list[Chain]], key: _Key, chain: Chain) -> None:
    found = table.setdefault(key, [])
    found.append(chain)
    if len(found) > MOST:  # ever the same question: the oldest is the least likely to go on
        del found[0]


def _link(call: ModelCall, tree: SpanTree, known: Known) -> Link:
    said = [a for m in call.messages for a in known.atoms(m)] if call.mode == "full" else []
    rolls = list(rolled(said))
    answer = answer_atoms(call.api, call.response)
    full = None
    if answer and rolls:
        *_, full = rolled(answer, rolls[-1])
    return Link(call, tree.place(call), said, rolls, full, answer)


def _may_follow(last: Link, link: Link, length: int) -> bool:
    """The same request, then words of the model; or once more after a failure."""
    if length == len(link.said):
        return last.call.status != "ok" and _after(last, link)
    kind, who, _ = link.said[length]
    return kind == "call" or (kind, who) == ("text", "assistant")


def _after(last: Link, link: Link) -> bool:
    return (link.call.started_at or 0) + SLACK >= (last.call.ended_at or 0)


def _nearest(found: Sequence[Chain], link: Link) -> Chain:
    """Of chains that end alike: of the same home, conversation, trace; else the one that ended last before."""

    def likeness(chain: Chain) -> tuple[bool, bool, bool, bool, int]:
        last = chain.last
        return (
            _after(last, link),
            _home(last) == _home(link),
            last.call.conversation == link.call.conversation,
            last.call.trace_id == link.call.trace_id,
            last.call.ended_at or 0,
        )

    return max(found, key=likeness)


class _Hints:
    """Chains by what stands around their last call, for calls whose words do not tell where they belong."""

    def __init__(self) -> None:
        self._by_context: dict[tuple[str, str], list[Chain]] = {}

    def add(self, chain: Chain) -> None:
        context = _context(chain.last)
        if context is not None:
            found = self._by_context.setdefault(context, [])
            if not found or found[-1] is not chain:
                found.append(chain)

    def before(self, link: Link) -> Chain | None:
        """The chain of the same home, conversation or trace that is not busy."""
        context = _context(link)
        if context is None:
            return None
        for chain in reversed(self._by_context.get(context, [])[-50:]):
            last = chain.last
            if _context(last) != context or not _after(last, link):
                continue
            if link.call.mode != "full" or not link.call.messages or not last.call.content:
                return chain
            if context[0] == "home" and _within_home(link) and _same_tools(last, link):
                link.flags.append("compaction")
                return chain
        return None


def _context(link: Link) -> tuple[str, str] | None:
    """What a call stands in: its home, else its conversation, else its trace."""
    if link.place.home is not None:
        return "home", link.place.home.key
    if link.call.conversation:
        return "conversation", link.call.conversation
    return ("trace", link.call.trace_id) if link.call.trace_id else None


def _same_tools(last: Link, link: Link) -> bool:
    one, other = last.call.tools, link.call.tools
    return one is None or other is None or one == other


def _within_home(link: Link) -> bool:
    """False for a call that began after its home was over: a leaked context."""
    home = link.place.home
    ended = home.ended_at if home else None
    return ended is None or (link.call.started_at or 0) <= ended + SLACK


def _home(link: Link) -> str | None:
    return link.place.home.key if link.place.home else None


def _fresh_prompt(last: Link, link: Link) -> bool:
    """A new invocation of the agent with a new prompt: another run that goes on with this conversation."""
    if _home(last) == _home(link) or link.place.agent is None or last.place.agent is None:
        return False
    new = link.said[len(last.said) :]
    return any(kind == "text" and who == "user" for kind, who, _ in new)


def _started(chains: list[Chain], chain: Chain) -> Chain:
    chains.append(chain)
    return chain


def _rejoined(chains: list[Chain], tails: _Tails) -> list[Chain]:
    """Chains whose first call goes on with another chain's last: the clocks disagreed."""
    kept = list(chains)
    for chain in chains:
        head = chain.links[0]
        if chain.parent is not None or not head.rolls or not _goes_on(head.said):
            continue
        before = tails.before(head, without=chain)
        if before is None or before not in kept or before is chain:
            continue
        tails.drop(before)
        tails.drop(chain)
        before.links += chain.links
        kept.remove(chain)
        for other in kept:
            if other.parent and other.parent[0] is chain:
                other.parent = (before, len(before.links) - len(chain.links) + other.parent[1])
        tails.add(before)
    return kept


def _goes_on(said: Iterable[Atom]) -> bool:
    return any(kind in ("call", "result") or who == "assistant" for kind, who, _ in said)
