"""What the loop writes down while it runs: as any recorded run, turn by turn, through this process's recorder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...tracer import observers, records, tape
from ...tracer.calls import Inside, RunningCall, end_call, start_call
from ...tracer.clock import now
from ...tracer.errors import LooptapeError
from ...tracer.exchange import REPLAYED
from ...tracer.live import OpenRun, OpenTurn, PendingCall, Where, call_key
from ...tracer.process import recorder as process_recorder
from ...tracer.providers import Answer, by_api
from ...tracer.recorder import Recorder
from ...tracer.redaction import redact
from .outcome import Ending
from .toolbox import Definition, ToolResult
from .tools.execution import Wanted

ENGINE = "engine"
"""The event that holds what a run needs to be resumed."""


class RunRecord:
    """The record of one run. It is also the watch of its calls (see `tools.execution.Watch`)."""

    def __init__(self, run: OpenRun, api: str, active: Recorder | None = None) -> None:
        found = active or process_recorder()
        if found is None:
            raise LooptapeError(
                "recording-off",
                "the built-in loop records what it does, and recording is off",
                "Unset LOOPTAPE=off",
                exit_code=2,
            )
        self.run = run
        self._active = found
        self._provider = by_api(api)
        self._turn: OpenTurn | None = None

    @property
    def where(self) -> Where:
        """The place of the run's own code."""
        return Where(self.run)

    @property
    def turn(self) -> OpenTurn | None:
        """The turn that is open, or was last."""
        return self._turn

    @property
    def teller(self) -> observers.Teller:
        """Where a guard records what it did."""
        return self._active

    @property
    def provider(self) -> str:
        """The provider's name, for prices."""
        return self._provider.NAME

    def open(self, **more: Any) -> None:
        """The run begins. ``more``: see `Recorder.open_run`."""
        self._active.open_run(self.run, **more)

    def save(self, settings: Mapping[str, Any]) -> None:
        """Writes what the run needs to be resumed, and its limits."""
        self._active.update_run(self.run, limits=self.run.limits)
        self.event(ENGINE, None, **settings)

    def goes_on(self) -> None:
        """A run that was over runs again."""
        self._active.journal.write([records.run_end(self.run, now(), "running", None)])

    def ask(self, raw: bytes) -> OpenTurn:
        """A request is about to be made.

        Raises:
            LooptapeError: It cannot be read as a request (``bad-request``).
        """
        turn = self._active.request(self._provider, raw, place=self.where)
        if turn is None:
            raise LooptapeError("bad-request", f"the request of turn {self.run.turns + 1} is no JSON object")
        if turn.run is self.run:
            self._turn = turn
        return turn

    def answered(
        self, turn: OpenTurn, body: Mapping[str, Any], attempts: list[dict[str, Any]], *, recorded: bool = False
    ) -> Answer:
        """The answer to it. A ``recorded`` one costs nothing once more."""
        sent = len(attempts) > 1 or any(a["status"] is not None for a in attempts)
        turn.attempts = [_clean(a) for a in attempts] if sent else []  # a script's answer was not sent for
        if recorded:
            turn.served = True
            turn.flags.append(REPLAYED)
        answer = self._provider.answer(body)
        self._active.answered(turn, json.dumps(body, ensure_ascii=False), answer)
        return answer

    def failed(
        self, turn: OpenTurn, error: BaseException, kind: str, attempts: list[dict[str, Any]], *, cancelled: bool
    ) -> None:
        """The model call failed for good, or was given up."""
        turn.attempts = [_clean(a) for a in attempts]
        status = "cancelled" if cancelled else "error"
        said = str(error) or type(error).__name__
        self._active.answered(turn, None, Answer(), status=status, error=said, error_type=kind)

    def expect(self, turn: int, calls: Sequence[Wanted], known: Iterable[str]) -> None:
        """Calls of an inherited turn whose results will be seen in the next request."""
        given = set(known)
        for call in calls:
            pending = self._pending(call, turn)
            pending.measured = call.id in given
            self.run.pending[call.id] = pending

    # -- calls, from several threads -------------------------------------------------------------------------

    def started(self, call: Wanted, definition: Definition | None, origin: str) -> RunningCall:
        """A call begins."""
        pending = self._waiting(call)
        pending.claimed = True
        effect = definition.side_effect if definition is not None and definition.side_effect != "unknown" else None
        return start_call(self._active, pending, side_effect=effect, origin=origin)

    def ended(self, token: object, result: ToolResult) -> None:
        """A call is over: what it gave back, or what the model is told of its failure."""
        if isinstance(token, RunningCall):
            state = "cancelled" if result.error_class == "cancelled" else None
            content = result.content
            end_call(token, content, None, is_error=result.is_error, state=state, failure_class=result.error_class)

    def refused(self, call: Wanted, definition: Definition | None) -> ToolResult | None:
        """What is told in the place of a call that a guard does not let run; None when it may."""
        found = observers.refusal(self._waiting(call), straight=True)
        if found is None:
            return None
        result = ToolResult(found.text, True, "denied", "stub")
        token = self.started(call, definition, "stub")
        token.refused = True
        self.ended(token, result)
        return result

    def inside(self, token: object) -> Inside:
        """The tool's code runs in this block."""
        return Inside(token if isinstance(token, RunningCall) else None)

    def retried(self, call: Wanted, attempt: int, wait: float, cause: str) -> None:
        """A call is tried again."""
        self.event(
            "tool_retry",
            self.run.turns,
            call=call.id,
            name=call.name,
            attempt=attempt,
            wait_s=round(wait, 3),
            cause=cause,
        )

    # -- the rest --------------------------------------------------------------------------------------------

    def event(self, kind: str, turn: int | None, **detail: Any) -> None:
        """Something that is no turn."""
        cleaned = json.loads(redact(json.dumps(tape.plain(detail), ensure_ascii=False)))
        record = {"kind": "event", "run": self.run.id, "turn": turn, "at": now(), "event": kind, "detail": cleaned}
        self._active.journal.write([record])

    def outcome(self, verdict: str, note: str | None) -> None:
        """What the goal check said."""
        told = {"verdict": verdict, **({"note": redact(note)} if note else {})}
        self._active.update_run(self.run, outcome=told)

    def end(self, ending: Ending) -> None:
        """The run is over."""
        with self._active.lock:
            reason = ending.detail if ending.reason == "model" else f"{ending.reason}: {ending.detail}"
            self._active.end_run(self.run, ending.status, reason)

    def _waiting(self, call: Wanted) -> PendingCall:
        pending = self.run.pending.get(call.id)
        if pending is None:
            pending = self.run.pending[call.id] = self._pending(call, self.run.turns)
        return pending

    def _pending(self, call: Wanted, turn: int) -> PendingCall:
        try:
            arguments = json.loads(call.arguments_raw)
        except (ValueError, RecursionError):
            arguments = call.arguments_raw
        return PendingCall(call.id, call.name, call_key(call.name, arguments), self.run, turn)


def _clean(attempt: Mapping[str, Any]) -> dict[str, Any]:
    headers = {k: redact(v) for k, v in attempt["headers"].items()}
    return {**attempt, "error": redact(attempt["error"]) if attempt["error"] else None, "headers": headers}
