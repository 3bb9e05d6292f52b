"""SWE-agent trajectories (`.traj`, 0.x and 1.x): the steps of a run beside its message history.

A step is a turn. In the versions without function calling its action is the call: one command line, named
by its first word. A file may hold only a history (then every answer in it is a turn) or only steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ... import tape
from ...canonical import canonical, digest, stable_id
from ...providers import openai_chat
from ...providers.answer import Answer, AnswerCall, decoded, dumped, mapping, objects
from ..builder import RunBuilder
from ..context import Context, Source
from ..document import document, glimpse, money, text
from ..report import Notes

FORMAT = "swe-agent"
TITLE = "SWE-agent trajectory"

_OWN = frozenset(
    {"agent", "thought", "action", "message_type", "is_demo", "tags", "tool_call_ids", "cache_control", "tool_calls"}
)
_WORD = re.compile(r"[A-Za-z_][\w.-]{0,60}(?=\s|$)")
_STEP_KEYS = frozenset({"action", "observation", "response", "thought", "state", "query", "execution_time"})
_HISTORY_KEYS = frozenset({"agent", "message_type", "is_demo", "thought", "action"})


def recognise(head: bytes) -> bool:
    """True for a trajectory of steps, and for a history whose messages name their agent."""
    value = glimpse(head)
    if not isinstance(value, dict):
        return False
    steps = value.get("trajectory")
    if isinstance(steps, list):
        return not steps or (isinstance(steps[0], dict) and len(_STEP_KEYS & steps[0].keys()) > 1)
    history = objects(value.get("history"))
    return bool(history) and "role" in history[0] and "agent" in history[0] and _is_history(history)


def _is_history(history: list[dict[str, Any]]) -> bool:
    return any(len(_HISTORY_KEYS & message.keys()) > 1 for message in history) or len(history) < 3


def records(source: Source, notes: Notes, context: Context) -> Iterator[tape.Record]:
    """The records of the one run of the file."""
    value = document(source, notes)
    if value is None:
        return
    if not isinstance(value, dict) or not (isinstance(value.get("trajectory"), list) or objects(value.get("history"))):
        notes.skip(1, "neither steps nor a history")
        return
    yield from _Trajectory(value, notes).records()


class _Trajectory:
    """One run: its history is walked in order, each answer with its step."""

    def __init__(self, facts: dict[str, Any], notes: Notes) -> None:
        self._notes = notes
        self._info = mapping(facts.get("info"))
        self._steps = self._objects(facts.get("trajectory"), "step")
        self._history = self._objects(facts.get("history"), "message")
        self._model, self._limits, self._instance = _config(facts.get("replay_config"))
        name = stable_id(FORMAT, digest(canonical([facts.get("trajectory"), facts.get("history")])))
        self._run = RunBuilder(
            name,
            api=openai_chat.API,
            source=FORMAT,
            provider=_provider(self._model),
            name=self._instance,
            task=self._instance,
            agent=text(self._history[0].get("agent")) if self._history else None,
            limits=self._limits or None,
            versions={"swe-agent": version} if (version := text(self._info.get("swe_agent_version"))) else None,
        )
        self._open: list[str] = []
        self._step: dict[str, Any] = {}

    def records(self) -> Iterator[tape.Record]:
        """All of it; the exit status ends the run."""
        notes, run = self._notes, self._run
        notes.runs[run.run] = None
        notes.counts["steps"] = len(self._steps)
        notes.counts["history"] = len(self._history)
        notes.counts["empty_observations"] = sum(not step.get("observation") for step in self._steps)
        answers = [m for m in self._history if m.get("role") == "assistant" and not m.get("is_demo")]
        if self._steps and len(answers) != len(self._steps):
            notes.warn(
                f"{len(answers)} answers in the history and {len(self._steps)} steps: requests rebuilt from the steps"
            )
            self._history = self._rebuilt()
        steps = iter(self._steps)
        for message in self._history:
            self._take(message, steps)
            yield from run.drain()
        self._finish()
        yield from run.drain()

    def _take(self, message: dict[str, Any], steps: Iterator[dict[str, Any]]) -> None:
        role, notes = message.get("role"), self._notes
        if role == "assistant" and not message.get("is_demo"):
            self._unseen()
            self._step = next(steps, {})
            notes.counts["history_tool_calls"] += len(objects(message.get("tool_calls")))
            self._answer(message)
        elif role in ("system", "user", "assistant", "tool"):
            calls, self._open = self._open, []
            prompt = role == "user" and not message.get("is_demo") and self._run.turns == 0
            notes.counts["prompts"] += prompt
            if not (calls or role == "tool") or message.get("is_demo"):
                self._run.message(_sent(message), prompt=prompt)
            else:
                self._result(message, calls)
        else:
            notes.strange(f"message of role {str(role)[:60]}")

    def _unseen(self) -> None:
        """The observation of a step that no message shows to the model (the last one, mostly)."""
        calls, self._open = self._open, []
        observation = self._step.get("observation")
        if len(calls) == 1 and isinstance(observation, str) and observation:
            self._run.measured(calls[0], None, None, result=observation)
            self._notes.counts["unseen_results"] += 1

    def _answer(self, message: dict[str, Any]) -> None:
        sent = _sent(message)
        response = {"choices": [{"index": 0, "message": sent}]}
        answer = openai_chat.answer(response)
        action = message.get("action") if self._step.get("action") is None else self._step["action"]
        if not answer.calls and isinstance(action, str) and action.strip():
            answer = _with_action(answer, action, self._run.turns + 1)
        self._open = [call.id for call in answer.calls]
        self._run.turn(
            message=sent, response=response, answer=answer, model=self._model, agent=text(message.get("agent"))
        )

    def _result(self, message: dict[str, Any], calls: list[str]) -> None:
        named = message.get("tool_call_ids")
        ids = [c for c in named if isinstance(c, str)] if isinstance(named, list) else []
        if message.get("role") != "tool":  # an action's observation is the message after it
            ids = calls[:1]
        seen, observation = message.get("content"), self._step.get("observation")
        returned: dict[str, Any] = {}
        if isinstance(observation, str) and not (isinstance(seen, str) and observation in seen):
            returned["observation"] = observation
        state = self._step.get("state")
        state = decoded(state) if isinstance(state, str) else state
        more = {"execution_time_s": self._step.get("execution_time"), "state": state or None}
        returned.update({k: v for k, v in more.items() if v is not None})
        sent = _sent(message)
        known = [c for c in ids if c in calls]
        for call in known:
            self._run.result(call, message=sent, path="$.content", returned=returned or None, join=call is known[0])
            self._notes.counts["tool_results"] += 1
        if not known:
            self._notes.counts["results_without_call"] += 1
            self._notes.warn("a tool message that names another call than the answer before it made: left unpaired")
            self._run.message(sent)

    def _rebuilt(self) -> list[dict[str, Any]]:
        """The messages before the first answer, then every step's answer and observation."""
        start: list[dict[str, Any]] = []
        for message in self._history:
            if message.get("role") == "assistant" and not message.get("is_demo"):
                break
            start.append(message)
        agent = start[0].get("agent") if start else None
        for step in self._steps:
            said = step.get("response")
            answer = {"role": "assistant", "content": said, "action": step.get("action"), "agent": agent}
            calls = objects(step.get("tool_calls"))
            start.append({**answer, "tool_calls": calls} if calls else answer)
            if isinstance(step.get("observation"), str):
                ids = step.get("tool_call_ids")
                reply = {"role": "tool", "tool_call_ids": ids} if calls and ids else {"role": "user"}
                start.append({**reply, "content": step["observation"], "agent": agent})
        return start

    def _finish(self) -> None:
        run, notes = self._run, self._notes
        self._unseen()
        notes.counts["objects"] = len(self._history) or len(self._steps)
        notes.turns, notes.tool_calls = run.turns, run.calls
        stats = mapping(self._info.get("model_stats"))
        if stats:
            run.event("model_stats", **{str(k): v for k, v in stats.items() if k not in ("name", "at")})
        cost = money(stats.get("instance_cost"))
        if stats.get("tokens_sent"):
            run.update(reported_cost_usd=cost)
        elif cost == 0:
            notes.warn("the file counts no tokens and a cost of 0 (a demonstration or a replay): taken as unknown")
        submission = text(self._info.get("submission"))
        if submission:
            run.event("submission", submission=submission)
        notes.warn("no times in SWE-agent files, and usage only as a sum over the run (event model_stats)")
        run.end(*_ending(self._info.get("exit_status")))

    def _objects(self, value: Any, what: str) -> list[dict[str, Any]]:
        found = []
        for number, item in enumerate(value if isinstance(value, list) else (), 1):
            if isinstance(item, dict):
                found.append(item)
            else:
                self._notes.skip(1, f"{what} {number} is no object")
        return found


