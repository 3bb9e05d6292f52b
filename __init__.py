"""looptape: flight recorder and debugger for agent loops.

    client = looptape.wrap(anthropic.Anthropic())      # records every turn
    run_tool = looptape.tools(run_tool)                 # exact tool times, replayable tools
    with looptape.run("revenue", limits=looptape.Limits(turns=8)) as run:
        ...
        run.outcome("pass")

Nothing heavy is imported before it is used; names resolve on first access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tracer.version import __version__

if TYPE_CHECKING:
    from .replay.frames import df, snapshot
    from .replay.guard import Guard, limits_from_history
    from .replay.replaying import replaying
    from .tracer.errors import LoopStopped, LooptapeError, LooptapeStop
    from .tracer.loop import configure, run
    from .tracer.model import Limits
    from .tracer.span_processor import SpanProcessor
    from .tracer.tools import tool, tools
    from .tracer.wrap import instrument, wrap

_HOMES = {
    "Guard": "replay.guard",
    "LoopStopped": "tracer.errors",
    "LooptapeError": "tracer.errors",
    "LooptapeStop": "tracer.errors",
    "Limits": "tracer.model",
    "SpanProcessor": "tracer.span_processor",
    "configure": "tracer.loop",
    "df": "replay.frames",
    "instrument": "tracer.wrap",
    "limits_from_history": "replay.guard",
    "replaying": "replay.replaying",
    "run": "tracer.loop",
    "snapshot": "replay.frames",
    "tool": "tracer.tools",
    "tools": "tracer.tools",
    "wrap": "tracer.wrap",
}

__all__ = [
    "Guard",
    "Limits",
    "LoopStopped",
    "LooptapeError",
    "LooptapeStop",
    "SpanProcessor",
    "__version__",
    "configure",
    "df",
    "instrument",
    "limits_from_history",
    "replaying",
    "run",
    "snapshot",
    "tool",
    "tools",
    "wrap",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'looptape' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
