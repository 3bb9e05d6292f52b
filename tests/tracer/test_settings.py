"""Settings: which source wins, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptape.tracer.errors import UsageError
from looptape.tracer.settings import effective, export, project_file, tables, user_file


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr("looptape.tracer.settings.user_file", lambda env=None: tmp_path / "user" / "config.toml")
    (tmp_path / "user").mkdir()
    (tmp_path / "work").mkdir()
    return {}


def test_flag_beats_environment_beats_project_beats_user_beats_default(tmp_path: Path, env: dict[str, str]) -> None:
    work = tmp_path / "work"

    def limit(**flags: int) -> tuple[object, str]:
        value = effective(flags, env=env, cwd=work)["limit"]
        return value.value, value.source

    assert limit() == (50, "default")
    (tmp_path / "user" / "config.toml").write_text("limit = 1\n")
    assert limit() == (1, "user")
    (work / "pyproject.toml").write_text("[tool.looptape]\nlimit = 2\n")
    assert limit() == (2, "project")
    (work / "looptape.toml").write_text("limit = 3\n")
    assert limit() == (3, "project")
    env["LOOPTAPE_LIMIT"] = "4"
    assert limit() == (4, "environment")
    assert limit(limit=5) == (5, "flag")


def test_the_project_file_is_looked_for_upwards_but_not_beyond_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "a"
    inner.mkdir(parents=True)
    (tmp_path / "looptape.toml").write_text("")
    assert project_file(inner) == tmp_path / "looptape.toml"
    (tmp_path / "repo" / ".git").mkdir()
    assert project_file(inner) is None
    (tmp_path / "repo" / "looptape.toml").write_text("")
    assert project_file(inner) == tmp_path / "repo" / "looptape.toml"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("limit = 3\nlimti = 4\n", ["looptape.toml, line 2", "'limti'", "Did you mean limit?"]),
        ("limit = \n", ["looptape.toml is not TOML", "line 1"]),
        ("content = 'some'\n", ["looptape.toml: content", "'some'", "full or none"]),
        ("limit = -1\n", ["'-1'", "whole number"]),
    ],
)
def test_a_wrong_file_is_named_with_line_and_cure(
    tmp_path: Path, env: dict[str, str], text: str, parts: list[str]
) -> None:
    (tmp_path / "work" / "looptape.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        effective(env=env, cwd=tmp_path / "work")
    assert all(p in str(caught.value) for p in parts), str(caught.value)
    assert caught.value.exit_code == 2


def test_words_for_off_mean_off_and_a_wrong_variable_is_named(tmp_path: Path, env: dict[str, str]) -> None:
    assert effective(env={"LOOPTAPE": "0"}, cwd=tmp_path)["recording"].value == "off"
    with pytest.raises(UsageError, match="LOOPTAPE_CONTENT is 'nothing'"):
        effective(env={"LOOPTAPE_CONTENT": "nothing"}, cwd=tmp_path)


def test_what_a_file_says_reaches_children_and_what_the_environment_says_stays(
    tmp_path: Path, env: dict[str, str]
) -> None:
    (tmp_path / "work" / "looptape.toml").write_text("home = '/somewhere'\ncontent = 'none'\n")
    env["LOOPTAPE_CONTENT"] = "full"
    export(effective(env=env, cwd=tmp_path / "work"), env)
    assert env == {"LOOPTAPE_HOME": "/somewhere", "LOOPTAPE_CONTENT": "full"}


def test_the_user_file_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert user_file({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "looptape" / "config.toml"


def test_where_the_working_directory_was_deleted_there_is_no_project_file(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    (tmp_path / "user" / "config.toml").write_text("limit = 1\n")
    assert effective(env=env)["limit"].value == 1
    assert effective(env=env)["recording"].value == "on"


def test_tables_that_commands_read_come_from_the_project_else_the_user(tmp_path: Path, env: dict[str, str]) -> None:
    work = tmp_path / "work"
    assert tables(env=env, cwd=work) == {}
    user = tmp_path / "user" / "config.toml"
    user.write_text('[tools]\npeek = "poll"\n[lint]\nignore = ["L01"]\n')
    (work / "looptape.toml").write_text('limit = 3\n[lint]\nignore = ["L09"]\n')
    assert tables(env=env, cwd=work) == {
        "tools": ({"peek": "poll"}, str(user)),
        "lint": ({"ignore": ["L09"]}, str(work / "looptape.toml")),
    }
    assert effective(env=env, cwd=work)["limit"].value == 3
    (work / "looptape.toml").write_text('lint = "all"\n')
    with pytest.raises(UsageError, match="lint is not a table"):
        tables(env=env, cwd=work)
