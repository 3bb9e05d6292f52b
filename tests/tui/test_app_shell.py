"""What is the same on every screen: copy, export, the command line, the palette, the menu of keys, colours, the mouse."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import small_tape
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from looptape.tui.place import Place, Subject
from looptape.tui.screens.line import Line
from looptape.tui.screens.menu import Choice, Menu
from looptape.tui.screens.runs.screen import RunsScreen
from looptape.tui.widgets.bars import KeyBar, NoticeBar
from tui_driver import Seat, drive
from tui_fakes import EVIL, HOSTILE, shop

RESULT = "revenue: 1200 \x1b[31m[/ red"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with two small runs, a clipboard program that keeps what it gets, a folder to work in."""
    work, bin_ = tmp_path / "work", tmp_path / "bin"
    for folder in (work, bin_, tmp_path / "home"):
        folder.mkdir()
    (bin_ / "xclip").write_text(f"#!/bin/sh\ncat > {tmp_path}/taken\n")
    (bin_ / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("WAYLAND_DISPLAY", "TMUX", "STY", "LOOPTAPE_THEME", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("looptape.tui.outside.clipboard.PATIENCE", 60.0)  # on a busy machine a shell starts late
    monkeypatch.chdir(work)
    with open_store(tmp_path / "home") as store:
        store.ingest(small_tape.records(result=RESULT))
        store.ingest(small_tape.records("b" * 16, name="second", start=small_tape.START - 10**9))
    return tmp_path


def seated(home: Path, steps: Callable[[Seat], Awaitable[None]], **more: Any) -> Any:
    return drive(StoreSource(home / "home"), steps, **more)


def taken(home: Path) -> str:
    return (home / "taken").read_bytes().decode("utf-8", "surrogatepass")


async def typed(seat: Seat, text: str) -> None:
    """Type it, and Enter."""
    await seat.pilot.press(*("space" if c == " " else c for c in text))
    await seat.press("enter")


def said(seat: Seat) -> str:
    return seat.app.screen.query_one(NoticeBar).said


# copy


def test_twice_y_copies_where_it_is_and_says_which_way_it_went(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("y", "y")
        assert taken(home) == small_tape.RUN
        assert said(seat) == f"› {small_tape.RUN}: copied with xclip"

    seated(home, steps)


@pytest.mark.parametrize(
    ("key", "begins"),
    [("J", '{\n  "version": 1,'), ("m", "# revenue\n"), ("c", "curl -sS ")],
    ids=["json", "markdown", "curl"],
)
def test_the_copy_menu_builds_each_form_of_the_run(home: Path, key: str, begins: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("y", key)
        assert taken(home).startswith(begins)
        assert "copied with xclip" in said(seat)

    seated(home, steps)


def test_a_selected_value_is_copied_byte_for_byte(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject(Place(small_tape.RUN, 1), RESULT, "result of search", {"a": [1]})
    monkeypatch.setattr(RunsScreen, "subject", lambda self: subject)

    async def steps(seat: Seat) -> None:
        await seat.press("y")
        assert "25 B" in seat.line("result of search")
        await seat.press("y")
        assert taken(home) == RESULT
        await seat.press("y", "J")
        assert json.loads(taken(home)) == {"a": [1]}

    seated(home, steps)


def test_without_a_clipboard_program_the_terminal_gets_the_sequence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY")
    written: list[str] = []

    async def steps(seat: Seat) -> None:
        assert seat.app._driver is not None
        monkeypatch.setattr(seat.app._driver, "write", written.append)
        await seat.press("y", "y")
        assert "".join(written).count("\x1b]52;c;") == 1
        assert "does not answer" in said(seat)

    seated(home, steps)


def test_as_a_test_asks_for_the_folder_writes_both_files_and_asks_before_it_replaces_them(home: Path) -> None:
    module = Path("checks/test_revenue.py")

    async def steps(seat: Seat) -> None:
        Path("checks").mkdir()
        await seat.press("y", "t")
        await seat.press("backspace", "backspace")
        await typed(seat, "checks/")
        assert module.is_file()
        assert Path("checks/tapes/test_revenue/test_revenue.tape.jsonl").is_file()
        assert "pytest checks/test_revenue.py" in said(seat)
        module.write_text("# mine")
        await seat.press("y", "t", "backspace", "backspace")
        await typed(seat, "checks/")
        assert "there already" in seat.text
        await seat.press("n")
        assert module.read_text() == "# mine"
        await seat.press("y", "t", "backspace", "backspace")
        await typed(seat, "checks/")
        await seat.press("Y")
        assert "pytest" in module.read_text()

    seated(home, steps)


# export


def test_export_offers_a_name_writes_the_file_and_never_replaces_one_unasked(home: Path) -> None:
    file = Path(f"{small_tape.RUN}.md")

    async def steps(seat: Seat) -> None:
        await seat.press("e", "m", "enter")
        assert file.read_text().startswith("# revenue")
        assert f"wrote {file.absolute()}" in said(seat)
        file.write_text("mine")
        await seat.press("e", "m", "enter")
        assert "is there already" in seat.text
        await seat.press("escape")
        assert file.read_text() == "mine"
        await seat.press("e", "m", "enter", "Y")
        assert file.read_text().startswith("# revenue")

    seated(home, steps)


def test_every_form_can_be_exported_from_the_command_line_of_the_screen(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("colon")
        await typed(seat, "export tape out/here")
        assert "No such file" in said(seat)
        Path("out").mkdir()
        for form in ("tape", "ci-tape", "markdown", "html", "messages", "otlp", "atif"):
            await seat.press("colon")
            await typed(seat, f"export {form} out/{form}.x")
            assert Path(f"out/{form}.x").stat().st_size > 100, said(seat)
            assert f"out/{form}.x (" in said(seat)

    seated(home, steps)


# the command line


def test_the_command_line_opens_runs_filters_and_leaves(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("colon")
        await typed(seat, "filter second")
        assert "revenue" not in "\n".join(seat.lines[2:-2])
        await seat.press("colon")
        await typed(seat, "filter")
        await seat.press("colon")
        await typed(seat, "open second:2")
        assert type(seat.app.screen).__name__ == "RunScreen"
        await seat.press("colon")
        await typed(seat, "runs")
        assert type(seat.app.screen).__name__ == "RunsScreen"
        await seat.press("colon")
        await typed(seat, "q")

    assert seated(home, steps) == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [("opne last", "Did you mean open?"), ("open nobody", "nobody"), ("theme lihgt", "Did you mean light?")],
)
def test_a_wrong_line_is_said_with_the_nearest(home: Path, line: str, words: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("colon")
        await typed(seat, line)
        assert words in said(seat)

    seated(home, steps)


def test_tab_completes_and_the_arrows_choose(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("colon", "t", "h", "tab")
        assert ": theme " in seat.lines[-1]
        await seat.press("l", "tab")
        assert ": theme light" in seat.lines[-1]
        await seat.press("enter")
        assert seat.app.theme == "looptape-light"
        await seat.press("colon")
        assert "theme light" in seat.text  # what was run last stands first
        await seat.press("escape")
        assert not isinstance(seat.app.screen, Line)

    seated(home, steps)


def test_tab_completes_the_names_of_runs(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("colon", *"open", "space", *"sec")
        assert "2 turns, completed" in seat.line("open second")
        await seat.press("tab", "enter")
        assert type(seat.app.screen).__name__ == "RunScreen"
        assert "second" in seat.text

    seated(home, steps)


def test_names_that_come_when_the_line_is_left_disturb_nothing() -> None:
    source = shop()

    async def steps(seat: Seat) -> None:
        with source.lock:  # the names of the runs are on their way
            await seat.pilot.press("colon")
            await seat.met(lambda: isinstance(seat.app.screen, Line), settle=False)
            await seat.pilot.press("escape")
            await seat.met(lambda: not isinstance(seat.app.screen, Line), settle=False)
        await seat.press("j", "colon")
        assert isinstance(seat.app.screen, Line)

    drive(source, steps)


def test_every_key_of_a_screen_is_a_command_by_name(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("colon")
        await typed(seat, "keys")
        assert isinstance(seat.app.screen, Menu)
        await seat.press("escape", "colon")
        await typed(seat, "last")
        assert seat.chosen.count("second")

    seated(home, steps)


def test_the_command_line_goes_to_a_tab_by_its_name(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter", "enter", "colon")
        await typed(seat, "tab usage")
        assert type(seat.app.screen).__name__ == "TurnScreen"
        assert "▐5 usage" in seat.text
        await seat.press("colon")
        await typed(seat, "tab nowhere")
        assert "tab nowhere: unknown" in said(seat)

    seated(home, steps)


def test_the_command_line_sorts_by_a_column(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        first = seat.chosen
        await seat.press("colon")
        await typed(seat, "sort name")
        await seat.press("g")
        assert "revenue" in seat.chosen
        assert first

    seated(home, steps)


def test_ctrl_c_ends_nothing_and_says_what_does(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("ctrl+c")
        assert "ctrl+q leaves" in said(seat)

    seated(home, steps)


# palette and menu of keys


def test_the_palette_finds_a_command_by_any_of_its_words_and_runs_it(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("ctrl+p")
        await typed(seat, "colours contr")
        assert seat.app.theme == "looptape-contrast"
        await seat.press("ctrl+p")
        await typed(seat, "curl")
        assert taken(home).startswith("curl")
        await seat.press("ctrl+p")
        await typed(seat, "keys valid")
        assert isinstance(seat.app.screen, Menu)

    seated(home, steps)


def test_the_palette_saves_a_picture_of_the_screen(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("ctrl+p")
        await typed(seat, "picture")
        (file,) = Path().glob("looptape-*.svg")
        assert "revenue" in file.read_text()

    seated(home, steps)


def test_the_menu_of_keys_names_groups_searches_and_does_what_is_chosen(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("question_mark")
        for group in ("runs", "what is selected"):
            assert group in seat.text
        await seat.press("slash", *"export to")
        assert "export to a file" in seat.text
        assert "next run" not in seat.text
        await seat.press("enter", "enter")
        assert "export" in seat.line("export 0123456789abcdef")

    seated(home, steps)


def test_keys_that_move_in_a_menu_move_there_and_letters_of_choices_take_them(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("question_mark", "j", "j", "k", "g", "G")
        assert isinstance(seat.app.screen, Menu)
        await seat.press("g", "slash", "escape")
        await seat.press("T")
        assert "colours" in seat.text

    seated(home, steps)


# colours


def test_the_colours_are_chosen_by_key_and_remembered(home: Path) -> None:
    async def choose(seat: Seat) -> None:
        await seat.press("T")
        assert "now" in seat.line("dark")
        await seat.press("j", "j", "enter")
        assert seat.app.theme == "looptape-contrast"

    async def again(seat: Seat) -> None:
        assert seat.app.theme == "looptape-contrast"

    seated(home, choose)
    seated(home, again)


def test_the_environment_stands_over_what_was_remembered_and_an_unknown_name_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPTAPE_THEME", "sunny")

    async def steps(seat: Seat) -> None:
        assert seat.app.theme == "looptape-dark"
        assert "'sunny' is unknown" in said(seat)

    seated(home, steps)
    monkeypatch.setenv("LOOPTAPE_THEME", "high-contrast")

    async def known(seat: Seat) -> None:
        assert seat.app.theme == "looptape-contrast"

    seated(home, known)


@pytest.mark.parametrize("theme", ["terminal", "none"])
def test_without_colours_of_ours_every_state_is_a_sign_or_an_attribute(
    theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if theme == "none":
        monkeypatch.setenv("NO_COLOR", "1")

    async def steps(seat: Seat) -> None:
        strips = seat.app.screen._compositor.render_strips()
        styles = [s.style for strip in strips for s in strip if s.style is not None]
        for style in styles:
            for colour in (style.color, style.bgcolor):
                assert colour is None or colour.triplet is None
                assert theme != "none" or colour is None or colour.name == "default", style
        assert any(s.reverse for s in styles)  # the selected row
        for sign in "●✓✗◌■":
            assert sign in seat.text

    drive(shop(), steps, theme=None if theme == "none" else theme)


@pytest.mark.parametrize("theme", ["dark", "light", "contrast", "terminal"])
def test_every_box_of_the_shell_paints_in_every_theme(theme: str) -> None:
    async def steps(seat: Seat) -> None:
        for key, words in (
            ("question_mark", "keys valid here"),
            ("ctrl+p", "what you want"),
            ("colon", "Tab completes"),
        ):
            await seat.press(key)
            assert words in seat.text
            await seat.press("escape")

    drive(shop(), steps, theme=theme, size=(80, 24))


# the mouse


def test_a_click_on_a_word_of_the_footer_does_what_its_key_does(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        foot = seat.lines[-1]
        await seat.pilot.click(KeyBar, offset=(foot.index("y copy") + 2, 0))
        await seat.settle()
        assert "copy" in seat.text
        assert isinstance(seat.app.screen, Menu)
        await seat.press("escape")
        await seat.pilot.click(KeyBar, offset=(foot.index("? keys") + 3, 0))
        await seat.settle()
        assert "keys valid here" in seat.text

    seated(home, steps)


def test_a_long_notice_goes_on_below_instead_of_being_cut(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        words = " ".join(f"word{i}" for i in range(30))
        seat.app.screen.say(words)
        await seat.settle()
        assert "word0" in seat.text
        assert "word29" in seat.text
        await seat.press("j")
        assert "word29" not in seat.text

    seated(home, steps, size=(80, 24))


# what others wrote


def test_nothing_in_a_menu_a_line_or_a_notice_acts(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        seat.app.push_screen(Menu(EVIL, [Choice(t, t, t[:1], t) for t in HOSTILE]))
        await seat.settle()
        seat.app.screen.dismiss(None)
        await seat.settle()
        seat.app.push_screen(Line(EVIL, EVIL, placeholder=EVIL))
        await seat.settle()
        assert not [c for c in seat.text if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u200b")]
        await seat.press("escape")
        seat.app.screen.say(EVIL)
        await seat.settle()
        assert not [c for c in seat.text if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u200b")]

    seated(home, steps)
