"""The context tab: what fills the window by origin, how it grew, what is stale or repeated, where the cache broke. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...data.views import Trouble, TurnView
from ...format import count, counted, percent
from ...told.context_text import NAMES, broke
from ...widgets.blocks import Block, Document, Fold, Head
from ...widgets.cells import Span
from ...widgets.spark import sparkline
from .conversation import phase
from .reading import Want

if TYPE_CHECKING:
    from ....replay.context import Context, Share

_BLANK = Head(())
_BAR = 12
_NAME = 24
_FEW = 5
_SHARES = 15


def context(view: TurnView, extras: Mapping[str, Any], _want: Want) -> Document:
    """What fills the window of the turn. ``extras``: ``context`` once it is read."""
    told = extras.get("context")
    if told is None:
        return (Head((("weighing what fills the window, from the first turn on …", "dim"),)),)
    if isinstance(told, Trouble):
        return (Head((("✗ ", "bad_strong"), (f"{told.what}. {told.cure}", "text"))),)
    answer: Context = told
    out: list[Block] = [*_head(answer), *_shares(answer)]
    for part in (_grown(answer), _stale(answer), _repeats(answer), _removed(answer), _cache(view, answer)):
        made = tuple(part)
        if made:
            out += [_BLANK, *made]
    return tuple(out)


def _head(answer: Context) -> Iterator[Block]:
    full = f"{percent(answer.tokens, answer.window)} of {answer.window:,}" if answer.window else "window not known"
    yield phase("WINDOW", f"{answer.tokens:,} tokens {answer.how}", full, counted(answer.messages, "message"))
    if answer.window:
        part = min(1.0, answer.tokens / answer.window)
        cells = round(part * 60)
        yield Head((("█" * cells, "bar_bad" if part > 0.9 else "bar"), ("░" * (60 - cells), "faint")), 10)
    if answer.how == "estimated":
        yield Head((("no usage was recorded: every figure is estimated", "bad"),), 10)
    if not answer.recorded:
        yield Head((("the request of this turn was not recorded: this is the window before it", "bad"),), 10)
    yield _BLANK


def _shares(answer: Context) -> Iterator[Block]:
    most = max((s.tokens for s in answer.shares), default=0) or 1
    yield Head(((f"{'origin':<{_NAME}}{'tokens':>10}{'share':>7}{'parts':>7}  {'how':<12}", "faint"),), 2)
    shown = answer.shares[:_SHARES]
    yield from (_share(one, answer.tokens, most) for one in shown)
    rest = answer.shares[_SHARES:]
    if rest:
        inner = tuple(_share(one, answer.tokens, most) for one in rest)
        yield Fold("context.shares", ((f"{len(rest)} more origins", "dim"),), inner, False)


def _share(one: Share, whole: int, most: int) -> Head:
    name = NAMES[one.origin] + (f" {one.tool}" if one.tool else " ?" if one.origin == "result" else "")
    name = name if len(name) < _NAME else name[: _NAME - 2] + "…"
    bar = "█" * max(1 if one.tokens else 0, round(_BAR * one.tokens / most))
    figures = f"{one.tokens:>10,}{percent(one.tokens, whole):>7}{one.pieces:>7,}"
    return Head(
        ((f"{name:<{_NAME}}", "text"), (figures, "text"), (f"  {one.how:<12}", "faint"), (bar, "bar")), 2, cut=True
    )


def _grown(answer: Context) -> Iterator[Block]:
    growth = answer.growth
    if len(growth) < 2:
        return
    first, last = growth[0], growth[-1]
    yield phase("GREW", f"{first.tokens:,} to {last.tokens:,} tokens over {counted(len(growth), 'turn')}")
    line: tuple[Span, ...] = ((sparkline([g.tokens for g in growth], min(60, len(growth))), "bar"),)
    yield Head(line, 10)
    steps = sorted(((b.tokens - a.tokens, b.turn) for a, b in pairwise(growth)), reverse=True)
    largest = [f"turn {turn} +{gained:,}" for gained, turn in steps[:3] if gained > 0]
    if largest:
        yield Head((("largest steps  ", "dim"), (", ".join(largest), "text")), 10)


def _stale(answer: Context) -> Iterator[Block]:
    if not answer.stale:
        return
    whole = sum(s.tokens for s in answer.stale)
    said = f"{whole:,} tokens ({percent(whole, answer.tokens)}) in {counted(len(answer.stale), 'result')} that no later answer refers to, judged by words"
    yield phase("STALE", said)
    rows = []
    for one in answer.stale:
        where = f"turn {one.turn}" if one.turn else "before the run"
        if one.superseded_by:
            why = f"the same call again in turn {one.superseded_by}"
        else:
            why = f"last used in turn {one.last_used}" if one.last_used else "never used"
        rows.append(_row(one.tokens, f"{one.tool or '?'} of {where}", f"{why}, sent {one.carried:,}x"))
    yield from _few("stale", rows)


def _repeats(answer: Context) -> Iterator[Block]:
    if not answer.repeats:
        return
    whole = sum(r.tokens for r in answer.repeats)
    yield phase(
        "REPEATED",
        f"{whole:,} tokens of copies of {counted(len(answer.repeats), 'text')} that stand here more than once",
    )
    rows = []
    for one in answer.repeats:
        places = ", ".join(map(str, one.messages[:4])) + (", …" if len(one.messages) > 4 else "")
        name = NAMES[one.origin] + (f" {one.tool}" if one.tool else "")
        text = " ".join(one.text[:400].split())[:100]
        rows.append(_row(one.tokens, f"{one.times}x {name}", f"messages {places}: {text}"))
    yield from _few("repeats", rows)


def _removed(answer: Context) -> Iterator[Block]:
    if not answer.removed:
        return
    yield phase("REMOVED", f"{sum(r.tokens for r in answer.removed):,} tokens until here")
    rows = []
    for one in sorted(answer.removed, key=lambda r: -r.tokens):
        of = ", ".join(f"{origin} {n:,}" for origin, n in sorted(one.shares.items(), key=lambda s: -s[1])[:3])
        said = f"{counted(one.messages, 'message')} ({of}), {one.instead:,} in their place"
        rows.append(_row(one.tokens, f"turn {one.turn} {one.kind}", said))
    yield from _few("removed", rows)


def _cache(view: TurnView, answer: Context) -> Iterator[Block]:
    cache = answer.cache
    if cache.read is None and not cache.run_read:
        yield phase("CACHE", "the usage says nothing of a cache")
    else:
        run = percent(cache.run_read, cache.run_context)
        read = f"{count(cache.read)} read from it ({percent(cache.read, answer.tokens)})"
        yield phase("CACHE", read, f"{count(cache.written)} written", f"{run} over the run until here")
    rows = []
    for one in sorted(answer.breaks, key=lambda b: (b.turn != view.turn.number, -(b.tokens or 0), b.turn)):
        here = one.turn == view.turn.number
        rows.append(
            _row(one.tokens, f"turn {one.turn}{' (this)' if here else ''}", broke(one), bad=here and bool(one.tokens))
        )
    yield from _few("breaks", rows)


def _row(tokens: int | None, label: str, said: str, *, bad: bool = False) -> Head:
    return Head(((f"{count(tokens):>9}  ", "text"), (f"{label:<24} ", "text"), (said, "bad" if bad else "dim")), 1, 36)


def _few(key: str, rows: Sequence[Head]) -> Iterator[Block]:
    yield from rows[:_FEW]
    if len(rows) > _FEW:
        yield Fold(
            f"context.{key}", ((f"{len(rows) - _FEW:,} more", "dim"),), tuple(rows[_FEW:]), False, 10, lasting=True
        )
