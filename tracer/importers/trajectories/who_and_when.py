"""Who&When: conversations of several agents in which somebody marked who made the mistake, and when.

Every element of the history is a turn of its speaker: the file does not tell which speakers are models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...providers import manual
from ...providers.answer import mapping, objects
from ..builder import RunBuilder
from ..claude.claude_lines import title_line
from ..context import Context, Source
from ..document import document, glimpse, text
from ..report import Notes

FORMAT = "who-and-when"
TITLE = "Who&When annotated conversation"

_API_ROLES = frozenset({"system", "user", "assistant", "tool", "developer", "function"})
_MARKS = frozenset({"mistake_agent", "mistake_step", "mistake_reason"})
_LOOP = re.compile(r'"is_in_loop":\s*\{[^}]*?"answer":\s*(true|false)', re.IGNORECASE)
_PROGRESS = re.compile(r'"is_progress_being_made":\s*\{[^}]*?"answer":\s*(true|false)', re.IGNORECASE)


def recognise(head: bytes) -> bool:
    """True for the marks, and for a history whose roles are names of speakers (the marks come behind it)."""
    value = glimpse(head)
    if not isinstance(value, dict):
        return False
    if _MARKS & value.keys():
        return True
    history = objects(value.get("history"))
    if not history or "trajectory" in value:
        return False
    plain = all({"content", "role"} <= m.keys() <= {"content", "role", "name"} for m in history[:-1] or history)
    return plain and any(text(m.get("role")) not in _API_ROLES for m in history)


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of the one conversation of the file."""
    value = document(source, notes)
    history = value.get("history") if isinstance(value, dict) else None
    if not isinstance(history, list):
        if value is not None:
            notes.skip(1, "no history")
        return
    question = text(value.get("question"))
    name = text(value.get("question_ID"))
    run = RunBuilder(
        stable_id(FORMAT, name or "", digest(canonical(history))),
        api=manual.API,
        source=FORMAT,
        provider="",
        name=name,
        title=title_line(question) if question else None,
        task=name,
        tags=_tags(value) or None,
    )
    notes.runs[run.run] = None
    prompts = mapping(value.get("system_prompt"))
    if prompts:
        run.event("system_prompts", prompts=prompts)
    for number, message in enumerate(history, 1):
        if not isinstance(message, dict):
            notes.skip(1, f"element {number} of the history is no object")
            continue
        notes.counts["objects"] += 1
        _take(run, message, notes)
        yield from run.drain()
    notes.turns = run.turns
    outcome = _outcome(value)
    if outcome:
        run.update(outcome=outcome)
    notes.warn("no calls, times, models or usage in Who&When; every speaker's message is a turn, a person's too")
    run.end("unknown", "the file does not tell how it ended")
    yield from run.drain()


def _take(run: RunBuilder, message: dict[str, Any], notes: Notes) -> None:
    speaker = text(message.get("name")) or text(message.get("role")) or "unknown"
    content = message.get("content")
    said = content if isinstance(content, (str, list)) else "" if content is None else canonical(content)
    run.turn(message=message, response={"role": "assistant", "name": speaker, "content": said}, agent=speaker)
    ledger = {
        name: match[1].lower() == "true"
        for name, pattern in (("is_in_loop", _LOOP), ("is_progress_being_made", _PROGRESS))
        if isinstance(content, str) and (match := pattern.search(content))
    }
    if ledger:
        run.event("ledger", **ledger)
    if "is_in_loop" in ledger:
        notes.counts["ledger_in_loop_true" if ledger["is_in_loop"] else "ledger_in_loop_false"] += 1


def _tags(value: dict[str, Any]) -> dict[str, str]:
    names = ("mistake_agent", "mistake_step", "level", "ground_truth")
    return {n: v if isinstance(v, str) else canonical(v) for n in names if (v := value.get(n)) not in (None, "")}


def _outcome(value: dict[str, Any]) -> dict[str, Any]:
    """Verdict of the answer, and who made the mistake; steps count from 0 in the file, turns from 1 here."""
    found: dict[str, Any] = {}
    right = value.get("is_correct", value.get("is_corrected"))
    if isinstance(right, bool):
        found["verdict"] = "pass" if right else "fail"
    agent, step, reason = (text(value.get(f"mistake_{n}")) for n in ("agent", "step", "reason"))
    if agent or step:
        turn = f" at turn {int(step) + 1}" if step and step.isascii() and step.isdigit() and len(step) < 9 else ""
        found["note"] = f"mistake of {agent or 'an unnamed agent'}{turn}" + (f": {reason}" if reason else "")
    return found
