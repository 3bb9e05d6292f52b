"""What differs between two requests, at which path, and by which rule it may; and which recorded call is nearest."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...tracer.canonical import canonical
from . import normalise
from .normalise import Normaliser, Part
from .rules import Where

NOTHING = object()
"""Stands for what is not there."""

SHORT = 100
DIALOGUE = "dialogue"
_PARTS = {
    "anthropic.messages": ("system", "tools", ""),
    "openai.responses": ("instructions", "tools", ""),
    "google.generate_content": ("systemInstruction", "tools", ""),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two requests differ.

    Attributes:
        path: JSON path in the body, counted from 0: ``messages[2].content[0].text``.
        recorded, got: The values; `NOTHING` where there is none.
        rules: The rules by which they count as equal; empty for a real difference.
        ids: Ids that stand for each other here.
    """

    path: str
    recorded: Any
    got: Any
    rules: tuple[str, ...] = ()
    ids: tuple[tuple[str, str], ...] = ()


def json_path(path: str) -> str:
    """A difference's path as a person and the verdict's JSON get it: the ``$.`` says that it counts from 0."""
    return f"$.{path}"


def part_path(api: str, part: Part) -> str:
    """Where a part stands in the body: ``system``, ``instructions``, …; parameters stand at its top."""
    return dict(zip(normalise.PARTS, _PARTS.get(api, ("system", "tools", "")), strict=True))[part]


def in_message(recorded: Any, got: Any, path: str, rules: Normaliser) -> list[Difference]:
    """The differences of two decoded messages."""
    if rules.match == "dialogue" and _is_prompter(recorded) and _is_prompter(got) and recorded["role"] == got["role"]:
        found = _compare(recorded, got, path, "open", rules)
        return [Difference(d.path, d.recorded, d.got, d.rules or (DIALOGUE,)) for d in found]
    return list(_compare(recorded, got, path, "open", rules))


def in_part(recorded: Any, got: Any, part: Part, api: str, rules: Normaliser) -> list[Difference]:
    """The differences of two decoded systems, tool lists or parameter sets (`NOTHING`: there is none)."""
    path = part_path(api, part)
    if recorded is NOTHING or got is NOTHING:
        if part == "params" or recorded is got:
            return list(_params({} if recorded is NOTHING else recorded, {} if got is NOTHING else got, rules))
        allowed = (DIALOGUE,) if rules.match == "dialogue" and part == "system" else ()
        return [Difference(path, recorded, got, allowed)]
    if part == "system":
        return _system(recorded, got, path, rules)
    if part == "tools":
        return list(_tools(recorded, got, path, rules))
    return list(_params(recorded, got, rules))


