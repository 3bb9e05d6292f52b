"""Where test data outside the repository lies: LOOPTAPE_TESTDATA, or a folder `shared` beside the clone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def folder(name: str) -> Path | None:
    """The data folder of that name, None when it is not here."""
    roots = [os.environ.get("LOOPTAPE_TESTDATA"), str(REPOSITORY.parent / "shared")]
    for root in roots:
        if root and (Path(root) / name).is_dir():
            return Path(root) / name
    return None


def require(name: str) -> Path:
    """The data folder, or a skip that says which one is missing."""
    found = folder(name)
    if found is None:
        pytest.skip(f"test data folder {name!r} is not here (set LOOPTAPE_TESTDATA)")
    return found
