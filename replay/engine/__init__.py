"""The built-in loop: goes on from a turn without the program that made the run."""

from .loop import run
from .outcome import Outcome, Spread
from .policy import Advice, Hooks, Policy, TurnDone

__all__ = ["Advice", "Hooks", "Outcome", "Policy", "Spread", "TurnDone", "run"]
