"""The exception that a recorded tool raised, made again for the program that calls it now."""

from __future__ import annotations

import builtins
import sys


def exception(kind: str, words: str) -> BaseException:
    """An exception of the recorded class: a builtin, or one of a module that is loaded here.

    Args:
        kind: ``module.QualName``, or the class's name alone.
        words: What it said.

    A class that is not here, or that takes other arguments, becomes a `RuntimeError` of that name.
    """
    found = _find(kind)
    if found is not None:
        try:
            made: object = found(words)
        except Exception:  # a foreign class may want what it likes
            made = None
        if isinstance(made, BaseException):
            return made
    name = kind.rpartition(".")[2] or "RuntimeError"
    made_up: type[RuntimeError] = type(name, (RuntimeError,), {"__module__": kind.rpartition(".")[0] or "builtins"})
    return made_up(words)


def _find(kind: str) -> type[BaseException] | None:
    module, _, name = kind.rpartition(".")
    while module and module not in sys.modules:
        module, _, outer = module.rpartition(".")
        name = f"{outer}.{name}"
    value: object = sys.modules.get(module) if module else builtins
    for step in name.split("."):
        value = getattr(value, step, None)
    return value if isinstance(value, type) and issubclass(value, BaseException) else None
