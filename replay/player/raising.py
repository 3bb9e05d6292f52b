"""The exception that a recorded tool raised, made again for the program that calls it now."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from typing import Any


def exception(kind: str, words: str, args: Sequence[Any] | None = None) -> BaseException:
    """An exception of the recorded class: a builtin, or one of a module that is loaded here.

    Args:
        kind: ``module.QualName``, or the class's name alone.
        words: What it said.
        args: Its ``args``, where they are known and more than the words.

    Whatever arguments its class wants, it says the recorded words. A class that is not here becomes a
    `RuntimeError` of that name.
    """
    found = _find(kind)
    if found is not None:
        for given in ([tuple(args)] if args is not None else []) + [(words,)]:
            made = _made(found, given)
            if made is not None and str(made) == words:
                return made
        return _saying(found, words)
    name = kind.rpartition(".")[2] or "RuntimeError"
    made_up: type[RuntimeError] = type(name, (RuntimeError,), {"__module__": kind.rpartition(".")[0] or "builtins"})
    return made_up(words)


def _made(found: type[BaseException], given: tuple[Any, ...]) -> BaseException | None:
    try:
        made: object = found(*given)
        str(made)
    except Exception:  # a foreign class may want what it likes
        return None
    return made if isinstance(made, BaseException) else None


def _saying(found: type[BaseException], words: str) -> BaseException:
    """An exception that is caught as this class is, and says these words; the class's own ``__init__`` does not run."""
    same = {"__module__": found.__module__, "__qualname__": found.__qualname__, "__str__": lambda self: words}
    try:
        kind: type[BaseException] = type(found.__name__, (found,), same)
        made: BaseException = kind.__new__(kind, words)
        return made
    except Exception:  # a class that will not be derived from
        return RuntimeError(words)


def _find(kind: str) -> type[BaseException] | None:
    module, _, name = kind.rpartition(".")
    while module and module not in sys.modules:
        module, _, outer = module.rpartition(".")
        name = f"{outer}.{name}"
    value: object = sys.modules.get(module) if module else builtins
    for step in name.split("."):
        value = getattr(value, step, None)
    return value if isinstance(value, type) and issubclass(value, BaseException) else None
