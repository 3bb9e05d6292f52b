"""One pass over a run's windows: keeps the window of each turn as entries, and notes what each turn did to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...tracer.model import Turn
from ...tracer.store.windows import Sent, Step
from ..alike import cached_key
from .answers import Growth, Removed
from .ledger import Key, Ledger, answer_tokens, apportion
from .pieces import Entry, Piece, of_message, of_system, of_tools, unrecorded


@dataclass(frozen=True, slots=True)
class Changed:
    """What was exchanged in a step: the entries in their old order, and what stands there now."""

    gone: tuple[Entry, ...]
    come: tuple[Entry, ...]


class Sweep:
    """Goes through the steps of a run in order. ``entries`` is the window's messages after the last step."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.entries: list[Entry] = []
        self.system, self.tools = of_system(None, 0), of_tools(None, 0)
        self.lacking = Entry(None, 0, [])  # what the first request held and nobody recorded
        self.ledger = Ledger()
        self.growth: list[Growth] = []
        self.removed: list[Removed] = []
        self.turns = {t.number: t for t in turns}
        self._names = {c.id: c.name for t in turns for c in t.tool_calls}
        self._before: tuple[Step, Turn | None] | None = None

    def go(self, step: Step) -> Changed:
        """Goes one step on."""
        turn = self.turns.get(step.number)
        old = self.entries[step.kept : step.kept + len(step.dropped)]
        now = self._entered(step, old)
        stayed = {id(e) for e in now}
        changed = Changed(tuple(e for e in old if id(e) not in stayed), self._new(now, old))
        self.entries[step.kept : step.kept + len(step.dropped)] = now
        gone = [p for e in changed.gone for p in e.pieces]
        come = [p for e in changed.come for p in e.pieces]
        heads = self._heads(step, gone, come)
        self.ledger.go(gone)
        before = sum(p.tokens for e in changed.gone for p in e.pieces)
        recorded = None if gone or heads else self._gained(turn)
        if self._before is None:
            self.lacking.pieces = unrecorded(come, recorded)
            come += self.lacking.pieces
        self.ledger.come(come, recorded, self._answered(come))
        if changed.gone:
            self._note_removed(step, turn, changed, before)
        self.growth.append(self._grown(step, turn, changed))
        self._before = (step, turn)
        return changed

    def pieces(self) -> list[Piece]:
        """All pieces of the window in order."""
        return [p for e in (self.system, self.tools, self.lacking, *self.entries) for p in e.pieces]

    def _entered(self, step: Step, old: Sequence[Entry]) -> list[Entry]:
        """The entries of what was added: those that only moved, or lost a cache mark, stay the same."""
        known: dict[str, list[Entry]] = {}
        for entry in old:
            if entry.sent is not None:
                known.setdefault(cached_key(entry.sent.text, entry.sent.hash), []).append(entry)
        found = []
        for sent in step.added:
            same = known.get(cached_key(sent.text, sent.hash)) if known else None
            if same:
                entry = same.pop(0)
                entry.sent = sent
            else:
                entry = self._made(sent, step.number)
            found.append(entry)
        return found

    def _made(self, sent: Sent, number: int) -> Entry:
        entry = of_message(sent, number, self._names)
        for piece in entry.pieces:
            if piece.origin == "arguments" and piece.call and piece.tool:
                self._names.setdefault(piece.call, piece.tool)
        return entry

    def _new(self, now: Sequence[Entry], old: Sequence[Entry]) -> tuple[Entry, ...]:
        before = {id(e) for e in old}
        return tuple(e for e in now if id(e) not in before)

    def _heads(self, step: Step, gone: list[Piece], come: list[Piece]) -> bool:
        """Exchanges system text and tool list; True when one of them is not what it was in the turn before."""
        first = self._before is None
        earlier = self._before[0] if self._before else None
        exchanged = False
        for name, make in (("system", of_system), ("tools", of_tools)):
            text = getattr(step, name)
            if earlier is not None and getattr(earlier, name) == text:
                continue
            fresh = make(text, step.number)
            gone += getattr(self, name).pieces
            come += fresh.pieces
            setattr(self, name, fresh)
            exchanged = exchanged or not first
        return exchanged

    def _gained(self, turn: Turn | None) -> int | None:
        """Tokens that came in with this turn, from the recorded totals of two turns."""
        total = turn.usage.context if turn is not None and not turn.usage.partial else None
        if self._before is None or total is None or turn is None:
            return total
        earlier = self._before[1]
        if earlier is None or earlier.usage.context is None or _model(earlier) != _model(turn):
            return None
        return total - earlier.usage.context

    def _answered(self, come: Sequence[Piece]) -> int | None:
        earlier = self._before[1] if self._before else None
        return answer_tokens(earlier, come) if earlier is not None else None

    def _note_removed(self, step: Step, turn: Turn | None, changed: Changed, tokens: float) -> None:
        shares: dict[str, float] = {}
        for piece in (p for e in changed.gone for p in e.pieces):
            shares[piece.origin] = shares.get(piece.origin, 0.0) + piece.tokens
        instead = sum(p.tokens for e in changed.come for p in e.pieces)
        if turn is not None and "compaction" in turn.flags:
            kind = "compaction"
        else:
            kind = "shortened" if len(step.added) < len(step.dropped) else "edited"
        whole = {origin: round(value) for origin, value in shares.items()}
        self.removed.append(Removed(step.number, kind, len(changed.gone), round(tokens), whole, round(instead)))

    def _grown(self, step: Step, turn: Turn | None, changed: Changed) -> Growth:
        tokens, how = total_of(turn, self.ledger)
        shares: dict[str, int] = {}
        for (origin, _), count in apportion(self.ledger.sums, tokens).items():
            shares[origin] = shares.get(origin, 0) + count
        return Growth(step.number, tokens, how, shares, step.count, len(changed.come), len(changed.gone))


def total_of(turn: Turn | None, ledger: Ledger) -> tuple[int, str]:
    """Tokens of a turn's window, and whether they were recorded, derived or estimated."""
    if turn is not None and turn.usage.context is not None:
        return turn.usage.context, turn.usage.origin if turn.usage.origin != "missing" else "recorded"
    return round(ledger.total), "estimated"


def by_key(pieces: Sequence[Piece]) -> dict[Key, int]:
    """How many pieces each origin and tool has."""
    found: dict[Key, int] = {}
    for piece in pieces:
        found[piece.origin, piece.tool] = found.get((piece.origin, piece.tool), 0) + 1
    return found


def _model(turn: Turn) -> str | None:
    return turn.model or turn.request_model
