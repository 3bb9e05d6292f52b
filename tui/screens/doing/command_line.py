"""The command line of a page: its keys by name, and what takes a value. Types, completes, runs, remembers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ....tracer.errors import LooptapeError
from ... import commands, keymap
from ...commands import Command
from ...format import counted
from ...messages import Answered
from ...safe_text import clean
from ...themes import NAMES
from ...widgets.bars import TabBar
from ...widgets.filter_bar import FilterBar
from ..host import Host
from ..line import Line, Offer
from . import copying, exporting
from .desk import Desk
from .paths import files

if TYPE_CHECKING:
    from ....tracer.store import Store

W = TypeVar("W")
RECENT = "command.recent"
_KEPT = 8
_OPEN = "open "
_MOST = 200
"""Runs whose names Tab completes."""


class Bridge(Desk, Protocol):
    """A page, seen by its command line."""

    @property
    def loop_app(self) -> Host:
        """The app, with what screens may ask of it."""

    def all_keys(self) -> Sequence[keymap.Key]:
        """Every key valid now."""

    def do(self, action: str) -> None:
        """Run an action as its key would."""

    def query(self, selector: Any) -> Any:
        """Widgets of the page."""


def open_line(bridge: Bridge) -> None:
    """Type a command and run it."""
    known, memory, runs = commands_of(bridge), bridge.loop_app.memory, dict[str, str]()
    recent = [line for line in memory.get(RECENT, []) if isinstance(line, str)]

    def offered(line: str) -> list[Offer]:
        export = _export_path(line)
        if export is not None:
            before, path = export
            return [Offer(f"{before}{o.text}", o.help) for o in files(path)]
        if line.lstrip().startswith(_OPEN):
            begun = line.lstrip().removeprefix(_OPEN)
            found = [Offer(_OPEN + name, said) for name, said in runs.items() if name.startswith(begun)]
            if found:
                return found
        return [Offer(b.line, b.help, b.key) for b in commands.offers(line, known, recent[:3])]

    def typed(line: str | None) -> None:
        if line is not None and line.strip():
            line = line.strip()
            memory.put(RECENT, [line, *(r for r in recent if r != line)][:_KEPT])
            run(bridge, line, known)

    line = Line(":", offers=offered, placeholder="a command; Tab completes, Enter runs, Esc leaves")
    bridge.app.push_screen(line, typed)

    def job() -> Answered:
        with suppress(LooptapeError):  # without them one types them; `open` itself says what is wrong
            runs.update(bridge.source.ask(_runs))
        return Answered(line.renew)

    bridge.read(job, "names")


def commands_of(bridge: Bridge) -> list[Command]:
    """What can be typed on a page: each name once, those with values first."""
    found = {c.name: c for c in _with_values(bridge)}
    for key in bridge.loop_app.rebound(bridge.all_keys()):
        if key.action == "tab_at" or key.name == "command":
            continue
        short = key.name.rpartition(".")[2]
        for name in (short, key.name):
            if name not in found:
                found[name] = Command(name, key.help, key.label)
                break
    return list(found.values())


def run(bridge: Bridge, line: str, known: Sequence[Command] | None = None) -> None:
    """Run a line; what is wrong with it is said."""
    try:
        command, value = commands.resolve(line, known if known is not None else commands_of(bridge))
        own = _RUN.get(command.name)
        if own is not None and (command.takes or command.name in _PLAIN):
            own(bridge, value)
        else:
            bridge.do(_action(bridge, command.name))
    except LooptapeError as error:
        bridge.say(str(error))


def _action(bridge: Bridge, name: str) -> str:
    keys = [k for k in bridge.all_keys() if k.action != "tab_at"]
    exact = next((k for k in keys if k.name == name), None)
    return (exact or next(k for k in keys if k.name.rpartition(".")[2] == name)).action


def _with_values(bridge: Bridge) -> list[Command]:
    found = [
        Command("open", "a run, or one of its turns", takes="RUN[:N]"),
        Command("runs", "the list of runs"),
        Command("theme", "the colours", "T", "NAME", NAMES),
    ]
    if _bar(bridge, FilterBar) is not None:
        found.append(Command("filter", "only what has these words", "/", "TEXT", needed=False))
    if hasattr(bridge, "sort_by"):
        found.append(Command("sort", "in the order of a column", "s", "COLUMN", tuple(_of(bridge, "sort_columns"))))
    names = _tab_names(bridge)
    if names:
        found.append(Command("tab", "another tab", "1 …", "NAME", names))
    if bridge.subject().place is not None:
        found.append(Command("copy", "what is selected", "y", "KIND", copying.KINDS, needed=False))
        found.append(Command("export", "to a file", "e", "FORMAT [PATH]", exporting.KINDS, needed=False))
    found.append(Command("quit", "leave looptape", "ctrl+q", other="q"))
    return found


def _of(bridge: Bridge, name: str) -> Sequence[str]:
    return cast("Sequence[str]", getattr(bridge, name)())


def _tab_names(bridge: Bridge) -> tuple[str, ...]:
    """The names on the bar of tabs; without one, the views of the page."""
    bar = _bar(bridge, TabBar)
    if bar is not None:
        return tuple(bar.names)
    return tuple(_of(bridge, "tab_names")) if hasattr(bridge, "show_tab") else ()


def _tab(bridge: Any, name: str) -> None:
    bar = _bar(bridge, TabBar)
    if bar is not None:
        bar.post_message(TabBar.Chosen(bar.names.index(name)))
    else:
        bridge.show_tab(name)


def _bar(bridge: Bridge, kind: type[W]) -> W | None:
    return next(iter(bridge.query(kind)), None)


def _open(bridge: Bridge, value: str) -> None:
    def question(store: Store) -> tuple[str, int | None]:
        from ....replay import reference

        one = reference.find(store, reference.parse(value), os.getcwd())
        return one.run.id, one.first

    def job() -> Answered:
        run_id, turn = bridge.source.ask(question)
        return Answered(partial(bridge.loop_app.open_run, run_id, turn))

    bridge.read(job, "command")


def _runs(store: Store) -> dict[str, str]:
    """What the newest runs are called, and what each is; of several with a name it means the newest."""
    from ....tracer.store import Filter

    found = {"last": "the newest run"}
    for run in store.runs(Filter(limit=_MOST)):
        found.setdefault(run.name or run.id, f"{counted(run.turns, 'turn')}, {run.status}")
    return {clean(name, limit=200): said for name, said in found.items()}


def _filter(bridge: Bridge, value: str) -> None:
    bar = _bar(bridge, FilterBar)
    if bar is not None:
        bar.put(value)


def _copy(bridge: Bridge, value: str) -> None:
    if value:
        copying.copy_as(bridge, bridge.subject(), value)
    else:
        copying.offer(bridge)


def _export(bridge: Bridge, value: str) -> None:
    form, _, path = value.partition(" ")
    if not form:
        exporting.offer(bridge)
        return
    subject = bridge.subject()
    if not path.strip():
        exporting.ask_file(bridge, subject, form)
    else:
        exporting.export(bridge, subject, form, path)


def _export_path(line: str) -> tuple[str, str] | None:
    """A line that stands at the path of an export: what is before it, and the path so far."""
    words = line.lstrip().split(" ", 2)
    if len(words) == 3 and words[0] == "export" and words[1] in exporting.KINDS:
        return f"{words[0]} {words[1]} ", words[2]
    return None


_RUN: Mapping[str, Callable[[Any, str], None]] = {
    "open": _open,
    "runs": lambda bridge, _: bridge.loop_app.home_screen(),
    "theme": lambda bridge, name: bridge.loop_app.dress(name),
    "filter": _filter,
    "sort": lambda bridge, name: bridge.sort_by(name),
    "tab": _tab,
    "copy": _copy,
    "export": _export,
    "quit": lambda bridge, _: bridge.app.exit(0),
}
_PLAIN = ("runs", "quit")
