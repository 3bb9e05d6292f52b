"""The lines of the findings: what was found, what could not be judged; their order, their cells, their whole text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ....replay.rules import Finding, Unknown
from ....replay.rules.pages import CYCLE
from ....replay.rules.rule import SEVERITIES
from ....tracer.model import Run
from ...format import counted, money, run_title, short_tokens
from ...told.lint_text import lacking, turns, wasted
from ...widgets.blocks import Body, Document, Head
from ...widgets.cells import Column, Span, Spans

SIGNS = {"error": "✗", "warning": "▲", "info": "○"}
_ROLES = {"error": "bad", "warning": "accent", "info": "dim"}
SORTS = (
    ("severity", "by severity, then by what it cost"),
    ("waste", "by what it cost"),
    ("rule", "by rule"),
    ("run", "by run, the newest first"),
    ("turn", "by turn"),
)
"""Names and what they mean."""
_RUN = (Column("run", "run", 12, grow=1, keep=6, most=24), Column("id", "", 8, keep=3))
COLUMNS = (
    Column("sign", " ", 1, keep=9),
    Column("rule", "rule", 8, grow=1, keep=9, most=13),
    Column("what", "what", 22, grow=3, keep=8),
    *_RUN,
    Column("turns", "turns", 7, right=True, keep=8),
    Column("lost", "wasted", 6, right=True, keep=7),
    Column("tokens", "tokens", 6, right=True, keep=5),
    Column("usd", "$", 7, right=True, keep=7),
    Column("sure", "sure", 5, right=True, keep=4),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A finding, or what a rule could not judge (``finding`` is None; ``runs`` says in how many runs).

    Attributes:
        place: Where its run stands among the runs, for the order.
    """

    key: str
    rule: str
    title: str
    run: str
    name: str
    finding: Finding | None = None
    missing: tuple[str, ...] = ()
    runs: int = 1
    place: int = 0
    hay: str = field(default="", compare=False)


def columns(rows: Sequence[Row]) -> Sequence[Column]:
    """The columns; without that of the run where there is only one."""
    return COLUMNS if len({r.run for r in rows}) > 1 else tuple(c for c in COLUMNS if c not in _RUN)


def rows_of(
    findings: Iterable[Finding], unknown: Iterable[Unknown], runs: Mapping[str, tuple[int, Run]], titles: Mapping[str, str]
) -> list[Row]:  # fmt: skip
    """A row for each finding, and one for each rule and what it lacked."""
    found = []
    for number, f in enumerate(findings):
        place, run = runs.get(f.run, (0, None))
        name = run_title(run) if run is not None else f.run
        hay = " ".join((f.rule, titles.get(f.rule, ""), f.severity, name, f.run, f.message)).casefold()
        found.append(
            Row(f"{f.run} {f.rule} {f.first_turn}-{f.last_turn} {number}", f.rule, titles.get(f.rule, f.rule), f.run, name, f, place=place, hay=hay)
        )  # fmt: skip
    for rule, missing, of in lacking(unknown):
        place, run = runs.get(of[0], (0, None))
        name = run_title(run) if run is not None else of[0]
        hay = f"{rule} {titles.get(rule, '')} not judged {' '.join(missing)}".casefold()
        found.append(Row(f"? {rule} {missing}", rule, titles.get(rule, rule), of[0], name, None, missing, len(set(of)), place, hay))  # fmt: skip
    return found


def ordered(rows: Iterable[Row], by: str) -> list[Row]:
    """The rows in an order of `SORTS`; what could not be judged always comes last."""

    def key(row: Row) -> tuple[object, ...]:
        f = row.finding
        if f is None:
            return (1, row.rule, row.missing)
        cost = (-(f.wasted.usd or 0), -(f.wasted.tokens or 0), -f.wasted.turns)
        place = (row.place, f.first_turn, f.rule)
        severity = -SEVERITIES.index(f.severity)
        orders: dict[str, tuple[object, ...]] = {
            "waste": (*cost, severity, *place),
            "rule": (f.rule, severity, *cost, *place),
            "run": place,
            "turn": (f.first_turn, f.rule, row.place),
        }
        return (0, *orders.get(by, (severity, *cost, *place)))

    return sorted(rows, key=key)


def filtered(rows: Sequence[Row], text: str) -> list[Row]:
    """The rows that hold all words."""
    words = text.casefold().split()
    return [r for r in rows if all(w in r.hay for w in words)]


def cells(row: Row, column: str) -> Spans:
    """A row's spans in a column."""
    f = row.finding
    if f is None:
        texts = {"sign": "?", "rule": row.rule, "what": f"could not be judged: missing {', '.join(row.missing)}",
                 "run": counted(row.runs, "run") if row.runs > 1 else row.name}  # fmt: skip
        return ((texts.get(column, ""), "dim"),)
    waste = f.wasted
    if column == "sign":
        return ((SIGNS[f.severity], _ROLES[f.severity]),)
    if column == "rule":
        return ((f.rule.replace(CYCLE, "↻ "), "strong"),)
    if column == "what":
        return ((row.title.removeprefix("Cycle: "), "text"),)
    if column == "run":
        return ((row.name, "text"),)
    if column == "id":
        return ((row.run[:8], "faint"),)
    shown = {
        "turns": turns(f),
        "lost": f"{waste.turns:,}" if waste.turns else "",
        "tokens": short_tokens(waste.tokens) if waste.tokens else "",
        "usd": money(waste.usd, sign=False) if waste.usd else "",
        "sure": f"{f.confidence:.0%}",
    }
    return ((shown[column], "dim" if column in ("sure", "tokens") else "text"),)


def document(row: Row) -> Document:
    """A row whole: what is wrong, how one sees it, what it cost, what to do."""
    f = row.finding
    if f is None:
        return (
            Head(((f"{row.rule} ", "strong"), (row.title, "strong"))),
            Head(((f"could not be judged in {counted(row.runs, 'run')}: the recording lacks {', '.join(row.missing)}", "text"),)),
            Head((("That is no finding: nothing is known either way. E tells what the rule looks at.", "dim"),)),
        )  # fmt: skip
    head: list[Span] = [(f"{SIGNS[f.severity]} {f.severity}  ", _ROLES[f.severity]), (f"{f.rule}  ", "strong"), (row.title, "strong")]  # fmt: skip
    where = [f"turn{'s' if f.first_turn != f.last_turn else ''} {turns(f)}"] if f.first_turn else []
    where += [f"{f.confidence:.0%} sure", *([f.caller] if f.caller else [])]
    waste = wasted(f.wasted)
    blocks = [Head(tuple(head)), Head(((" · ".join([row.name, row.run[:8], *where]), "dim"),)), Head(())]
    found: list[Head | Body] = [*blocks, Body(f.message)]
    if waste:
        found.append(Head((("wasted ", "dim"), (waste, "text"))))
    if f.evidence:
        found += [Head(()), Head((("evidence", "dim"),)), *(Body(text, indent=2) for text in f.evidence)]
    if f.fix:
        found += [Head(()), Head((("fix", "accent_strong"),)), Body(f.fix, indent=2)]
    return tuple(found)
