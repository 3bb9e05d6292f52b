"""The live guard: the cycle detector and the limits, watching a run as it goes.

    with looptape.run("revenue", guard=looptape.Guard(turns=40, cycles="stop")):
        ...

`Guard` says what is allowed; each run gets a `Watch` of its own, which the tracer tells what happens.
"""

from __future__ import annotations

from .guard import Guard
from .history import LearnedLimits, limits_from_history

__all__ = ["Guard", "LearnedLimits", "limits_from_history"]
