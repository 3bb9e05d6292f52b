"""No waiting between the attempts of a replay: a failure that is served again is retried at once.

Refused answers say so themselves (``retry-after-ms``). A connection that failed has no answer to say it in, and the
SDKs then wait for half a second times a power of two. That half second is the only thing of theirs that is touched.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar

_CLIENTS = ("anthropic._base_client", "openai._base_client")
_DELAY = "INITIAL_RETRY_DELAY"
_served: ContextVar[bool] = ContextVar("looptape_served_failure", default=False)


class _Delay(float):
    """The SDK's first delay: as long as ever, but for the retry that follows a served failure."""

    __slots__ = ()

    def __mul__(self, factor: float) -> float:
        if _served.get():
            _served.set(False)
            return 0.0
        return float(self) * factor


def keep() -> None:
    """What is sent next in this context is no recorded failure's retry."""
    if _served.get():
        _served.set(False)


def skip() -> None:
    """The failure that is raised next in this context was served: its retry waits for nothing."""
    for name in _CLIENTS:
        module = sys.modules.get(name)
        delay = getattr(module, _DELAY, None)
        if isinstance(delay, (int, float)) and not isinstance(delay, _Delay):
            setattr(module, _DELAY, _Delay(delay))
    _served.set(True)
