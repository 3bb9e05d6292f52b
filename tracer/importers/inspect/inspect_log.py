"""What an Inspect log says of the whole eval, and what of it belongs to each sample's run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...canonical import stable_id
from ...providers.answer import count, mapping, objects, text_of
from . import inspect_messages as said

NEWEST = 3
_VERDICTS = {"C": "pass", "I": "fail", "P": "partial", "N": "fail"}
_LIMITS = {"token_limit": "tokens", "time_limit": "seconds", "cost_limit": "cost_usd"}
_TITLE = 200


@dataclass(frozen=True, slots=True)
class Log:
    """The head of a log, member by member; ``eval`` says what was run, with which model and settings."""

    version: int | None = None
    status: str | None = None
    eval: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str | None:
        """The model under test, ``provider/name``."""
        return text_of(self.eval.get("model"))

    @property
    def task(self) -> str:
        """The task's name."""
        return text_of(self.eval.get("task_display_name")) or text_of(self.eval.get("task")) or "inspect"


def log_of(header: Any) -> Log:
    """The head from its decoded members."""
    header = mapping(header)
    return Log(
        version=count(header.get("version")),
        status=text_of(header.get("status")),
        eval=mapping(header.get("eval")),
    )


def identity(log: Log, sample: Mapping[str, Any]) -> str:
    """The run id of a sample: its own uuid, which copies in later logs keep; before 0.3.70 eval, sample and epoch."""
    uuid = text_of(sample.get("uuid"))
    if uuid:
        return stable_id("inspect", uuid)
    eval_id = text_of(log.eval.get("eval_id")) or ""
    parts = (text_of(log.eval.get("run_id")) or "", eval_id, text_of(log.eval.get("task_id")) or "")
    return stable_id("inspect", *parts, repr(sample.get("id")), repr(sample.get("epoch")))


def run_facts(log: Log, sample: Mapping[str, Any], attachments: said.Attachments) -> dict[str, Any]:
    """The fields of the run's beginning."""
    spec = log.eval
    tags = {
        "task": text_of(spec.get("task")),
        "sample": sample.get("id"),
        "epoch": sample.get("epoch"),
        "model": log.model,
        "eval": spec.get("eval_id") or spec.get("run_id"),
        "eval_status": log.status,
    }
    config = mapping(spec.get("config"))
    limits = {ours: config[name] for name, ours in _LIMITS.items() if _number(config.get(name)) is not None}
    versions = {k: v for k, v in mapping(spec.get("packages")).items() if isinstance(v, str)}
    return {
        "name": log.task,
        "title": _title(attachments.resolved(sample.get("input"))),
        "agent": text_of(spec.get("solver")),
        "session": text_of(spec.get("run_id")),
        "task": f"{log.task}/{sample.get('id')}",
        "tags": {k: str(v) for k, v in tags.items() if v is not None},
        "limits": limits or None,
        "versions": versions or None,
        "git_commit": text_of(mapping(spec.get("revision")).get("commit")),
    }


def outcome(log: Log, scores: Any) -> dict[str, Any] | None:
    """The scores of a sample as the run's outcome; the first scorer's word decides, all are in the note."""
    given = {name: mapping(score) for name, score in mapping(scores).items()}
    order = [text_of(s.get("name")) for s in objects(log.eval.get("scorers"))]
    names = [n for n in order if n in given] + [n for n in given if n not in order]
    if not names:
        return None
    first = given[names[0] or ""]
    value = first.get("value")
    verdict = _verdict(value)
    explanation = text_of(first.get("explanation")) or text_of(first.get("answer"))
    note = ", ".join(f"{n} {_short(given[n or ''].get('value'))}" for n in names)
    found = {
        "verdict": verdict or "scored",
        "score": {"pass": 1.0, "fail": 0.0, "partial": 0.5}.get(verdict or "") if _number(value) is None else value,
        "note": f"{note}: {explanation[:500]}" if explanation else note,
        "scores": {str(n): given[n or ""].get("value") for n in names} if len(names) > 1 else None,
    }
    return {k: v for k, v in found.items() if v is not None}


def _verdict(value: Any) -> str | None:
    if isinstance(value, bool):
        return "pass" if value else "fail"
    if isinstance(value, str):
        return _VERDICTS.get(value)
    return "pass" if value == 1 else "fail" if value == 0 else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _short(value: Any) -> str:
    return value[:80] if isinstance(value, str) else said.dumps(value)[:80]


def _title(given: Any) -> str | None:
    """The beginning of the sample's input: a text, or the user's first message."""
    if isinstance(given, list):
        users = [m for m in objects(given) if m.get("role") == "user"]
        given = said.texts(users[0].get("content")) if users else None
    text = " ".join(given.split()) if isinstance(given, str) else ""
    return text[:_TITLE] or None
