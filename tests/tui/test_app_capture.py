"""Data that tries something, on every screen and under every key: what reaches the terminal is ours, nothing is lost or obeyed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from attacks import ATTACKS, RUNS, attacked
from looptape.tui import keymap
from looptape.tui.data.source import StoreSource
from looptape.tui.keymap import Key
from looptape.tui.place import Place
from looptape.tui.safe_text import clean
from pty_terminal import LOOPTAPE, Terminal, terminal
from tui_driver import Seat, drive

# Nothing that acts or hides may stand in a cell. (Joiners and selectors belong to emoji and to scripts.)
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]")
# What Textual itself sends beside text: colours, places and modes, queries, the pointer's shape, Kitty's keys.
OURS = re.compile(
    rb"\x1b\[[0-9;:?<>=$]*[A-Za-z]|\x1b\[\?[0-9;]*\$p|\x1b\]22;[a-z-]*\x07|\x1b7|\x1b8|\x1b[=>]"
    rb"|\x1bP\+q[0-9a-fA-F;]*\x1b\\|\x1b_G[ -~]*\x1b\\|\r|\n"
)
CLIPBOARD = re.compile(rb"(?:\x1bPtmux;\x1b)?\x1b\]52;c;([A-Za-z0-9+/=]*)(?:\x07|\x1b\\)(?:\x1b\\)?")
ATTACKING = (
    b"\x1b]0;", b"\x1b]2;", b"\x1b]4;", b"\x1b]8;", b"\x1b]9;", b"\x1b]10;", b"\x1b]133", b"\x1b]777", b"\x1b]1337", b"\x1bc",
    b"\x1b(0", b"\x1b#8", b"\x1b[6n", b"\x1b[5;10r", b"\x1b[21t", b"c3RvbGVu\x07", "\x9b".encode(), "\x9d".encode(),
    "\u202e".encode(), "\u2066".encode(), "\u200b".encode(), "\U000e0069".encode(),
)  # fmt: skip
LEAVES = {"back", "quit", "close", "suspend", "suspend_process", "demo", "import_found", "start", "stop"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attacked(tmp_path_factory.mktemp("attacked") / "home")


@pytest.fixture
def home(store: Path, tmp_path: Path) -> Path:
    """The store, in a home where the screen remembers nothing yet."""
    return Path(shutil.copytree(store, tmp_path / "home"))


@pytest.fixture(autouse=True)
def nothing_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports, editors and session folders are the test's own."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "HOME": str(tmp_path),
        "PAGER": "true",
        "EDITOR": "true",
        "VISUAL": "true",
        "TZ": "UTC",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "DISPLAY", "WAYLAND_DISPLAY", "TMUX", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)


def check(seat: Seat, after: str) -> None:
    """No cell acts or hides, no line is longer than the screen, nothing is a link."""
    for strip in seat.app.screen._compositor.render_strips():
        text = "".join(segment.text for segment in strip)
        assert not FORBIDDEN.search(text), (after, ascii(text))
        assert strip.cell_length == seat.app.size.width, (after, ascii(text))
        for segment in strip:
            assert segment.style is None or not (segment.style.link or segment.style.meta.get("@click")), after


SCREENS: dict[str, tuple[tuple[str, ...], tuple[Key, ...]]] = {
    "runs": ((), (*keymap.RUNS, *keymap.HERE, *keymap.LIST)),
    "run": (("enter",), (*keymap.RUN, *keymap.HERE, *keymap.LIST)),
    "waterfall": (("enter", "w"), keymap.RUN),
    "transcript": (("enter", "t"), keymap.RUN),
    "turn": (("enter", "enter"), (*keymap.TURN, *keymap.HERE, *keymap.TEXT)),
    "compare": (("m", "j", "d"), (*keymap.COMPARE, *keymap.HERE)),
    "findings": (("exclamation_mark",), keymap.FINDINGS),
    "costs": (("dollar_sign",), keymap.COSTS),
    "fork": (("enter", "r"), keymap.FORK),
}


ON = {"waterfall": "run", "transcript": "run"}
"""Views that stand on another screen."""


@pytest.mark.parametrize("name", SCREENS)
def test_every_key_of_every_screen_shows_hostile_data_and_obeys_none(home: Path, name: str) -> None:
    way, keys = SCREENS[name]

    async def steps(seat: Seat) -> None:
        await seat.press("g", *way)
        check(seat, name)
        here = seat.app.screen
        assert type(here).__name__ == f"{ON.get(name, name).capitalize()}Screen"
        for key in (*keys, *(() if name in ON else keymap.EVERYWHERE)):
            if key.action.partition("(")[0] in LEAVES:
                continue
            for pressed in key.keys.split(","):
                await seat.press(pressed)
                check(seat, f"{name} {pressed}")
                await _home_again(seat, here, f"{name} {pressed}")

    drive(StoreSource(home), steps, size=(100, 30))


async def _home_again(seat: Seat, here: object, after: str) -> None:
    """Leave what a key has opened; through nothing of it may the app end."""
    for _ in range(6):
        if seat.app.screen is here and not isinstance(seat.app.focused, Input):
            return
        assert seat.app._running, after
        await seat.press("escape")
        check(seat, f"{after} escape")
    assert seat.app.screen is here, f"{after}: {seat.app.screen} stays"


def test_each_text_is_shown_whole_where_it_is_the_result_of_a_tool(home: Path) -> None:
    """What is shown is the text with its marks: nothing of it is lost, nothing added."""
    lost: dict[str, str] = {}

    async def steps(seat: Seat) -> None:
        for name, text in ATTACKS.items():
            seat.app.open_turn(Place(RUNS[name], 1), "calls")
            await seat.settle()
            check(seat, name)
            said = "".join(seat.text.split())
            if not all("".join(line.split()) in said for line in clean(text, multiline=True).split("\n")):
                lost[name] = seat.text
            seat.app.back()

    drive(StoreSource(home), steps, size=(160, 120))
    assert lost == {}


def test_an_action_in_the_data_does_not_run_when_it_is_clicked(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        y, line = next((y, line) for y, line in enumerate(seat.lines) if "[@click" in line)
        await seat.pilot.click(offset=(line.index("[@click") + 8, y))
        await seat.settle()
        assert "[@click=app" in seat.chosen

    assert drive(StoreSource(home), steps) is None


@pytest.mark.parametrize("screen", ["runs", "run", "turn", "findings"])
def test_what_is_pasted_into_a_line_is_cleaned_too(home: Path, screen: str) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("g", *SCREENS[screen][0], "slash")
        assert seat.app.focused is not None
        seat.app.focused.post_message(events.Paste("\x1b]52;c;eA==\x07\x9b2J\u202e"))
        await seat.settle()
        check(seat, "paste")
        assert "␛]52;c;eA==" in seat.text

    drive(StoreSource(home), steps)


@pytest.fixture
def on(home: Path) -> Iterator[Terminal]:
    """The real program over the store; gone afterwards, whatever happens."""
    with terminal([*LOOPTAPE, "tui"], environment={"LOOPTAPE_HOME": str(home)}) as made:
        yield made


WALK = (  # what stands on the screen when it is there, and the keys that are then pressed, the last to leave it
    ("", "p p p / [/ \r \x1b", "34 runs"),
    ("s", "\x1b", "sort"),
    ("?", "\x1b", "valid here"),
    ("\x10", "\x1b", ""),
    (":", "sort \x1b", ""),
    ("m j d", "n v v v R q", "swap"),
    ("!", "j q", "wasted"),
    ("$", "\t \t q", "by"),
    ("\r", "j w j w t j t x R / zzz \r \x1b", "GENERATE"),
    ("\r", "2 3 4 5 6 7 8 R G g 1 / [ \r n \x1b", "1 conversation"),
    ("y", "\x1b", "where it is"),
    ("q r", "j e \x1b", "run on from"),
)


def test_nothing_raw_reaches_the_terminal_from_any_screen(on: Terminal) -> None:
    on.until("[/ unclosed", "q quit")
    for there, keys, words in WALK:
        for key in filter(None, there.split(" ")):
            on.send(key)
            on.quiet(0.3)
        on.until(words)
        for key in keys.split(" "):
            on.send(key)
            on.quiet(0.3)
    on.send("\x11")
    assert on.status() == 0, on.grid.text
    assert raw(on.seen) == []
    assert "␛]52;c;".encode() in on.seen


def raw(seen: bytes) -> list[bytes]:
    """What of these octets is neither text nor Textual's own."""
    left = OURS.sub(b"", CLIPBOARD.sub(b"", seen))
    found = [
        left[max(0, m.start() - 30) : m.start() + 30]
        for m in re.finditer(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", left)
    ]
    return found + [attack for attack in ATTACKING if attack in seen]


@pytest.mark.parametrize(
    "name", ["controls", "c1-controls", "csi-8-bit", "osc-title", "osc-clipboard", "dcs", "escapes", "bidi", "tags"]
)
def test_the_octets_of_an_attack_would_be_noticed(name: str) -> None:
    """Were they not looked at, everything above would be green."""
    assert raw(b"\x1b[31mred\x1b[0m\r\nplain") == []
    assert raw(b"\x1b[31m" + ATTACKS[name].encode() + b"\x1b[0m") != []
