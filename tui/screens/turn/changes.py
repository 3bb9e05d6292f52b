"""How a request differs from the one of the turn before, in signs, words and lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....tracer.model import Request
from ...format import short_tokens
from ...report import Styled
from ...told import diff_lines
from ...widgets.blocks import Block, Head
from ...widgets.cells import Span, Spans
from .reading import Changes, Want

if TYPE_CHECKING:
    from ....replay.context import Break
    from ....replay.diff import Change

AROUND = ((0, 40), (1, 120), (3, 400), (10, 2000), (1_000_000, 1_000_000))
"""Steps of ``}``: messages that stand one by one beside each change, and characters around each edit."""
LONGEST = 200_000
"""Characters of a text up to which an edit is worked out word by word."""
PATH = re.compile(r"messages\[(\d+)\](.*)")
_ROLES = {"bad": "bad", "good": "accent", "dim": "dim", "accent": "accent", "bold": "strong", "warn": "bad"}


def standing(seen: Request, told: Changes | None) -> tuple[list[str], dict[int, list[Change]]]:
    """How every message stands to the turn before; and the dropped ones, by the index at which they would stand."""
    total = len(seen.messages)
    kinds = ["same"] * seen.kept + ["appended"] * (total - seen.kept)
    gone: dict[int, list[Change]] = {}
    if told is None or told.before is None:
        return kinds, gone
    kinds = ["same"] * total
    dropped: dict[int, Change] = {}
    for change in told.changes:
        found = PATH.fullmatch(change.path) if change.part == "messages" else None
        if found is None:
            continue
        index = int(found[1]) - 1
        if change.kind == "dropped" and not found[2]:
            dropped[index] = change
        elif 0 <= index < total:
            kinds[index] = change.kind if not found[2] or change.kind == "truncated" else "edited"
    stayed = [i for i, kind in enumerate(kinds) if kind not in ("appended", "inserted")]
    left = [i for i in range(len(told.before.messages)) if i not in dropped]
    there = dict(zip(left, stayed, strict=False))
    for index, change in dropped.items():
        after = next((there[i] for i in left if i > index and i in there), None)
        gone.setdefault(after if after is not None else (stayed[-1] + 1 if stayed else 0), []).append(change)
    return kinds, gone


def by_message(told: Changes | None) -> dict[int, tuple[Change, ...]]:
    """Edits inside messages, by the message's number."""
    found: dict[int, tuple[Change, ...]] = {}
    for change in told.changes if told is not None else ():
        path = PATH.fullmatch(change.path) if change.part == "messages" else None
        if path is not None and (path[2] or change.kind in ("edited", "truncated", "reordered")):
            found[int(path[1])] = (*found.get(int(path[1]), ()), change)
    return found


def of_part(part: str, told: Changes | None) -> tuple[Change, ...]:
    """The changes of one part of the request."""
    return tuple(c for c in told.changes if c.part == part) if told is not None else ()


def kind_of(mine: Sequence[Change], told: Changes | None) -> str:
    """How a part stands to the turn before, as `turn_messages.SIGNS` names it."""
    if told is None:
        return ""
    if told.before is None:
        return "" if told.changes else "appended"
    return "same" if not mine else "truncated" if all(c.kind == "truncated" for c in mine) else "edited"


def note_of(mine: Sequence[Change], broken: Break | None, part: str) -> Spans:
    """What changed in a part, and whether the cache broke there."""
    note = in_words(mine)
    if broken is not None and broken.cause == part:
        return (*note, broke_here(broken), ("  ", "dim"))
    return (*note, ("  ", "dim")) if note else ()


def in_words(mine: Sequence[Change]) -> Spans:
    """``content[1].text cut from 9,400 to 200``; ``2 edits``."""
    if not mine:
        return ()
    if len(mine) > 1:
        kinds = sorted({c.kind for c in mine})
        return ((f"{len(mine)} places {' and '.join(kinds)}", "accent"),)
    one = mine[0]
    where = re.sub(r"^messages\[\d+\]\.?", "", one.path)
    if one.kind == "truncated" and isinstance(one.a, str) and isinstance(one.b, str):
        return ((f"{where} cut from {len(one.a):,} to {len(one.b):,} characters", "bad"),)
    if one.kind == "reordered":
        return ((f"stood at {one.was}", "accent"),)
    return ((f"{where} {one.kind}".strip(), "accent"),)


def broke_here(broken: Break) -> Span:
    """The mark of the place where the cached prefix ended."""
    lost = f" (-{short_tokens(broken.tokens)} read)" if broken.tokens else ""
    return (f"  ← the cache broke here{lost}", "bad_strong" if broken.tokens else "dim")


def edits(mine: Sequence[Change], want: Want) -> tuple[Block, ...]:
    """The differences themselves, line by line."""
    out: list[Block] = []
    for change in mine[:40]:
        if change.kind == "reordered":
            continue
        out.append(Head(((f"{change.path} {change.kind}", "dim"),), 4))
        sides = [v for v in (change.a, change.b) if isinstance(v, str)]
        if max(map(len, sides), default=0) > LONGEST:
            out.append(Head((("too long to be compared word by word; d compares the turns", "dim"),), 6))
            continue
        lines = list(diff_lines.whole(change, AROUND[want.around][1]))
        most = 12 * (1 + 8 * want.around)
        for line in lines[:most]:
            spans = tuple((p.text, _ROLES.get(p.style, "text")) if isinstance(p, Styled) else (p, "dim") for p in line)
            out.append(Head(_shortened(spans, 5 * AROUND[want.around][1]), 6))
        if len(lines) > most:
            out.append(Head(((f"… {len(lines) - most:,} more lines, }} shows more", "dim"),), 6))
    return (*out, Head(())) if out else ()


def _shortened(spans: Spans, most: int) -> Spans:
    """Long stretches that came or went, their middle left out and counted."""
    out: list[Span] = []
    for text, role in spans:
        if len(text) > 2 * most:
            out += [(text[:most], role), (f" … {len(text) - 2 * most:,} characters … ", "faint"), (text[-most:], role)]
        else:
            out.append((text, role))
    return tuple(out)
