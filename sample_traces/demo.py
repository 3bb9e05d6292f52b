"""What `looptape demo` uses: the sample loops recorded on this machine, and the tapes that come with looptape."""

from __future__ import annotations

from pathlib import Path

from . import stage
from .loops import SAMPLES
from .taping import recording, runs_in

SHARE = 0.01
"""How much of its time every wait takes: a minute of models, tools and retries in less than a second."""


def record(home: Path) -> list[str]:
    """Plays every sample loop through the real SDK and records it into this store directory, as its own process would.

    Returns:
        The ids of the new runs, sub-agents included; none where recording is off (``LOOPTAPE=off``).
    """
    runs: list[str] = []
    for sample in reversed(SAMPLES):  # the first of them is the newest, and so the first in lists
        with stage.hurried(SHARE) as pace, recording(home, name=sample.name) as journal:
            stage.play(sample.load(), pace)
        runs += runs_in(journal)
    return runs


def tapes() -> list[Path]:
    """The tape files that come with looptape, sorted by name."""
    return sorted(Path(__file__).parent.glob("*.jsonl"))
