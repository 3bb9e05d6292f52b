"""Every key in one place: what it does, where it is valid, what it is called in the footer and the menu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True, slots=True)
class Key:
    """One command with its keys.

    Attributes:
        keys: Textual's key names, comma separated.
        action: The action that runs.
        name: Stable name, by which a settings file can rebind it.
        short: The word in the footer; empty keeps it out of there.
        help: The line in the menu of keys.
        shown: How the keys are written; empty derives it from ``keys``.
    """

    keys: str
    action: str
    name: str
    short: str
    help: str
    shown: str = ""

    @property
    def label(self) -> str:
        """The keys as a person writes them."""
        return self.shown or " ".join(_WRITTEN.get(k, k) for k in self.keys.split(","))


_WRITTEN = {
    "question_mark": "?",
    "slash": "/",
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
    "tab": "Tab",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "ctrl+p": "ctrl+p",
}

LIST = (
    Key("j,down", "move(1)", "list.down", "", "next row", "j ↓"),
    Key("k,up", "move(-1)", "list.up", "", "previous row", "k ↑"),
    Key("pagedown,ctrl+d", "page(1)", "list.page-down", "", "a screen down", "PgDn"),
    Key("pageup,ctrl+u", "page(-1)", "list.page-up", "", "a screen up", "PgUp"),
    Key("g,home", "top", "list.first", "", "first row", "g"),
    Key("G,end", "bottom", "list.last", "", "last row", "G"),
    Key("enter", "open", "list.open", "open", "open it", "Enter"),
)
TEXT = (
    Key("j,down", "move(1)", "text.down", "", "a line down", "j ↓"),
    Key("k,up", "move(-1)", "text.up", "", "a line up", "k ↑"),
    Key("pagedown,space,ctrl+d", "page(1)", "text.page-down", "", "a screen down", "PgDn"),
    Key("pageup,b,ctrl+u", "page(-1)", "text.page-up", "", "a screen up", "PgUp"),
    Key("g,home", "top", "text.first", "", "to the top", "g"),
    Key("G,end", "bottom", "text.last", "", "to the end", "G"),
)
EVERYWHERE = (
    Key("question_mark", "keys", "keys", "keys", "the keys valid here", "?"),
    Key("ctrl+p", "command_palette", "palette", "", "all commands", "ctrl+p"),
    Key("ctrl+q", "quit", "quit", "", "leave looptape", "ctrl+q"),
)
RUNS = (
    Key("slash", "filter", "runs.filter", "filter", "show only runs with these words in name, status, model, …", "/"),
    Key("s", "sort", "runs.sort", "sort", "sort by time, cost, turns or errors", "s"),
    Key("J", "error(1)", "runs.next-error", "", "next run with errors", "J"),
    Key("K", "error(-1)", "runs.previous-error", "", "previous run with errors", "K"),
    Key("f", "follow", "runs.follow", "follow", "stay on the newest run", "f"),
    Key("y", "copy", "runs.copy", "copy id", "copy the run's id", "y"),
    Key("d", "demo", "runs.demo", "", "how to see the demo", "d"),
    Key("i", "import_found", "runs.import", "", "how to import what was found here", "i"),
    Key("q,escape", "back", "runs.quit", "quit", "leave looptape (Esc: first clear the filter)", "q"),
)
RUN = (
    Key("J", "error(1)", "run.next-error", "next error", "next turn with an error", "J"),
    Key("K", "error(-1)", "run.previous-error", "", "previous turn with an error", "K"),
    Key("tab,l,right", "pane(1)", "run.right", "pane", "to the turn on the right (j and k scroll there)", "Tab l →"),
    Key("shift+tab,h,left", "pane(-1)", "run.left", "", "back to the list of turns", "h ←"),
    Key("space", "detail(1)", "run.scroll", "", "scroll the turn, then go to the next", "Space"),
    Key("b", "detail(-1)", "run.scroll-up", "", "scroll the turn up", "b"),
    Key("R", "raw", "run.raw", "raw", "raw or pretty", "R"),
    Key("f", "follow", "run.follow", "follow", "stay on the newest turn", "f"),
    Key("y", "copy", "run.copy", "copy", "copy RUN:N", "y"),
    Key("q,escape", "back", "run.back", "back", "back to the runs", "q Esc"),
)
TURN = (
    Key("right_square_bracket,tab", "tab(1)", "turn.next-tab", "tab", "next tab", "] Tab"),
    Key("left_square_bracket,shift+tab", "tab(-1)", "turn.previous-tab", "", "previous tab", "["),
    Key("1,2,3,4,5,6", "tab_at", "turn.tab", "", "that tab", "1 … 6"),
    Key("l,right,n", "turn(1)", "turn.next", "next turn", "next turn", "l →"),
    Key("h,left,p", "turn(-1)", "turn.previous", "", "previous turn", "h ←"),
    Key("J", "error(1)", "turn.next-error", "next error", "next turn with an error", "J"),
    Key("K", "error(-1)", "turn.previous-error", "", "previous turn with an error", "K"),
    Key("R", "raw", "turn.raw", "raw", "raw or pretty", "R"),
    Key("y", "copy", "turn.copy", "copy", "copy RUN:N", "y"),
    Key("q,escape", "back", "turn.back", "back", "back to the run", "q Esc"),
)


def bindings(keys: Sequence[Key]) -> list[BindingType]:
    """Textual's bindings for these commands. The descriptions are ours, never data."""
    made: list[BindingType] = []
    for key in keys:
        if key.action == "tab_at":
            made += [
                Binding(k, f"tab_at({k})", key.help, show=False, id=f"{key.name}.{k}") for k in key.keys.split(",")
            ]
        else:
            made.append(Binding(key.keys, key.action, key.help, show=False, id=key.name))
    return made
