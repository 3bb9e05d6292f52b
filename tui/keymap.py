"""Every key in one place: what it does, where it is valid, what it is called in the footer and the menu."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from textual.binding import Binding, BindingType
from textual.keys import Keys, key_to_character


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
        return self.shown or " ".join(map(written, filter(None, self.keys.split(","))))


_WRITTEN = {
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
    "tab": "Tab",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
}
_SIGNS = {"/": "slash", "-": "minus", "+": "plus", "\\": "backslash", "@": "at", "_": "underscore"}
"""Signs that Textual calls otherwise than Unicode does."""


def written(key: str) -> str:
    """One of Textual's key names as a person writes it: ``!``, ``PgDn``, ``ctrl+t``."""
    sign = next((c for c, name in _SIGNS.items() if name == key), None)
    return _WRITTEN.get(key) or sign or key_to_character(key) or key


def meant(text: str) -> str | None:
    """Textual's name of a key as a person writes it; None when there is no such key."""
    from unicodedata import name

    if len(text) == 1:
        if text.isalnum():
            return text
        return _SIGNS.get(text) or (name(text, "").lower().replace("-", "_").replace(" ", "_") or None)
    own = next((k for k, w in _WRITTEN.items() if w.casefold() == text.casefold()), None)
    known = {k.value for k in Keys if not k.value.startswith("<")} | set(_WRITTEN) | set(_SIGNS.values())
    lower = text.lower()
    if own is not None or lower in known:
        return own or lower
    return text if text == lower and key_to_character(text) is not None else None


