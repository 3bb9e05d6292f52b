"""What an answer, a failure or an interrupt means for the loop: go on, or how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from ...tracer.providers import Answer
from .models.protocol import ModelError
from .outcome import Ending
from .policy import Hooks, Policy

PAUSED = ("pause_turn",)
CALLING = ("tool_use", "tool_calls", "function_call")


def after_answer(answer: Answer, calls: int, cut: Sequence[str]) -> Ending | None:
    """The ending that an answer brings, None while the loop goes on: there are calls to run, or the provider paused."""
    stop = answer.stop_reason
    if answer.error or answer.error_type:
        return Ending("model-error", "failed", answer.error or str(answer.error_type))
    if cut or answer.end == "limit":
        what = f", with {len(cut)} unfinished call{'s' if len(cut) > 1 else ''} that did not run" if cut else ""
        return Ending("model-limit", "limit", f"the answer was cut ({stop or 'no stop reason'}){what}")
    if answer.end == "failed":
        return Ending("model-error", "failed", stop or "failed")
    if calls:
        return None
    if stop in PAUSED:
        return None
    if stop in CALLING:
        return Ending("bad-answer", "failed", f"the answer stops with {stop} and holds no call")
    return Ending("model", "completed", stop or "its last word")


def model_failed(error: ModelError, turn: int) -> Ending:
    """The model call failed for good."""
    status = f" ({error.status})" if error.status else ""
    return Ending("model-error", "failed", f"turn {turn}: {error.kind}{status}: {error.message}")


def cancelled(why: str, hooks: Hooks, policy: Policy) -> Ending:
    """The run was ended from outside a turn: by the user, or by its deadline."""
    if hooks.stop.is_set():
        return Ending("user", "halted", why)
    return Ending("seconds", "limit", f"{policy.max_seconds:g} s are over" if policy.max_seconds else why)
