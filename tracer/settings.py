"""Settings and where each comes from: flag > LOOPTAPE_* > project file > user file > default.

Standard library only, so that a traced process may read them. The project file is ``looptape.toml`` or the
``[tool.looptape]`` table of ``pyproject.toml``, nearest one upwards from the working directory.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import UsageError


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``kind`` is ``choice`` (see ``choices``), ``int``, ``path``, ``text`` or ``list`` (joined by commas)."""

    name: str
    env: str
    kind: str
    default: Any
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """An effective setting. ``source`` is flag, environment, project, user or default; ``where`` names it exactly."""

    name: str
    value: Any
    source: str
    where: str


SETTINGS = (
    Setting("recording", "LOOPTAPE", "choice", "on", "off: record nothing", ("on", "off")),
    Setting("home", "LOOPTAPE_HOME", "path", None, "the folder of the store and the journals"),
    Setting(
        "content", "LOOPTAPE_CONTENT", "choice", "full", "none: keep only usage, times, names, hashes", ("full", "none")
    ),
    Setting(
        "journal_cap_mb", "LOOPTAPE_JOURNAL_CAP_MB", "int", 2048, "recording stops when waiting journals hold more"
    ),
    Setting("limit", "LOOPTAPE_LIMIT", "int", 50, "rows that lists show at most; 0 for all"),
    Setting("normalisers", "LOOPTAPE_NORMALISERS", "list", "", "your functions for matching requests: module:function"),
    Setting("prices", "LOOPTAPE_PRICES", "path", None, "a file of your own prices, over the built-in list"),
    Setting(
        "theme",
        "LOOPTAPE_THEME",
        "text",
        "dark",
        "theme of the screen: dark, light, contrast, terminal, or one of Textual's",
    ),
)
TABLES = ("lint", "tools", "tui")
"""Tables of a settings file that commands read themselves: rules of the linter, what is said of tools, keys."""
_WORDS = {"on": "on", "off": "off", "1": "on", "0": "off", "true": "on", "false": "off", "yes": "on", "no": "off"}


