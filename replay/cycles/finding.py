"""What the detector says: one stretch of turns that goes round, what it cost, how sure it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

KINDS = {
    "exact": "the same call with the same result",
    "period": "the same few calls over and over",
    "fan_out": "the same set of parallel calls",
    "near": "nearly the same call, nothing new",
    "error": "the same kind of error",
    "check": "the same failing check after edits",
    "empty": "searches that find nothing",
    "stagnation": "nothing seen that was not seen before",
    "bookkeeping": "notes and plans without work",
    "text": "the same words without tools",
    "chant": "one answer that repeats itself",
    "compaction": "work done again that was compacted away",
    "ping_pong": "agents handing over to each other",
    "sub_agent": "the same sub-agent started again",
}
"""Every kind with what it is, in a few words."""

LEVELS = ("note", "warn", "intervene", "stop")


@dataclass(frozen=True, slots=True)
class Waste:
    """What went into turns that brought nothing; None where the recording does not say."""

    turns: int = 0
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CycleFinding:
    """One stretch. Numbers are turn numbers; ``detected_turn`` is the first at which it could be known.

    Attributes:
        kind: One of `KINDS`.
        period: Turns of one lap.
        laps: How often it went round, the first time included.
        turns: The turns that belong to it.
        calls: The calls of a lap, short.
        wasted: Of the turns after the first lap.
        stretch: Tokens by bucket of all its turns, the first lap included; ``usd`` with them.
        level: note, warn, intervene or stop: how far a guard's ladder would be.
        confidence: 0 to 1.
        sentence: The same for a person.
    """

    run: str | None
    agent: str | None
    kind: str
    first_turn: int
    last_turn: int
    detected_turn: int
    laps: int
    period: int
    calls: tuple[str, ...]
    turns: tuple[int, ...]
    wasted: Waste
    stretch: dict[str, Any] = field(default_factory=dict)
    level: str = "warn"
    confidence: float = 0.9
    sentence: str = ""

    def as_json(self) -> dict[str, Any]:
        """The fields of contracts.md, and those beyond."""
        found = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}


def sentence(kind: str, first: int, last: int, laps: int, period: int, calls: tuple[str, ...]) -> str:
    """One sentence a person understands."""
    where = f"Turns {first} to {last}" if last > first else f"Turn {first}"
    what = calls[0] if calls else "the same"
    several = " → ".join(calls[:4]) + (" → …" if len(calls) > 4 else "")
    said = {
        "exact": f"ran {what} {laps} times and got the same result each time",
        "period": f"went through {several} {laps} times with the same results",
        "fan_out": f"ran the same set of {len(calls)} calls ({', '.join(calls[:3])}) {laps} times",
        "near": f"ran hardly different versions of {what} {laps} times and learned nothing new",
        "error": f"met the same kind of error {laps} times: {what}",
        "check": f"failed the same check {laps} times, whatever was edited: {what}",
        "empty": f"searched {laps} times and found nothing, last with {what}",
        "stagnation": f"saw nothing in {laps} rounds that had not been seen before, last with {what}",
        "bookkeeping": f"wrote notes or plans {laps} times without doing anything",
        "text": f"said nearly the same {laps} times without using a tool",
        "chant": f"repeats {what} {laps} times inside one answer",
        "compaction": f"did the same work again after the context was compacted, {laps} times",
        "ping_pong": f"handed over back and forth {laps} times ({several}) without any work done",
        "sub_agent": f"started nearly the same sub-agent {laps} times: {what}",
    }[kind]
    verb = "" if period <= 1 or kind != "period" else f" (a lap is {period} turns)"
    return f"{where}: the loop {said}{verb}"
