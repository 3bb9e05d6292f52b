"""Where a replay records what it does: the usual store, another one, or a passing folder where recording is off."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...tracer import process, settings
from ...tracer.journal import Journal
from ...tracer.recorder import Recorder


@contextmanager
def home_for(into: Path | None) -> Iterator[Path | None]:
    """The store directory of a replay while its block runs; None for the usual one.

    A replay needs a recorder, which reads the requests. Where the settings say that nothing is kept, or no
    content, it writes into a folder that goes with the block.
    """
    said = settings.effective()
    if into is not None or (said["recording"].value != "off" and said["content"].value != "none"):
        yield into
        return
    with tempfile.TemporaryDirectory(prefix="looptape-replay-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def recording_to(home: Path) -> Iterator[Recorder]:
    """This process records into a store directory while the block runs, whatever its settings say."""
    fresh = Recorder(Journal(home))
    said = os.environ.pop("LOOPTAPE", None)
    former = process.replace(fresh)
    try:
        yield fresh
    finally:
        fresh.at_exit()
        process.replace(former)
        if said is not None:
            os.environ["LOOPTAPE"] = said


def usual_home() -> Path:
    """The store directory that the settings name."""
    return Path(settings.effective()["home"].value)
