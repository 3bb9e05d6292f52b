"""The keys: one place says them all, the page about them says the same, and no screen gives a key two meanings."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptape.tui import keymap
from looptape.tui.screens.compare.screen import CompareScreen
from looptape.tui.screens.costs.screen import CostsScreen
from looptape.tui.screens.findings.screen import FindingsScreen
from looptape.tui.screens.fork.screen import ForkScreen
from looptape.tui.screens.page import Page
from looptape.tui.screens.run.screen import RunScreen
from looptape.tui.screens.runs.screen import RunsScreen
from looptape.tui.screens.turn.screen import TurnScreen

PAGE = Path(__file__).parents[2] / "docs" / "tui.md"
PAGES: tuple[type[Page], ...] = (
    RunsScreen,
    RunScreen,
    TurnScreen,
    CompareScreen,
    ForkScreen,
    FindingsScreen,
    CostsScreen,
)
SCROLLING = {"space": {"run.scroll", "text.page-down"}, "b": {"run.scroll-up", "text.page-up"}}
"""What has the keys comes first: Space scrolls the text one stands in, else the text beside the list."""


def section(group: str) -> str:
    """What stands on the page under the title of a group."""
    page = PAGE.read_text(encoding="utf-8")
    title = f"\n### {group[0].upper()}{group[1:]}\n"
    assert title in page
    return page.split(title)[1].split("\n#")[0]


@pytest.mark.parametrize("group", list(keymap.GROUPS))
def test_the_page_lists_every_key_of_a_group_and_no_other(group: str) -> None:
    rows = [line for line in section(group).splitlines() if line.startswith("| `")]
    assert rows == [f"| `{key.label}` | {key.help} | `{key.name}` |" for key in keymap.GROUPS[group]]


def test_every_key_stands_in_a_group() -> None:
    grouped = {key for keys in keymap.GROUPS.values() for key in keys} | set(keymap.MENU_KEYS)
    for name, value in vars(keymap).items():
        if isinstance(value, tuple) and value and all(isinstance(key, keymap.Key) for key in value):
            assert set(value) <= grouped, name


def test_names_are_unique_and_so_are_the_words_of_the_menu() -> None:
    names = [key.name for keys in keymap.GROUPS.values() for key in keys]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("screen", list(keymap.SCREENS))
def test_no_screen_gives_a_key_two_meanings(screen: str) -> None:
    meanings: dict[str, set[str]] = {}
    for keys in keymap.SCREENS[screen]:
        for key in keys:
            for one in key.keys.split(","):
                meanings.setdefault(one, set()).add(key.name)
    twice = {one: names for one, names in meanings.items() if len(names) > 1}
    assert all(SCROLLING.get(one) == names for one, names in twice.items()), twice


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_the_table_of_screens_has_the_keys_of_each(page: type[Page]) -> None:
    name = page.__name__.removesuffix("Screen").lower()
    assert set(page.KEYS) <= {key for keys in keymap.SCREENS[name] for key in keys}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_every_key_of_a_screen_does_something(page: type[Page]) -> None:
    from looptape.tui.app import LooptapeApp

    for key in (*page.KEYS, *keymap.EVERYWHERE):
        action = f"action_{key.action.split('(')[0]}"
        assert hasattr(page, action) or hasattr(LooptapeApp, action), key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("S", "S"),
        ("!", "exclamation_mark"),
        ("-", "minus"),
        ("PgDn", "pagedown"),
        ("esc", "escape"),
        ("Ctrl+T", "ctrl+t"),
        ("f5", "f5"),
        ("left_curly_bracket", "left_curly_bracket"),
        ("hyper+x", None),
        ("", None),
    ],
)
def test_a_key_is_understood_as_people_write_it_and_written_the_same_way(text: str, key: str | None) -> None:
    assert keymap.meant(text) == key
    if key is not None:
        assert keymap.meant(keymap.written(key)) == key
