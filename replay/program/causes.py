"""What made a piece of a request differ from run to run: its kind by shape, and the places in the code that make such pieces."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of unsteady value.

    Attributes:
        name: ``uuid``, ``time``, ``random``, ``path``, ``number``, ``order`` or ``text``.
        cure: What to do about it, in the program.
        calls: Names of functions that make such values.
    """

    name: str
    cure: str
    calls: tuple[str, ...] = ()


UUID = Cause(
    "uuid", "give the id from outside, or keep it out of the prompt",
    ("uuid1", "uuid4", "uuid7", "token_hex", "token_urlsafe"),
)  # fmt: skip
TIME = Cause(
    "time", "take the time from one place that a test can set, or say it to the day",
    ("now", "utcnow", "today", "time", "time_ns", "strftime", "ctime", "gmtime", "localtime", "monotonic", "perf_counter"),
)  # fmt: skip
RANDOM = Cause(
    "random", "seed it: random.Random(0)",
    ("random", "randint", "randrange", "choice", "choices", "sample", "shuffle", "uniform", "gauss", "urandom", "getrandbits",
     "token_hex", "token_bytes", "randbelow"),
)  # fmt: skip
PATH = Cause(
    "path", "name it relative to the project, or use a folder with a steady name",
    ("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "gettempdir", "getcwd", "cwd", "resolve", "abspath"),
)  # fmt: skip
NUMBER = Cause(
    "number", "keep process ids, ports, counters and measured times out of the prompt",
    ("getpid", "get_ident", "id", "hash", "perf_counter", "process_time", "randint", "randrange"),
)  # fmt: skip
ORDER = Cause(
    "order", "sort it: sets, folders and results that come as they are done have no order of their own",
    ("set", "frozenset", "listdir", "iterdir", "glob", "rglob", "scandir", "walk", "as_completed", "imap_unordered"),
)  # fmt: skip
TEXT = Cause("text", "make this text the same each time, or add a normaliser for it: [tool.looptape] normalisers")

BY_RULE = {"ids": UUID, "dates": TIME, "paths": PATH}
_SHAPES = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{9,}", re.IGNORECASE), UUID),
    (re.compile(r"1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?"), TIME),
    (re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}:\d\d(?::\d\d)?.*"), TIME),
    (re.compile(r"0?\.\d{4,}"), RANDOM),
    (re.compile(r"(?=[0-9a-f]*\d)(?=[0-9]*[a-f])[0-9a-f]{8,}", re.IGNORECASE), RANDOM),
    (re.compile(r"[\w~.:-]*/.*"), PATH),
    (re.compile(r"-?\d+(?:\.\d+)?"), NUMBER),
)
_PIECE = re.compile(r"[\w~./:+-]+|\s+|.", re.DOTALL)


def cause_of(left: str, right: str, rules: Iterable[str] = ()) -> Cause:
    """What two differing texts are unsteady by.

    Args:
        rules: Names of the matching rules under which they are equal all the same.
    """
    known = next((BY_RULE[r] for r in rules if r in BY_RULE), None)
    if known is not None:
        return known
    if sorted(re.findall(r"\w+", left)) == sorted(re.findall(r"\w+", right)):
        return ORDER
    pieces = _parting(left, right)
    for shape, cause in _SHAPES:
        if all(any(shape.fullmatch(piece) for piece in side) for side in pieces):
            return cause
    return TEXT


def _parting(left: str, right: str) -> tuple[list[str], list[str]]:
    """The words of each text from the first to the last that differ."""
    one, other = _PIECE.findall(left), _PIECE.findall(right)
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return _bare(one[start : len(one) - end]), _bare(other[start : len(other) - end])


def _bare(pieces: list[str]) -> list[str]:
    """Without the sentence's own marks behind them."""
    return [piece.rstrip(".:") for piece in pieces]


def places(cause: Cause, files: Iterable[str]) -> tuple[str, ...]:
    """``file:line call()`` of every call in these files that makes values of this kind, in order."""
    found = []
    for file in dict.fromkeys(files):
        try:
            tree = ast.parse(Path(file).read_text("utf-8"))
        except (OSError, ValueError, SyntaxError):
            continue
        calls = sorted((n for n in ast.walk(tree) if isinstance(n, ast.Call)), key=lambda n: n.lineno)
        found += [
            f"{_short(file)}:{n.lineno} {name}()" for n in calls if (name := _name(n)).rpartition(".")[2] in cause.calls
        ]
    return tuple(dict.fromkeys(found))


def _name(call: ast.Call) -> str:
    try:
        return ast.unparse(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else ""
    except (ValueError, RecursionError):
        return ""


def _short(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
