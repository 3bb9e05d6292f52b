"""A store directory for every test of the built-in loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_runs import Bench, bench


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Bench]:
    """A bench for one test."""
    with bench(tmp_path) as made:
        yield made
