"""A user with nothing of their own: an empty home, a store beside it, no variable that leads elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

LEADING = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "LOOPTAPE", "LOOPTAPE_CONTENT", "XDG_CONFIG_HOME")


def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the test run as one, in their home; where their store will be."""
    home, store = tmp_path / "people", tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOOPTAPE_HOME", str(store))
    for name in LEADING:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    return store
