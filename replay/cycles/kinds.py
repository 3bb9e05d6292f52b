"""What a call does to the world, judged by its tool's name (whole words) and, for a shell, by its command."""

from __future__ import annotations

import functools
import re
import shlex
from typing import Any

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

BOOKKEEPING = frozenset(
    {
        "think",
        "thought",
        "thinking",
        "sequentialthinking",
        "todo",
        "todos",
        "plan",
        "planning",
        "scratchpad",
        "reflect",
        "reflection",
        "note",
        "notes",
        "memo",
        "reason",
        "reasoning",
    }
)
POLLING = frozenset({"wait", "sleep", "poll", "status", "await", "progress", "watch", "pending", "monitor"})
ACTUATING = frozenset(
    {"press", "click", "scroll", "key", "keypress", "type", "swipe", "tap", "drag", "move", "mouse", "navigate", "page"}
)
CHANGING = frozenset(
    {"edit", "write", "replace", "insert", "create", "update", "delete", "remove", "patch", "apply", "book", "cancel", "send",
     "post", "put", "submit", "modify", "set", "add", "append", "rename", "commit", "push", "upload", "install", "save",
     "pay", "order", "buy", "transfer", "assign", "merge", "deploy", "start", "stop", "kill", "undo", "exchange", "return"}
)  # fmt: skip
READING = frozenset(
    {"read", "get", "list", "ls", "search", "find", "grep", "glob", "view", "show", "look", "lookup", "fetch", "query", "cat",
     "open", "browse", "check", "describe", "inspect", "calculate", "count", "select", "retrieve", "load", "tree", "stat",
     "web", "scan", "output", "info", "details", "peek", "tail", "head", "diff"}
)  # fmt: skip
SEARCHING = frozenset({"search", "find", "grep", "glob", "query", "lookup", "rg", "ag", "locate"})
SHELLS = frozenset(
    {"bash", "shell", "sh", "terminal", "command", "cmd", "exec", "execute", "run", "console", "powershell"}
)
HANDING = frozenset({"handoff", "handover", "transfer", "delegate", "escalate"})
SPAWNING = frozenset({"task", "agent", "subagent", "spawn"})
CHECKS = frozenset(
    {"pytest", "make", "tox", "nox", "cargo", "go", "npm", "yarn", "pnpm", "mvn", "gradle", "ctest", "jest", "vitest", "mypy",
     "ruff", "docker", "podman", "terraform", "flake8", "pylint", "pyright", "tsc", "eslint", "ninja", "cmake", "rspec", "phpunit", "dotnet", "bazel", "unittest"}
)  # fmt: skip

_LOOKING = frozenset(
    {"ls", "cat", "head", "tail", "grep", "rg", "ag", "find", "fd", "pwd", "echo", "printf", "wc", "which", "whereis", "type", "file",
     "stat", "du", "df", "ps", "top", "env", "date", "whoami", "id", "tree", "less", "more", "nl", "sort", "uniq", "cut", "awk",
     "diff", "cmp", "md5sum", "sha256sum", "history", "cd", "true", "test", "[", "jq", "hexdump", "xxd", "strings", "column", "tr", "seq", "basename", "dirname", "realpath", "readlink"}
)  # fmt: skip
_GIT_LOOKING = frozenset(
    {
        "status",
        "diff",
        "log",
        "show",
        "branch",
        "blame",
        "ls-files",
        "rev-parse",
        "grep",
        "remote",
        "describe",
        "shortlog",
        "reflog",
    }
)
_SEPARATORS = re.compile(r"&&|\|\||[;|\n]")
_WRITING = re.compile(r"(?<![0-9&<>])>>?(?!&)\s*(?!/dev/null)|\btee\b|\bsed\s+(?:-\w+\s+)*-\w*i|\bperl\s+-\w*i")
_REVERT = re.compile(r"\bgit (?:checkout (?:-- )?[\w./-]*[./][\w./-]*|restore|reset --hard|stash)\b")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")
_BODY = re.compile(r"(<<-?\s*['\"]?(\w+)['\"]?[^\n]*)\n.*?(?:^\s*\2\s*$|\Z)", re.DOTALL | re.MULTILINE)
_SLEEP = re.compile(r"(?:^|[;&|(\s])(?:sleep|timeout|wait)\s+\d|--watch\b|\bwatch\s")


@functools.lru_cache(4096)
def name_words(name: str) -> frozenset[str]:
    """The whole words of a tool's name: ``get_reservation_details`` has no ``tail`` in it."""
    return frozenset(_in_order(name))


def _in_order(name: str) -> tuple[str, ...]:
    return tuple(w.lower() for w in _WORDS.findall(name))


