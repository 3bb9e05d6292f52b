"""T01: independent calls are made one by one, a turn each, where one turn could ask for all of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from .facts import CallFacts, RunFacts
from .rule import Finding, Said, Unknown, span

ID = "T01"
TITLE = "Independent calls made one by one"
FIX = (
    "Let the model ask for all of them in one turn: allow parallel tool calls, say in the prompt that independent look-ups go "
    "out together, or give the tool a list."
)
CALLS = 3
"""Calls in a row from which a fan-out pays; of two the second may have been an afterthought."""
MANY = 6
"""From here on more turns went into asking than into the work: a warning."""
ENUMERATED = 4
"""Numbers in a row that are a list; three may be somebody trying."""
SOON = 2
"""Turns after the last call in which a compaction says that the context was nearly full: one may write the notes for it."""
THRESHOLDS = {"calls": CALLS, "many": MANY, "enumerated": ENUMERATED}

_PAGING = frozenset({"page", "offset", "cursor", "start", "end", "line", "from", "to", "skip", "after", "before", "limit", "token", "view", "range", "next", "head"})  # fmt: skip
_WORDS = re.compile(r"[a-z]+")
_NUMBER = re.compile(r"\d+")
_LOOKS = ("read", "unknown")


def check(facts: RunFacts) -> Iterator[Said]:
    """Streaks of one look-up a turn whose arguments were all known before the first of them was made."""
    at = facts.thresholds(ID, THRESHOLDS)
    least = int(at["calls"])
    told_unknown = False
    for streak in _streaks(facts, least):
        place = 0
        while len(streak) - place >= least:
            found = _independent(facts, streak[place:], int(at["enumerated"]))
            if found is None:
                if not told_unknown:
                    told_unknown = True
                    yield Unknown(ID, facts.run.id, ("messages",))
                break
            if len(found) >= least and not _crowded(facts, found):
                yield _finding(facts, found, at["many"])
            place += max(1, len(found))


def _crowded(facts: RunFacts, calls: list[CallFacts]) -> bool:
    """True when the context was shortened at once: together the results might not have fitted."""
    return bool(facts.compactions.intersection(range(calls[0].turn, calls[-1].turn + SOON + 1)))


def _streaks(facts: RunFacts, least: int) -> Iterator[list[CallFacts]]:
    """Calls of one tool in turns of one call each, nobody speaking between, each with other arguments."""
    streak: list[CallFacts] = []
    for turn in facts.turns:
        calls = facts.by_turn.get(turn.number, ())
        one = calls[0] if len(calls) == 1 and _looks(calls[0]) else None
        follows = (
            one is not None and bool(streak) and not turn.user_turn
            and one.name == streak[-1].name and one.turn == streak[-1].turn + 1 and one.key not in {c.key for c in streak}
        )  # fmt: skip
        if follows and one is not None:
            streak.append(one)
            continue
        if len(streak) >= least:
            yield streak
        streak = [one] if one is not None else []
    if len(streak) >= least:
        yield streak


def _looks(call: CallFacts) -> bool:
    """A look-up that worked. What a command line does, and needs, its text does not tell."""
    return (
        call.effect in _LOOKS and call.command is None and not call.check and call.failed is False
        and call.call.origin != "provider" and call.call.child_run is None and isinstance(call.call.arguments, dict)
    )  # fmt: skip


def _independent(facts: RunFacts, streak: Sequence[CallFacts], enumerated: int) -> list[CallFacts] | None:
    """The beginning of a streak of which no call needed what another one brought; None: the messages are not recorded."""
    given = [dict(c.call.arguments) for c in streak]
    varying = sorted({k for g in given for k in g if any(_plain(x.get(k)) != _plain(g.get(k)) for x in given)})
    if not varying or any(_PAGING.intersection(_WORDS.findall(k.lower())) for k in varying):
        return list(streak[:1])
    counted = len(_steps([[g.get(k) for k in varying] for g in given])) if streak[0].effect == "read" else 0
    if counted >= enumerated:
        return list(streak[:counted])
    if not facts.incoming:
        return None
    before = _known(facts, streak[0].turn)
    found = [streak[0]]
    for call, values in zip(streak[1:], given[1:], strict=True):
        if not all(_named(values.get(k), before) for k in varying if values.get(k) is not None):
            break
        found.append(call)
    return found


def _steps(rows: list[list[Any]]) -> list[list[Any]]:
    """The beginning of the rows in which one number goes up (or down) by one and the rest stays as it is."""
    shaped = [_shape(row) for row in rows]
    if any(numbers is None for _, numbers in shaped[:2]) or len(rows) < 2:
        return rows[:1]
    step, taken = (shaped[1][1] or 0) - (shaped[0][1] or 0), 1
    for (shape, number), (following, after) in itertools.pairwise(shaped):
        if shape != following or number is None or after is None or after - number != step or abs(step) != 1:
            break
        taken += 1
    return rows[:taken]


def _shape(row: list[Any]) -> tuple[str, int | None]:
    """The one number in the values, and the values without it."""
    text = "\x1f".join(_plain(v) for v in row)
    found = _NUMBER.findall(text)
    if len(found) != 1 or len(found[0]) > 9:
        return text, None
    return _NUMBER.sub("#", text), int(found[0])


def _known(facts: RunFacts, turn: int) -> str:
    """All that the model had read or said when it made the call of that turn."""
    said = [i.part.text for n, parts in facts.incoming.items() if n <= turn for i in parts]
    said += [text for t in facts.turns if t.number <= turn for text in (t.text, t.thinking) if text]
    said += [c.text for c in facts.calls if c.turn < turn and c.text]
    return "\n".join(said).lower()


def _named(value: Any, before: str) -> bool:
    if isinstance(value, (dict, list, bool)):
        return False
    text = _plain(value).lower().strip()
    if len(text) < 2 and not text.isdigit():
        return False
    tail = text.rstrip("/").rpartition("/")[2]
    wanted = {text, tail} if "/" in text and "." in tail else {text}
    return any(re.search(rf"(?<!\w){re.escape(w)}(?!\w)", before) for w in wanted if w in before)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _finding(facts: RunFacts, calls: list[CallFacts], many: float) -> Finding:
    turns = [c.turn for c in calls]
    parallel = any(len(c) > 1 for c in facts.by_turn.values())
    waste = facts.waste(turns[1:])
    return Finding(
        ID, "warning" if len(calls) >= many else "info", facts.run.id, turns[0], turns[-1],
        f"{len(calls)} calls of {calls[0].name} took a turn each ({span(turns)}), though none needed what another one brought",
        tuple(f"turn {c.turn}: {c.short}" for c in calls[:4]), waste, 0.8 if parallel else 0.65, FIX,
    )  # fmt: skip