def _with_action(answer: Answer, action: str, number: int) -> Answer:
    word = _WORD.match(action.strip())
    call = AnswerCall(f"action-{number}", word[0] if word else "bash", dumped({"action": action}))
    return Answer(id=answer.id, text=answer.text, thinking=answer.thinking, calls=(call,), usage=answer.usage)


def _sent(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the model's API gets it: without what the agent keeps beside it."""
    sent = {k: v for k, v in message.items() if k not in _OWN}
    if message.get("tool_calls"):
        sent["tool_calls"] = message["tool_calls"]
    ids = message.get("tool_call_ids")
    if message.get("role") == "tool" and isinstance(ids, list) and ids:
        sent["tool_call_id"] = ids[0]
    return sent


def _config(given: Any) -> tuple[str | None, dict[str, Any], str | None]:
    """Model, limits and instance as the replay configuration (JSON text or an object) names them."""
    config = decoded(given) if isinstance(given, str) else mapping(given)
    agent = mapping(config.get("agent"))
    model = mapping(agent.get("model"))
    limits: dict[str, Any] = {}
    if cost := money(model.get("per_instance_cost_limit")):  # 0 means no limit there
        limits["cost_usd"] = cost
    instance = text(mapping(config.get("problem_statement")).get("id")) or text(agent.get("name"))
    return text(model.get("name")), limits, None if instance == "main" else instance


def _provider(model: str | None) -> str:
    return model.split("/", 1)[0] if model and "/" in model else ""


def _ending(status: Any) -> tuple[str, str]:
    if not isinstance(status, str) or not status:
        return "unknown", "the file does not tell how it ended"
    if any(word in status for word in ("cost", "context", "limit", "total_execution_time")):
        return "limit", status
    if any(word in status for word in ("error", "format", "exit_api", "timeout", "command")):
        return "failed", status
    if status == "submitted" or "forfeit" in status:
        return "completed", status
    return "unknown", status
