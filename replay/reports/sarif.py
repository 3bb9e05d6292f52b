"""SARIF 2.1.0: findings for code scanning, with the line of the loop that asked and the turns as logical location."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...tracer.errors import LooptapeError
from ...tracer.model import Run
from ..rules.lint import Report
from ..rules.pages import page
from ..rules.rule import Finding, Unknown
from .places import code_place, run_name

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def text(report: Report, titles: Mapping[str, str]) -> str:
    """The log's text, ASCII, indented for reading."""
    return json.dumps(log(report, titles), indent=1)


def log(report: Report, titles: Mapping[str, str]) -> dict[str, Any]:
    """The log as plain JSON. Known findings of a baseline are in it, marked ``unchanged``."""
    ids = list(dict.fromkeys([*report.rules, *(f.rule for f in (*report.findings, *report.old))]))
    runs = {run.id: run for run in report.runs}
    fresh = "new" if report.old else None
    results = [_result(f, ids, runs, fresh) for f in report.findings]
    results += [_result(f, ids, runs, "unchanged") for f in report.old]
    run = {
        "tool": {"driver": {"name": "looptape", **_version(), "rules": [_rule(i, titles) for i in ids]}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notes(report, runs))}],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _version() -> dict[str, str]:
    try:
        return {"version": version("looptape")}
    except PackageNotFoundError:  # run from a copy that was not installed
        return {}


def _rule(rule: str, titles: Mapping[str, str]) -> dict[str, Any]:
    """A rule's descriptor, its page as help; a rule of another distribution has none."""
    title = titles.get(rule, rule)
    told: dict[str, Any] = {"id": rule, "name": _name(title), "shortDescription": {"text": title}}
    with suppress(LooptapeError, OSError):
        told["help"] = {"text": (words := page(rule)), "markdown": words}
    return told


def _name(title: str) -> str:
    """A title as one word, as SARIF likes names: ``OneLimitForAllTasks``."""
    kept = "".join(c if c.isalnum() else " " for c in title).split()
    return "".join(word[:1].upper() + word[1:] for word in kept) or "Rule"


def _result(finding: Finding, ids: list[str], runs: Mapping[str, Run], state: str | None) -> dict[str, Any]:
    fix = f" Fix: {finding.fix}" if finding.fix else ""
    told: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}.{fix}"},
        "locations": [_location(finding, runs)],
        "rank": round(100 * finding.confidence, 1),
        "properties": {
            "run": finding.run, "firstTurn": finding.first_turn, "lastTurn": finding.last_turn,
            "evidence": list(finding.evidence), "wasted": asdict(finding.wasted), "confidence": finding.confidence,
            "page": finding.url,
        },
    }  # fmt: skip
    if finding.fingerprint:
        told["partialFingerprints"] = {"looptape/v1": finding.fingerprint}
    if state is not None:
        told["baselineState"] = state
    return told


def _location(finding: Finding, runs: Mapping[str, Run]) -> dict[str, Any]:
    turns = f":{finding.first_turn}" if finding.first_turn else ""
    turns += f"-{finding.last_turn}" if finding.last_turn > finding.first_turn else ""
    told: dict[str, Any] = {
        "logicalLocations": [
            {"name": run_name(runs, finding.run), "fullyQualifiedName": f"{finding.run}{turns}", "kind": "run"}
        ]
    }
    place = code_place(finding, runs.get(finding.run))
    if place is not None:
        file, line = place
        told["physicalLocation"] = {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": line}}
    return told


def _uri(file: str) -> str:
    from urllib.parse import quote

    return quote(file)


def _notes(report: Report, runs: Mapping[str, Run]) -> Iterable[dict[str, Any]]:
    for trouble in report.troubles:
        yield {"level": "error", "message": {"text": trouble}}
    grouped: dict[tuple[str, tuple[str, ...]], list[Unknown]] = {}
    for one in report.unknown:
        grouped.setdefault((one.rule, one.missing), []).append(one)
    for (rule, missing), several in grouped.items():
        names = [run_name(runs, u.run) for u in several]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        said = f"{rule} cannot judge {', '.join(names[:3])}{more}: not recorded: {', '.join(missing)}"
        yield {"level": "note", "message": {"text": said}, "associatedRule": {"id": rule}}
