"""Pictures: the same bytes every time, without anything remote in them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from looptape.tui.picture import SCREENS, picture
from tui_fakes import hostile, shop


@pytest.mark.parametrize("screen", list(SCREENS))
def test_a_picture_of_every_screen_is_svg_with_local_fonts_only(screen: str) -> None:
    svg = picture(shop(), screen, (100, 30))
    ElementTree.fromstring(svg)
    assert "url(http" not in svg
    assert "@font-face" not in svg
    assert 'href="http' not in svg


def test_a_picture_is_the_same_every_time() -> None:
    first = picture(shop(), "run", (100, 30), run="3f9a1c20", turn=31)
    assert first == picture(shop(), "run", (100, 30), run="3f9a1c20", turn=31)
    words = re.sub(r"<[^>]+>", "", first).replace("&#160;", " ")
    assert "turn 31" in words
    assert "book_refund" in words


def test_hostile_data_makes_a_well_formed_picture() -> None:
    ElementTree.fromstring(picture(hostile(), "runs", (100, 30)))
