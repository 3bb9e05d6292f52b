"""Turns for the cycle detector, written short: `turn(call("read", {"f": "a"}, "text"))`."""

from __future__ import annotations

import itertools
import json
from typing import Any

from looptape.replay.cycles import CallSeen, CycleDetector, CycleFinding, Declared, TurnSeen


def call(name: str, arguments: Any = None, result: str | None = "ok", *, error: bool = False, **more: Any) -> CallSeen:
    """A call with its result."""
    return CallSeen(name, arguments if arguments is not None else {}, result, is_error=error, **more)


def turn(*calls: CallSeen, text: str = "", user: str | None = None, **more: Any) -> TurnSeen:
    """A turn; its number is given by `numbered`."""
    return TurnSeen(0, calls=calls, text=text, user=user, **more)


def numbered(turns: list[TurnSeen]) -> list[TurnSeen]:
    """The turns with numbers from 1, ten seconds apart unless they say otherwise."""
    found = []
    for number, one in enumerate(turns, 1):
        fields = {name: getattr(one, name) for name in TurnSeen.__slots__} | {"number": number}
        if one.started_at is None:
            fields |= {"started_at": number * 10_000_000, "ended_at": number * 10_000_000 + 5_000_000}
        found.append(TurnSeen(**fields))
    return found


def findings(turns: list[TurnSeen], declared: Declared | None = None) -> tuple[CycleFinding, ...]:
    """What the detector says of these turns in the end. Its own trouble is raised, not swallowed."""
    detector = Loud("run", declared=declared)
    for one in numbered(turns):
        detector.feed(one)
    return detector.findings()


class Loud(CycleDetector):
    """A detector whose own trouble is seen."""

    def feed(self, turn: TurnSeen) -> tuple[CycleFinding, ...]:
        """As the detector's, but what goes wrong is raised."""
        return tuple(self._feed(turn))


def labelled(folder: Any) -> list[tuple[str, list[TurnSeen], list[tuple[str, int, int]]]]:
    """The labelled runs of a folder: id, turns, episodes; turn numbers count from 0 as the labels do."""
    labels = {}
    for line in (folder / "labels.jsonl").read_text("utf-8").splitlines():
        said = json.loads(line)
        labels[said["id"]] = [tuple(e) for e in said["episodes"]]
    found = []
    for line in (folder / "traces.jsonl").read_text("utf-8").splitlines():
        run = json.loads(line)
        found.append((run["id"], [_seen(n, t) for n, t in zip(itertools.count(), run["turns"])], labels[run["id"]]))
    return found


def _seen(number: int, given: dict[str, Any]) -> TurnSeen:
    calls = tuple(CallSeen(c["name"], c["args"], c["result"], is_error=c["error"]) for c in given["calls"])
    at = int(given["t"] * 1e6)
    words = given["text"]
    return TurnSeen(
        number, given["agent"], "" if given["user"] else words, calls, user=words if given["user"] else None,
        compaction=given["compaction"], tokens=given["tokens"], started_at=at, ended_at=at,
    )  # fmt: skip
