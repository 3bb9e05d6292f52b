"""The steps of one ATIF trajectory as the turns, messages and events of a run."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from ...model import Usage
from ...providers import openai_chat
from ...providers.answer import count, mapping, objects, text_of
from ..builder import RunBuilder
from ..document import money
from ..reading import micros
from ..report import Notes

API = openai_chat.API

_FIELDS = frozenset(
    {
        "step_id", "timestamp", "source", "model_name", "reasoning_effort", "message", "reasoning_content",
        "tool_calls", "observation", "metrics", "extra", "llm_call_count", "is_copied_context",
    }
)  # fmt: skip
_TURN_TEXTS = ("step", "caller", "trace_id", "span_id")
_STATUSES = ("ok", "error", "abandoned", "cancelled", "interrupted")
_dumps = json.JSONEncoder(ensure_ascii=False).encode


def known(value: Mapping[str, Any], fields: Collection[str], what: str, notes: Notes) -> None:
    """Counts the fields that the schema does not have."""
    for name in value:
        if name not in fields:
            notes.strange(f"{what} field {str(name)[:40]}")


class Steps:
    """One trajectory while it is read.

    Attributes:
        run: Its records.
        children: Id of an embedded trajectory -> turn and call that refer to it.
    """

    def __init__(self, run: str, value: Mapping[str, Any], facts: Mapping[str, Any], notes: Notes) -> None:
        agent = mapping(value.get("agent"))
        steps = objects(value["steps"])
        ours = mapping(mapping(value.get("extra")).get("looptape"))
        times = [at for s in steps[:1] if (at := micros(s.get("timestamp"))) is not None]
        began = micros(ours.get("started_at")) or min(times, default=None)
        self.run = RunBuilder(run, api=API, provider="", source="atif", started_at=began, **facts)
        self.children: dict[str, tuple[int | None, str | None]] = {}
        self._notes = notes
        self._model = text_of(agent.get("model_name"))
        self._sums = {"prompt_tokens": 0, "completion_tokens": 0, "cached_tokens": 0}
        if isinstance(agent.get("tool_definitions"), list):
            self.run.context(tools=agent["tool_definitions"])

    def take(self, number: int, step: Any) -> None:
        """The next step; ``number`` is its place from 1."""
        if not isinstance(step, dict):
            self._notes.skip(number, f"step {number} is not an object")
            return
        known(step, _FIELDS, "step", self._notes)
        if step.get("step_id") != number:
            self._notes.warn("step ids are not 1, 2, 3, ...: the order of the file counts")
        ours = mapping(mapping(step.get("extra")).get("looptape"))
        source = step.get("source")
        if isinstance(ours.get("event"), str):
            self.run.event(ours["event"], micros(step.get("timestamp")), **_named(ours.get("detail")))
        elif source == "agent":
            self._agent(step, ours)
        elif source in ("user", "system"):
            self._said(step, ours, source)
        else:
            self._notes.skip(number, f"step {number} has the source {str(source)[:40]!r}, not system, user or agent")
            return
        foreign = {k: v for k, v in mapping(step.get("extra")).items() if k != "looptape"}
        if foreign:
            self.run.event("step_extra", micros(step.get("timestamp")), step=number, extra=foreign)

    def totals(self, given: Mapping[str, Any]) -> None:
        """The sums that the file gives, against those of its steps."""
        cost = money(given.get("total_cost_usd"))
        if cost is not None:
            self.run.update(reported_cost_usd=cost)
        for name, ours in self._sums.items():
            theirs = count(given.get(f"total_{name}"))
            if theirs is not None and theirs != ours:
                text = f"final_metrics give {theirs:,} {name.replace('_', ' ')}, the steps together {ours:,}"
                self.run.update(warnings=[text])
                self._notes.warn(f"{text} (run {self.run.run})")

    # -- steps -----------------------------------------------------------------------------------------------

    def _said(self, step: Mapping[str, Any], ours: Mapping[str, Any], source: str) -> None:
        role = text_of(ours.get("role")) or source
        if step.get("message") not in (None, "", []) or step.get("observation") is None:
            prompt = source == "user" and ours.get("prompt") is not False
            self.run.message({"role": role, "content": _content(step.get("message"))}, prompt=prompt)
            self._notes.counts["prompts"] += prompt
        if step.get("observation") is not None:
            results = objects(mapping(step["observation"]).get("results"))
            self.run.event("observation", micros(step.get("timestamp")), results=results)

    def _agent(self, step: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
        message = _assistant(step)
        results = objects(mapping(step.get("observation")).get("results"))
        if step.get("llm_call_count") == 0:  # the agent acted without a model: no GENERATE, no turn
            detail = {"message": step.get("message"), "tool_calls": step.get("tool_calls"), "results": results}
            at = micros(step.get("timestamp"))
            self.run.event("deterministic_step", at, **{k: v for k, v in detail.items() if v})
            self.run.message(message)
            self._notes.counts["deterministic_steps"] += 1
        else:
            self._turn(step, ours, message)
        calls = {c.get("tool_call_id") for c in objects(step.get("tool_calls"))}
        for call in objects(step.get("tool_calls")):
            self._measured(call)
        for result in results:
            self._result(result, calls)

    def _turn(self, step: Mapping[str, Any], ours: Mapping[str, Any], message: dict[str, Any]) -> None:
        if (count(step.get("llm_call_count")) or 1) > 1:
            self._notes.warn("steps that stand for several model calls: each is one turn with the usage of all")
        if step.get("reasoning_effort") is not None:
            self.run.context(params={"reasoning_effort": step["reasoning_effort"]})
        model = text_of(step.get("model_name")) or self._model
        metrics = mapping(step.get("metrics"))
        status = ours.get("status")
        failed = isinstance(status, str) and status in _STATUSES and status != "ok"
        stop, response_id = text_of(ours.get("stop_reason")), text_of(ours.get("response_id"))
        choice = {"index": 0, "message": message, "finish_reason": stop}
        body = {"id": response_id, "object": "chat.completion", "model": model, "choices": [choice]}
        empty = failed and not (stop or response_id or message["content"] or len(message) > 2)
        if step.get("is_copied_context") is not True:
            for name in self._sums:
                self._sums[name] += count(metrics.get(name)) or 0
        given = text_of(ours.get("provider"))
        flags = ours.get("flags")
        more: dict[str, Any] = {k: v for k in _TURN_TEXTS if (v := text_of(ours.get(k))) is not None}
        self.run.turn(
            message=None if empty else message,
            response=None if empty else {k: v for k, v in body.items() if v is not None},
            usage=_usage(metrics),
            at=micros(step.get("timestamp")),
            ended_at=micros(ours.get("ended_at")),
            model=model,
            provider=given or (model.partition("/")[0] if model and "/" in model else None),
            status=str(status) if failed else "ok",
            error=text_of(ours.get("error")),
            error_type=text_of(ours.get("error_type")),
            flags=[f for f in flags if isinstance(f, str)] if isinstance(flags, list) else [],
            agent=text_of(ours.get("agent")),
            inherited=step.get("is_copied_context") is True,
            reported_cost_usd=money(metrics.get("cost_usd")),
            **more,
        )

    def _measured(self, call: Mapping[str, Any]) -> None:
        ours = mapping(mapping(call.get("extra")).get("looptape"))
        began, ended = micros(ours.get("started_at")), micros(ours.get("ended_at"))
        key = text_of(call.get("tool_call_id"))
        if key is not None and (began is not None or ended is not None):
            self.run.measured(key, began, ended)

    def _result(self, result: Mapping[str, Any], calls: Collection[Any]) -> None:
        call = text_of(result.get("source_call_id"))
        refs = objects(result.get("subagent_trajectory_ref"))
        owner = self.run.owner(call) if call is not None else None
        for ref in refs:
            inside = text_of(ref.get("trajectory_id"))
            if inside is not None:
                self.children[inside] = (owner or self.run.turns or None, call if owner else None)
            if text_of(ref.get("trajectory_path")):  # somebody's path: named, never opened
                self.run.event("sub_agent_elsewhere", call=call, path=ref["trajectory_path"], trajectory=inside)
                self._notes.warn("sub-agents in other files (trajectory_path): import those files too; no link is made")
        content = result.get("content")
        if content is None and not refs:
            return
        if call is None:  # feedback of the environment; the model sees it as it sees a user's words
            self.run.message({"role": "user", "content": _content(content)})
            return
        ours = mapping(mapping(result.get("extra")).get("looptape"))
        error = ours.get("is_error")
        found = self.run.result(
            call,
            message={
                "role": "tool",
                "tool_call_id": call,
                "content": _content(content) if content is not None else None,
            },
            path="$.content",
            is_error=error if isinstance(error, bool) else None,
            error_class=text_of(ours.get("error_class")),
        )
        if found:
            self._notes.counts["tool_results"] += 1
        elif call not in calls:
            self._notes.warn("results of calls that no step made: they are in the messages only")


def _assistant(step: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _content(step.get("message"))}
    if text_of(step.get("reasoning_content")):
        message["reasoning_content"] = step["reasoning_content"]
    calls = [_call(c) for c in objects(step.get("tool_calls"))]
    if calls:
        message["tool_calls"] = calls
    return message


def _call(given: Mapping[str, Any]) -> dict[str, Any]:
    ours = mapping(mapping(given.get("extra")).get("looptape"))
    raw = text_of(ours.get("arguments_raw"))
    arguments = given.get("arguments")
    function = {
        "name": text_of(given.get("function_name")) or "",
        "arguments": raw if raw is not None else _dumps({} if arguments is None else arguments),
    }
    return {"id": text_of(given.get("tool_call_id")) or "", "type": "function", "function": function}


def _content(given: Any) -> Any:
    """A text, or parts as they are (images and sounds name files or addresses, which nobody opens)."""
    if isinstance(given, (str, list)):
        return given
    return "" if given is None else _dumps(given)


def _usage(metrics: Mapping[str, Any]) -> Usage:
    """``prompt_tokens`` include what was read from and written to a cache."""
    if not metrics:
        return Usage()
    extra = mapping(metrics.get("extra"))
    prompt, read = count(metrics.get("prompt_tokens")), count(metrics.get("cached_tokens"))
    five, hour = count(extra.get("cache_write_5m")), count(extra.get("cache_write_1h"))
    if five is None and hour is None:
        five = count(extra.get("cache_creation_input_tokens"))
    cached = (read or 0) + (five or 0) + (hour or 0)
    origin = text_of(extra.get("usage_origin")) or "recorded"
    told = any(count(metrics.get(n)) is not None for n in ("prompt_tokens", "completion_tokens", "cached_tokens"))
    return Usage(
        input=None if prompt is None else max(0, prompt - cached),
        cache_read=read,
        cache_write_5m=five,
        cache_write_1h=hour,
        output=count(metrics.get("completion_tokens")),
        reasoning=count(extra.get("reasoning_tokens")),
        origin=origin if told else "missing",
        partial=extra.get("usage_partial") is True,
        raw=dict(metrics),
    )


def _named(detail: Any) -> dict[str, Any]:
    """Details of an event as keyword arguments; names that `event` has itself are kept out."""
    return {k: v for k, v in mapping(detail).items() if k not in ("self", "name", "at")}
