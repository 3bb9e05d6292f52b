"""The pictures of the README, made by the program itself from the sample tapes: `make pictures`."""

import os
import tempfile
from pathlib import Path

from looptape.sample_traces import demo
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store
from looptape.tui.picture import picture
from looptape.tui.source import StoreSource

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOON = 1_789_992_000_000_000
"""A clock that stands: a little after the last sample tape."""
PICTURES = {
    "run.svg": {"screen": "run", "size": (120, 24), "run": "where-is-my-parcel", "turn": 7},
    "runs.svg": {"screen": "runs", "size": (120, 18)},
}


def make(folder: Path) -> list[Path]:
    """Writes every picture into a folder."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOOPTAPE_HOME"] = home
        with open_store() as store:
            for tape in demo.tapes():
                import_path(store, tape)
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
