"""The answer of `looptape context` as one screen of text, and as the JSON that scripts rely on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from ...replay.context import Break, Context, Growth, Repeat, Stale
from ...tracer.model import Run
from .. import format as fmt
from .. import report
from ..report import Column, Styled
from ..safe_text import clean
from .transcript import subtitle

_ROWS = 5  # of a list on one screen
_BAR = 24
_STEPS = "▁▂▃▄▅▆▇█"
NAMES = {
    "system": "system", "tools": "tool schemas", "user": "user", "assistant": "assistant text", "thinking": "thinking",
    "arguments": "arguments of", "result": "results of", "image": "images", "other": "other",
    "unrecorded": "not recorded",
}  # fmt: skip
_PREVIEW = 200  # characters of a repeated text in JSON


def show(run: Run, answer: Context) -> None:
    """Prints it."""
    report.out(Styled(f"context of turn {answer.turn}", "bold"), "  ", subtitle(run))
    _head(answer)
    _shares(answer)
    _grown(answer.growth)
    _stale(answer.stale, answer.tokens)
    _repeats(answer.repeats)
    _removed(answer)
    _cache(answer)


def shape(answer: Context) -> dict[str, Any]:
    """Its JSON; tokens are whole numbers, money US dollars."""
    repeats = [
        asdict(r) | {"text": r.text[:_PREVIEW], "length": len(r.text), "messages": list(r.messages)}
        for r in answer.repeats
    ]
    return {
        "run": answer.run,
        "turn": answer.turn,
        "model": answer.model,
        "tokens": answer.tokens,
        "how": answer.how,
        "window": answer.window,
        "rate": answer.rate,
        "messages": answer.messages,
        "recorded": answer.recorded,
        "origins": [asdict(s) for s in answer.shares],
        "growth": [asdict(g) for g in answer.growth],
        "stale": [asdict(s) for s in answer.stale],
        "repeats": repeats,
        "removed": [asdict(r) for r in answer.removed],
        "cache": asdict(answer.cache) | {"breaks": [asdict(b) for b in answer.breaks]},
    }


def _head(answer: Context) -> None:
    said = [f"{answer.tokens:,} tokens {answer.how}"]
    if answer.window:
        said.append(f"{fmt.percent(answer.tokens, answer.window)} of {answer.window:,}")
    said.append(fmt.counted(answer.messages, "message"))
    report.out(" · ".join(said))
    if answer.how == "estimated":
        report.out(Styled("no usage was recorded: every figure is estimated (docs/context.md)", "warn"))
    if not answer.recorded:
        report.out(Styled("the request of this turn was not recorded: this is the window before it", "warn"))


def _shares(answer: Context) -> None:
    most = max((s.tokens for s in answer.shares), default=0) or 1
    rows = []
    for share in answer.shares:
        name = NAMES[share.origin] + (f" {share.tool}" if share.tool else "" if share.origin != "result" else " ?")
        bar = "█" * max(1 if share.tokens else 0, round(_BAR * share.tokens / most))
        rows.append(
            [name, f"{share.tokens:,}", fmt.percent(share.tokens, answer.tokens), f"{share.pieces:,}", share.how, bar]
        )
    columns = [Column("origin", grow=True), *(Column(t, right=True) for t in ("tokens", "share", "parts"))]
    shown = rows[: 3 * _ROWS]
    report.table([*columns, Column("how"), Column("")], shown, indent="  ")
    _more(len(rows) - len(shown))


def _grown(growth: Sequence[Growth]) -> None:
    if len(growth) < 2:
        return
    first, last = growth[0], growth[-1]
    report.out(
        Styled("grew     ", "accent"),
        f"{first.tokens:,} to {last.tokens:,} tokens over {len(growth):,} turns  {_line(growth)}",
    )
    steps = [(b.tokens - a.tokens, b) for a, b in pairwise(growth)]
    largest = sorted((s for s in steps if s[0] > 0), key=lambda s: -s[0])[:3]
    if largest:
        told = ", ".join(f"turn {g.turn} +{gained:,}" for gained, g in largest)
        report.out(f"         largest steps: {told}")


def _line(growth: Sequence[Growth], width: int = 40) -> str:
    """Tokens turn by turn as a line of bars; several turns share one when there are many."""
    size = -(-len(growth) // width)
    groups = [max(g.tokens for g in growth[i : i + size]) for i in range(0, len(growth), size)]
    top = max(groups) or 1
    return "".join(_STEPS[min(7, 8 * value // (top + 1))] for value in groups)


def _stale(found: Sequence[Stale], tokens: int) -> None:
    if not found:
        return
    whole = sum(s.tokens for s in found)
    report.out(
        Styled("stale    ", "accent"),
        f"{whole:,} tokens ({fmt.percent(whole, tokens)}) in {fmt.counted(len(found), 'result')} that no answer from "
        "here on refers to, judged by words",
    )
    for one in found[:_ROWS]:
        where = f"turn {one.turn}" if one.turn else "before the run"
        if one.superseded_by:
            why = f"the same call again in turn {one.superseded_by}"
        else:
            why = f"last used in turn {one.last_used}" if one.last_used else "never used"
        report.out(f"         {one.tokens:,}  {one.tool or '?'} of {where}: {why}, sent {one.carried:,}x")
    _more(len(found) - _ROWS)


def _repeats(found: Sequence[Repeat]) -> None:
    if not found:
        return
    whole = sum(r.tokens for r in found)
    report.out(
        Styled("repeated ", "accent"),
        f"{whole:,} tokens of copies of {fmt.counted(len(found), 'text')} that stand here more than once",
    )
    for one in found[:_ROWS]:
        places = ", ".join(map(str, one.messages[:4])) + (", …" if len(one.messages) > 4 else "")
        name = NAMES[one.origin] + (f" {one.tool}" if one.tool else "")
        report.out(f"         {one.tokens:,}  {one.times}x {name}, messages {places}: ", clean(one.text, limit=50))
    _more(len(found) - _ROWS)


def _removed(answer: Context) -> None:
    if not answer.removed:
        return
    whole = sum(r.tokens for r in answer.removed)
    report.out(Styled("removed  ", "accent"), f"{whole:,} tokens until here")
    largest = sorted(answer.removed, key=lambda r: -r.tokens)[:_ROWS]
    for one in sorted(largest, key=lambda r: r.turn):
        of = ", ".join(f"{origin} {count:,}" for origin, count in sorted(one.shares.items(), key=lambda s: -s[1])[:3])
        report.out(
            f"         turn {one.turn} {one.kind}: {fmt.counted(one.messages, 'message')}, {one.tokens:,} tokens "
            f"({of}), {one.instead:,} in their place"
        )
    _more(len(answer.removed) - _ROWS)


def _cache(answer: Context) -> None:
    cache = answer.cache
    if cache.read is None and not cache.run_read:
        report.out(Styled("cache    ", "accent"), "the usage says nothing of a cache")
    else:
        run = fmt.percent(cache.run_read, cache.run_context)
        report.out(
            Styled("cache    ", "accent"),
            f"{fmt.count(cache.read)} tokens read from it ({fmt.percent(cache.read, answer.tokens)}), "
            f"{fmt.count(cache.written)} written; {run} over the run until here",
        )
    worst = sorted(answer.breaks, key=lambda b: (-(b.tokens or 0), b.turn))[:_ROWS]
    for one in sorted(worst, key=lambda b: b.turn):
        report.out(f"         turn {one.turn}: ", broke(one))
    _more(len(answer.breaks) - _ROWS)


def broke(one: Break) -> str:
    """What broke the cached prefix, and what that cost, in one line."""
    idle = fmt.duration(1000 * one.idle_s) if one.idle_s is not None else "?"
    said = {
        "expired": f"not read again in time, {idle} after the turn before",
        "unknown": "not read, though nothing before it changed",
        "model": f"another model ({one.place})",
    }.get(one.cause, f"the prefix broke at {one.place}")
    if one.tokens is None:
        return f"{said}; what was read again is not recorded"
    if not one.tokens:
        return f"{said}; nothing was read again"
    more = f", {fmt.money(one.usd)} more than from the cache" if one.usd is not None else ", unpriced"
    return f"{said}; {one.tokens:,} tokens read again{more}"


def _more(count: int) -> None:
    if count > 0:
        report.out(Styled(f"         and {count:,} more: --json", "dim"))
