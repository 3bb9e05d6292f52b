"""Every screen as it was when somebody last looked at it and liked it: `make snapshots` renews the pictures."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import snapshots
from looptape.replay.listing import facts
from looptape.tracer.store import Store
from looptape.tui.data import runs_reading
from sample_store import filled


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NO_COLOR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "LOOPTAPE_THEME", "LOOPTAPE_HOME"):
            patch.delenv(name, raising=False)
        folder = tmp_path_factory.mktemp("snapshots")
        patch.setenv("HOME", str(folder))
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield filled(folder / "home")
    time.tzset()


@pytest.mark.parametrize("name", snapshots.ALL)
def test_a_screen_looks_as_it_did(home: Path, name: str, tmp_path: Path) -> None:
    kept = (snapshots.FOLDER / f"{name}.svg").read_text("utf-8")
    now = snapshots.taken(home, name)
    if snapshots.seen(kept) != snapshots.seen(now):
        new = tmp_path / f"{name}.svg"
        new.write_text(now, "utf-8")
        changed = "\n".join(
            difflib.unified_diff(snapshots.words(kept), snapshots.words(now), "kept", "now", "", "", 0, "")
        )
        pytest.fail(
            f"it looks different now: {new}\n{changed or 'only colours'}\nmake snapshots renews it when it should"
        )


def test_a_picture_waits_for_facts_that_are_looked_for_a_few_at_a_time(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def slowly(store: Store, keys: Sequence[str]) -> tuple[int, int]:
        time.sleep(0.3)  # as long as the screen then rests
        looks.append(facts.look(store, keys, seconds=0))
        return looks[-1]

    monkeypatch.setattr(runs_reading, "look", slowly)
    now = snapshots.taken(filled(tmp_path / "new"), "runs-80x24")
    assert any(left for _, left in looks), "it could look at all of them at once"
    assert snapshots.words(now) == snapshots.words((snapshots.FOLDER / "runs-80x24.svg").read_text("utf-8"))


def test_no_picture_is_kept_of_a_screen_that_is_gone() -> None:
    assert {file.stem for file in snapshots.FOLDER.glob("*.svg")} == set(snapshots.ALL)
