"""Tool results from a recording: by name, canonical arguments and occurrence; never the last one again."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from ....tracer.canonical import canonical
from ....tracer.live import call_key
from ....tracer.model import ToolCall, Turn
from ..toolbox import Definition, ToolAsked, ToolMiss, ToolResult


class RecordedTools:
    """Answers calls with what the same call got in a recorded run."""

    def __init__(self, turns: Iterable[Turn], *, source: str = "the recording") -> None:
        self._source = source
        self._results: dict[str, list[tuple[int, ToolCall]]] = {}
        self._calls: dict[str, list[tuple[int, ToolCall]]] = {}
        self._effects: dict[str, str] = {}
        for turn in turns:
            for call in turn.tool_calls:
                if call.origin == "provider" or call.state == "incomplete":
                    continue
                arguments = call.arguments if call.arguments is not None else _decoded(call.arguments_raw)
                self._results.setdefault(call_key(call.name, arguments), []).append((turn.number, call))
                self._calls.setdefault(call.name, []).append((turn.number, call))
                self._effects.setdefault(call.name, call.side_effect)

    def definitions(self) -> Sequence[Definition]:
        """The tools that were called; their schemas are in the recorded requests."""
        return tuple(Definition(name, side_effect=effect) for name, effect in self._effects.items())  # type: ignore[arg-type]

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """The result of that occurrence; None when the recording has none."""
        found = self._results.get(call_key(asked.name, asked.arguments), ())
        if asked.occurrence > len(found):
            return None
        call = found[asked.occurrence - 1][1]
        if call.result is None:
            return None
        return ToolResult(call.result, call.is_error is True, call.error_class, origin="recorded")

    def call(self, asked: ToolAsked) -> ToolResult:
        """Always a miss: it says how often the call was recorded, or the nearest one.

        Raises:
            ToolMiss: Always.
        """
        shown = f"{asked.name}({_shown(asked.arguments)})"
        same = self._results.get(call_key(asked.name, asked.arguments), ())
        cure = f"Answer it with --tool {asked.name}=live or --tool {asked.name}=stub:TEXT"
        if same and asked.occurrence <= len(same):
            raise ToolMiss(
                f"{self._source} has {shown} at turn {same[asked.occurrence - 1][0]} without its result. {cure}"
            )
        if same:
            times = "once" if len(same) == 1 else f"{len(same)} times"
            raise ToolMiss(f"{self._source} has {shown} {times}, this is call {asked.occurrence} of it. {cure}")
        raise ToolMiss(f"{self._source} has no {shown}{self._nearest(asked)}. {cure}")

    def spec(self) -> dict[str, Any]:
        """Its kind: the run is the one that was forked."""
        return {"kind": "recorded"}

    def close(self) -> None:
        """Nothing to end."""

    def _nearest(self, asked: ToolAsked) -> str:
        wanted = canonical(asked.arguments)
        best, likeness = None, 0.0
        for turn, call in self._calls.get(asked.name, ())[:500]:
            ratio = difflib.SequenceMatcher(None, wanted[:2000], canonical(call.arguments)[:2000]).quick_ratio()
            if ratio > likeness:
                best, likeness = (turn, call), ratio
        if best is None:
            return f" (no call of {asked.name} at all)"
        return f"; the nearest is {asked.name}({_shown(best[1].arguments)}) at turn {best[0]}"


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shown(arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "..."
