"""Which call of which turn did a tool span run? By call id, else by name and arguments in order."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...canonical import canonical
from ...providers.answer import AnswerCall
from .chains import Chain
from .model_call import ToolSpan
from .span_tree import SpanTree

ANYWHERE = "*"
MOST = 200  # calls that are looked at for one tool
SLACK = 1_000_000  # µs by which clocks may disagree


@dataclass(slots=True, eq=False)
class Asked:
    """A call that a turn asked for. ``spans``: the tools that ran for it."""

    chain: Chain
    turn: int
    call: AnswerCall
    at: int
    trace: str | None
    home: str | None
    spans: list[ToolSpan] = field(default_factory=list)


class Matcher:
    """All calls of all chains, to be claimed by tools in the order of their beginning."""

    def __init__(self, asked: Iterable[Asked], tree: SpanTree) -> None:
        self._tree = tree
        self._known: dict[tuple[str, str | None, str], list[Asked]] = {}
        for one in sorted(asked, key=lambda a: a.at):
            for kind, word in (("id", one.call.id), ("name", one.call.name)):
                for scope in {one.home, one.trace, ANYWHERE}:
                    if scope is not None:
                        self._known.setdefault((kind, scope, word), []).append(one)

    def claim(self, tool: ToolSpan) -> Asked | None:
        """The call that the tool ran for, marked as taken; None when no chain asked for it."""
        found = None
        home = self._home_of(tool)
        for scope in (home, tool.trace_id, ANYWHERE):
            if scope is not None and found is None and tool.call:
                near = self._before("id", scope, tool.call, tool)
                found = next((a for a in reversed(near) if tool.detail or not a.spans), near[-1] if near else None)
        if found is None and not (tool.call and ("id", ANYWHERE, tool.call) in self._known):
            for scope in (home, tool.trace_id, ANYWHERE):
                if scope is not None and found is None:
                    free = [a for a in self._before("name", scope, tool.name, tool) if not a.spans]
                    found = _first(_alike(free, tool, home))
        if found is not None:
            found.spans.append(tool)
        return found

    def _before(self, kind: str, scope: str, word: str, tool: ToolSpan) -> list[Asked]:
        """The latest of these calls that were made before the tool began."""
        found = self._known.get((kind, scope, word), [])
        if tool.started_at is None:
            return found[-MOST:]
        end = bisect.bisect_right(found, tool.started_at + SLACK, key=lambda a: a.at)
        return found[max(0, end - MOST) : end]

    def _home_of(self, tool: ToolSpan) -> str | None:
        home = self._tree.place(tool).home
        return home.key if home else None


def _alike(free: list[Asked], tool: ToolSpan, home: str | None) -> list[Asked]:
    """Those with the tool's arguments, and not inside another agent than the tool."""
    related = [a for a in free if a.home == home or a.trace == tool.trace_id or None in (a.home, home)]
    if isinstance(tool.arguments, dict):
        wanted = arguments_key(tool.arguments)
        return [a for a in related if arguments_key(a.call.arguments_raw) == wanted]
    if tool.arguments is None:
        return related
    # the only argument, as some write it; else order tells
    return [a for a in related if _only_value(a.call.arguments_raw) == tool.arguments] or related


def _first(found: list[Asked]) -> Asked | None:
    """The oldest call of the latest turn: parallel calls are taken in their order."""
    latest = found[-1] if found else None
    return next((a for a in found if latest and (a.chain, a.turn) == (latest.chain, latest.turn)), None)


def arguments_key(value: Any) -> str:
    """What makes arguments the same, whether decoded or JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value).strip()
    return canonical(value)


def _only_value(raw: str) -> Any:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
