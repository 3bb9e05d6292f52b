"""The cycle detector: where a loop goes round in circles, known as early as it can be, told once.

    detector = CycleDetector()
    for turn in turns:
        for finding in detector.feed(turn):
            ...

`find_cycles(recording)` does so over a recorded run.
"""

from __future__ import annotations

from .declared import Declared
from .detector import CycleDetector
from .finding import CycleFinding, Waste
from .seen import CallSeen, TurnSeen
from .whole import find_cycles, seen_of

__all__ = ["CallSeen", "CycleDetector", "CycleFinding", "Declared", "TurnSeen", "Waste", "find_cycles", "seen_of"]
