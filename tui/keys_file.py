"""Keys of one's own: the table [tui.keys] of the settings files, checked against the commands there are.

```toml
[tui.keys]                     # in pyproject.toml: [tool.looptape.tui.keys]
"runs.sort" = "o"
"turn.next" = ["n", "right"]
"mark" = []                    # no key; it stays in the menu of keys and on the command line
```
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tracer import settings
from ..tracer.errors import LooptapeError
from . import keymap
from .keymap import Key

UNBOUND = "f63"
"""A key that no terminal sends: what a command without a key is bound to."""


@dataclass(frozen=True, slots=True)
class Rebinding:
    """What the settings files make of the keys.

    Attributes:
        keys: Textual's key names by the name of the command.
        problems: What cannot be used, each one line that names file, place and cure.
    """

    keys: Mapping[str, str]
    problems: tuple[str, ...] = ()

    @property
    def bound(self) -> dict[str, str]:
        """As Textual takes it: every command has a key, if only one that is never pressed."""
        return {name: keys or UNBOUND for name, keys in self.keys.items()}


def read(*, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Rebinding:
    """The keys that the user's and the project's settings give, the project's over the user's.

    Whatever is wrong is a problem, never an error: the app starts with the keys that can be used.
    """
    given: dict[str, tuple[str, Path]] = {}
    problems: list[str] = []
    try:
        layers = settings.layers("tui", env=env, cwd=cwd)
    except LooptapeError as error:
        return Rebinding({}, (str(error),))
    for table, file in layers:
        problems += [
            f"{settings.place(file, word)}: unknown {word!r} in tui. Known: keys" for word in table if word != "keys"
        ]
        keys = table.get("keys", {})
        if not isinstance(keys, dict):
            problems.append(f"{settings.place(file, 'keys')}: keys is no table. Write [tui.keys]")
            continue
        for name, value in _flat(keys):
            made = _keys(name, value)
            if isinstance(made, str):
                given[name] = (made, file)
            else:
                problems.append(f"{settings.place(file, name)}: {made[0]}")
    clashing = dict(_clashes({name: keys for name, (keys, _) in given.items()}))
    problems += [f"{settings.place(given[name][1], name)}: {said}" for name, said in clashing.items()]
    return Rebinding({n: k for n, (k, _) in given.items() if n not in clashing}, tuple(problems))


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """``runs.sort = "o"`` without quotes is a table in TOML; it means the same."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _keys(name: str, value: Any) -> str | tuple[str]:
    """Textual's keys for a command; in a tuple what is wrong."""
    names = [binding for keys in keymap.GROUPS.values() for key in keys for binding in _names(key)]
    if name not in names:
        close = difflib.get_close_matches(name, names, 1, 0.5)
        return (
            f"there is no command {name!r}. {f'Did you mean {close[0]}?' if close else 'The page docs/tui.md lists them'}",
        )
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
        return (f'{name} needs a key or a list of keys. Write {name!r} = "S"',)
    found = []
    for word in words:
        key = keymap.meant(word)
        if key is None:
            close = difflib.get_close_matches(word.lower(), keymap.KNOWN, 1, 0.5)
            hint = f"Did you mean {close[0]}?" if close else "Keys are written like S, !, ctrl+t, f5, space, left"
            return (f"{name}: there is no key {word!r}. {hint}",)
        found.append(key)
    return ",".join(dict.fromkeys(found))


def _names(key: Key) -> list[str]:
    return [f"{key.name}.{k}" for k in key.keys.split(",")] if key.action == "tab_at" else [key.name]


def _clashes(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Commands whose new key another command of the same screen has."""
    for groups in keymap.SCREENS.values():
        holders: dict[str, list[str]] = {}
        for keys in groups:
            for key in keys:
                for name in _names(key):
                    usual = name.rpartition(".")[2] if key.action == "tab_at" else key.keys
                    for one in filter(None, given.get(name, usual).split(",")):
                        holders.setdefault(one, []).append(name)
        for one, names in holders.items():
            new = [n for n in dict.fromkeys(names) if n in given and one not in _usual(n)]
            others = [n for n in dict.fromkeys(names) if n not in new[:1]]
            if new and others:
                yield (
                    new[0],
                    f"{new[0]}: {keymap.written(one)} is the key of {others[0]}. Give that one another key too",
                )


def _usual(name: str) -> list[str]:
    """The keys that a command has without a settings file."""
    for keys in keymap.GROUPS.values():
        for key in keys:
            if key.name == name:
                return key.keys.split(",")
    return [name.rpartition(".")[2]]
