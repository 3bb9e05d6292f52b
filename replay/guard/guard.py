"""`Guard`: what a loop's author allows. The same one may serve many runs; each is watched on its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ...tracer import quiet, settings
from ...tracer.errors import LooptapeError, UsageError
from ...tracer.model import Limits
from ...tracer.observers import Teller
from ..cycles import Declared
from ..cycles.declared import from_settings
from .allowed import RUNGS, Allowed, Rung
from .limits import CAPS, Caps
from .memory import find, put_together
from .watch import Watch

if TYPE_CHECKING:
    from ...tracer.live import OpenRun

KEPT = 16
"""Runs of this process whose guard state is kept for those that go on from them."""

Verdict = bool | str | None
GoalCheck = Callable[..., "Verdict | Awaitable[Verdict]"]


class Guard:
    """Watches the loop of a run: `run(guard=Guard(...))`. Without arguments it only notes cycles.

    Args:
        turns: Model calls of the run; a sub-agent's are counted for itself, with the same cap.
        seconds: Time from the start of the run.
        tokens: Everything read and written by the model, sub-agents included.
        cost_usd: List price of the model calls, sub-agents included.
        consecutive_errors: Turns in a row in which every tool call failed.
        same_error: Turns in a row in which the same tool failed in the same way, whatever its arguments.
        limits: `Limits`, or what `limits_from_history` gave, for those that are not named here.
        cycles: How far the ladder may go: ``note`` records, ``notice`` tells the model in a tool's result, ``block``
            answers in the place of a tool that would only repeat, ``stop`` ends the loop.
        goal: Asked by `run.done(text)`: ``goal(text)`` or ``goal(text, run_id)``; True or None is a pass, False or a
            text that says what is missing is not. May be a coroutine function: then ``await run.done_async(text)``.
        on_goal_failed: ``feed`` gives a text for the model, at most ``goal_tries`` times; ``end`` stops the loop.
        declared: What the tools do, by name, as in ``[tool.looptape.tools]`` (which holds otherwise):
            ``{"peek_queue": "poll", "ask": {"effect": "read", "key": ["query"]}}``.

    Raises:
        UsageError: ``bad-guard``: a value that makes no sense.
    """

    def __init__(
        self,
        *,
        turns: int | None = None,
        seconds: float | None = None,
        tokens: int | None = None,
        cost_usd: float | None = None,
        consecutive_errors: int | None = None,
        same_error: int | None = None,
        limits: Limits | None = None,
        cycles: Rung = "note",
        goal: GoalCheck | None = None,
        on_goal_failed: Literal["feed", "end"] = "feed",
        goal_tries: int = 3,
        declared: Declared | Mapping[str, Any] | None = None,
    ) -> None:
        named = {
            "turns": turns, "seconds": seconds, "tokens": tokens, "cost_usd": cost_usd,
            "consecutive_errors": consecutive_errors, "same_error": same_error,
        }  # fmt: skip
        if goal is not None and not callable(goal):
            raise UsageError("bad-guard", f"goal: {goal!r} cannot be called", "Give a function of the last text")
        self.allowed = Allowed(
            caps=Caps(**{name: _cap(name, value, limits) for name, value in named.items()}),
            cycles=_one_of("cycles", cycles, RUNGS),
            goal=None if goal is None else _of_two(goal),
            goal_is_async=inspect.iscoroutinefunction(goal),
            on_goal_failed=_one_of("on_goal_failed", on_goal_failed, ("feed", "end")),
            goal_tries=goal_tries,
            declared=_declared(declared),
            told=getattr(limits, "said", None),
        )
        self._known: dict[str, Watch] = {}

    # -- what the tracer asks (see `tracer.observers.Watcher`) ------------------------------------------------

    @property
    def goal(self) -> Callable[[str, str], Any] | None:
        """The check as a function of text and run id, for a loop that cannot await."""
        goal = self.allowed.goal
        return (
            goal if goal is None or not self.allowed.goal_is_async else lambda text, run: asyncio.run(goal(text, run))
        )

    def given(self) -> dict[str, int | float]:
        """The limits by name, as a run records them."""
        return {name: cap for name in CAPS if (cap := getattr(self.allowed.caps, name)) is not None}

    def earlier(self, reference: str) -> dict[str, Any] | None:
        """What is known of an earlier run: of this process, else from what journals and store hold."""
        known = self._known.get(reference)
        if known is not None:
            return {"run": reference, "session": known.run.session, "turns": known.run.turns, "state": known.state()}
        return find(reference)

    def watch(self, run: OpenRun, active: Teller | None, state: Mapping[str, Any] | None = None) -> Watch:
        """An observer for a run that is open now.

        Args:
            state: What `earlier` gave for the run that this one goes on from; or ``states``: see `observers.Watcher`.
        """
        known = state or {}
        saved = known.get("state") or (put_together(known["states"]) if known.get("states") else None)
        made = Watch(self.allowed, run, active, saved)
        self._known[run.id] = made
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return made


def _cap(name: str, value: Any, limits: Limits | None) -> Any:
    found = value if value is not None else getattr(limits, name, None)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not found > 0:
        raise UsageError("bad-guard", f"{name}: {found!r} is no limit", "Give a number above zero, or None for none")
    return found


def _one_of(name: str, value: Any, choices: tuple[str, ...]) -> Any:
    if value not in choices:
        raise UsageError("bad-guard", f"{name}: {value!r} is no choice", f"Use one of {', '.join(choices)}")
    return value


def _of_two(goal: Callable[..., Any]) -> Callable[[str, str], Any]:
    """The check as a function of text and run, whichever of both its author asks for."""
    try:
        inspect.signature(goal).bind("", "")
    except TypeError:
        return lambda text, run: goal(text)
    except ValueError:  # a builtin without a signature
        return lambda text, run: goal(text)
    return lambda text, run: goal(text, run)


def _declared(given: Declared | Mapping[str, Any] | None) -> Declared:
    if isinstance(given, Declared):
        return given
    if given is not None:
        return from_settings(given)
    try:
        return from_settings(settings.tables().get("tools", ({}, ""))[0])
    except LooptapeError as error:  # what the settings say of tools is no reason to keep an agent from its work
        quiet.say(f"{error}. The guard goes on without what they say of the tools")
        return Declared()
