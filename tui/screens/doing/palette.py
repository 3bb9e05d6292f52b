"""The command palette: everything that can be done here and everywhere, found by any of its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ... import keymap
from ...place import Scope
from ...themes import NAMES
from ..line import Line, Offer
from . import copying, exporting, opening
from .command_line import Bridge


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette.

    Attributes:
        group: What it is about, also a word to find it by.
        key: The key that does the same.
    """

    text: str
    group: str
    key: str
    do: Callable[[], object]


def open_palette(bridge: Bridge) -> None:
    """Find a command by its words and run it."""
    entries = entries_of(bridge)

    def offered(line: str) -> list[Offer]:
        return [Offer(e.text, e.group, e.key) for e in found(entries, line)]

    def taken(text: str | None) -> None:
        entry = next((e for e in entries if e.text == text), None)
        if entry is not None:
            entry.do()

    bridge.app.push_screen(
        Line("▸", offers=offered, placeholder="words of what you want to do", only_offers=True), taken
    )


def found(entries: Sequence[Entry], line: str) -> list[Entry]:
    """The entries with all words of a line: first those that begin so, then those with words that do, short ones first."""
    words = line.casefold().split()
    hits = [e for e in entries if all(w in f"{e.text} {e.group} {e.key}".casefold() for w in words)]

    def rank(entry: Entry) -> tuple[bool, int, int]:
        text = entry.text.casefold()
        return not text.startswith(words[0]), -sum(f" {w}" in f" {text}" for w in words), len(text)

    return sorted(hits, key=rank) if words else hits


def entries_of(bridge: Bridge) -> list[Entry]:
    """All that can be done: keys of the screen, then copies, exports, other screens, colours; each text once."""
    made = [
        Entry(k.help[:1].upper() + k.help[1:], keymap.group_of(k.name), k.label, partial(bridge.do, k.action))
        for k in bridge.loop_app.rebound(bridge.all_keys())
        if k.action not in ("tab_at", "command_palette")
    ]
    made += _of_subject(bridge)
    app = bridge.loop_app
    made += [
        Entry("All runs", "go to", "", app.home_screen),
        Entry("Findings of all runs", "go to", "", partial(app.open_findings, Scope())),
        Entry("Costs of all runs", "go to", "", partial(app.open_costs, Scope())),
    ]
    made += [Entry(f"Colours: {name}", "theme", "", partial(app.dress, name)) for name in NAMES]
    made.append(
        Entry(
            "Save a picture of this screen (SVG)",
            "export",
            "",
            partial(bridge.app.call_after_refresh, app.save_picture),
        )
    )
    seen: dict[str, Entry] = {}
    for entry in made:
        seen.setdefault(entry.text, entry)
    return list(seen.values())


def _of_subject(bridge: Bridge) -> list[Entry]:
    """The menus of what is selected, line by line."""
    subject = bridge.subject()
    made = [
        Entry(f"Copy {c.text}", "copy", "", partial(copying.copy_as, bridge, subject, c.id))
        for c in copying.choices_of(subject)
    ]
    made += [
        Entry(f"Open {c.text}", "open", "", partial(opening.open_in, bridge, subject, c.id))
        for c in opening.choices_of(subject)
    ]
    made += [
        Entry(f"Export {c.text}", "export", "", partial(exporting.ask_file, bridge, subject, c.id))
        for c in exporting.choices_of(subject)
    ]
    return made
