"""The built-in loop: asks the model, runs what it calls, tells it the results, until something ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...tracer import observers, paths
from ...tracer.clock import new_id
from ...tracer.errors import LoopStopped, LooptapeStop, UsageError
from ...tracer.live import OpenRun, OpenTurn, where
from ...tracer.prices import served
from ...tracer.providers import Answer
from ...tracer.recorder import Recorder
from ..fork.start import OpenCall, Start
from . import dialects
from .conversation import Conversation
from .endings import after_answer, cancelled, model_failed
from .goals import Judgement, by_command, by_function
from .models.asking import Asking
from .models.limiter import Limiter
from .models.protocol import Model, ModelAnswer, ModelError, ModelMiss
from .offering import Offering
from .outcome import Ending, Outcome
from .policy import Advice, CallDone, Hooks, Policy, TurnDone
from .record import RunRecord
from .spending import Spending
from .toolbox import Toolbox, ToolResult
from .tools.execution import Done, Executor, Wanted
from .waiting import Interrupted, Waiter
from .window import Window

SUMMARISE = (
    "Summarise the following part of an agent's work for the agent itself: the facts found, what was done and with "
    "which result, what is open. Keep names, paths, numbers and ids exact. Answer with the summary alone.\n\n"
)


def run(
    start: Start,
    model: Model,
    tools: Toolbox,
    policy: Policy | None = None,
    *,
    hooks: Hooks | None = None,
    opened: OpenRun | None = None,
    recorder: Recorder | None = None,
    limiter: Limiter | None = None,
    resumed: Mapping[str, Any] | None = None,
) -> Outcome:
    """Runs the loop from a start to its end, recorded as a run.

    Args:
        start: What the model saw, from `fork.rebuild`, maybe edited.
        policy: Limits, retries, context and goal.
        hooks: What no file can hold: a goal function, an observer, a choice of tools.
        opened: The run to go on with, open already (a fork's with its inherited turns); a new one otherwise.
        recorder: Another than this process's.
        limiter: Another than the one that all runs against this server share.
        resumed: Counts of a run that goes on: ``turns``, ``calls``, ``tokens``, ``usd``; ``start``: where it began.

    Raises:
        UsageError: The model does not speak the start's wire format, a schema is wrong, a budget cannot be held.
    """
    policy, hooks = policy or Policy(), hooks or Hooks()
    dialects.supported(start.api)
    if model.apis and start.api not in model.apis:
        raise UsageError(
            "other-wire-format",
            f"this run speaks {start.api}, the model {' or '.join(model.apis)}",
            "Rebuild the turn in the model's own: --api NAME",
        )
    loop = _Loop.of(start, model, tools, policy, hooks, opened, recorder, limiter)
    loop.go_on(resumed or {})
    return loop.to_its_end()


@dataclass(slots=True)
class _Loop:
    """One run while it lasts."""

    start: Start
    policy: Policy
    hooks: Hooks
    record: RunRecord
    conversation: Conversation
    offering: Offering
    executor: Executor
    asking: Asking
    window: Window
    waiter: Waiter
    spending: Spending
    text: str | None = None
    verdict: str | None = None
    cost: dict[int, float | None] = field(default_factory=dict)
    _note: str | None = None

    @classmethod
    def of(
        cls,
        start: Start,
        model: Model,
        tools: Toolbox,
        policy: Policy,
        hooks: Hooks,
        opened: OpenRun | None,
        recorder: Recorder | None,
        limiter: Limiter | None,
    ) -> _Loop:
        """Puts the parts together; nothing has run yet when this raises."""
        run = opened or _new_run(start)
        run.limits = policy.limits()
        record = RunRecord(run, start.api, recorder)
        conversation = Conversation(start.api, dialects.asking(start.api, start.body))
        offering = Offering(start.api, conversation.rest.get("tools"), tools, policy, hooks.subset)
        waiter = Waiter(hooks)
        if policy.max_seconds is not None:
            waiter.deadline = hooks.clock() + policy.max_seconds
        asking = Asking(model, start.api, policy, waiter, limiter)
        asking.told = lambda n, wait, why: record.event(
            "model_retry", run.turns, attempt=n, wait_s=round(wait, 3), why=why
        )
        folder = paths.home() / "offload" / run.id
        loop = cls(
            start, policy, hooks, record, conversation, offering,
            Executor(tools, policy, waiter, record, run.id),
            asking, Window(policy, start.api, record.event, lambda text: None, folder), waiter, Spending(policy),
        )  # fmt: skip
        loop.window.summarise = loop.summary
        if opened is None:
            record.open(source="fork")
        return loop

    def go_on(self, counted: Mapping[str, Any]) -> None:
        """Saves what resuming needs, and takes over what the run had done before it was interrupted."""
        start = self.start
        fresh = {"run": start.run, "turn": start.turn, "edits": list(start.edits), "api": start.api}
        origin = counted.get("start") or fresh
        model, tools = self.asking.model.spec(), self.executor.toolbox.spec()
        self.record.save({"start": origin, "model": model, "tools": tools, "policy": self.policy.as_json()})
        for note in self.offering.notes:
            self.record.event("note", None, text=note)
        if self.hooks.guard is not None:
            known = {"states": counted.get("guard") or ()}
            observers.watch(self.hooks.guard, self.record.run, self.record.teller, known)
        self.spending.take_over(counted)
        self.executor.seen.update(self.start.asked)

    def to_its_end(self) -> Outcome:
        """Every turn, then the end; whatever happens the record says how it ended."""
        token = where.set(self.record.where)
        try:
            ending = self._turns()
        except KeyboardInterrupt:
            ending = Ending("user", "halted", "interrupted by the user")
        except Interrupted as error:
            ending = cancelled(str(error), self.hooks, self.policy)
        except LoopStopped as stop:
            ending = Ending(stop.reason, stop.status, stop.detail)
        except LooptapeStop as stop:
            ending = Ending("cycle", "halted", str(stop))
        except BaseException as error:
            self.record.end(Ending("failed", "failed", f"{type(error).__name__}: {error}"))
            raise
        finally:
            where.reset(token)
        self.record.end(ending)
        return Outcome(
            self.record.run.id, ending.reason, ending.status, ending.detail, self.spending.turns, self.spending.calls,
            self.spending.tokens, self.spending.cost_usd, self.text, self.verdict,
        )  # fmt: skip

    def _turns(self) -> Ending:
        ending = self._kept_calls() if self.start.stage == "execute" else None
        while ending is None:
            ending = self.spending.reached(self.waiter.left()) or self._turn()
        return ending

    def _kept_calls(self) -> Ending | None:
        """Turn N's answer was kept: its calls that have no result are run, then all results are told."""
        start = self.start
        wanted = {c.id: Wanted(c.id, c.name, c.arguments_raw) for c in _calls(start)}
        self.record.expect(start.turn, list(wanted.values()), start.known)
        self.offering.choose(start.turn)
        pending = [wanted[c.id] for c in start.pending]
        done = {d.call.id: d for d in self.executor.execute(pending, start.turn, *self.offering.names)}
        for call_id, known in start.known.items():
            done[call_id] = Done(wanted[call_id], ToolResult(known.content, known.is_error, origin=known.origin))
        ordered = [done[i] for i in start.calls if i in done]
        return self._executed(ordered, start.response if isinstance(start.response, dict) else {}, start.turn, None)

    def _turn(self) -> Ending | None:
        self.waiter.check()
        number = self.record.run.turns + 1
        tools = self.offering.choose(number)
        changed = {} if tools is None else {"tools": tools}
        ending = self.window.fit(self.conversation, number)
        if ending is not None:
            return ending
        answer = self._ask(number, changed)
        if isinstance(answer, Ending):
            return answer
        turn, response, told, body = answer
        self.text = told.text or self.text
        self.conversation.add(dialects.said(self.start.api, body))
        wanted, cut = dialects.wanted(self.start.api, response)
        ended = after_answer(told, len(wanted), cut)
        if ended is not None and ended.reason != "model":
            return ended
        if ended is not None:
            advice = self._observed(turn.number, told, ())
            return self._judged(ended, turn.number) or advice
        if not wanted:  # the provider paused in the middle of its own work: it is asked to go on
            return self._observed(turn.number, told, ())
        done = self.executor.execute(wanted, turn.number, *self.offering.names)
        return self._executed(done, body, turn.number, told)

    def _ask(
        self, number: int, changed: dict[str, Any]
    ) -> tuple[OpenTurn, dict[str, Any], Answer, dict[str, Any]] | Ending:
        """One model call with all its attempts; a request that is too long is handled once by the policy."""
        for last in (False, True):
            turn = self.record.ask(self.conversation.raw(**changed))
            self.spending.turns += 1
            self.asking.attempts = []
            try:
                answer = self.asking.ask(self.conversation.body(**changed), turn.number)
            except ModelError as error:
                self.record.failed(turn, error, error.kind, self.asking.attempts, cancelled=False)
                if not error.too_long or last:
                    return model_failed(error, turn.number)
                ending = self.window.fit(self.conversation, turn.number, refused=error.message)
                if ending is not None:
                    return ending
                continue
            except ModelMiss as miss:
                self.record.failed(turn, miss, "ModelMiss", self.asking.attempts, cancelled=False)
                return Ending("miss", "halted", str(miss))
            except BaseException as error:
                self.record.failed(turn, error, type(error).__name__, self.asking.attempts, cancelled=True)
                raise
            return self._answered(turn, answer)
        raise AssertionError("a turn is asked for at most twice")

    def _answered(self, turn: OpenTurn, answer: ModelAnswer) -> tuple[OpenTurn, dict[str, Any], Answer, dict[str, Any]]:
        body, made = dialects.with_ids(self.start.api, answer.body, turn.number)
        if made:
            self.record.event("call_ids_made", turn.number, ids=made)
        told = self.record.answered(turn, body, self.asking.attempts, recorded=answer.recorded)
        self._spend(told, answer.body, turn.number, recorded=answer.recorded)
        self.window.answered(self.conversation, told.usage.context)
        return turn, answer.body if not made else body, told, body

    def _spend(self, told: Answer, body: Any, number: int, *, recorded: bool = False) -> None:
        if not recorded:
            model = told.model or self.conversation.rest.get("model")
            how = served.served(served.facts(told.usage.raw, body, self.conversation.rest))
            self.cost[number] = self.spending.add(told.usage, self.record.provider, model, how)

    def _executed(
        self, done: Sequence[Done], response: Mapping[str, Any], number: int, told: Answer | None
    ) -> Ending | None:
        """The results of a turn: told to the model, shown to the observer, counted."""
        failed = sum(d.result.is_error for d in done)
        self.spending.executed(failed, len(done))
        ending = self._observed(number, told, done)
        self._note = self._note or observers.notice(self.record.run)
        miss = next((d.miss for d in done if d.miss is not None), None)
        if miss is not None and self.policy.on_tool_miss == "stop":
            return Ending("miss", "halted", miss)
        self.conversation.add(dialects.results(self.start.api, self._noted(done), response))
        return ending

    def _noted(self, done: Sequence[Done]) -> Sequence[Done]:
        """The results with the observer's note at the end of the last one."""
        note, self._note = self._note, None
        if note is None or not done:
            return done
        last = done[-1]
        said = last.result.content
        content = [*said, {"type": "text", "text": note}] if isinstance(said, list) else f"{said}\n\n{note}"
        result = ToolResult(content, last.result.is_error, last.result.error_class, last.result.origin)
        return [*done[:-1], Done(last.call, result, last.arguments, last.miss)]

    def _observed(self, number: int, told: Answer | None, done: Sequence[Done]) -> Ending | None:
        if self.hooks.observer is None:
            return None
        calls = tuple(CallDone(d.call.id, d.call.name, d.arguments, d.result) for d in done)
        usage = told.usage if told is not None else None
        tokens = ((usage.context or 0) + (usage.output or 0)) if usage is not None else 0
        text = told.text if told is not None else None
        advice = self.hooks.observer(TurnDone(self.record.run.id, number, text, calls, tokens, self.cost.get(number)))
        if not isinstance(advice, Advice):
            return None
        self.record.event("guard", number, advice=advice.kind, text=advice.text)
        if advice.kind == "stop":
            return Ending("cycle", "halted", advice.text)
        self._note = advice.text
        return None

    def _judged(self, ended: Ending, number: int) -> Ending | None:
        """The model says that it is done: the goal check has the last word, where there is one."""
        said = self._judgement()
        if said is None:
            return ended
        self.verdict = "pass" if said.passed else "fail"
        self.record.event("goal", number, verdict=self.verdict, note=said.note)
        self.record.outcome(self.verdict, said.note)
        if said.passed:
            return Ending("model", "completed", f"{ended.detail}, the goal check passed")
        self.spending.goal_tries += 1
        if self.policy.on_goal_failed == "end" or self.spending.goal_tries >= self.policy.goal_tries:
            return Ending("goal", "halted", f"the goal check failed: {said.note or 'no reason given'}")
        text = f"The goal is not reached: {said.note or 'the check failed, without saying why'}. Go on."
        self.conversation.add([dialects.prompt(self.start.api, text)])
        return None

    def _judgement(self) -> Judgement | None:
        text, run = self.text or "", self.record.run.id
        goal = self.hooks.goal or (self.hooks.guard.goal if self.hooks.guard is not None else None)
        said = by_function(goal, text, run) if goal is not None else None
        if self.policy.goal is not None and (said is None or said.passed):
            left = self.waiter.left()
            timeout = self.policy.goal_timeout if left is None else max(0.1, min(self.policy.goal_timeout, left))
            said = by_command(self.policy.goal, text, run, timeout, self.hooks.stop)
        return said

    def summary(self, transcript: str) -> str | None:
        """A summary by the model itself, recorded as a call of its own; None when it gives none."""
        rest = {
            k: v for k, v in self.conversation.rest.items() if k not in ("tools", "tool_choice", "parallel_tool_calls")
        }
        asked = Conversation(self.start.api, {**rest})
        asked.add([dialects.prompt(self.start.api, SUMMARISE + transcript)])
        turn = self.record.ask(asked.raw())
        asking = Asking(
            self.asking.model, self.start.api, self.policy, self.waiter, self.asking.limiter, self.asking.told
        )
        try:
            answer = asking.ask(asked.body(), turn.number)
        except (ModelError, ModelMiss) as error:
            self.record.failed(turn, error, type(error).__name__, asking.attempts, cancelled=False)
            return None
        told = self.record.answered(turn, answer.body, asking.attempts, recorded=answer.recorded)
        self._spend(told, answer.body, turn.number, recorded=answer.recorded)
        return told.text


def _new_run(start: Start) -> OpenRun:
    opened = OpenRun(id=new_id(), explicit=True)
    opened.parent = {"run": start.run, "turn": start.turn, "call": None, "kind": "fork"}
    return opened


def _calls(start: Start) -> list[OpenCall]:
    return [*start.pending, *(k.call for k in start.known.values())]
