"""The keys: one place says them all, and the page about them says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptape.tui import keymap

PAGE = Path(__file__).parents[2] / "docs" / "tui.md"
PLACES = {
    "everywhere": keymap.EVERYWHERE,
    "list": keymap.LIST,
    "text": keymap.TEXT,
    "runs": keymap.RUNS,
    "run": keymap.RUN,
    "turn": keymap.TURN,
}


@pytest.mark.parametrize("place", list(PLACES))
def test_the_page_lists_every_key(place: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for key in PLACES[place]:
        assert f"| `{key.label}` | {key.help} |" in page


def test_names_are_unique_and_no_screen_binds_a_key_twice() -> None:
    names = [key.name for keys in PLACES.values() for key in keys]
    assert len(names) == len(set(names))
    for keys in (keymap.RUNS, keymap.RUN, keymap.TURN):
        bound = [k for key in keys for k in key.keys.split(",")]
        assert len(bound) == len(set(bound))
