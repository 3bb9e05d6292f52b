"""tau-bench results: a JSON array of runs, each with its conversation, its task and its reward.

A run's key is (task_id, trial); other models and domains have the same keys, so that its messages belong to its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...providers import openai_chat
from ...providers.answer import mapping
from ..builder import RunBuilder
from ..claude.claude_lines import title_line
from ..context import Context, Source
from ..document import document, glimpse, text
from ..report import Notes

FORMAT = "tau-bench"
TITLE = "tau-bench results"

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_STOP = "###STOP###"
_HAND_OVER = "transfer_to_human_agents"


def recognise(head: bytes) -> bool:
    """True for an array whose first element has a task id and a reward."""
    value = glimpse(head)
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "task_id" in first and "reward" in first and ("traj" in first or "info" in first)


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of every run of the array."""
    value = document(source, notes)
    if value is not None and not isinstance(value, list):
        notes.skip(1, "not an array of runs")
        return
    for number, result in enumerate(value or (), 1):
        messages = result.get("traj") if isinstance(result, dict) else None
        if not isinstance(messages, list) or "task_id" not in result:
            notes.skip(1, f"element {number} is no run (task_id and traj)")
            continue
        notes.counts["objects"] += 1
        yield from _run(result, messages, notes)
    if notes.turns:
        notes.warn("no times, model, usage or cost in tau-bench results; user messages are a simulator's")


def _run(result: dict[str, Any], messages: list[Any], notes: Notes) -> Iterator[tape.Record]:
    task, trial = _label(result["task_id"]), _label(result.get("trial"))
    info = mapping(result.get("info"))
    wanted = mapping(info.get("task"))
    title = text(wanted.get("instruction"))
    tags = {"trial": trial, "source": text(info.get("source")), "user_cost_usd": _label(info.get("user_cost"))}
    run = RunBuilder(
        stable_id(FORMAT, task or "", trial or "", digest(canonical(messages))),
        api=openai_chat.API,
        source=FORMAT,
        provider="",
        name=f"task {task} trial {trial}",
        title=title_line(title) if title else None,
        task=f"tau-bench {task}",
        tags={k: v for k, v in tags.items() if v is not None},
    )
    notes.runs[run.run] = None
    if wanted:
        run.event("task", **{k: v for k, v in wanted.items() if isinstance(k, str) and k not in ("name", "at")})
    for message in messages:
        if not isinstance(message, dict) or text(message.get("role")) not in _ROLES:
            notes.strange(f"message of role {str(mapping(message).get('role'))[:60]}")
            continue
        _take(run, message, notes)
        yield from run.drain()
    reward = result.get("reward")
    if isinstance(reward, (int, float)) and not isinstance(reward, bool):
        run.update(outcome={"verdict": "pass" if reward > 1 - 1e-6 else "fail", "score": reward})
    notes.turns += run.turns
    notes.tool_calls += run.calls
    run.end(*_ending(messages))
    yield from run.drain()


def _take(run: RunBuilder, message: dict[str, Any], notes: Notes) -> None:
    role, content = message["role"], message.get("content")
    if role == "assistant":
        run.turn(message=message, response={"choices": [{"index": 0, "message": message}]})
        return
    if role == "tool":
        failed = isinstance(content, str) and content.startswith("Error")
        notes.counts["tool_results"] += 1
        notes.counts["error_results"] += failed
        # a text that begins with Error is all that a failure is told by: not what the format calls an error
        found = run.result(
            str(message.get("tool_call_id")),
            message=message,
            path="$.content",
            error_class="unknown" if failed else None,
        )
        notes.counts["results_without_call"] += not found
        return
    notes.counts["prompts"] += role == "user"
    run.message(message, prompt=role == "user")


def _ending(messages: list[Any]) -> tuple[str, str]:
    spoken = [m for m in messages if isinstance(m, dict)]
    last = spoken[-1] if spoken else {}
    content = last.get("content")
    if last.get("role") == "user" and isinstance(content, str) and _STOP in content:
        return "completed", f"the user ended it ({_STOP})"
    if last.get("role") == "tool" and last.get("name") == _HAND_OVER:
        return "completed", f"handed over ({_HAND_OVER})"
    return "unknown", "the file does not tell why it stopped"


def _label(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else canonical(value)
