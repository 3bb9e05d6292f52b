"""A picture of a screen as SVG that looks the same in every viewer: no remote font, every text in its place."""

from __future__ import annotations

import re

CELL = 12.2
"""Width of a terminal cell in the SVG that rich writes."""
FONTS = "'JetBrains Mono','Fira Code',Menlo,Consolas,'DejaVu Sans Mono',monospace"

_TEXT = re.compile(r'(<text [^>]*?x=")([\d.]+)(" [^>]*?textLength=")([\d.]+)("[^>]*>)([^<]*)(</text>)')
_ID = re.compile(r"terminal-\d+")
_FONT_FACE = re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL)


def clean_svg(svg: str) -> str:
    """The SVG without remote fonts, and with texts where they belong in every viewer.

    Some viewers drop leading spaces, and rich counts characters where it means cells. The names inside are
    always the same: rich takes a checksum, with which every one of them changes when a letter does.
    """
    svg = _ID.sub("screen", _FONT_FACE.sub("", svg))
    svg = re.sub(r"font-family:\s*Fira Code,\s*monospace", f"font-family: {FONTS}", svg)
    return _TEXT.sub(_placed, svg)


def _placed(match: re.Match[str]) -> str:
    from rich.cells import cell_len

    before, x, middle, _length, after, text, end = match.groups()
    spaces = text.replace("&#160;", "\xa0")
    kept = spaces.strip("\xa0")
    lead = len(spaces) - len(spaces.lstrip("\xa0"))
    cells = cell_len(re.sub(r"&#?\w+;", "x", kept))
    shown = kept.replace("\xa0", "&#160;")
    return f"{before}{float(x) + lead * CELL:g}{middle}{cells * CELL:g}{after}{shown}{end}"
