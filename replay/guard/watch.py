"""`Watch`: the guard of one run. The tracer tells it what happens; it records, tells the model, refuses, stops."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NoReturn

from ...tracer.errors import LoopStopped
from ...tracer.live import OpenRun, OpenTurn, PendingCall
from ...tracer.observers import STATE, Addition, Ended, NextCall, Refusal, Teller, shape
from ...tracer.providers import Answer, by_api
from ..cycles import CycleFinding
from . import ladder, memory
from .allowed import Allowed
from .goal import Goal
from .limits import Reached, Spent
from .scope import Last, Made, Scope, arguments_of

ACT = "guard"
"""The event that says what a guard did."""
SCOPES = 256
"""Runs (sub-agents) of one watched run that are kept; of the longest unused the history is forgotten."""

_watches: weakref.WeakSet[Watch] = weakref.WeakSet()


class Watch:
    """Watches one run and the sub-agents in it; each agent has its own history, all share the limits.

    Args:
        active: Where to record; None while recording is off: then only the goal check is asked.
        state: What an earlier run's `state` said, for a run that goes on from it.
    """

    def __init__(self, allowed: Allowed, run: OpenRun, active: Teller | None, state: Mapping[str, Any] | None) -> None:
        self.run = run
        self._allowed = allowed
        self._active = active
        self._lock = threading.RLock()
        self._spent = Spent(allowed.caps)
        self._own = Scope(run, allowed.declared, base=run.turns)
        self._scopes: OrderedDict[str, Scope] = OrderedDict()
        self._goal = Goal(allowed, run, active, lambda why: self._stop(run, ("goal", why), None))
        _watches.add(self)
        if state:
            self._take_over(state)
        if allowed.told:
            self._record(run, None, "limits", text=allowed.told)

    # -- what the tracer tells -------------------------------------------------------------------------------

    def asking(self, call: NextCall) -> None:
        """Before a model call: what has come since the last one is looked at, then the limits have their say.

        Raises:
            LoopStopped: A limit is reached, or a cycle has come to the top of the ladder.
        """
        with self._lock:
            scope = self._scope(call.run) if call.run is not None else None
            if scope is not None and not call.again:
                self._climb(scope, scope.asking(call))
                self._save(scope)
            reached = self._reached(scope, again=call.again)
            if reached is None:
                return
            finding = scope.stop if scope is not None and reached[0] == "cycle" else None
            self._stop(call.run or self.run, reached, finding)

    def answered(self, turn: OpenTurn, answer: Answer) -> None:
        """A model call has come back."""
        with self._lock:
            scope = self._scope(turn.run)
            scope.answered(turn, answer)
            self._spent.add(answer.usage, by_api(turn.api).NAME, answer.model or scope.model)

    def tool_starting(self, call: PendingCall, *, straight: bool = False) -> Refusal | None:
        """Whether a call would only lengthen a cycle that should have ended."""
        if not self._allowed.allows("block"):
            return None
        with self._lock:
            scope = self._scope(call.run)
            finding = scope.standing(call.name, arguments_of(call), scope.agent_of(call.turn))
            if finding is None or ladder.level(finding) < ladder.INTERVENE:
                return None
            text = ladder.refused(finding, call.name, scope.tools, scope.used)
            kind, gave = scope.shapes.get(call.name, ("other", None))
            found = _refusal(text, "text" if straight else kind, gave)
            self._record(
                call.run,
                call.turn,
                "block" if found else "cannot-block",
                finding,
                call=call.id,
                name=call.name,
                text=text,
            )
            return found

    def tool_ended(self, ended: Ended) -> Addition | None:
        """A tool is over: the turn may be whole now, and its cycle has to be told with this result."""
        call, text, is_error = ended.call, ended.text, ended.is_error
        with self._lock:
            scope = self._scope(call.run)
            before = scope.last(call.key)
            refused = ended.refused or ladder.is_refusal(text, call.name)  # a replay serves it as any result
            if refused and before is not None and before.text is not None:
                # what it would have given: so a model that goes on asking is still seen to go round
                text, is_error = before.text, before.is_error
            made = scope.ended(call, text, is_error, ended.declared)
            agent = scope.agent_of(call.turn)
            if scope.whole(call.turn):
                self._climb(scope, scope.feed(call.turn))
                self._save(scope)
            if refused:
                return None
            kind = "raised" if is_error and ended.result is None else shape(ended.result)
            scope.shapes[call.name] = (kind, ended.gave)
            scope.remember(call.key, call.turn, text, is_error)
            return self._addition(scope, ended, made, before, agent)

    def notice(self, run: OpenRun) -> str | None:
        """What waits to be told to the model of this run."""
        with self._lock:
            scope = self._scope(run)
            said, scope.pending = scope.pending, None
            if said is not None:
                self._record(run, run.turns, "notice", text=said)
            return said

    def closing(self, run: OpenRun) -> None:
        """The last turn of a run."""
        with self._lock:
            scope = self._scopes.pop(run.id, None)
            if run is self.run:
                scope = self._own
            if scope is not None:
                self._climb(scope, scope.asking(NextCall(run)))
                self._save(scope)

    def done(self, text: str) -> str | None:
        """See `Run.done`."""
        return self._goal.ask(text)

    async def done_async(self, text: str) -> str | None:
        """See `Run.done_async`."""
        return await self._goal.ask_async(text)

    # -- the ladder ------------------------------------------------------------------------------------------

    def _climb(self, scope: Scope, findings: tuple[CycleFinding, ...]) -> None:
        """What is newly known of cycles: recorded, made ready to be told, or the reason to stop."""
        for finding in findings:
            self._record(scope.run, finding.last_turn - scope.offset, "note", finding)
            level = ladder.level(finding)
            if self._allowed.allows("notice") and level == ladder.WARN:
                scope.pending = ladder.notice(finding, scope.tools, scope.used)
            if self._allowed.allows("stop") and level >= ladder.STOP:
                scope.stop = finding

    def _addition(
        self, scope: Scope, ended: Ended, made: Made, before: Last | None, agent: str | None
    ) -> Addition | None:
        """What the model is told with this result, where that can be done without harm."""
        kind = shape(ended.result) if ended.shows else "other"
        if kind == "other" or not self._allowed.allows("notice"):
            return None
        notice, scope.pending = scope.pending, None
        instead = None
        if before is not None and kind in ("text", "blocks") and before.size >= ladder.STUB_FROM:
            same = before.digest == hash(made.result) and _only_text(ended.result)
            standing = scope.standing(made.name, made.arguments, agent) if same else None
            if standing is not None and ladder.level(standing) >= ladder.WARN:
                instead = ladder.stub(before.turn, before.size)
        if notice is None and instead is None:
            return None
        said = {"text": notice, "instead": instead}
        rung = "notice" if notice is not None else "stub"
        self._record(scope.run, ended.call.turn, rung, call=made.id, name=made.name, **_given(said))
        return Addition(notice, instead)

    def _reached(self, scope: Scope | None, *, again: bool) -> Reached | None:
        caps = self._allowed.caps
        if scope is not None and not again:
            if caps.turns is not None and scope.turns >= caps.turns:
                return "turns", f"{scope.turns} of {caps.turns}"
            found = scope.errors.reached(caps)
            if found is not None:
                return found
            if scope.stop is not None:
                return "cycle", scope.stop.sentence
        return self._spent.reached()

    def _stop(self, run: OpenRun, reached: Reached, finding: CycleFinding | None) -> NoReturn:
        stopped = LoopStopped(*reached, run=run.id, finding=finding.as_json() if finding is not None else None)
        run.stopped = self.run.stopped = (stopped.status, str(stopped))
        self._record(run, run.turns or None, "stop", finding, reason=stopped.reason, text=stopped.detail)
        raise stopped

    # -- records ---------------------------------------------------------------------------------------------

    def _record(
        self, run: OpenRun, turn: int | None, rung: str, finding: CycleFinding | None = None, **more: Any
    ) -> None:
        if self._active is None:
            return
        about: dict[str, Any] = {}
        if finding is not None:
            about = {
                "cycle": finding.kind, "level": finding.level, "first_turn": finding.first_turn,
                "last_turn": finding.last_turn, "laps": finding.laps, "sentence": finding.sentence,
                "wasted_turns": finding.wasted.turns, "wasted_tokens": finding.wasted.tokens,
            }  # fmt: skip
        self._active.event(run, ACT, turn, {"rung": rung, **about, **more})
        last = run.last
        if last is not None and last.span is not None and rung != "limits":
            last.span.guarded(rung, {k: v for k, v in about.items() if k != "sentence"})

    def _save(self, scope: Scope) -> None:
        """Writes what a later run needs to go on: after each turn what is new, so that a kill loses one turn."""
        if self._active is None or scope is not self._own or not scope.unsaved:
            return
        scope.unsaved = False
        latest = scope.detector.latest()
        if latest is not None:
            saved = self._counts(scope, [memory.redacted(latest)])
            self._active.event(self.run, STATE, latest["number"] - scope.offset, saved, redacted=True)

    def state(self) -> dict[str, Any]:
        """What a run that goes on from this one has to know, as JSON."""
        with self._lock:
            rounds = self._own.detector.state()["rounds"]
            return self._counts(self._own, [memory.redacted(r) for r in rounds])

    def _counts(self, scope: Scope, rounds: list[Any]) -> dict[str, Any]:
        return {
            "version": 1, "turns": scope.turns, "in_a_row": scope.errors.in_a_row, "same": dict(scope.errors.same),
            "said": scope.said, "goal_tries": self._goal.tries, **self._spent.as_json(), "rounds": rounds,
        }  # fmt: skip

    def _take_over(self, state: Mapping[str, Any]) -> None:
        own = self._own
        own.before = int(state.get("turns") or 0)
        own.offset = own.before - own.base
        own.said, own.goes_on = state.get("said"), True
        own.errors.in_a_row, own.errors.same = int(state.get("in_a_row") or 0), dict(state.get("same") or {})
        self._goal.tries = int(state.get("goal_tries") or 0)
        self._spent.take_over(state)
        own.detector.resume({"rounds": memory.readable(state.get("rounds") or ())})
        if self._active is not None:
            self._active.event(self.run, STATE, None, self.state(), redacted=True)

    def _scope(self, run: OpenRun) -> Scope:
        if run is self.run:
            return self._own
        found = self._scopes.get(run.id)
        if found is None:
            found = self._scopes[run.id] = Scope(run, self._allowed.declared, base=max(0, run.turns - 1))
            while len(self._scopes) > SCOPES:
                self._scopes.popitem(last=False)
        return found

    def after_fork(self) -> None:
        """A lock that another thread held in the parent would be held for ever here."""
        self._lock = threading.RLock()


def _refusal(text: str, kind: str, gave: str | None) -> Refusal | None:
    """The refusal in the form in which the tool has spoken last; None where there is none that a program expects."""
    if kind == "text":
        return Refusal(text, text, gave=gave)
    if kind == "json":
        import json

        return Refusal(text, json.dumps({"error": text}, ensure_ascii=False), gave=gave)
    if kind == "blocks":
        return Refusal(text, [{"type": "text", "text": text}], gave=gave)
    if kind == "raised":
        return Refusal(text, error=ToolRefused(text), gave=gave)
    return None


class ToolRefused(Exception):
    """In the place of a tool that has raised the last time: its loop knows what to do with that."""


def _only_text(result: Any) -> bool:
    return isinstance(result, str) or all(b.get("type") == "text" for b in result)


def _given(said: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in said.items() if v is not None}


def _forked() -> None:
    for watch in list(_watches):
        watch.after_fork()


os.register_at_fork(after_in_child=_forked)
