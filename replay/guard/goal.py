"""The goal check of a guarded run: asked when the model says it is done; its verdict is recorded, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from ...tracer.errors import UsageError
from ...tracer.fork_lock import ForkLock
from ...tracer.live import OpenRun
from ...tracer.observers import MARK, Teller
from ...tracer.redaction import redact
from .allowed import Allowed

if TYPE_CHECKING:
    from ..engine.goals import Judgement


class Goal:
    """Asks the author's check for one run.

    Attributes:
        tries: Checks that have failed.

    Args:
        active: Where the verdict is recorded; None while recording is off.
        stop: Ends the loop, with this sentence.
    """

    def __init__(self, allowed: Allowed, run: OpenRun, active: Teller | None, stop: Callable[[str], NoReturn]) -> None:
        self.tries = 0
        self._allowed = allowed
        self._run = run
        self._active = active
        self._stop = stop
        self._lock = ForkLock()

    def ask(self, text: str) -> str | None:
        """None when the goal is reached (or nobody checks), else what to tell the model.

        Raises:
            UsageError: ``async-goal``: the check is a coroutine function.
            LoopStopped: The goal is not reached, and the loop is to end there.
        """
        goal = self._allowed.goal
        if goal is None:
            return None
        if self._allowed.goal_is_async:
            raise UsageError(
                "async-goal", "the goal check is a coroutine function", "Write `await run.done_async(text)`"
            )
        from ..engine.goals import by_function  # the engine is not there before somebody has a goal

        return self._concluded(by_function(goal, text, self._run.id))

    async def ask_async(self, text: str) -> str | None:
        """The same, for checks of both kinds."""
        goal = self._allowed.goal
        if goal is None:
            return None
        from ..engine.goals import judged

        try:
            said = goal(text, self._run.id)
            if self._allowed.goal_is_async:
                said = await said
        except Exception as error:  # the author's check may fail in its own way
            said = error
        return self._concluded(judged(said))

    def _concluded(self, said: Judgement) -> str | None:
        verdict = "pass" if said.passed else "fail"
        with self._lock:
            self.tries += 0 if said.passed else 1
            tries = self.tries
        if self._active is not None:
            self._active.event(self._run, "goal", self._run.turns or None, {"verdict": verdict, "note": said.note})
            note = {"note": redact(said.note)} if said.note else {}
            self._active.update_run(self._run, outcome={"verdict": verdict, **note})
        if said.passed:
            return None
        why = said.note or "the check failed, without saying why"
        if self._allowed.on_goal_failed == "end" or tries >= self._allowed.goal_tries:
            self._stop(f"the goal check failed: {why}")
        return f"{MARK} The goal is not reached: {why}. Go on."
