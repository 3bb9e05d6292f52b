"""What the tests of forks share: a store directory with a recorder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from looptape.tracer import process
from looptape.tracer.journal import Journal
from looptape.tracer.recorder import Recorder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where this process records while the test runs."""
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    former = process.replace(Recorder(Journal(tmp_path)))
    yield tmp_path
    process.replace(former)
