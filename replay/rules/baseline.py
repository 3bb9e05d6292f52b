"""The baseline file: findings that are known and do not block."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...tracer.errors import LooptapeError, UsageError
from .lint import Report

VERSION = 1


def apply(report: Report, file: Path) -> Report:
    """The report with the known findings moved to ``old``.

    Raises:
        UsageError: There is no such file (``no-baseline``).
        LooptapeError: It is no baseline (``bad-baseline``).
    """
    known = Counter({entry["fingerprint"]: int(entry["count"]) for entry in _read(file)})
    fresh, old = [], []
    for finding in report.findings:
        if known[finding.fingerprint] > 0:
            known[finding.fingerprint] -= 1
            old.append(finding)
        else:
            fresh.append(finding)
    return replace(report, findings=tuple(fresh), old=tuple(old))


def write(report: Report, file: Path) -> int:
    """Writes all findings of a report, known or not, as the baseline; gives how many.

    Raises:
        LooptapeError: The file cannot be written (exit 2).
    """
    findings = (*report.findings, *report.old)
    counts = Counter(f.fingerprint for f in findings)
    first = {f.fingerprint: f for f in reversed(findings)}
    entries = [
        {"fingerprint": key, "count": counts[key], "rule": first[key].rule, "message": first[key].message}
        for key in sorted(counts, key=lambda k: (first[k].rule, k))
    ]
    text = json.dumps({"looptape_baseline": VERSION, "findings": entries}, indent=1, ensure_ascii=False) + "\n"
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise LooptapeError(
            "unwritable", f"cannot write {file}: {error.strerror}", "Name another place", exit_code=2
        ) from None
    return len(findings)


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        data = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise UsageError("no-baseline", f"there is no baseline {file}", "Make it with --write-baseline") from None
    except (OSError, ValueError) as error:
        raise LooptapeError(
            "bad-baseline", f"cannot read {file}: {error}", "Make it anew with --write-baseline"
        ) from None
    entries = data.get("findings") if isinstance(data, dict) and data.get("looptape_baseline") == VERSION else None
    fits = isinstance(entries, list) and all(
        isinstance(e, dict) and isinstance(e.get("fingerprint"), str) and isinstance(e.get("count"), int)
        for e in entries
    )
    if not fits or not isinstance(entries, list):
        raise LooptapeError("bad-baseline", f"{file} is no baseline of ours", "Make it anew with --write-baseline")
    return entries
