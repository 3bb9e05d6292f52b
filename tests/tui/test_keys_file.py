"""Keys of one's own: what a settings file may say, and what is said when it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from commandline import looptape
from looptape.tui import keymap, keys_file
from tui_driver import Seat, drive
from tui_fakes import shop


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("sys.platform", "linux")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    file = tmp_path / "config" / "looptape" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def test_without_a_file_the_keys_are_those_of_the_page(settings: Path) -> None:
    assert keys_file.read() == keys_file.Rebinding({})


def test_a_key_is_written_as_people_write_it(settings: Path) -> None:
    settings.write_text(
        '[tui.keys]\n"runs.sort" = "o"\n"mark" = ["!", "ctrl+t", "F5", "PgUp"]\nexport = []\n"open-in" = "X"\n'
        'findings = "Z"\nturn.next = "right"\n"list.page-up" = "f6"\n"text.page-up" = "f7"\n'
    )
    read = keys_file.read()
    assert read.problems == ()
    assert read.keys["runs.sort"] == "o"
    assert read.keys["mark"] == "exclamation_mark,ctrl+t,f5,pageup"
    assert read.keys["export"] == ""
    assert read.keys["turn.next"] == "right"


def test_the_projects_keys_stand_over_the_users(settings: Path) -> None:
    settings.write_text('[tui.keys]\n"runs.sort" = "f5"\n"runs.follow" = "f6"\n')
    Path("pyproject.toml").write_text('[tool.looptape.tui.keys]\n"runs.sort" = "f7"\n')
    assert keys_file.read().keys == {"runs.sort": "f7", "runs.follow": "f6"}


def test_two_commands_may_change_places(settings: Path) -> None:
    settings.write_text('[tui.keys]\n"runs.sort" = "S"\n"runs.reverse" = "s"\n')
    assert keys_file.read() == keys_file.Rebinding({"runs.sort": "S", "runs.reverse": "s"})


WRONG = {
    "unknown-command": ('"runs.srt" = "S"', "there is no command 'runs.srt'. Did you mean runs.sort?"),
    "unknown-key": ('"runs.sort" = "ctrl+?x"', "there is no key 'ctrl+?x'."),
    "misspelt-key": ('"runs.sort" = "pagedwn"', "Did you mean pagedown?"),
    "no-text": ('"runs.sort" = 5', "runs.sort needs a key or a list of keys"),
    "taken": ('"runs.sort" = "J"', "runs.sort: J is the key of runs.next-error."),
    "taken-everywhere": ('"turn.raw" = "T"', "turn.raw: T is the key of theme."),
    "taken-by-the-list": ('"runs.sort" = "j"', "runs.sort: j is the key of list.down."),
}


@pytest.mark.parametrize(("line", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_used_is_one_line_with_file_line_and_cure(settings: Path, line: str, said: str) -> None:
    settings.write_text(f'# mine\n[tui.keys]\n"runs.follow" = "f5"\n{line}\n')
    read = keys_file.read()
    assert len(read.problems) == 1
    assert read.problems[0].startswith(f"{settings}, line 4: ")
    assert said in read.problems[0]
    assert read.keys == {"runs.follow": "f5"}


@pytest.mark.parametrize(
    "text", ["[tui\n", "[tui]\nkeys = 3\n", "[tui]\ncolour = 1\n"], ids=["no-toml", "no-table", "unknown"]
)
def test_a_file_that_is_wrong_altogether_is_said_too(settings: Path, text: str) -> None:
    settings.write_text(text)
    assert str(settings) in keys_file.read().problems[0]


def test_every_command_can_be_rebound_by_its_name(settings: Path) -> None:
    for keys in keymap.GROUPS.values():
        for key in keys:
            name = f"{key.name}.1" if key.action == "tab_at" else key.name
            settings.write_text(f'[tui.keys]\n"{name}" = "f19"\n')
            assert keys_file.read().keys == {name: "f19"}


def test_the_app_obeys_the_file_and_shows_it_in_the_footer_and_the_menu(settings: Path) -> None:
    settings.write_text('[tui.keys]\n"runs.sort" = "f5"\n"runs.filter" = "ctrl+f"\n"runs.follow" = []\n')

    async def steps(seat: Seat) -> None:
        foot = seat.lines[-1]
        assert "f5 sort" in foot
        assert "ctrl+f filter" in foot
        assert "follow" not in foot
        await seat.press("s")
        before = seat.text
        await seat.press("f5")
        assert seat.text != before
        await seat.press("escape", "question_mark")
        assert "f5  sort by" in seat.text
        await seat.press("escape", "ctrl+f")
        assert seat.app.screen.focused is not None
        assert type(seat.app.screen.focused).__name__ == "_FilterInput"

    drive(shop(), steps)


def test_the_app_starts_with_a_wrong_file_and_says_the_line(settings: Path) -> None:
    settings.write_text('[tui.keys]\n"runs.srt" = "S"\n')

    async def steps(seat: Seat) -> None:
        said = " ".join(seat.text.split())
        assert "line 2" in said
        assert "Did you mean runs.sort?" in said
        await seat.press("j")
        assert "Did you mean" not in seat.text

    drive(shop(), steps)


def test_info_names_the_files_that_keys_may_stand_in(settings: Path) -> None:
    settings.write_text('[tui.keys]\n"runs.sort" = "f5"\n"runs.srt" = "x"\n')
    ran = looptape("info")
    assert str(settings) in ran.out
    assert "runs.sort" in ran.out
    assert "Did you mean runs.sort?" in ran.err
    assert looptape("info", "--json").json["keys"] == {"runs.sort": "f5"}
