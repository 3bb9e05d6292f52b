"""Two requests: what was appended, inserted, edited, dropped, truncated or reordered, in every part of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...tracer.canonical import canonical, digest
from ...tracer.model import Request
from ..alike import substance
from ..context.pieces import tool_name
from ..message_parts import parts, plain_text, role
from .changes import NOTHING, Change, by_path, text_change
from .sequences import gaps, matches

_NUMBER = re.compile(r"^messages\[(\d+)\]")


def requests(a: Request, b: Request, kept: int = 0) -> list[Change]:
    """The changes from one request to another: parameters, system, tools, then the messages in order.

    Ids of calls, signatures and cache marks are not compared: they differ between any two runs and say nothing.

    Args:
        kept: So many leading messages are known to be the same: they are not looked at.
    """
    found = list(by_path("params", params(a.params), params(b.params), ""))
    found += system(a.system, b.system)
    found += tools(a.tools, b.tools)
    return found + [_behind(c, kept) for c in messages(a.messages[kept:], b.messages[kept:])]


def params(value: Any) -> Any:
    """Parameters without what is told elsewhere (the model) or not compared (cache marks)."""
    return {k: v for k, v in value.items() if k not in ("cache_control", "model")} if isinstance(value, dict) else value


def system(a: Any, b: Any) -> list[Change]:
    """Changes of the system text."""
    if _same(a, b):
        return []
    left, right = plain_text(a), plain_text(b)
    return [text_change("system", "system", left, right)] if left != right else list(by_path("system", a, b, "system"))


def tools(a: Any, b: Any) -> list[Change]:
    """Changes of the tools offered: by name, then inside each by path; and whether their order changed."""
    if _same(a, b):
        return []
    left, right = (v if isinstance(v, list) else [] if v is None else [v] for v in (a, b))
    names = [[tool_name(t) or canonical(t) for t in side] for side in (left, right)]
    found = []
    for place, tool in enumerate(left):
        if names[0][place] not in names[1]:
            found.append(Change("tools", "dropped", f"tools[{place + 1}]", tool))
    for place, tool in enumerate(right):
        path = f"tools[{place + 1}]"
        if names[1][place] not in names[0]:
            found.append(Change("tools", "inserted", path, NOTHING, tool))
        else:
            earlier = left[names[0].index(names[1][place])]
            found += by_path("tools", substance(earlier), substance(tool), path)
    orders = [[n for n in names[side] if n in names[1 - side]] for side in (0, 1)]
    if orders[0] != orders[1]:
        found.append(Change("tools", "reordered", "tools", orders[0], orders[1]))
    return found


def messages(a: Sequence[Any], b: Sequence[Any]) -> list[Change]:
    """Changes of the messages: aligned by what they say, so that one that came or went does not touch the others."""
    left, right = [digest(canonical(substance(m))) for m in a], [digest(canonical(substance(m))) for m in b]
    pairs = matches(left, right)
    lone = {i for one, _, _ in gaps(pairs, len(a), len(b)) for i in one}
    fresh = {j for _, two, _ in gaps(pairs, len(a), len(b)) for j in two}
    moved = _moved(lone, fresh, left, right)
    lone -= {i for i, _ in moved}
    fresh -= {j for _, j in moved}
    found = [(j, Change("messages", "reordered", _at(j), a[i], b[j], was=_at(i))) for i, j in moved]
    tail = pairs[-1][1] + 1 if pairs else 0
    for one, two, _ in gaps(pairs, len(a), len(b)):
        edited = _alike([i for i in one if i in lone], [j for j in two if j in fresh], a, b)
        for i, j in edited:
            tail = max(tail, j + 1)
            found += [(j, c) for c in _edited(a[i], b[j], i, j)]
        paired = {i for i, _ in edited}
        # a message that is gone is told at the place where it would stand
        found += [
            (two.start, Change("messages", "dropped", _at(i), a[i])) for i in one if i in lone and i not in paired
        ]
        fresh -= {j for _, j in edited}
    for j in fresh:
        found.append((j, Change("messages", "appended" if j >= tail else "inserted", _at(j), NOTHING, b[j])))
    return [change for _, change in sorted(found, key=lambda f: f[0])]


def _moved(lone: set[int], fresh: set[int], left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Messages that stand on both sides, in another order."""
    places: dict[str, list[int]] = {}
    for i in sorted(lone):
        places.setdefault(left[i], []).append(i)
    return [(places[right[j]].pop(0), j) for j in sorted(fresh) if places.get(right[j])]


def _alike(one: Sequence[int], two: Sequence[int], a: Sequence[Any], b: Sequence[Any]) -> list[tuple[int, int]]:
    """Messages of a stretch that stand for each other: same speaker and kinds of parts, in order."""
    pairs = matches([_kind(a[i]) for i in one], [_kind(b[j]) for j in two])
    return [(one[i], two[j]) for i, j in pairs]


def _kind(message: Any) -> tuple[str, ...]:
    return role(message), *sorted({f"{p.kind}{p.name or ''}" for p in parts(message) if p.kind in ("call", "result")})


def _edited(a: Any, b: Any, i: int, j: int) -> list[Change]:
    was = _at(i) if i != j else None
    found = by_path("messages", substance(a), substance(b), _at(j))
    return [Change(c.part, c.kind, c.path, c.a, c.b, was) for c in found]


def _behind(change: Change, kept: int) -> Change:
    """The change of a message with its number counted from the first message."""
    if not kept:
        return change
    path, was = (
        None if p is None else _NUMBER.sub(lambda m: _at(int(m[1]) - 1 + kept), p) for p in (change.path, change.was)
    )
    return replace(change, path=path or "", was=was)


def _at(place: int) -> str:
    return f"messages[{place + 1}]"


def _same(a: Any, b: Any) -> bool:
    return canonical(substance(a)) == canonical(substance(b))
