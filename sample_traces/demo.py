"""What `looptape demo` uses: the sample loops recorded on this machine, and the tapes that come with looptape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import stage
from .loops import SAMPLES, Sample
from .taping import recording, runs_in

SHARE = 0.01
"""How much of its time every wait takes: a minute of models, tools and retries in less than a second."""


LIVE = SAMPLES[:3]
"""The loops that are played; of the others the tapes are shown, so that each sample is there once."""


def record(home: Path, samples: Sequence[Sample] = LIVE) -> list[str]:
    """Plays sample loops through the real SDK and records them into this store directory, as their own processes would.

    Returns:
        The ids of the new runs, sub-agents included; none where recording is off (``LOOPTAPE=off``).
    """
    runs: list[str] = []
    for sample in reversed(samples):  # the first of them is the newest, and so the first in lists
        with stage.hurried(SHARE) as pace, recording(home, name=sample.name) as journal:
            stage.play(sample.load(), pace)
        runs += runs_in(journal)
    return runs


def tapes(*, but: Sequence[Sample] = ()) -> list[Path]:
    """The tape files that come with looptape, sorted by name, without those of some samples."""
    left_out = {f"{sample.name}.jsonl" for sample in but}
    return sorted(file for file in Path(__file__).parent.glob("*.jsonl") if file.name not in left_out)
