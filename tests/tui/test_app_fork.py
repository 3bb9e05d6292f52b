"""The fork screen: what it shows of a turn, how one edits it, and what it says will happen."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual import events
from textual.widgets import TextArea

import talking
from forked import TOOLS, at, fork_screen, home_of_its_own, in_box, runs_of, wrote
from tui_driver import Seat


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from home_of_its_own(tmp_path, monkeypatch)


@pytest.fixture
def run(home: Path) -> str:
    return talking.record(home, talking.ANTHROPIC, talking.loop())


def editor(seat: Seat) -> TextArea:
    return seat.app.screen.query_one(TextArea)


def test_r_on_a_turn_opens_it_with_everything_that_can_be_changed(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("escape")
        await seat.press("enter", "j", "r")
        await seat.settle()
        assert "run on from talk" in seat.text
        assert "turn 2 of 4" in seat.lines[0]
        assert "Asks the model for turn 2; turn 1 inherited." in seat.text
        assert "Will run live: nothing. Will not run: the model (recorded), search (recorded)." in seat.text
        for words in ("model", "search", "limits", "system", "tools", "max_tokens", "[1] user", "[3] user result",
                      "answer", "→ search", "search result", "answer, whole"):  # fmt: skip
            assert seat.line(words), words
        assert "LIVE" not in seat.text

    fork_screen(home, run, 3, steps)


def test_another_turn_is_chosen_with_l_and_h_and_edits_that_still_stand_are_kept(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "system")
        await seat.press("e")
        await wrote(seat, "Hey. ")
        await seat.press("ctrl+s")
        await at(seat, "search result")
        await seat.press("e")
        await wrote(seat, "no ")
        await seat.press("ctrl+s")
        assert "2 edits" in seat.lines[0]
        assert "Keeps answer and results of turn 2" in seat.text
        await seat.press("l")
        await seat.settle()
        assert "turn 3 of 4" in seat.lines[0]
        assert "1 edit" in seat.lines[0]
        assert "1 edit of the other turn's own taken back" in seat.text
        assert "Hey. You look things up." in seat.text
        await seat.press("h", "h")
        await seat.settle()
        assert "turn 1 of 4" in seat.lines[0]
        await seat.press("h")
        assert "there is no turn before this" in seat.text

    fork_screen(home, run, 2, steps)


def test_an_edit_shows_as_a_diff_and_u_takes_it_back(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "system")
        await seat.press("e")
        editor(seat).text = "You look things down."
        await seat.press("ctrl+s")
        assert "1 edit" in seat.lines[0]
        assert "- You look things up." in seat.text
        assert "+ You look things down." in seat.text
        assert "✎ You look things down." in seat.chosen
        assert "the recording ends the fork there" in seat.text
        await seat.press("u")
        assert "0 edits" in seat.lines[0]
        assert "the recording ends the fork there" not in seat.text
        await seat.press("u")
        assert "nothing to take back here" in seat.text

    fork_screen(home, run, 2, steps)


def test_a_text_that_is_left_as_it_was_is_no_edit(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "tool search")
        await seat.press("e", "ctrl+s")
        assert "nothing changed" in seat.text
        assert "0 edits" in seat.lines[0]

    fork_screen(home, run, 2, steps)


def test_what_is_no_json_is_not_taken_and_the_cursor_stands_at_the_mistake(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "tool search")
        await seat.press("e")
        editor(seat).text = '{\n  "name": search\n}'
        await seat.press("ctrl+s")
        assert "tools[1] must be JSON: Expecting value at line 2, column 11" in seat.text
        assert editor(seat).cursor_location == (1, 10)
        await seat.press("escape")
        assert "Esc once more leaves it" in seat.text
        await seat.press("escape")
        assert "0 edits" in seat.lines[0]

    fork_screen(home, run, 2, steps)


def test_what_is_pasted_is_cleaned_on_the_screen_and_kept_in_the_edit(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "system")
        await seat.press("e")
        editor(seat).post_message(events.Paste("\x1b]52;c;ZXZpbA==\x07\u202ex "))
        await seat.settle()
        assert "‹U+001B›]52;c;ZXZpbA==‹U+0007›‹U+202E›x You look" in seat.text
        await seat.press("ctrl+s")
        text = seat.app.screen.edits["system"][1]  # type: ignore[attr-defined]
        assert text == "\x1b]52;c;ZXZpbA==\x07\u202ex You look things up."
        assert "\x1b" not in seat.text

    fork_screen(home, run, 2, steps)


def test_capital_e_goes_through_the_editor_in_a_private_file_that_is_gone_afterwards(
    home: Path, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "ed.py"
    script.write_text(
        "import os, sys\npath = sys.argv[1]\nopen('seen', 'w').write(f'{os.stat(path).st_mode} {path}')\n"
        "text = open(path).read()\nopen(path, 'w').write(text.replace('up', 'down') + '\\n')\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")

    async def steps(seat: Seat) -> None:
        monkeypatch.setattr(seat.app, "suspend", lent)
        await at(seat, "system")
        await seat.press("E")
        assert "+ You look things down." in seat.text
        assert seat.app.screen.edits["system"][1] == "You look things down."  # type: ignore[attr-defined]

    fork_screen(home, run, 2, steps)
    mode, path = (tmp_path / "seen").read_text().split(" ", 1)
    assert stat.S_IMODE(int(mode)) == 0o600
    assert not Path(path).exists()


@contextmanager
def lent() -> Iterator[None]:
    """The terminal, given away as far as a test has one."""
    yield


def test_a_parameter_that_was_not_sent_can_be_added(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "another …")
        await seat.press("enter")
        await wrote(seat, "temperature=0")
        await seat.press("enter")
        assert "1 edit" in seat.lines[0]
        assert "temperature" in seat.line("✎ 0")
        await at(seat, "temperature")
        await seat.press("u")
        assert "0 edits" in seat.lines[0]
        assert not seat.line("✎ 0")

    fork_screen(home, run, 2, steps)


def test_turns_can_be_taken_out(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "turns taken out")
        await seat.press("e")
        await wrote(seat, "1-2")
        await seat.press("enter")
        assert "turns 1, 2 taken out" in seat.chosen
        await seat.press("e", *["backspace"] * 3)
        await wrote(seat, "9")
        await seat.press("enter")
        assert "! " in seat.text
        assert "cannot be dropped" in seat.text
        await seat.press("ctrl+r")
        assert "it cannot run" in seat.text
        await seat.press("u")
        assert "Will run live: nothing" in seat.text

    fork_screen(home, run, 4, steps)


def test_a_live_model_is_named_with_its_server_its_cost_and_what_is_missing(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter")
        assert "ANTHROPIC_API_KEY is not set here: api.anthropic.com may refuse a live model." in in_box(seat)
        await seat.press("l")
        assert "LIVE  claude-sonnet-4-5 at api.anthropic.com" in seat.line("LIVE")
        assert "Will run live: the model claude-sonnet-4-5 (api.anthropic.com)." in seat.text
        assert "About $0.0009 a turn, stops at 50 turns; at worst about" in seat.text
        await at(seat, "limits")
        await seat.press("enter", "c")
        await wrote(seat, "1")
        await seat.press("enter")
        await seat.press("enter", "t")
        await wrote(seat, "9000")
        await seat.press("enter")
        assert "9,000 turns, 30 min, $1" in seat.chosen
        assert "stops at 9000 turns or $1.00" in seat.text
        await seat.press("u")
        assert "50 turns, 30 min, no limit of cost" in seat.chosen
        await at(seat, "model  ")
        await seat.press("u")
        assert "LIVE" not in seat.text

    fork_screen(home, run, 2, steps, size=(200, 40))


def test_another_model_is_typed_as_the_command_takes_it(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter", "o")
        await wrote(seat, "openai:http://127.0.0.1:9/v1")
        await seat.press("enter")
        assert "Will run live: the model claude-sonnet-4-5 (127.0.0.1:9)" in seat.text
        assert "sent as openai.chat" in seat.text

    fork_screen(home, run, 2, steps, size=(200, 40))


def test_a_tool_gets_a_stub_or_an_error_or_what_was_recorded(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("j")
        assert "recorded, else stop  3 calls in the recording" in seat.chosen
        await seat.press("enter", "s")
        assert editor(seat).text == "revenue 1: 1200"
        editor(seat).text = "@nothing"
        await seat.press("ctrl+s")
        assert "stub  @nothing" in seat.chosen
        assert "search (stub)" in seat.text
        await seat.press("enter", "e")
        await wrote(seat, "Error: ")
        await seat.press("ctrl+s")
        assert "stub error  Error: @nothing" in seat.chosen
        assert "search (stub error)" in seat.text
        await seat.press("u")
        assert "recorded, else stop" in seat.chosen
        await seat.press("enter", "l")
        assert "no source has a live tool search" in seat.text
        assert "LIVE" not in seat.text

    fork_screen(home, run, 2, steps, size=(200, 40))


def test_live_tools_come_from_a_module_or_a_server_and_run_only_where_chosen(
    home: Path, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "screen_tools.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("screen_tools", None)

    async def steps(seat: Seat) -> None:
        await at(seat, "live tools from")
        await seat.press("enter", "p")
        await wrote(seat, "nowhere:TOOLS")
        await seat.press("enter")
        await seat.settle()
        assert "nowhere:TOOLS cannot be loaded" in seat.text
        assert "nowhere  " in seat.chosen
        await seat.press("enter", "p")
        await wrote(seat, "screen_tools:TOOLS")
        await seat.press("enter")
        await seat.settle()
        assert "screen_tools:TOOLS" in seat.chosen
        assert "each runs only where you choose it" in seat.text
        assert "LIVE" not in seat.text
        await seat.press("k", "enter", "l")
        assert "LIVE  changes things" in seat.chosen
        assert "Will run live: search. Will not run: the model (recorded)." in seat.text
        await seat.press("ctrl+r")
        assert "This runs search for real." in seat.text
        await seat.press("n")
        await seat.press("j", "enter", "j", "j", "enter")
        await seat.settle()
        assert "LIVE" not in seat.text

    fork_screen(home, run, 2, steps)
    assert sys.modules["screen_tools"].RAN == []
    assert len(runs_of(home)) == 1


def test_leaving_with_edits_asks(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        await at(seat, "system")
        await seat.press("e")
        await wrote(seat, "x")
        await seat.press("ctrl+s", "q")
        assert "1 edit would be lost" in seat.text
        await seat.press("s")
        assert "run on from" in seat.text
        await seat.press("q", "l")
        assert "run on from" not in seat.text

    fork_screen(home, run, 2, steps)


def test_tab_goes_from_kind_to_kind(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        for words in ("request", "messages", "answer"):
            await seat.press("tab")
            assert words in seat.chosen
        await seat.press("shift+tab")
        assert "messages" in seat.chosen

    fork_screen(home, run, 2, steps)


def test_a_run_that_is_over_is_forked_at_its_last_turn(home: Path, run: str) -> None:
    async def steps(seat: Seat) -> None:
        assert "turn 4 of 4" in seat.lines[0]
        await seat.press("l")
        await seat.settle()
        assert "was over with turn 4" in seat.text
        assert "turn 4 of 4" in seat.lines[0]

    fork_screen(home, run, None, steps)


def test_a_run_whose_content_was_not_recorded_says_so(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPTAPE_CONTENT", "none")
    run = talking.record(home, talking.ANTHROPIC, talking.loop())

    async def steps(seat: Seat) -> None:
        assert "! " in seat.text
        assert "3 of its 3 messages were not recorded" in seat.text
        assert "There is nothing to go on from here." in seat.text
        await seat.press("e", "u", "ctrl+r", "tab", "space")
        assert "run on from" in seat.text

    fork_screen(home, run, 2, steps)
