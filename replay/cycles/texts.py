"""Rules about words: the same ones turn after turn without a tool, and an answer that chants."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import masks
from .history import Alert, History
from .rounds import Round

SAME = 0.86
REWORDED = 0.6
SAME_NEED = 3
REWORDED_NEED = 4
TALK_NEED = 5
SHORT = 12
"""Characters below which words (ok, done) say nothing."""
ROUTING = 300
"""Characters below which, among several agents, words only pass the turn on or ask for the next step."""

CHANT_NEED = 8
_CHANT_SHARE = 0.4
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SKIPPED = re.compile(r"\s*(?:[|>#]|[-*+] |\d+[.)] |[-=_*~]{3,}|$)")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class SameWords:
    """Turns of one agent without a call that say the same, or lead to nothing."""

    past: deque[tuple[int, frozenset[int], int]] = field(default_factory=lambda: deque(maxlen=6))
    alone: list[tuple[int, frozenset[int]]] = field(default_factory=list)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """A person's word or a tool's result begins anew; so does, but for the very same words, another agent's."""
        if round_.user is not None or round_.works:
            self.past.clear()
            self.alone = []
        if history.interrupted:
            self.alone = []
        if round_.moves or round_.text_size < (ROUTING if history.interrupted else SHORT):
            return
        same = [n for n, words, key in self.past if key == round_.text_key or masks.alike(words, round_.text) >= SAME]
        reworded = [n for n, words in self.alone if masks.alike(words, round_.text) >= REWORDED]
        self.past.append((round_.number, round_.text, round_.text_key))
        self.alone = [*self.alone[-11:], (round_.number, round_.text)]
        said = (f"“{round_.opening}…”",)
        if same:
            yield Alert("text", ("words",), (*same, round_.number), len(same) + 1, 1, said, SAME_NEED)
        elif reworded:
            yield Alert("text", ("words",), (*reworded, round_.number), len(reworded) + 1, 1, said, REWORDED_NEED, 0.75)
        if history.used_tools and len(self.alone) >= TALK_NEED:
            turns = tuple(n for n, _ in self.alone)
            yield Alert("text", ("words",), turns, len(turns), 1, said, TALK_NEED, 0.6)


@dataclass(slots=True)
class SameTalk:
    """Agents that say to each other what they have said before: thanks for thanks, a draft for its review. Looks at all."""

    past: dict[str, deque[tuple[int, frozenset[int], int]]] = field(default_factory=dict)
    again: list[tuple[int, str]] = field(default_factory=list)

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """Counts turns in a row in which nobody does or says anything new."""
        if round_.user is not None or round_.moves:
            self.past.clear()
            self.again = []
        if round_.moves or round_.text_size < SHORT:
            return
        said = self.past.setdefault(round_.agent, deque(maxlen=6))
        before = [n for n, words, key in said if key == round_.text_key or masks.alike(words, round_.text) >= SAME]
        said.append((round_.number, round_.text, round_.text_key))
        if not before:
            self.again = []
            return
        self.again = [*self.again[-200:], (round_.number, round_.agent)]
        speakers = len({agent for _, agent in self.again})
        laps = 1 + len(self.again) // max(1, speakers)
        if speakers > 1 and laps > 1:
            turns = (*before[:1], *(n for n, _ in self.again))
            yield Alert("text", ("talk",), turns, laps, speakers, (f"“{round_.opening}…”",), SAME_NEED, 0.8)


def chant(text: str) -> tuple[int, str] | None:
    """How often an answer says one thing, and what; None for an ordinary one. Code, tables and lists do not count."""
    if len(text) < 200:
        return None
    plain = _FENCE.sub("\n", text[: 200 << 10])
    lines = [line for line in plain.splitlines() if not _SKIPPED.match(line)]
    return _sentences(lines) or _phrases("\n".join(lines))


def _sentences(lines: list[str]) -> tuple[int, str] | None:
    said = [s.strip() for line in lines for s in _SENTENCE.split(line)]
    said = [s for s in said if len(s) >= SHORT]
    if not said:
        return None
    counted = Counter(" ".join(_WORD.findall(s.lower())) for s in said)
    words, laps = counted.most_common(1)[0]
    if laps < CHANT_NEED or laps * len(words) < _CHANT_SHARE * sum(len(s) for s in said):
        return None
    return laps, next(s for s in said if " ".join(_WORD.findall(s.lower())) == words)[:60]


def _phrases(text: str) -> tuple[int, str] | None:
    """The same without sentences: a run of words at the end of the answer that stands there again and again."""
    found = _WORD.findall(text.lower())[-1200:]
    for length in range(1, min(40, len(found) // CHANT_NEED) + 1):
        lap = found[-length:]
        laps = 1
        while found[-(laps + 1) * length : -laps * length] == lap:
            laps += 1
        if laps >= CHANT_NEED and laps * length >= 40:
            return laps, " ".join(lap)[:60]
    return None


@dataclass(slots=True)
class Chant:
    """One answer that repeats itself: known as soon as it is there."""

    def feed(self, round_: Round, history: History) -> Iterator[Alert]:
        """An alert a chanting turn."""
        if round_.chant is not None:
            laps, words = round_.chant
            yield Alert("chant", ("chant",), (round_.number,), laps, 1, (f"“{words}”",), CHANT_NEED)
