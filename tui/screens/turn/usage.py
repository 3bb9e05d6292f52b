"""The usage tab: tokens by bucket with what each cost, adding up; whose prices; times; who answered. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from ....tracer.model import BUCKETS, Turn
from ...data.views import Trouble, TurnView
from ...format import clock, count, counted, duration, money, percent, price_lines, usd
from ...widgets.blocks import Block, Document, Fold, Head
from ...widgets.cells import Span
from .content import json_block
from .conversation import phase
from .reading import Paid, Want

_BLANK = Head(())
NAMES: Mapping[str, str] = {
    "input": "input, uncached",
    "cache_read": "cache read",
    "cache_write_5m": "cache write 5 m",
    "cache_write_1h": "cache write 1 h",
    "output": "output",
    "reasoning": "reasoning",
    "request": "per call",
    "searches": "web searches",
}
_SAME = 5e-7  # dollars that come of adding floating numbers


def usage(view: TurnView, extras: Mapping[str, Any], want: Want) -> Document:
    """What the turn took. Raw: the usage object as the provider sent it."""
    turn = view.turn
    if want.raw:
        return (phase("USAGE", "as the provider sent it"), json_block(turn.usage.raw))
    told = extras.get("paid")
    paid = told if isinstance(told, Paid) else Paid()
    out: list[Block] = [*_tokens(turn, paid), _BLANK, phase("PRICE", money(turn.cost_usd)), *_price(turn, paid, told)]
    out += [_BLANK, *_times(turn), _BLANK, phase("IDENTITY")]
    out += [Head(((f"{label:<16}", "dim"), (value, "text")), 2, 16) for label, value in _identity(turn) if value]
    if turn.usage.raw:
        inner = (json_block(turn.usage.raw, indent=4),)
        out += [_BLANK, Fold("usage.raw", (("usage as the provider sent it", "dim"),), inner, False, lasting=True)]
    return tuple(out)


def _tokens(turn: Turn, paid: Paid) -> Iterator[Block]:
    use = turn.usage
    costs = {p.name: p for p in paid.portions}
    unreliable = "output_unreliable" in turn.flags
    facts: list[str | Span | None] = [f"figures {use.origin}"]
    facts.append(("lower bounds: the answer was cut", "bad") if use.partial else None)
    facts.append(("output tokens unreliable", "bad") if unreliable else None)
    yield phase("TOKENS", *facts)
    yield Head(((f"{'':<18}{'tokens':>12}  {'share':>6}  {'$ / M':>6}      {'$':>5}", "faint"),), 2)
    for name in BUCKETS:
        value = getattr(use, name)
        if name == "output":
            yield _line(
                "= read",
                use.context,
                "",
                None,
                sum((costs[n].usd for n in BUCKETS[:4] if n in costs), Decimal(0)) if costs else None,
            )
        if name == "reasoning" and value is None:
            continue
        share = "of out" if name == "reasoning" else percent(value, use.context) if value and name != "output" else ""
        one = costs.get(name)
        yield _line(NAMES[name], value, share, None if one is None else one.rate, None if one is None else one.usd)
    for name in ("request", "searches"):
        if name in costs:
            yield _line(NAMES[name], costs[name].count, "", costs[name].rate, costs[name].usd)
    if paid.portions:
        whole = None if use.context is None else use.context + (use.output or 0)
        yield _line("= this turn", whole, "", None, paid.total, strong=True)


def _line(label: str, tokens: int | None, share: str, rate: Any, cost: Any, *, strong: bool = False) -> Head:
    total = label.startswith("=")
    rated = "" if rate is None else f"{rate.normalize():f}"
    priced = "" if cost is None else usd(float(cost)).removeprefix("$")
    role = "strong" if strong else "text"
    spans = ((f"{label:<18}", "strong" if total else "dim"), (f"{count(tokens):>12}", role), (f"  {share:>6}", "faint"))
    return Head((*spans, (f"  {_pointed(rated, 6, 3)}", "dim"), (f"  {_pointed(priced, 5, 8)}", role)), 2)


def _pointed(said: str, before: int, behind: int) -> str:
    """A figure whose point stands under the points of the others."""
    whole, point, rest = said.partition(".")
    return f"{whole:>{before}}{point}{rest:<{behind}}" + ("" if point else " ")


def _price(turn: Turn, paid: Paid, told: Any) -> Iterator[Block]:
    for line in price_lines(turn):
        wrong = line.startswith(("not priced", "assumed"))
        yield Head(((line, "text" if not wrong else "bad" if line.startswith("not") else "dim"),), 2)
    if isinstance(told, Trouble):
        yield Head(((f"what each bucket cost is not known: {told.what}", "dim"),), 2)
    elif paid.portions and turn.cost_usd is not None and abs(float(paid.total) - turn.cost_usd) > _SAME:
        said = (
            f"today's price lists say {usd(float(paid.total))} (the buckets above); `looptape sync --reprice` renews it"
        )
        yield Head(((said, "dim"),), 2)


def _times(turn: Turn) -> Iterator[Block]:
    yield phase("TIMES", clock(turn.started_at) if turn.started_at is not None else "not recorded")
    first = None
    if turn.stream and turn.first_chunk_at is not None and turn.started_at is not None:
        first = (turn.first_chunk_at - turn.started_at) / 1000
    lines = [
        ("generate", turn.generate_ms),
        ("first token", first),
        ("parse", turn.parse_ms),
        ("execute", turn.execute_ms),
    ]
    for label, value in (*lines, ("resume", turn.resume_ms)):
        if value is not None:
            yield Head(((f"{label:<18}", "dim"), (f"{duration(value):>12}", "text")), 2)
    if turn.generate_ms and turn.usage.output and not (turn.usage.partial or "output_unreliable" in turn.flags):
        rate = turn.usage.output / (turn.generate_ms / 1000)
        yield Head(((f"{'output speed':<18}", "dim"), (f"{rate:>12,.0f}", "text"), ("  tokens a second", "faint")), 2)
    if len(turn.attempts) > 1:
        waited = sum(a.wait_ms or 0 for a in turn.attempts)
        said = f"{counted(len(turn.attempts), 'attempt')}, {duration(waited)} of waiting between them (tab wire)"
        yield Head(((f"{'attempts':<18}", "dim"), (said, "text")), 2)


def _identity(turn: Turn) -> list[tuple[str, str | None]]:
    return [
        ("provider", f"{turn.provider or '-'} · {turn.api or '-'}{' · streamed' if turn.stream else ''}"),
        ("model asked for", turn.request_model if turn.request_model != turn.model else None),
        ("model", turn.model),
        ("called from", turn.caller),
        ("step", turn.step),
        ("agent", turn.agent),
        ("response id", turn.response_id),
        ("request id", turn.request_id),
        ("trace id", turn.trace_id),
        ("span id", turn.span_id),
        ("history", None if turn.mode == "full" else turn.mode),
        ("flags", ", ".join(turn.flags)),
    ]
