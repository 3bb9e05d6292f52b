"""The JSON of `looptape diff`: differences in the order in which they happened, missing values as null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...replay.diff import NOTHING, Change, Diff, Divergence, Totals
from .json_shape import usage


def shape(diffs: Sequence[Diff]) -> dict[str, Any]:
    """All comparisons with one side: ``same`` only when all are."""
    return {"a": diffs[0].a.name, "same": all(d.same for d in diffs), "diffs": [_diff(d) for d in diffs]}


def _diff(found: Diff) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "a": found.a.name,
        "b": found.b.name,
        "same": found.same,
        "first": _divergence(found.first),
        "first_act": _divergence(found.first_act),
        "request": [_change(c) for c in found.request],
        "turns": [
            {"a": p.a, "b": p.b, "same": p.same, "changes": [_change(c) for c in p.changes]} for p in found.pairs
        ],
        "totals": {"a": _totals(found.totals[0]), "b": _totals(found.totals[1])},
    }


def _divergence(found: Divergence | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"a": found.a, "b": found.b, "change": None if found.change is None else _change(found.change)}


def _change(change: Change) -> dict[str, Any]:
    return {
        "part": change.part,
        "kind": change.kind,
        "path": change.path,
        "was": change.was,
        "a": None if change.a is NOTHING else change.a,
        "b": None if change.b is NOTHING else change.b,
    }


def _totals(found: Totals) -> dict[str, Any]:
    return asdict(found) | {"usage": usage(found.usage)}