@functools.lru_cache(4096)
def _verb(name: str) -> str:
    """What the first word of a name that says something says: ``get_order`` gets, ``read_page`` reads."""
    words = _in_order(name)
    if words and words[-1] in ("details", "info"):
        return "read"
    if words and words[0] in CHANGING:
        return "mutate"
    if words and words[-1] in ("list", "search", "lookup", "status"):
        return "read"
    for word in words:
        for verbs, effect in ((READING, "read"), (CHANGING, "mutate"), (ACTUATING, "actuate")):
            if word in verbs:
                return effect
    return "unknown"


def is_shell(name: str) -> bool:
    """True for tools that run a command line."""
    found = name_words(name)
    return bool(found & SHELLS) and not found & (READING - {"command", "output"}) & {"read", "list", "get"}


def command_of(name: str, arguments: Any) -> str | None:
    """The command line of a shell call, None for every other call."""
    if isinstance(arguments, dict):
        for key in ("command", "cmd", "script", "commands", "input", "code"):
            value = arguments.get(key)
            if isinstance(value, list) and all(isinstance(v, str) for v in value):
                value = value[-1] if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
            if (
                isinstance(value, str)
                and (key != "input" or is_shell(name))
                and (is_shell(name) or key in ("command", "cmd"))
            ):
                return value
    if isinstance(arguments, str) and is_shell(name):
        return arguments
    return None


def effect_of(name: str, arguments: Any) -> str:
    """read, mutate, poll, actuate, bookkeeping; ``command`` for a shell command that may do anything; unknown."""
    found = name_words(name)
    command = command_of(name, arguments)
    if command is not None:
        return _effect_of_command(command)
    if found & BOOKKEEPING:
        return "bookkeeping"
    verb = _verb(name)
    return "poll" if found & POLLING and verb != "mutate" else verb


def is_search(name: str, arguments: Any) -> bool:
    """True for calls that look for something."""
    command = command_of(name, arguments)
    if command is not None:
        return bool(programs(command) & {"grep", "rg", "ag", "find", "fd", "locate"})
    return bool(name_words(name) & SEARCHING)


def is_check(name: str, arguments: Any) -> bool:
    """True for calls that build or test: what they print is the measure of the edits before."""
    command = command_of(name, arguments)
    if command is not None:
        found = programs(command)
        return bool(found & CHECKS) or bool(found & {"python", "python3", "node", "sh", "bash"})
    return bool(name_words(name) & {"test", "tests", "build", "compile", "lint", "verify", "typecheck", "validate"})


def is_revert(name: str, arguments: Any) -> bool:
    """True for calls that throw changes away: made again, they say that the work between was in vain."""
    command = command_of(name, arguments)
    if command is not None:
        return _REVERT.search(command) is not None
    return bool(name_words(name) & {"undo", "revert", "restore", "rollback"})


def carries_on(name: str, arguments: Any) -> bool:
    """True for changes that take along what was done before (push, save, deploy): made again, they do something else."""
    command = command_of(name, arguments)
    if command is not None:
        return "git" in programs(command) and not is_revert(name, arguments)
    return bool(
        name_words(name)
        & {"commit", "push", "save", "deploy", "install", "sync", "start", "stop", "restart", "publish"}
    )


def is_handoff(name: str) -> bool:
    """True for calls that give the word to another agent (or a person)."""
    return bool(name_words(name) & HANDING) and not name_words(name) & {"money", "funds", "file", "files"}


def is_spawn(name: str, child: str | None) -> bool:
    """True for calls that start a sub-agent."""
    found = name_words(name)
    return child is not None or (bool(found & SPAWNING) and not found & (POLLING | READING | {"update", "stop"}))


def _effect_of_command(command: str) -> str:
    bare = command.strip()
    if not bare or _SLEEP.search(bare):
        return "poll"
    if _HEREDOC.search(bare) or _WRITING.search(bare.replace("2>&1", "").replace("2>/dev/null", "")):
        return "mutate"
    for part in _SEPARATORS.split(bare):
        words = _split(part)
        while words and ("=" in words[0] or words[0] in ("sudo", "time", "nohup", "env", "timeout", "command")):
            words = words[1:]
        if not words:
            continue
        program = words[0].rpartition("/")[2]
        if program == "git":
            if len(words) > 1 and words[1] in _GIT_LOOKING:
                continue
            return "mutate"
        if program == "sed" and not any(w.startswith("-") and "i" in w for w in words[1:3]):
            continue
        if program not in _LOOKING:
            return "command"
    return "read"


@functools.lru_cache(1024)
def programs(command: str) -> frozenset[str]:
    """The programs that a command line starts, ``python -m`` modules included; what it feeds them as text is left out."""
    found = set()
    for part in _SEPARATORS.split(_BODY.sub(r"\1\n", command)):
        words = _split(part)
        while words and ("=" in words[0] or words[0] in ("sudo", "time", "nohup", "env", "timeout", "command")):
            words = words[1:]
        if words:
            found.add(words[0].rpartition("/")[2])
            if words[0].startswith("python") and "-m" in words[:3] and len(words) > 2:
                found.add(words[words.index("-m") + 1] if words.index("-m") + 1 < len(words) else "")
    return frozenset(found)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()
