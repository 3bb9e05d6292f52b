"""mini-swe-agent trajectories: `mini-swe-agent-1.x` documents with tool calls, and the bare message lists before them.

The provider's whole answer is in each assistant message, with its cost; a bare list holds texts only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...providers import openai_chat
from ...providers.answer import mapping, objects
from ..builder import RunBuilder
from ..claude.claude_lines import title_line
from ..context import Context, Source
from ..document import document, glimpse, money, seconds, text
from ..report import Notes

FORMAT = "mini-swe-agent"
TITLE = "mini-swe-agent trajectory"

_RETURN_CODE = re.compile(r"\s*<returncode>(-?\d+)</returncode>")
_ROLES = frozenset({"system", "user", "assistant", "tool", "exit"})


def recognise(head: bytes) -> bool:
    """True for the document by its name or its info, for a bare list by what only this agent writes into it."""
    value = glimpse(head)
    if isinstance(value, list):
        return _is_bare(value)
    if not isinstance(value, dict):
        return False
    named = value.get("trajectory_format")
    if isinstance(named, str) and named.startswith("mini-swe-agent"):
        return True
    info = mapping(value.get("info"))
    if "trajectory" in value or "history" in value:
        return False
    config = mapping(info.get("config"))
    known = {"agent_type", "model_type", "environment_type"} & config.keys()
    return "mini_version" in info or ("model_stats" in info and bool(known or "agent" in config))


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of the one run of the file."""
    value = document(source, notes)
    facts = value if isinstance(value, dict) else {"messages": value}
    messages = facts.get("messages")
    if not isinstance(messages, list):
        if value is not None:
            notes.skip(1, "no list of messages")
        return
    yield from _Trajectory(facts, messages, notes).records()


def _is_bare(messages: list[Any]) -> bool:
    for message in messages[:20]:
        if not isinstance(message, dict) or text(message.get("role")) not in _ROLES:
            return False
        content = message.get("content")
        if isinstance(content, str) and ("```mswea_bash_command" in content or _RETURN_CODE.match(content)):
            return True
    return False


