"""Pictures of the screens over the sample tapes, kept to compare with: what is seen in them, whoever wrote the SVG.

python tests/support/snapshots.py        renews those in tests/tui/snapshots (`make snapshots`)
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from looptape.tui.data.source import StoreSource
from looptape.tui.picture import SCREENS, picture
from sample_store import NOON, filled

FOLDER = Path(__file__).resolve().parents[1] / "tui" / "snapshots"
SIZES = ((80, 24), (120, 40))
RUN, TURN = "where-is-my-parcel", 7
"""A run with errors, a cycle and findings."""
ALL = {f"{screen}-{columns}x{lines}": (screen, (columns, lines)) for screen in SCREENS for columns, lines in SIZES}
_RULE = re.compile(r"\.([\w-]+)\s*\{([^}]*)\}")
_SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    """A text or an area of colour: where it is and what it looks like."""

    y: float
    x: float
    what: str
    look: str


def taken(home: Path, name: str) -> str:
    """A picture as it is now."""
    screen, size = ALL[name]
    source = StoreSource(home, place="~/shop-agent")
    named = {} if screen == "runs" else {"run": RUN, "turn": TURN}
    return picture(source, screen, size, clock=lambda: NOON, **named)


def seen(svg: str) -> list[Piece]:
    """What is seen in a picture, in the order of its places."""
    return sorted(_pieces(ElementTree.fromstring(svg)))


def words(svg: str) -> list[str]:
    """The lines of text in a picture, for people."""
    rows: dict[float, list[Piece]] = {}
    for piece in seen(svg):
        if not piece.what.startswith("rect"):
            rows.setdefault(piece.y, []).append(piece)
    return [" ".join(p.what for p in rows[y]) for y in sorted(rows)]


def _pieces(root: ElementTree.Element) -> Iterator[Piece]:
    style = "".join(e.text or "" for e in root.iter(f"{_SVG}style"))
    looks = {name: " ".join(sorted(look.replace(" ", "").split(";"))) for name, look in _RULE.findall(style)}
    for element in root.iter():
        place = float(element.get("y", 0)), float(element.get("x", 0))
        if element.tag == f"{_SVG}text":
            yield Piece(*place, element.text or "", looks.get(element.get("class", ""), ""))
        elif element.tag == f"{_SVG}rect" and element.get("shape-rendering"):
            yield Piece(*place, f"rect {element.get('width')} {element.get('height')}", element.get("fill", ""))


def still() -> None:
    """Nothing of this machine in a picture: no zone, no setting, no session of another tool."""
    for name in [n for n in os.environ if n.startswith("LOOPTAPE_")] + ["NO_COLOR", "CLAUDE_CONFIG_DIR", "CODEX_HOME"]:
        os.environ.pop(name, None)
    os.environ["TZ"] = "UTC"
    time.tzset()


def main() -> None:
    """Writes every picture anew."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        still()
        os.environ["HOME"] = folder
        home = filled(Path(folder) / "home")
        for name in sys.argv[1:] or ALL:
            (FOLDER / f"{name}.svg").write_text(taken(home, name), "utf-8")
            print(FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
