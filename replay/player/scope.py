"""What of a recording is to be served, and what is live: by the turn of the root run in whose time it lies."""

from __future__ import annotations

from ...tracer.live import OpenRun
from ...tracer.substitute import Asked, ToolAsked
from .ledger import Ledger
from .recorded import RecordedCall, RecordedRuns, RecordedTurn
from .settings import ReplaySettings


class Scope:
    """Follows how far each run has come."""

    def __init__(self, recorded: RecordedRuns, settings: ReplaySettings, ledger: Ledger) -> None:
        self._recorded = recorded
        self._settings = settings
        self._ledger = ledger
        self._runs: dict[str, OpenRun] = {}
        self._lived: set[str] = set()
        self._left = {t.key for t in recorded.turns() if is_served(recorded, settings, t)}

    def opened(self, run: OpenRun) -> None:
        """Knows a run of this process, so that sub-agents are where their parent is."""
        self._runs[run.id] = run

    def served(self, key: tuple[str, int]) -> None:
        """A turn was served, or lies inside a served call."""
        self._left.discard(key)

    def lived(self, run: str) -> None:
        """A run had a live turn: what follows in it is live too."""
        self._lived.add(run)

    def all_served(self) -> bool:
        """Whether everything before the first live turn was served."""
        return not self._left

    def is_live(self, asked: Asked) -> bool:
        """Whether a request is to be sent for real."""
        parent = asked.run.parent or {}
        if asked.run.id in self._lived or (parent.get("kind") == "resume" and parent.get("run") in self._lived):
            return True
        if self._settings.model == "recorded":
            return False
        first = self._settings.from_turn or 1
        return self._root_turn(asked.run, None, set()) >= first

    def tool(self, asked: ToolAsked) -> str:
        """``recorded``, ``live`` or ``stub:TEXT`` for a tool call."""
        first = self._settings.from_turn or 1
        if asked.run is not None and self._root_turn(asked.run, asked.turn, set()) < first:
            return "recorded"
        return self._settings.tool.get(asked.name, self._settings.tools)

    def is_asked(self, call: RecordedCall) -> bool:
        """Whether a recorded call is to be served: its tool has to be wrapped then."""
        turn = self._recorded.turn(call.run, call.turn)
        return turn is not None and is_served_call(self._recorded, self._settings, turn, call)

    def _root_turn(self, run: OpenRun, turn: int | None, seen: set[str]) -> int:
        """The turn of the root run in which a run of this process is: the one that it asks for next, or a given one."""
        if run.id in seen:
            return 1
        seen.add(run.id)
        parent = run.parent or {}
        above = self._runs.get(str(parent.get("run"))) if parent.get("kind") == "sub-agent" else None
        if above is not None:
            return self._root_turn(above, parent.get("turn") or above.turns, seen)
        if turn is None:
            last = self._ledger.last.get(run.id)
            return self._after(last) if last is not None else 1
        found = self._ledger.turns.get((run.id, turn))
        return self._recorded.root_turn(found.run, found.number) if found is not None else max(turn, self._past(run))

    def _after(self, last: RecordedTurn) -> int:
        is_root = self._recorded.parent_of(last.run) is None
        return self._recorded.root_turn(last.run, last.number + 1 if is_root else last.number)

    def _past(self, run: OpenRun) -> int:
        """A turn that was live lies behind those that were served."""
        return (self._settings.from_turn or 1) if run.id in self._lived else 1


def is_served(recorded: RecordedRuns, settings: ReplaySettings, turn: RecordedTurn) -> bool:
    """Whether a recorded turn is to be answered from the recording."""
    if not turn.answered:
        return False
    return settings.model == "recorded" or recorded.root_turn(turn.run, turn.number) < (settings.from_turn or 1)


def is_served_call(recorded: RecordedRuns, settings: ReplaySettings, turn: RecordedTurn, call: RecordedCall) -> bool:
    """Whether a recorded tool call is to be answered from the recording."""
    if not call.has_result or not turn.answered:
        return False
    if recorded.root_turn(turn.run, turn.number) < (settings.from_turn or 1):
        return True
    how = settings.tool.get(call.name, settings.tools)
    return how == "recorded" and settings.model == "recorded"


def covered_by(recorded: RecordedRuns, call: RecordedCall) -> list[RecordedTurn]:
    """The turns of the sub-agents that a call's tool ran: they are not asked for where the call itself is served."""
    found: list[RecordedTurn] = []
    names = [r.id for r in recorded.runs if recorded.parent_of(r.id) == (call.run, call.turn, call.id)]
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        run = recorded.run(name)
        found += run.turns if run is not None else ()
        names += [r.id for r in recorded.runs if (recorded.parent_of(r.id) or ("",))[0] == name]
    return found