class _Trajectory:
    """One run while its messages are read in order."""

    def __init__(self, facts: dict[str, Any], messages: list[Any], notes: Notes) -> None:
        self._messages = messages
        self._notes = notes
        self._info = mapping(facts.get("info"))
        self._config = mapping(self._info.get("config"))
        self._stats = mapping(self._info.get("model_stats"))
        self._instance = text(facts.get("instance_id"))
        self._bare = not self._info
        model = text(mapping(self._config.get("model")).get("model_name"))
        self._model = model
        name = stable_id(FORMAT, self._instance or "", self._first_response() or digest(canonical(messages)))
        version = text(self._info.get("mini_version"))
        self._run = RunBuilder(
            name,
            api=openai_chat.API,
            source=FORMAT,
            provider=model.split("/", 1)[0] if model and "/" in model else "",
            name=self._instance,
            title=None if self._instance else self._title(),
            agent="mini-swe-agent",
            task=self._instance,
            versions={"mini-swe-agent": version} if version else None,
            limits=self._limits() or None,
        )
        self._heard_at: int | None = None
        self._spoken_at: int | None = None

    def records(self) -> Iterator[tape.Record]:
        """All of it; an exit message ends the run."""
        notes, run = self._notes, self._run
        notes.runs[run.run] = None
        run.context(params=mapping(mapping(self._config.get("model")).get("model_kwargs")) or None)
        for number, message in enumerate(self._messages, 1):
            if not isinstance(message, dict) or text(message.get("role")) not in _ROLES:
                role = message.get("role") if isinstance(message, dict) else None
                notes.strange(f"message of role {str(role)[:60]}")
                if not isinstance(message, dict):
                    notes.skip(1, f"message {number} is no object")
                continue
            notes.counts["objects"] += 1
            getattr(self, f"_{message['role']}")(message)
            yield from run.drain()
        self._finish()
        yield from run.drain()

    def _system(self, message: dict[str, Any]) -> None:
        self._run.message(_sent(message))

    def _user(self, message: dict[str, Any]) -> None:
        extra = mapping(message.get("extra"))
        interruption = text(extra.get("interrupt_type"))
        prompt = self._run.turns == 0 if interruption is None else interruption.startswith("User")
        self._count_code(message)
        self._notes.counts["prompts"] += prompt
        self._run.message(_sent(message), prompt=prompt)
        if interruption:
            self._run.event(_snake(interruption), at=seconds(extra.get("timestamp")))
        self._heard_at = seconds(extra.get("timestamp")) or self._heard_at

    def _assistant(self, message: dict[str, Any]) -> None:
        extra = mapping(message.get("extra"))
        sent = _sent(message)
        response = extra.get("response")
        answer = openai_chat.answer(response)
        said = openai_chat.answer({"choices": [{"index": 0, "message": sent}]})
        if not isinstance(response, dict) or [c.id for c in answer.calls] != [c.id for c in said.calls]:
            response = {**mapping(response), "choices": [{"index": 0, "message": sent}]}
            answer = openai_chat.answer(response)
        self._notes.counts["parallel_turns"] += len(answer.calls) > 1
        self._spoken_at = seconds(extra.get("timestamp"))
        began = self._heard_at if self._spoken_at and self._heard_at and self._heard_at <= self._spoken_at else None
        self._run.turn(
            message=sent,
            response=response,
            answer=answer,
            at=began,
            ended_at=self._spoken_at,
            model=self._model,
            reported_cost_usd=money(extra.get("cost")),
        )

    def _tool(self, message: dict[str, Any]) -> None:
        extra = mapping(message.get("extra"))
        code = self._count_code(message)
        given = extra.get("returncode")
        code = given if isinstance(given, int) and not isinstance(given, bool) else code
        failed = text(extra.get("exception_info"))
        returned: dict[str, Any] = {} if code is None else {"returncode": code}
        if failed:
            returned["exception_info"] = failed
        raw, seen = extra.get("raw_output"), message.get("content")
        if isinstance(raw, str) and not (isinstance(seen, str) and raw in seen):
            returned["output"] = raw
        at = seconds(extra.get("timestamp"))
        found = self._run.result(
            str(message.get("tool_call_id")),
            message=_sent(message),
            path="$.content",
            is_error=True if failed else None,
            error_class="unknown" if failed or code else None,
            at=at,
            returned=returned or None,
        )
        self._heard_at = at or self._heard_at
        self._notes.counts["tool_results"] += 1
        if not found:
            self._notes.counts["results_without_call"] += 1

    def _exit(self, message: dict[str, Any]) -> None:
        extra = mapping(message.get("extra"))
        if text(extra.get("exception_str")):
            status = text(extra.get("exit_status"))
            self._run.event("api_error", error=extra["exception_str"], type=status, traceback=extra.get("traceback"))
        elif text(extra.get("submission")):
            self._run.event("submission", submission=extra["submission"])

    def _count_code(self, message: dict[str, Any]) -> int | None:
        content = message.get("content")
        match = _RETURN_CODE.match(content) if isinstance(content, str) else None
        code = int(match[1]) if match and len(match[1]) < 12 else None
        self._notes.counts["nonzero_returncodes"] += bool(code)
        return code

    def _finish(self) -> None:
        run, notes = self._run, self._notes
        notes.turns, notes.tool_calls = run.turns, run.calls
        cost, calls = money(self._stats.get("instance_cost")), self._stats.get("api_calls")
        if cost is not None:
            run.update(reported_cost_usd=cost)
        if isinstance(calls, int) and calls > run.turns:
            notes.warn(
                f"the agent counted {calls} model calls, the file holds {run.turns} answers: failed ones left none"
            )
        if self._bare and run.turns:
            notes.warn("a bare list of messages: commands and results are texts; no calls, times, usage or cost in it")
        run.end(*self._ending(), at=self._last_at())

    def _last_at(self) -> int | None:
        return max((t for t in (self._heard_at, self._spoken_at) if t is not None), default=None)

    def _ending(self) -> tuple[str, str]:
        last = self._messages[-1] if self._messages else None
        extra = mapping(mapping(last).get("extra")) if mapping(last).get("role") == "exit" else {}
        reason = text(self._info.get("exit_status")) or text(extra.get("exit_status"))
        if reason is None:
            return "unknown", "the file does not tell how it ended"
        if reason == "Submitted":
            return "completed", reason
        if "Limit" in reason:
            return "limit", reason
        if reason.startswith("User"):
            return "halted", reason
        return "failed", reason

    def _limits(self) -> dict[str, Any]:
        agent = mapping(self._config.get("agent"))
        steps, cost = agent.get("step_limit"), money(agent.get("cost_limit"))
        found: dict[str, Any] = {}
        if isinstance(steps, int) and steps > 0:  # 0 means no limit there
            found["turns"] = steps
        if cost:
            found["cost_usd"] = cost
        return found

    def _first_response(self) -> str | None:
        for message in objects(self._messages):
            response = mapping(mapping(message.get("extra")).get("response"))
            if message.get("role") == "assistant":
                return text(response.get("id"))
        return None

    def _title(self) -> str | None:
        first = next((m for m in objects(self._messages) if m.get("role") == "user"), {})
        said = text(first.get("content"))
        return title_line(said) if said else None


def _sent(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the model's API gets it: without what the agent keeps beside it."""
    return {k: v for k, v in message.items() if k != "extra"}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()[:60]


__all__ = ["FORMAT", "TITLE", "recognise", "records"]
