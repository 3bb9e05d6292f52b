"""`looptape diff --format markdown`: the same as text for a pull request or an issue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...replay.diff import Diff
from .. import report
from ..report import Styled
from . import diff_lines as lines
from . import diff_text


def show(diffs: Sequence[Diff], limit: int) -> None:
    """Prints comparisons as Markdown; at most ``limit`` changes of each with their texts (0: all)."""
    for found in diffs:
        report.out(f"## {_plain(found.a.name)} and {_plain(found.b.name)}")
        report.out("")
        for mark, side in (("a", found.a), ("b", found.b)):
            report.out(f"- {mark}: {_plain(diff_text.whose(side))}")
        report.out("")
        if found.first is None:
            report.out("No difference.")
            report.out("")
            continue
        report.out(f"**{_plain(lines.first(found.first, 'First divergence', found.kind))}**")
        report.out("")
        if found.first_act is not None and found.first_act != found.first:
            report.out(f"**{_plain(lines.first(found.first_act, 'First different act', found.kind))}**")
            report.out("")
        if found.kind == "runs":
            report.out(f"Turns: {lines.summary(found)}.")
            report.out("")
            _alone(found, limit)
        _changes(found, limit)
        _totals(found)


def _alone(found: Diff, limit: int) -> None:
    rows = []
    for pair in found.pairs:
        if pair.a is None or pair.b is None:
            side, number = ("a", pair.a) if pair.a is not None else ("b", pair.b)
            rows.append(f"- turn {number} only in {side}: {_plain(lines.alone(found, side, number or 0))}")
    for row in rows[:limit] if limit else rows:
        report.out(row)
    if limit and len(rows) > limit:
        report.out(f"- and {len(rows) - limit:,} more")
    if rows:
        report.out("")


def _changes(found: Diff, limit: int) -> None:
    every = list(diff_text.labelled(found))
    for where, change in every[:limit] if limit else every:
        report.out(f"### {where}: {_plain(lines.title(change))}")
        report.out("")
        rows = ["".join(p.text if isinstance(p, Styled) else p for p in parts) for parts in lines.lines(change)]
        longest = max((len(m) for row in rows for m in re.findall("`+", row)), default=0)
        fence = "`" * max(3, longest + 1)
        report.out(f"{fence}diff")
        for row in rows:
            report.out(row)
        report.out(fence)
        report.out("")
    if limit and len(every) > limit:
        report.out(f"And {len(every) - limit:,} more changes.")
        report.out("")


def _totals(found: Diff) -> None:
    report.out("| | a | b | difference |")
    report.out("|---|---:|---:|---:|")
    for name, value, written in diff_text.TOTALS:
        a, b = (value(t) for t in found.totals)
        if a is not None or b is not None:
            report.out(f"| {name} | {written(a)} | {written(b)} | {diff_text.difference(a, b, written)} |")
    for mark, sums in zip("ab", found.totals, strict=True):
        if sums.unpriced_turns:
            report.out("")
            report.out(f"{mark}: {sums.unpriced_turns:,} unpriced turns are not in the cost.")
    report.out("")


def _plain(text: str) -> str:
    """Recorded text on a line of Markdown: nothing in it is markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))