def shown(value: Any, limit: int = SHORT) -> str | None:
    """A value on one short line; None for nothing."""
    if value is NOTHING:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text[: 20 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def shown_both(recorded: Any, got: Any, limit: int = SHORT) -> tuple[str | None, str | None]:
    """Two values, each on one short line, long ones from shortly before the place where they part."""
    if not (isinstance(recorded, str) and isinstance(got, str)):
        return shown(recorded, limit), shown(got, limit)
    left, right = " ".join(recorded.split()), " ".join(got.split())
    if left == right:  # they differ in white space only
        left, right = json.dumps(recorded, ensure_ascii=False), json.dumps(got, ensure_ascii=False)
    same = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    if max(len(left), len(right)) <= limit or same < limit // 2:
        return shown(left, limit), shown(right, limit)
    start = same - limit // 3
    return shown("…" + left[start:], limit), shown("…" + right[start:], limit)


def likeness(left: str, right: str, limit: int = 4000) -> float:
    """How alike two texts are, 0 to 1; long ones by their beginnings."""
    return difflib.SequenceMatcher(None, left[:limit], right[:limit], autojunk=False).quick_ratio()


def _compare(recorded: Any, got: Any, path: str, where: Where, rules: Normaliser) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(got, dict):
        yield from _objects(recorded, got, path, where, rules)
    elif isinstance(recorded, list) and isinstance(got, list):
        yield from _lists(recorded, got, path, where, rules)
    elif isinstance(recorded, str) and isinstance(got, str):
        if recorded != got:
            names, ids = rules.used(recorded, got, where)
            yield Difference(path, recorded, got, names, ids)
    elif canonical(recorded) != canonical(got):
        yield Difference(path, recorded, got)


def _objects(
    recorded: dict[str, Any], got: dict[str, Any], path: str, where: Where, rules: Normaliser
) -> Iterator[Difference]:
    for key in dict.fromkeys((*recorded, *got)):
        at = _joined(path, key)
        left, right = recorded.get(key, NOTHING), got.get(key, NOTHING)
        if left is not NOTHING and right is not NOTHING:
            yield from _members(left, right, at, key, recorded, got, where, rules)
        else:
            allowed = (normalise.CACHE_CONTROL,) if normalise.is_mark(key, where) else ()
            yield Difference(at, left, right, _ruled(allowed, rules))


def _members(
    left: Any,
    right: Any,
    path: str,
    key: str,
    recorded: dict[str, Any],
    got: dict[str, Any],
    where: Where,
    rules: Normaliser,
) -> Iterator[Difference]:
    if normalise.is_mark(key, where) and rules.match != "exact":
        if canonical(left) != canonical(right):
            yield Difference(path, left, right, _ruled((normalise.CACHE_CONTROL,), rules))
        return
    deeper = normalise.inside(recorded, key, where)
    if deeper != normalise.inside(got, key, where):  # a message of another kind: the rules of neither fit
        deeper = "data"
    one, other = rules.member(key, left, where), rules.member(key, right, where)
    if isinstance(left, str) != isinstance(right, str) and isinstance(one, list) and isinstance(other, list):
        yield Difference(path, left, right, _ruled((normalise.BLOCKS,), rules))
        left, right = one, other
    elif isinstance(left, list) and rules.match != "exact":
        if isinstance(right, list):
            yield from _retyped(left, right, path, one, other)
        left, right = one, other
    yield from _compare(left, right, path, deeper, rules)


def _retyped(left: list[Any], right: list[Any], path: str, one: list[Any], other: list[Any]) -> Iterator[Difference]:
    """Blocks of plain text whose types differ in name only."""
    for index, (a, b, same, too) in enumerate(zip(left, right, one, other, strict=False)):
        if (
            isinstance(same, dict)
            and isinstance(too, dict)
            and same.get("type") == too.get("type")
            and a.get("type") != b.get("type")
        ):
            yield Difference(f"{path}[{index}].type", a.get("type"), b.get("type"), (normalise.BLOCKS,))


def _lists(recorded: list[Any], got: list[Any], path: str, where: Where, rules: Normaliser) -> Iterator[Difference]:
    left, right = _kept(recorded, where, rules), _kept(got, where, rules)
    for items, kept, mine in ((recorded, left, True), (got, right, False)):
        for index in sorted(set(range(len(items))) - set(kept)):
            other = left if not mine else right
            source = got if mine else recorded
            if len(items) == len(source) and index not in other and canonical(items[index]) == canonical(source[index]):
                continue  # the same reminder stands there on both sides
            one, two = (items[index], NOTHING) if mine else (NOTHING, items[index])
            yield Difference(f"{path}[{index}]", one, two, ("reminders",))
    for position in range(max(len(left), len(right))):
        if position >= len(left):
            yield Difference(f"{path}[{right[position]}]", NOTHING, got[right[position]])
        elif position >= len(right):
            yield Difference(f"{path}[{left[position]}]", recorded[left[position]], NOTHING)
        else:
            yield from _compare(
                recorded[left[position]], got[right[position]], f"{path}[{right[position]}]", where, rules
            )


def _kept(items: list[Any], where: Where, rules: Normaliser) -> list[int]:
    if where == "data" or rules.match == "exact":
        return list(range(len(items)))
    return [i for i, v in enumerate(items) if not rules.only_reminder(v, where)]


def _system(recorded: Any, got: Any, path: str, rules: Normaliser) -> list[Difference]:
    one, other = {"content": recorded}, {"content": got}
    found = [
        Difference(path + d.path.removeprefix("content"), d.recorded, d.got, d.rules, d.ids)
        for d in _compare(one, other, "", "open", rules)
    ]
    if rules.match == "dialogue":
        return [Difference(d.path, d.recorded, d.got, d.rules or (DIALOGUE,), d.ids) for d in found]
    return found


def _tools(recorded: Any, got: Any, path: str, rules: Normaliser) -> Iterator[Difference]:
    if not (isinstance(recorded, list) and isinstance(got, list)) or rules.match == "exact":
        yield from _compare(recorded, got, path, "open", rules)
        return
    order = _same_order(recorded, got)
    if order != list(range(len(got))):
        yield Difference(path, [*map(_tool_name, recorded)], [*map(_tool_name, got)], (normalise.TOOL_ORDER,))
    for difference in _compare(recorded, [got[i] for i in order], path, "open", rules):
        at = difference.path
        rest: tuple[str, ...] = ()
        if rules.match == "dialogue" and at.endswith(".description") and _says(difference):
            rest = (DIALOGUE,)
        yield Difference(
            _place(at, path, order), difference.recorded, difference.got, difference.rules or rest, difference.ids
        )


def _says(difference: Difference) -> bool:
    return all(value is NOTHING or isinstance(value, str) for value in (difference.recorded, difference.got))


def _same_order(recorded: list[Any], got: list[Any]) -> list[int]:
    """The places of the got tools in the order of the recorded ones, by name; the others behind."""
    left = list(range(len(got)))
    order = []
    for tool in recorded:
        name = _tool_name(tool)
        match = next((i for i in left if _tool_name(got[i]) == name and name is not None), None)
        if match is not None:
            left.remove(match)
            order.append(match)
    return order + left if len(order) == len(recorded) else list(range(len(got)))


def _tool_name(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return None
    function = tool.get("function")
    return tool.get("name") or (function.get("name") if isinstance(function, dict) else None) or tool.get("type")


def _place(at: str, path: str, order: Sequence[int]) -> str:
    """A path by its place in the reordered tools as the path in the tools that were sent."""
    head, _, rest = at.removeprefix(path + "[").partition("]")
    return f"{path}[{order[int(head)]}]{rest}" if head.isdecimal() and int(head) < len(order) else at


def _params(recorded: Any, got: Any, rules: Normaliser) -> Iterator[Difference]:
    if not (isinstance(recorded, dict) and isinstance(got, dict)):
        yield from _compare(recorded, got, "", "data", rules)
        return
    for key in dict.fromkeys((*recorded, *got)):
        left, right = recorded.get(key, NOTHING), got.get(key, NOTHING)
        for difference in _param(key, left, right, rules):
            if rules.match == "dialogue" and key in normalise.SAMPLING:
                yield Difference(difference.path, difference.recorded, difference.got, (DIALOGUE,))
            else:
                yield difference


def _param(key: str, left: Any, right: Any, rules: Normaliser) -> Iterator[Difference]:
    if left is NOTHING or right is NOTHING:
        yield Difference(key, left, right, _ruled((normalise.CACHE_CONTROL,) if key == "cache_control" else (), rules))
    elif key == "metadata" and isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys((*left, *right)):
            yield from _named(
                name, left.get(name, NOTHING), right.get(name, NOTHING), f"metadata.{name}", rules, top=False
            )
    elif key == normalise.CLIENT and isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys((*left, *right)):
            one, other = left.get(name, NOTHING), right.get(name, NOTHING)
            if one is NOTHING or other is NOTHING or canonical(one) != canonical(other):
                told = NOTHING not in (one, other)
                yield Difference(f"{key}.{name}", one, other, _ruled((normalise.IDS_BY_NAME,) if told else (), rules))
    elif key == "cache_control" and rules.match != "exact":
        if canonical(left) != canonical(right):
            yield Difference(key, left, right, _ruled((normalise.CACHE_CONTROL,), rules))
    else:
        yield from _named(key, left, right, key, rules, top=True)


def _named(key: str, left: Any, right: Any, path: str, rules: Normaliser, *, top: bool) -> Iterator[Difference]:
    if left is NOTHING or right is NOTHING:
        yield Difference(path, left, right)
    elif normalise.is_id_name(key, left, top=top) and normalise.is_id_name(key, right, top=top):
        if left != right:
            yield Difference(path, left, right, _ruled((normalise.IDS_BY_NAME,), rules))
    else:
        yield from _compare(left, right, path, "data", rules)


def _ruled(names: tuple[str, ...], rules: Normaliser) -> tuple[str, ...]:
    return () if rules.match == "exact" else names


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _is_prompter(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in normalise.PROMPTERS
