"""Why a run cost what it did, on one screen: the headline, the parts by size, where to look."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Any

from ...replay.why import CAUSES, Explanation, Part
from ...replay.why.causes import ALONE, spans
from .. import format as fmt
from .. import report
from ..report import Column, Styled
from .bars import bar

COLUMNS = (
    Column("cause"),
    Column("", right=True),
    Column("share", right=True),
    Column(""),
    Column("turns", right=True),
    Column("what", below=True),
    Column("called from", below=True),
)
AVOIDABLE = ("cycles", "retries", "failed_calls", "cache_breaks")
"""Causes that nobody wants: where nothing is usual they come first, since every run reads and writes."""
_LONG_TITLE = 24
_WORTH = Decimal("0.05")  # the share of the whole from which an avoidable cause leads


def show(found: Explanation, commands: Collection[str]) -> None:
    """Prints the explanation. ``commands``: those that it may send the reader to."""
    for line in headline(found):
        report.out(*line)
    for note in found.notes:
        report.out(Styled(note, "dim"))
    if _owns_nothing(found):
        return
    parts = [p for p in found.parts if abs(p.amount) >= _least(found) or p.turns]
    if parts:
        report.out("")
        most = max((abs(p.amount) for p in parts), default=Decimal(0))
        report.table(COLUMNS, [_row(found, p, most) for p in parts])
    if left := len(found.parts) - len(parts):
        report.out(Styled(f"{left} smaller {'part' if left == 1 else 'parts'} in --json", "dim"))
    places = _places(found, commands)
    if places:
        report.out("")
        report.table((Column("look at"), Column("", grow=True)), places)


def headline(found: Explanation, *, short: bool = False) -> list[tuple[report.Part, ...]]:
    """The first lines: what it cost beside the usual, and where most of the difference went.

    Args:
        short: A run with a long title is "this run": where the title stands beside it, the figures matter more.
    """
    name = fmt.run_title(found.run)
    if short and len(name) > _LONG_TITLE:
        name = "this run"
    amount = _amount(found.unit, found.amount)
    turns = fmt.counted(found.turns, "turn")
    top = next((p for p in found.parts if p.cause != "unexplained" and p.amount * _sign(found) > 0), None)
    if _owns_nothing(found):
        whole, parent = found.run.turns, found.run.parent
        held = f"{'is' if whole == 1 else 'are'} {f'those of {parent.run[:8]}' if parent is not None else 'counted in another run'}"
        return [(Styled(f"{name} took nothing of its own: its {fmt.counted(whole, 'turn')} {held}", "bold"),)]
    if found.usual.amount is None:
        lines: list[tuple[report.Part, ...]] = [(Styled(f"{name} took {amount} and {turns}", "bold"),)]
        if (saved := _avoidable(found)) is not None:
            share = f"{100 * saved.amount / found.amount:.0f} %"
            lines.append((f"Could be saved: {_cause(found, saved)}, {_amount(found.unit, saved.amount)} ({share}). {saved.what}",))  # fmt: skip
        elif top is not None:
            word = "Most of it" if top.amount * 2 >= found.amount else "The largest part"
            lines.append((f"{word}: {_cause(found, top)}, {_amount(found.unit, top.amount)}. {top.what}",))
        return lines
    above = _difference(found)
    usual = f"{_amount(found.unit, found.usual.amount)} and {_turns(found.usual.turns)} ({_source(found)})"
    lines = [(Styled(f"{name} took {amount} and {turns}: {above} the usual {usual}", "bold"),)]
    if top is not None and found.difference:
        word = "Most of it" if abs(top.amount) * 2 >= abs(found.difference) else "The largest part"
        lines.append((f"{word}: {_cause(found, top)}, {_amount(found.unit, abs(top.amount))}. {top.what}",))
    return lines


def _owns_nothing(found: Explanation) -> bool:
    """True for a fork that was answered by its recording to the end: nothing of it is to be explained."""
    return bool(found.run.turns) and not found.turns and not found.amount


def _avoidable(found: Explanation) -> Part | None:
    """The largest part of a run without peers that need not have been, if it is worth a word."""
    parts = [p for p in found.parts if p.cause in AVOIDABLE and p.amount > 0]
    largest = max(parts, key=lambda p: p.amount, default=None)
    return largest if largest is not None and largest.amount >= _WORTH * found.amount else None


def as_json(found: Explanation) -> dict[str, Any]:
    """The object of `why --json`: amounts are ``usd`` where the run is priced, else ``tokens``; parts sum to the difference."""
    usual, priced = found.usual, found.unit == "usd"

    def pair(value: Decimal | None) -> tuple[float | None, int | None]:
        return (None, None) if value is None else (float(value), None) if priced else (None, round(value))

    median = pair(usual.amount)
    difference = pair(found.difference)
    return {
        "run": found.run.id,
        "unit": found.unit,
        "usd": pair(found.amount)[0],
        "tokens": pair(found.amount)[1],
        "turns": found.turns,
        "against": {
            "runs": len(usual.runs),
            "median_usd": median[0],
            "median_turns": _number(usual.turns),
            "median_tokens": median[1],
            "kind": usual.kind,
            "name": usual.name,
            "ids": list(usual.runs),
            "nearest": usual.nearest,
        },
        "above_usd": difference[0],
        "above_tokens": difference[1],
        "above_turns": _number(found.turns_above),
        "parts": [_part(p, pair(p.amount)) for p in found.parts if p.cause != "unexplained"],
        "unexplained_usd": pair(found.unexplained)[0],
        "unexplained_tokens": pair(found.unexplained)[1],
        "unexplained_turns": _number(sum((p.turns for p in found.parts if p.cause == "unexplained"), Decimal(0))),
        "list_price": found.run.list_price,
        "notes": list(found.notes),
    }


def _part(part: Part, amount: tuple[float | None, int | None]) -> dict[str, Any]:
    return {
        "cause": part.cause,
        "usd": amount[0],
        "tokens": amount[1],
        "turns": _number(part.turns),
        "first_turn": part.first_turn,
        "last_turn": part.last_turn,
        "what": part.what,
        "at": list(part.at),
        "callers": list(part.callers),
    }


def _row(found: Explanation, part: Part, most: Decimal) -> list[report.Part]:
    share = f"{round(100 * part.amount / found.difference)} %" if found.difference else fmt.MISSING
    more = f"{part.turns:+g}" if part.turns else ""
    alone = found.usual.amount is None
    return [
        _cause(found, part),
        _amount(found.unit, part.amount),
        share,
        Styled(bar(float(part.amount), float(most)), "bad" if part.amount > 0 else "good"),
        more.lstrip("+") if alone else more,
        part.what,
        Styled(", ".join(part.callers), "dim"),
    ]


def _places(found: Explanation, known: Collection[str]) -> list[list[report.Part]]:
    """Commands that show the largest parts."""
    run = found.run.id[:8]
    places: dict[str, str] = {}
    shown = [p for p in found.parts if p.at and p.amount > 0 and p.cause != "unexplained"]
    if found.usual.amount is None and (saved := _avoidable(found)) is not None:
        shown = [saved, *(p for p in shown if p is not saved)]
    shown = shown[:3]
    for part in shown:
        number = part.at[-1] if part.cause == "larger_context" else part.at[0]
        command = {"larger_context": "context", "cache_breaks": "context"}.get(part.cause, "show")
        name = command if command in known else "show"
        places.setdefault(f"looptape {name} {run}:{number}", f"{_cause(found, part)}: {spans(part.at)}")
    if any(p.cause == "cycles" for p in shown) and "cycles" in known:
        places[f"looptape cycles {run}"] = "every cycle with what it wasted"
    if found.usual.nearest and "diff" in known:
        places[f"looptape diff {found.usual.nearest[:8]} {run}"] = "where the two went apart"
    return [[Styled(command, "accent"), Styled(says, "dim")] for command, says in places.items()]


def _cause(found: Explanation, part: Part) -> str:
    words = CAUSES[part.cause]
    return ALONE.get(part.cause, words) if found.usual.amount is None else words


def _difference(found: Explanation) -> str:
    if not found.difference:
        said = "as much as"
    else:
        word = "above" if found.difference > 0 else "below"
        said = f"{_amount(found.unit, abs(found.difference))} {word}"
    if not found.turns_above:
        return said
    more = "more" if found.turns_above > 0 else "fewer"
    return f"{_turns(abs(found.turns_above))} {more}, {said}"


def _source(found: Explanation) -> str:
    usual = found.usual
    if usual.kind == "run":
        return f"run {usual.name}"
    return f"median of {fmt.counted(len(usual.runs), 'run')} of {usual.kind} {usual.name}"


def _sign(found: Explanation) -> int:
    return -1 if found.difference < 0 else 1


def _least(found: Explanation) -> Decimal:
    """A part below a two-hundredth of the largest is left to --json."""
    most = max((abs(p.amount) for p in found.parts), default=Decimal(0))
    return most / 200


def _amount(unit: str, value: Decimal) -> str:
    if unit != "usd":
        return f"{value:,.0f} tokens"
    return ("-" if value < 0 else "") + fmt.money(float(abs(value)))


def _turns(value: Decimal | None) -> str:
    return fmt.MISSING if value is None else f"{value:,g} {'turn' if value == 1 else 'turns'}"


def _number(value: Decimal | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value == int(value) else float(value)
