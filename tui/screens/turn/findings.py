"""The findings tab: cycles and rules that touch this turn, with evidence, waste and cure. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....replay.rules.pages import CYCLE
from ...data.views import Trouble, TurnView
from ...format import counted
from ...told.lint_text import wasted
from ...widgets.blocks import Block, Body, Document, Fold, Head
from ...widgets.cells import Span
from .conversation import phase
from .reading import Findings, Want

if TYPE_CHECKING:
    from ....replay.rules import Finding

_BLANK = Head(())
_SIGNS = {"error": ("✗", "bad_strong"), "warning": ("▲", "accent_strong"), "info": ("·", "dim")}


def findings(view: TurnView, extras: Mapping[str, Any], _want: Want) -> Document:
    """What is known of this turn. ``extras``: ``findings`` of the whole run, once they are read."""
    told = extras.get("findings")
    if told is None:
        return (Head((("looking for cycles and faults in the run …", "dim"),)),)
    if isinstance(told, Trouble):
        return (Head((("✗ ", "bad_strong"), (f"{told.what}. {told.cure}", "text"))),)
    mine = told.at(view.turn.number)
    out: list[Block] = [phase("FINDINGS", *_facts(mine, told)), _BLANK]
    for number, one in enumerate(mine, 1):
        out += [_one(number, one, told.titles), _BLANK]
    out += [Head(((f"✗ {line}", "bad"),), 2) for line in told.troubles]
    if told.unknown:
        inner = tuple(Head(((line, "dim"),), 4) for line in told.unknown)
        said = f"{counted(len(told.unknown), 'rule')} could not judge this run"
        out.append(Fold("findings.unknown", ((said, "dim"),), inner, False, lasting=True))
    return tuple(out)


def _facts(mine: tuple[Finding, ...], told: Findings) -> list[str]:
    elsewhere = _counted([f for f in told.findings if f not in mine])
    return [
        f"{_counted(mine) or 'none'} for this turn",
        f"{elsewhere} elsewhere in the run (!)" if elsewhere else "no others in the run",
    ]


def _counted(found: Sequence[Finding]) -> str:
    """As the head of the run and the list of runs count them: what rules found, and cycles."""
    cycles = sum(f.rule.startswith(CYCLE) for f in found)
    rules = len(found) - cycles
    said = [counted(rules, "finding") if rules else "", counted(cycles, "cycle") if cycles else ""]
    return " and ".join(filter(None, said))


def _one(number: int, one: Finding, titles: Mapping[str, str]) -> Fold:
    sign, role = _SIGNS.get(one.severity, _SIGNS["info"])
    title = titles.get(one.rule, "")
    head = ((f"{sign} ", role), (one.rule, "strong"), (f"  {title}", "text"), (f"  {_where(one)}", "dim"))
    return Fold(f"finding.{number}", head, tuple(_inner(one)), value=one.message, what=f"finding {one.rule}")


def _inner(one: Finding) -> Iterator[Block]:
    yield Body(one.message, "text", 4)
    for quote in one.evidence[:8]:
        yield Head((("> ", "faint"), (quote, "dim")), 4)
    lines: list[tuple[str, str, str]] = [
        ("wasted", wasted(one.wasted), "bad"),
        ("sure", f"{one.confidence:.0%}", "dim"),
    ]
    lines += [("fix", one.fix, "text"), ("caller", one.caller or "", "text"), ("rule", _rule(one), "dim")]
    for label, value, role in lines:
        if value:
            spans: tuple[Span, ...] = ((f"{label:<8}", "dim"), (value, role))
            yield Head(spans, 4, 8)


def _rule(one: Finding) -> str:
    if one.rule.startswith(CYCLE):
        return one.url
    return f"{one.url} · looptape lint --explain {one.rule}"


def _where(one: Finding) -> str:
    if not one.first_turn:
        return "the whole run"
    return f"turn {one.first_turn}" if one.first_turn == one.last_turn else f"turns {one.first_turn}-{one.last_turn}"