LIST = (
    Key("j,down", "move(1)", "list.down", "", "next row", "j ↓"),
    Key("k,up", "move(-1)", "list.up", "", "previous row", "k ↑"),
    Key("pagedown,ctrl+d", "page(1)", "list.page-down", "", "a screen down", "PgDn"),
    Key("pageup,ctrl+u", "page(-1)", "list.page-up", "", "a screen up", "PgUp"),
    Key("g,home", "top", "list.first", "", "first row", "g"),
    Key("G,end", "bottom", "list.last", "", "last row", "G"),
    Key("enter", "open", "list.open", "open", "open it", "Enter"),
)
OPEN = LIST[-1]
"""The key of a list that the foot of a screen names first where its rows lead somewhere."""
READING = (
    Key("j,down", "move(1)", "text.down", "", "a line down", "j ↓"),
    Key("k,up", "move(-1)", "text.up", "", "a line up", "k ↑"),
    Key("pagedown,space,ctrl+d", "page(1)", "text.page-down", "", "a screen down", "PgDn"),
    Key("pageup,b,ctrl+u", "page(-1)", "text.page-up", "", "a screen up", "PgUp"),
    Key("g,home", "top", "text.first", "", "to the top", "g"),
    Key("G,end", "bottom", "text.last", "", "to the end", "G"),
)
TEXT = (
    *READING,
    Key("enter", "fold", "text.fold", "fold", "fold or unfold what is marked at the left edge (or click it)", "Enter"),
    Key("right_parenthesis", "fold_step(1)", "text.next-fold", "", "to the next fold", ")"),
    Key("left_parenthesis", "fold_step(-1)", "text.previous-fold", "", "to the previous fold", "("),
    Key("minus", "fold_all(True)", "text.fold-all", "", "fold everything", "-"),
    Key("plus", "fold_all(False)", "text.unfold-all", "", "unfold everything", "+"),
)
MENU = (
    Key("slash", "filter", "menu.filter", "search", "only lines with these words", "/"),
    Key("escape,q,question_mark", "close", "menu.close", "close", "close", "Esc"),
)
MENU_KEYS = (Key("enter", "open", "menu.open", "take it", "take it", "Enter"), *MENU)
EVERYWHERE = (
    Key("question_mark", "keys", "keys", "keys", "the keys valid here", "?"),
    Key("ctrl+p", "command_palette", "palette", "", "all commands", "ctrl+p"),
    Key("colon", "command", "command", "", "type a command", ":"),
    Key(
        "exclamation_mark", "findings", "findings", "findings", "findings of what is shown, with what they wasted", "!"
    ),
    Key("dollar_sign", "costs", "costs", "costs", "costs of what is shown: charts and tables", "$"),
    Key("T", "theme", "theme", "", "the colours: dark, light, contrast, the terminal's own", "T"),
    Key("ctrl+z", "suspend_process", "suspend", "", "back to the shell for a while; fg comes back", "ctrl+z"),
    Key("ctrl+q", "quit", "quit", "", "leave looptape", "ctrl+q"),
)
HERE = (
    Key("m", "mark", "mark", "mark", "mark for d, or take the mark away", "m"),
    Key("d", "diff", "diff", "diff", "compare with what is marked", "d"),
    Key("r", "fork", "fork", "run on", "run on from here with something changed", "r"),
    Key("y", "copy", "copy", "copy", "copy: value, JSON, Markdown, curl, RUN:N, as a test", "y"),
    Key("o", "open_in", "open-in", "", "open in $PAGER or $EDITOR, or the caller at its line", "o"),
    Key("O", "resume", "resume", "", "resume the session in its own tool", "O"),
    Key("e", "export", "export", "", "export to a file", "e"),
)
"""What one can do with a run or a turn, on whatever screen it stands."""
RUNS = (
    Key("slash", "filter", "runs.filter", "filter", "filter: words, error:yes, turns:>20, since:7d, …", "/"),
    Key("s", "sort", "runs.sort", "sort", "sort by a column", "s"),
    Key("S", "reverse", "runs.reverse", "", "the other way round", "S"),
    Key("p", "group", "runs.group", "group", "as a list, by lineage (forks, sub-agents), by project", "p"),
    Key("J", "error(1)", "runs.next-error", "", "next run with errors", "J"),
    Key("K", "error(-1)", "runs.previous-error", "", "previous run with errors", "K"),
    Key("c", "cycles", "runs.cycles", "", "only runs that go in circles, or all again", "c"),
    Key("f", "follow", "runs.follow", "follow", "stay on the newest run", "f"),
    Key("i", "import_found", "runs.import", "", "import what was found on this machine, and keep in step", "i"),
    Key("D", "demo", "runs.demo", "", "see the demo (d while nothing is recorded)", "D"),
    Key("q,escape", "back", "runs.quit", "quit", "leave looptape (Esc: first clear the filter)", "q"),
)
RUN = (
    Key("v", "view", "run.view", "view", "turns, waterfall, transcript", "v"),
    Key("w", "waterfall", "run.waterfall", "", "waterfall over time, and back", "w"),
    Key("t", "transcript", "run.transcript", "", "transcript, and back", "t"),
    Key("J", "error(1)", "run.next-error", "next error", "next turn with an error", "J"),
    Key("K", "error(-1)", "run.previous-error", "", "previous turn with an error", "K"),
    Key("c", "cycle(1)", "run.next-cycle", "cycle", "next cycle", "c"),
    Key("C", "cycle(-1)", "run.previous-cycle", "", "previous cycle", "C"),
    Key("greater_than_sign", "finding(1)", "run.next-finding", "", "next turn with a finding", ">"),
    Key("less_than_sign", "finding(-1)", "run.previous-finding", "", "previous turn with a finding", "<"),
    Key("asterisk", "peer(1)", "run.next-peer", "", "next call of the same tool", "*"),
    Key("number_sign", "peer(-1)", "run.previous-peer", "", "previous call of the same tool", "#"),
    Key("u", "user(1)", "run.next-user", "", "next turn with a word of the user", "u"),
    Key("U", "user(-1)", "run.previous-user", "", "previous turn with a word of the user", "U"),
    Key("slash", "search", "run.search", "search", "search in this run", "/"),
    Key("n", "hit(1)", "run.next-hit", "", "next search hit", "n"),
    Key("N", "hit(-1)", "run.previous-hit", "", "previous search hit", "N"),
    Key("x", "context", "run.context", "context", "what fills the window at this turn", "x"),
    Key("R", "raw", "run.raw", "raw", "raw or pretty", "R"),
    Key("f", "follow", "run.follow", "follow", "to the newest turn, and stay there; moving away ends it", "f"),
    Key("i", "child", "run.child", "", "into the sub-agent that this turn started", "i"),
    Key("p", "parent", "run.parent", "", "to the run that started this one", "p"),
    Key(
        "tab,l,right",
        "pane(1)",
        "run.right",
        "pane",
        "to the turn beside the list (j and k scroll there), and back",
        "Tab l →",
    ),
    Key("shift+tab,h,left", "pane(-1)", "run.left", "", "back to the list of turns", "h ←"),
    Key("space", "detail(1)", "run.scroll", "", "scroll the turn, then go to the next", "Space"),
    Key("b", "detail(-1)", "run.scroll-up", "", "scroll the turn up", "b"),
    Key("q,escape", "back", "run.back", "back", "back: first without the search, then to the runs", "q Esc"),
)
WATERFALL = (
    Key("plus,equals_sign", "zoom(1)", "waterfall.nearer", "", "nearer: twice the scale", "+"),
    Key("minus", "zoom(-1)", "waterfall.farther", "", "farther: half the scale", "-"),
    Key("0", "fit", "waterfall.fit", "", "the whole run at once", "0"),
    Key("L,shift+right", "pan(1)", "waterfall.later", "", "later", "L"),
    Key("H,shift+left", "pan(-1)", "waterfall.earlier", "", "earlier", "H"),
)
TRANSCRIPT = (
    Key("enter", "open", "transcript.open", "open", "the turn whole", "Enter"),
    Key("z", "longer", "transcript.long", "", "long texts cut short, or longer", "z"),
)
TURN = (
    Key("right_square_bracket,tab", "tab(1)", "turn.next-tab", "tab", "next tab", "] Tab"),
    Key("left_square_bracket,shift+tab", "tab(-1)", "turn.previous-tab", "", "previous tab", "["),
    Key("1,2,3,4,5,6,7,8", "tab_at", "turn.tab", "", "that tab", "1 … 8"),
    Key("l,right", "turn(1)", "turn.next", "next turn", "next turn", "l →"),
    Key("h,left", "turn(-1)", "turn.previous", "", "previous turn", "h ←"),
    Key("J", "error(1)", "turn.next-error", "next error", "next turn with an error", "J"),
    Key("K", "error(-1)", "turn.previous-error", "", "previous turn with an error", "K"),
    Key("asterisk", "peer(1)", "turn.next-peer", "", "next call of the same tool", "*"),
    Key("number_sign", "peer(-1)", "turn.previous-peer", "", "previous call of the same tool", "#"),
    Key("slash", "search", "turn.search", "search", "search in this text", "/"),
    Key("n", "hit(1)", "turn.next-hit", "", "next search hit", "n"),
    Key("N", "hit(-1)", "turn.previous-hit", "", "previous search hit", "N"),
    Key("right_curly_bracket", "more(1)", "turn.more", "", "more context around what changed", "}"),
    Key("left_curly_bracket", "more(-1)", "turn.less", "", "less context around what changed", "{"),
    Key("x", "context", "turn.context", "", "what fills the window", "x"),
    Key("R", "raw", "turn.raw", "raw", "raw or pretty", "R"),
    Key("q,escape", "back", "turn.back", "back", "back to the run", "q Esc"),
)
COMPARE = (
    Key("n", "change(1)", "compare.next", "next", "next difference", "n"),
    Key("N", "change(-1)", "compare.previous", "previous", "previous difference", "N"),
    Key("right_curly_bracket", "more(1)", "compare.more", "", "more of what is equal around a difference", "}"),
    Key("left_curly_bracket", "more(-1)", "compare.less", "", "less of what is equal around a difference", "{"),
    Key("tab", "side(1)", "compare.side", "side", "y e o m r are about the other side", "Tab"),
    Key("v", "view", "compare.view", "view", "turns, requests, results, totals", "v"),
    Key("1,2,3,4", "tab_at", "compare.tab", "", "that view", "1 … 4"),
    Key("space", "detail(1)", "compare.scroll", "", "scroll the texts below", "Space"),
    Key("b", "detail(-1)", "compare.scroll-up", "", "scroll the texts up", "b"),
    Key("s", "swap", "compare.swap", "swap", "left to the right, right to the left", "s"),
    Key("R", "raw", "compare.raw", "", "raw or pretty", "R"),
    Key("q,escape", "back", "compare.back", "back", "back", "q Esc"),
)
FORK = (
    Key("e", "edit", "fork.edit", "edit", "edit what is selected here, or choose what answers", "e"),
    Key("E", "edit_outside", "fork.editor", "$EDITOR", "edit what is selected in $EDITOR", "E"),
    Key("u", "undo", "fork.undo", "undo", "take the edit or the choice back", "u"),
    Key("l,right", "turn(1)", "fork.next-turn", "turn", "from the next turn", "l →"),
    Key("h,left", "turn(-1)", "fork.previous-turn", "", "from the turn before", "h ←"),
    Key("tab", "section(1)", "fork.next-section", "section", "to the next kind of thing", "Tab"),
    Key("shift+tab", "section(-1)", "fork.previous-section", "", "to the kind of thing before", "shift+tab"),
    Key("space", "detail(1)", "fork.scroll", "", "scroll the text", "Space"),
    Key("b", "detail(-1)", "fork.scroll-up", "", "scroll the text up", "b"),
    Key("ctrl+r", "start", "fork.start", "run", "start it (asks first when something would run live)", "ctrl+r"),
    Key("ctrl+x", "stop", "fork.stop", "stop", "stop the fork that runs", "ctrl+x"),
    Key("q,escape", "back", "fork.back", "back", "back (asks while a fork runs)", "q Esc"),
)
FORK_EDITOR = (
    Key("ctrl+s", "take", "fork.editor-take", "take it", "take the text", "ctrl+s"),
    Key("escape", "leave", "fork.editor-leave", "leave", "leave it as it was", "Esc"),
)
FINDINGS = (
    Key("slash", "filter", "findings.filter", "filter", "only findings with these words", "/"),
    Key("s", "sort", "findings.sort", "sort", "by run, rule, severity or waste", "s"),
    Key("E", "explain", "findings.explain", "explain", "the page of this rule", "E"),
    Key("q,escape", "back", "findings.back", "back", "back", "q Esc"),
)
COSTS = (
    Key("tab,right_square_bracket", "by(1)", "costs.next", "by", "by model, tool, day, project, task, …", "Tab"),
    Key("shift+tab,left_square_bracket", "by(-1)", "costs.previous", "", "the one before", "["),
    Key("1,2,3,4,5,6,7", "tab_at", "costs.tab", "", "that table", "1 … 7"),
    Key("slash", "filter", "costs.filter", "filter", "only these runs: the filter of the runs", "/"),
    Key("s", "sort", "costs.sort", "sort", "sort by a column", "s"),
    Key("q,escape", "back", "costs.back", "back", "back", "q Esc"),
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


def rebound(keys: Sequence[Key], given: Mapping[str, str]) -> tuple[Key, ...]:
    """The commands with the keys that a settings file gives them; Textual's key names by command name."""
    if not given:
        return tuple(keys)
    return tuple(replace(k, keys=given[k.name], shown="") if k.name in given else k for k in keys)


GROUPS = {
    "everywhere": EVERYWHERE,
    "what is selected": HERE,
    "list": LIST,
    "text": TEXT,
    "menu": MENU,
    "runs": RUNS,
    "run": RUN,
    "waterfall": WATERFALL,
    "transcript": TRANSCRIPT,
    "turn": TURN,
    "compare": COMPARE,
    "fork": FORK,
    "fork editor": FORK_EDITOR,
    "findings": FINDINGS,
    "costs": COSTS,
}
"""Every group by its name, in the order of the menu of keys and of the page about them."""
SCREENS = {
    "runs": (RUNS, HERE, EVERYWHERE, LIST),
    "run": (RUN, HERE, EVERYWHERE, LIST),
    "run, the turn": (RUN, HERE, EVERYWHERE, TEXT),
    "run, the waterfall": (RUN, HERE, EVERYWHERE, LIST, WATERFALL),
    "run, the transcript": (RUN, HERE, EVERYWHERE, READING, TRANSCRIPT),
    "turn": (TURN, HERE, EVERYWHERE, TEXT),
    "compare": (COMPARE, HERE, EVERYWHERE, LIST),
    "fork": (FORK, tuple(k for k in HERE if k.action != "export"), EVERYWHERE, LIST),
    "fork, the editor": (FORK_EDITOR, EVERYWHERE),
    "findings": (FINDINGS, HERE, EVERYWHERE, LIST),
    "costs": (COSTS, HERE, EVERYWHERE, LIST),
}
"""The groups that are valid at once, by screen and what has the keys there."""
KNOWN = tuple(sorted({k.value for k in Keys if not k.value.startswith("<")} | set(_WRITTEN.values())))
"""Names of keys, for whoever misspelt one."""


def group_of(name: str) -> str:
    """The group of a command."""
    return next((group for group, keys in GROUPS.items() if any(k.name == name for k in keys)), "")
