"""Puts a miss into words: where a request or call parts from the recording, the nearest recorded one, the cure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...tracer.canonical import canonical
from ...tracer.substitute import Asked, ToolAsked
from .differences import DIALOGUE, NOTHING, Difference, in_message, in_part, json_path, likeness, shown, shown_both
from .ledger import Ledger, part_hashes
from .normalise import PARTS, NotJson, decoded
from .recorded import RecordedCall, RecordedTurn
from .stops import Miss

_CANDIDATES = 12
_AGAIN = "If the change is meant, record it again: looptape record -- COMMAND"


@dataclass(frozen=True, slots=True)
class Compared:
    """A request beside a recorded turn. ``pairs``: hashes of the messages and parts that differ, recorded and got."""

    turn: RecordedTurn
    differences: tuple[Difference, ...]
    pairs: tuple[tuple[str | None, str | None], ...]

    @property
    def real(self) -> list[Difference]:
        """The differences that no rule lets pass."""
        return [d for d in self.differences if not d.rules]


class Ids:
    """Which new id stands for which recorded one: one for one, and never one that the recording has elsewhere."""

    def __init__(self, ledger: Ledger) -> None:
        self._texts = ledger.recorded.texts
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def checked(self, difference: Difference) -> Difference:
        """The difference; a real one where its ids are mixed up."""
        fits = all(self._fits(old, new) for old, new in difference.ids)
        return difference if fits else replace(difference, rules=())

    def keep(self, difference: Difference) -> None:
        """From now on these ids stand for each other."""
        for old, new in difference.ids:
            self._new[old], self._old[new] = new, old

    def _fits(self, old: str, new: str) -> bool:
        if old in self._new or new in self._old:
            return self._new.get(old) == new and self._old.get(new) == old
        return not any(new in text for text in self._texts.values())


class Explainer:
    """Compares with a ledger's recording; pairs that were told once are not told again."""

    def __init__(self, ledger: Ledger, label: str) -> None:
        self._ledger = ledger
        self._label = label
        self.accepted: set[tuple[str | None, str | None]] = set()
        self.ids = Ids(ledger)

    def compare(self, turn: RecordedTurn, asked: Asked) -> Compared:
        """Every place where a request differs from a turn, without those that were accepted before."""
        found: list[Difference] = []
        pairs: list[tuple[str | None, str | None]] = []
        for left, right, compare in self._sides(turn, asked):
            if left != right and (left, right) not in self.accepted:
                pairs.append((left, right))
                found += (self.ids.checked(d) for d in compare(left, right))
        if turn.mode != asked.mode:
            found.append(
                Difference(
                    "previous_response_id" if "previous_response" in (turn.mode, asked.mode) else "thread",
                    turn.mode,
                    asked.mode,
                )
            )
        if self._ledger.rules.match == "exact" and turn.stream != asked.stream:
            found.append(Difference("stream", turn.stream, asked.stream))
        return Compared(turn, tuple(found), tuple(pairs))

    def _sides(self, turn: RecordedTurn, asked: Asked) -> Iterator[tuple[str | None, str | None, Any]]:
        api = asked.provider.API
        for part, left, right in zip(PARTS, turn.parts, part_hashes(asked), strict=True):
            if part != "params":
                yield (
                    left,
                    right,
                    lambda a, b, part=part: in_part(self._value(a), self._value(b), part, api, self._ledger.rules),
                )
        for index in range(max(len(turn.hashes), len(asked.hashes))):
            left = turn.hashes[index] if index < len(turn.hashes) else None
            right = asked.hashes[index] if index < len(asked.hashes) else None
            path = f"{asked.provider.LIST_KEY}[{index}]"
            if left != right:
                yield left, right, lambda a, b, path=path: self._messages(a, b, path)
        left, right = turn.parts[2], part_hashes(asked)[2]
        yield left, right, lambda a, b: in_part(self._value(a), self._value(b), "params", api, self._ledger.rules)

    def _messages(self, left: str | None, right: str | None, path: str) -> list[Difference]:
        one, other = self._value(left), self._value(right)
        if one is NOTHING or other is NOTHING:
            return [Difference(path, one, other)]
        return in_message(one, other, path, self._ledger.rules)

    def _value(self, key: str | None) -> Any:
        text = self._ledger.texts.text(key) if key is not None else None
        if text is None:
            return NOTHING if key is None else f"<a message from before the replay, {key[:8]}>"
        try:
            return decoded(text)
        except NotJson:
            return text

    # -- model calls --------------------------------------------------------------------------

    def missed(self, asked: Asked, expected: RecordedTurn | None) -> tuple[Miss, Compared | None]:
        """Why a request is not in the recording. ``expected``: the turn that would have come next."""
        cut = self._ledger.unanswered(asked)
        if cut is not None:
            return self._not_answered(cut), None
        near = self._nearest(asked, expected)
        if near is None:
            return self._none_left(asked), None
        compared = self.compare(near, asked)
        real = compared.real or list(compared.differences)
        again = near is not expected and not self._ledger.is_open(near)
        what = f"turn {near.number} asks for something that is not in {self._label}"
        if not real:
            return self._asked_again(near, asked), compared
        if again or (expected is not None and near is not expected):
            what = f"model call {asked.turn.number} of this program is not in {self._label}"
        first = real[0]
        recorded, got = shown_both(first.recorded, first.got)
        position = _number(first.path, asked.provider.LIST_KEY)
        nearest = f"turn {near.number} of run {near.run}" + (f", message {position} of its request" if position else "")
        return Miss(
            near.run,
            near.number,
            json_path(first.path),
            recorded,
            got,
            nearest,
            self._cure(compared),
            what,
            tuple(dict.fromkeys(json_path(d.path) for d in real)),
        ), compared

    def again(self, turn: RecordedTurn, asked: Asked) -> Miss:
        """Another attempt of a turn than the recording has."""
        count = len(turn.attempts)
        noun = "attempt" if count == 1 else "attempts"
        what = f"turn {turn.number} was sent {count + 1} times; {self._label} has {count} {noun} of it"
        last = turn.attempts[-1]
        nearest = (
            f"attempt {count} of turn {turn.number}: {last.status if last.status is not None else last.error_type}"
        )
        cure = "Does the program retry more often than it did (max_retries)? " + _AGAIN
        return Miss(turn.run, turn.number, None, f"{count} {noun}", f"attempt {count + 1}", nearest, cure, what)

    def _asked_again(self, near: RecordedTurn, asked: Asked) -> Miss:
        what = f"model call {asked.turn.number} repeats turn {near.number}, whose recorded answer was already given"
        nearest = f"turn {near.number} of run {near.run}"
        return Miss(
            near.run, near.number, None, None, None, nearest, f"The program asks more often than it did. {_AGAIN}", what
        )

    def _not_answered(self, turn: RecordedTurn) -> Miss:
        what = f"turn {turn.number} has no answer in {self._label}: it was cut off there"
        nearest = f"turn {turn.number} of run {turn.run}, the same request"
        cure = f"Go on live from there: --from {turn.number} --model live. {_AGAIN}"
        return Miss(turn.run, turn.number, None, None, None, nearest, cure, what)

    def _none_left(self, asked: Asked) -> Miss:
        what = f"model call {asked.turn.number} has nothing to be answered with: {self._label} has no turn for {asked.provider.API}"
        return Miss(None, None, None, None, None, None, _AGAIN, what)

    def _cure(self, compared: Compared) -> str:
        found = compared.real
        if found and all(d.path.startswith(("system", "instructions")) or ".description" in d.path for d in found):
            return "To test a changed prompt against the recorded dialogue: --match dialogue. " + _AGAIN
        if self._ledger.rules.match == "exact" and found:
            return "If such changes do not matter: --match normalised. " + _AGAIN
        return "What changes from run to run is named by: looptape stable RUN -- COMMAND. " + _AGAIN

    def _nearest(self, asked: Asked, expected: RecordedTurn | None) -> RecordedTurn | None:
        """The expected turn where it shares the beginning, else the one with the longest common beginning."""
        turns = [t for t in self._ledger.recorded.turns() if t.api == asked.provider.API and t.answered]
        if not turns:
            return None
        shared = {t.key: self._shared(t, asked) for t in turns}
        best = max(shared.values())
        if expected is not None and (
            shared[expected.key] == best or expected.run in self._ledger.bound.get(asked.run.id, ())
        ):
            return expected
        top = sorted(
            (t for t in turns if shared[t.key] == best),
            key=lambda t: (not self._ledger.is_open(t), abs(len(t.hashes) - len(asked.hashes))),
        )
        last = asked.hashes[best] if best < len(asked.hashes) else None
        got = (self._ledger.texts.text(last) or "") if last is not None else ""

        def alike(turn: RecordedTurn) -> float:
            text = self._ledger.texts.text(turn.hashes[best]) if best < len(turn.hashes) else None
            return likeness(text or "", got) if last is not None else float(len(turn.hashes) == best)

        return max(top[:_CANDIDATES], key=alike)

    def _shared(self, turn: RecordedTurn, asked: Asked) -> int:
        digests, count = self._ledger.texts.digest, 0
        for left, right in zip(turn.hashes, asked.hashes, strict=False):
            if left != right and (left, right) not in self.accepted:
                try:
                    if digests("message", left) != digests("message", right):
                        break
                except NotJson:
                    break
            count += 1
        return count

    # -- tool calls ---------------------------------------------------------------------------

    def missed_tool(self, asked: ToolAsked) -> Miss:
        """Why a tool call is not in the recording."""
        same = self._ledger.occurrences(asked)
        named = self._ledger.calls_named(asked.name)
        said = f"{asked.name}({shown(_arguments(asked.arguments), 80)})"
        turn = asked.turn or (named[-1].turn if named else None)
        if same:
            what = f"tool call {said} comes {same + 1} times; {self._label} has {same} of it"
            last = [c for c in named if canonical(c.arguments) == canonical(asked.arguments)][-1]
            cure = f"No result is given twice. {_let(asked.name)}. {_AGAIN}"
            return Miss(last.run, turn, None, None, None, _call_words(last), cure, what)
        if not named:
            what = f"tool call {said}: {self._label} has no call of {asked.name}"
            cure = f"{_let(asked.name)}. {_AGAIN}"
            return Miss(None, turn, asked.name, None, shown(_arguments(asked.arguments)), None, cure, what)
        text = canonical(asked.arguments)
        near = max(named, key=lambda c: (c.turn == asked.turn, likeness(canonical(c.arguments), text)))
        found = in_part({"input": near.arguments}, {"input": asked.arguments}, "params", "", self._ledger.rules)
        first = next((d for d in found if not d.rules), None)
        path = f"{asked.name}.{first.path.removeprefix('input.')}" if first else asked.name
        recorded, got = shown_both(first.recorded, first.got) if first else (None, None)
        what = f"tool call {said} is not in {self._label}"
        return Miss(near.run, turn or near.turn, path, recorded, got, _call_words(near), _AGAIN, what, (path,))

    def unanswered(self, call: RecordedCall) -> Miss:
        """A call that was made in the recording, without a result."""
        what = f"tool call {call.name} of turn {call.turn} has no result in {self._label}: it was never answered there"
        return Miss(call.run, call.turn, None, None, None, _call_words(call), _let(call.name), what)


def is_drift(difference: Difference) -> bool:
    """Whether a difference is one that only ``dialogue`` lets pass."""
    return DIALOGUE in difference.rules


def _let(name: str) -> str:
    return f"Let it run (--tool {name}=live) or give it a result (--tool {name}=stub:TEXT)"


def _call_words(call: RecordedCall) -> str:
    return f"turn {call.turn}: {call.name}({shown(_arguments(call.arguments), 80)})"


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)


def _number(path: str, key: str) -> int | None:
    head, _, _rest = path.removeprefix(f"{key}[").partition("]")
    return int(head) + 1 if path.startswith(f"{key}[") and head.isdecimal() else None
