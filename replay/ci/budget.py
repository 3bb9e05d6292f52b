"""Turns, tokens and cost of runs against a baseline file: what may not grow unseen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal

from ...tracer.errors import LooptapeError, UsageError
from .figures import TOLERATED, Figures, limit

Judged = Literal["ok", "over", "unknown", "unchecked", "new"]
VERSION = 1


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of one run.

    Attributes:
        name: turns, tokens or usd.
        base: What the baseline says; None where it says nothing.
        now, most: What the run took, and the most it may take.
        judged: ``over`` and ``unknown`` (it has a baseline and cannot be known, as a model without a price) fail;
            ``unchecked`` (there was no figure when the baseline was made, nor is there now) is a warning.
        why: Why it is not known.
    """

    name: str
    base: Decimal | None
    now: Decimal | None
    most: Decimal | None
    judged: Judged
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A run against its baseline; ``lines`` is empty where the baseline does not know it (a failure too)."""

    key: str
    label: str
    lines: tuple[Line, ...]

    @property
    def ok(self) -> bool:
        """Nothing of it fails."""
        return bool(self.lines) and not any(line.judged in ("over", "unknown") for line in self.lines)


def judge(
    key: str, label: str, now: Figures, baseline: Mapping[str, Mapping[str, Any]], tolerance: Decimal
) -> Judgement:
    """A run's figures against those of the baseline."""
    known = baseline.get(key)
    if known is None:
        return Judgement(key, label, ())
    return Judgement(key, label, tuple(_line(name, known, now, tolerance) for name in TOLERATED if name in known))


def _line(name: str, known: Mapping[str, Any], now: Figures, tolerance: Decimal) -> Line:
    base = None if known[name] is None else Decimal(str(known[name]))
    found = now.get(name)
    spent = None if found is None else Decimal(found)
    if base is None:
        why = now.missing(name) if spent is None else "it was not known when the baseline was made"
        return Line(name, None, spent, None, "unchecked", why)
    most = limit(base, tolerance)
    if spent is None:
        return Line(name, base, None, most, "unknown", now.missing(name))
    return Line(name, base, spent, most, "over" if spent > most else "ok")


def tolerance_of(text: str) -> Decimal:
    """``10%`` or ``0.1`` as a part of one.

    Raises:
        UsageError: It is neither, or negative.
    """
    try:
        value = Decimal(text.removesuffix("%").strip()) / (100 if text.endswith("%") else 1)
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or value < 0:
        raise UsageError("usage", f"--tolerance {text!r} is no part of something", "Write 10% or 0.1")
    return value


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The runs of a baseline file.

    Raises:
        UsageError: There is no such file.
        LooptapeError: It is no baseline (exit 3).
    """
    try:
        given = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise UsageError("no-baseline", f"there is no baseline {file}", "Make it: add --update") from None
    except (OSError, ValueError) as error:
        raise LooptapeError("bad-baseline", f"{file}: {error}", "Make it anew: --update") from None
    runs = given.get("runs") if isinstance(given, dict) and given.get("version") == VERSION else None
    if not isinstance(runs, dict) or not all(isinstance(r, dict) and _figures(r) for r in runs.values()):
        raise LooptapeError("bad-baseline", f"{file} is no baseline of this looptape", "Make it anew: --update")
    return runs


def write(file: Path, runs: Mapping[str, Figures]) -> None:
    """Writes the figures of runs into a baseline; those that it has of other runs stay.

    Raises:
        LooptapeError: The file cannot be written (exit 2), or is no baseline.
    """
    kept = read(file) if file.exists() else {}
    kept |= {key: _as_json(found) for key, found in runs.items()}
    text = json.dumps({"version": VERSION, "runs": dict(sorted(kept.items()))}, indent=2) + "\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise LooptapeError(
            "bad-output", f"{file}: {error.strerror}", "Name a file that can be written", exit_code=2
        ) from None


def worst(found: Sequence[Figures]) -> Figures:
    """The most of each figure over several runs of one name; what one of them does not know is not known."""
    first = found[0]
    for other in found[1:]:
        unmetered = max(first.unmetered, other.unmetered)
        unpriced = first.unpriced or other.unpriced
        usd = None if unpriced else max(first.usd or Decimal(0), other.usd or Decimal(0))
        first = Figures(
            max(first.turns, other.turns), max(first.tool_calls, other.tool_calls),
            max(first.tokens or 0, other.tokens or 0), usd, max(first.usd_known, other.usd_known), unpriced, unmetered,
        )  # fmt: skip
    return first


def _as_json(found: Figures) -> dict[str, Any]:
    given = {name: found.get(name) for name in TOLERATED}
    return {k: float(v) if isinstance(v, Decimal) else v for k, v in given.items()}


def _figures(given: Mapping[str, Any]) -> bool:
    values = [given[name] for name in TOLERATED if name in given]
    return bool(values) and all(
        v is None or (isinstance(v, (int, float)) and not isinstance(v, bool) and v >= 0) for v in values
    )
