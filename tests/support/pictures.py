"""The pictures of README and docs, made by the program itself from the sample tapes: `make pictures`."""

import os
import tempfile
from pathlib import Path

from looptape.tui.data.source import StoreSource
from looptape.tui.picture import picture
from sample_store import NOON, filled

DOCS = Path(__file__).resolve().parents[2] / "docs"
PARCEL = {"run": "where-is-my-parcel", "turn": 7}
PICTURES = {
    "run.svg": {"screen": "run", "size": (120, 24), **PARCEL},
    "runs.svg": {"screen": "runs", "size": (120, 18)},
    "request.svg": {"screen": "request", "size": (120, 26), "run": "broken-returns", "turn": 7},
    "waterfall.svg": {"screen": "waterfall", "size": (120, 20), "run": "suppliers"},
    "compare.svg": {"screen": "compare", "size": (120, 24), **PARCEL},
    "fork.svg": {"screen": "fork", "size": (120, 30), "run": "weather", "turn": 2},
    "findings.svg": {"screen": "findings", "size": (120, 28)},
    "costs.svg": {"screen": "costs", "size": (120, 28)},
}


def make(folder: Path) -> list[Path]:
    """Writes every picture into a folder."""
    with tempfile.TemporaryDirectory() as home:
        filled(Path(home))
        made = []
        for name, wanted in PICTURES.items():
            path = folder / name
            source = StoreSource(Path(home), place="~/shop-agent")
            path.write_text(picture(source, clock=lambda: NOON, **wanted), "utf-8")
            made.append(path)
        return made


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    os.chdir(tempfile.gettempdir())
    for path in make(DOCS):
        print(path)
