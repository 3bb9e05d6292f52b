"""The terminal that tests look at: were it wrong, tests of the screen would prove nothing."""

from __future__ import annotations

import pytest

from terminal_grid import Grid

SENT = "\x1b[?1049h\x1b[2J\x1b[1;1H\x1b[1;38;2;1;2;3mhead\x1b[0m\x1b[3;4H漢字 é́x\x1b]52;c;eA==\x07\x1b[2;1Hab\rA\n\x1b[5;1Hlast\x1b[K".encode()
STANDS = ["head", "Ab", "   漢字 é́x", "", "last"]


def test_places_and_texts_are_followed() -> None:
    grid = Grid(20, 5)
    grid.feed(SENT)
    assert grid.lines == STANDS
    assert grid.find("é́") == (8, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_it_does_not_matter_where_the_octets_are_cut(size: int) -> None:
    grid = Grid(20, 5)
    for at in range(0, len(SENT), size):
        grid.feed(SENT[at : at + size])
    assert grid.lines == STANDS
