"""Where looptape keeps things: the rules of platformdirs, written out, since a traced process may lack the package."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from looptape.tracer import paths, settings


@pytest.mark.parametrize("base", [None, "", "relative/folder", "/somewhere/else"])
def test_without_a_word_from_the_user_data_and_settings_lie_where_the_platform_says(
    base: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOOPTAPE_HOME")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
        if base is not None:
            monkeypatch.setenv(name, base)
    if base != "relative/folder":  # the standard says to ignore a relative one; platformdirs took it until lately
        assert paths.home() == Path(platformdirs.user_data_dir("looptape", appauthor=False))
        assert settings.user_file().parent == Path(platformdirs.user_config_dir("looptape", appauthor=False))
    assert paths.home().is_absolute()
    assert settings.user_file().is_absolute()


def test_the_user_may_say_where_also_from_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", "~/tapes")
    assert paths.home() == Path.home() / "tapes"
    monkeypatch.setenv("LOOPTAPE_HOME", "tapes")
    assert paths.home() == Path.cwd() / "tapes"