def effective(
    flags: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> dict[str, Value]:
    """Every setting with its value and source.

    Raises:
        UsageError: A file is no TOML, a key is unknown or a value does not fit; names the place and the cure.
    """
    env = os.environ if env is None else env
    folder = cwd or _cwd()
    project = project_file(folder) if folder else None
    tables = [("project", project, _table(project)), ("user", user_file(env), _table(user_file(env)))]
    return {s.name: _value(s, flags or {}, env, tables) for s in SETTINGS}


def tables(
    *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> dict[str, tuple[Mapping[str, Any], str]]:
    """The `TABLES` that are given, each with the place it comes from: the project's, else the user's.

    Raises:
        UsageError: As `effective` does; or one of them is no table.
    """
    env = os.environ if env is None else env
    folder = cwd or _cwd()
    found: dict[str, tuple[Mapping[str, Any], str]] = {}
    for file in (user_file(env), project_file(folder) if folder else None):
        for name, value in _table(file).items():
            if name in TABLES:
                if not isinstance(value, dict):
                    raise UsageError("bad-settings", f"{file}: {name} is not a table", f"Write [tool.looptape.{name}]")
                found[name] = (value, str(file))
    return found


def layers(
    name: str, *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> list[tuple[Mapping[str, Any], Path]]:
    """One of the `TABLES` wherever it is given, the user's before the project's, each with its file.

    Raises:
        UsageError: As `effective` does.
    """
    folder = cwd or _cwd()
    files = (user_file(env), project_file(folder) if folder else None)
    return [
        (table[name], file) for file in files if file for table in (_table(file),) if isinstance(table.get(name), dict)
    ]


def place(file: Path, key: str) -> str:
    """``FILE, line N`` of a key in a settings file, the file alone where it is not found."""
    try:
        return _place(file, file.read_text("utf-8"), key)
    except (OSError, UnicodeDecodeError):
        return str(file)


def export(values: Mapping[str, Value], env: MutableMapping[str, str]) -> None:
    """Puts what files say into the environment, where this process and its children read it."""
    for setting in SETTINGS:
        value = values[setting.name]
        if value.source in ("project", "user"):
            env[setting.env] = str(value.value)


def user_file(env: Mapping[str, str] | None = None) -> Path:
    """The user's settings file (platformdirs' rules, written out: a traced process may lack the package)."""
    env = os.environ if env is None else env
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "looptape" / "config.toml"
    base = env.get("XDG_CONFIG_HOME", "").strip()
    root = Path(base) if base and os.path.isabs(base) else Path.home() / ".config"
    return root / "looptape" / "config.toml"


def project_file(cwd: Path) -> Path | None:
    """The nearest looptape.toml, or pyproject.toml with a [tool.looptape] table, from ``cwd`` upwards."""
    for folder in (cwd, *cwd.parents):
        own = folder / "looptape.toml"
        if own.is_file():
            return own
        shared = folder / "pyproject.toml"
        if _mentions(shared):
            return shared
        if (folder / ".git").exists():
            return None
    return None


def _cwd() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was deleted under us: then there is no project either
        return None


def _mentions(file: Path) -> bool:
    try:
        return b"tool.looptape" in file.read_bytes()
    except OSError:
        return False


def _table(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("bad-settings", f"cannot read {file}: {error}", "Make it a readable UTF-8 file") from None
    import tomllib  # only where there is a file to read

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError("bad-settings", f"{file} is not TOML: {error}", "Correct that line") from None
    if file.name == "pyproject.toml":
        data = data.get("tool", {}).get("looptape", {})
    if not isinstance(data, dict):
        raise UsageError("bad-settings", f"{file}: looptape is not a table", "Write [tool.looptape]")
    for key in data:
        if key not in {*TABLES, *(s.name for s in SETTINGS)}:
            raise UsageError("unknown-setting", f"{_place(file, text, key)}: unknown setting {key!r}", _nearest(key))
    return data


def _place(file: Path, text: str, key: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if line.split("=")[0].strip().strip("\"'") == key:
            return f"{file}, line {number}"
    return str(file)


def _nearest(key: str) -> str:
    names = [*(s.name for s in SETTINGS), *TABLES]
    close = difflib.get_close_matches(key, names, 1)
    return f"Did you mean {close[0]}?" if close else f"Known: {', '.join(names)}"


def _value(
    setting: Setting,
    flags: Mapping[str, Any],
    env: Mapping[str, str],
    tables: list[tuple[str, Path | None, dict[str, Any]]],
) -> Value:
    if flags.get(setting.name) is not None:
        return Value(setting.name, flags[setting.name], "flag", f"--{setting.name.replace('_', '-')}")
    if env.get(setting.env, "").strip():
        return Value(setting.name, _read(setting, env[setting.env], setting.env), "environment", setting.env)
    for source, file, table in tables:
        if setting.name in table:
            given = table[setting.name]
            if setting.kind == "path" and file is not None:  # beside its settings file, wherever the command runs
                given = file.parent / Path(str(given).strip()).expanduser()
            return Value(setting.name, _read(setting, given, f"{file}: {setting.name}"), source, str(file))
    default = setting.default
    if setting.name == "home":
        from .paths import home

        default = str(home())
    return Value(setting.name, default, "default", "built in")


def _read(setting: Setting, given: Any, where: str) -> Any:
    """The value in its own type; environment values come as text, TOML values may already fit."""
    text = str(given).strip()
    if setting.kind == "list":
        return ",".join(str(part).strip() for part in (given if isinstance(given, list) else text.split(",")))
    if setting.kind == "choice":
        word = _WORDS.get(str(given).strip().lower(), text.lower()) if "on" in setting.choices else text.lower()
        if word in setting.choices:
            return word
        raise UsageError("bad-setting", f"{where} is {text!r}", f"Use {' or '.join(setting.choices)}")
    if setting.kind == "text":
        return text
    if setting.kind == "path":
        return str(Path(text).expanduser().absolute())
    if text.isdecimal():
        return int(text)
    raise UsageError("bad-setting", f"{where} is {text!r}", "Use a whole number, 0 or more")
