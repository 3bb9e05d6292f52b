"""Runs the calls of a turn: together, each checked, timed and retried on its own, each result with its call."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Protocol

from ....tracer.live import call_key
from ..policy import Policy
from ..toolbox import Definition, ToolAsked, TooLate, Toolbox, ToolMiss, ToolResult
from ..waiting import POLL, Interrupted, Waiter
from .checking import check, read_arguments, resolve
from .telling import Failure, failure_of

_LAST_WORDS = 20.0
"""Seconds in which calls that were interrupted may say so: they look every `POLL`, but the machine may be busy."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call as the model made it."""

    id: str
    name: str
    arguments_raw: str


@dataclass(frozen=True, slots=True)
class Done:
    """A call with its result. ``arguments``: decoded, None where they are no JSON object."""

    call: Wanted
    result: ToolResult
    arguments: Any = None
    miss: str | None = None


class Watch(Protocol):
    """Is told what happens to the calls; from several threads."""

    def started(self, call: Wanted, definition: Definition | None, origin: str) -> object:
        """A call begins. What it gives back comes with `ended`."""

    def ended(self, token: object, result: ToolResult) -> None:
        """A call is over."""

    def refused(self, call: Wanted, definition: Definition | None) -> ToolResult | None:
        """What is told in the place of a call that must not run (and is recorded so); None when it may."""

    def inside(self, token: object) -> Any:
        """A context manager for the tool's code."""

    def retried(self, call: Wanted, attempt: int, wait: float, cause: str) -> None:
        """A transient failure is tried again after so many seconds."""


@dataclass(slots=True)
class Executor:
    """Runs calls for one run. ``seen`` counts them by name and canonical arguments."""

    toolbox: Toolbox
    policy: Policy
    waiter: Waiter
    watch: Watch
    run: str
    seen: Counter[str] = field(default_factory=Counter)

    def execute(
        self,
        calls: Sequence[Wanted],
        turn: int,
        known: Mapping[str, Definition],
        offered: Collection[str],
    ) -> list[Done]:
        """The results of a turn's calls, in the order of the calls.

        Args:
            known: Every tool there is, with the schema that the model was shown.
            offered: Names that the model could choose from in this turn.

        Raises:
            Interrupted, KeyboardInterrupt: The run is to end; calls that did not finish are recorded as cancelled.
        """
        batch = _Batch([self._job(call, turn, known, offered) for call in calls], max(1, self.policy.parallel))
        try:
            batch.start()
            while not batch.idle.wait(POLL):
                pass
        except BaseException:
            batch.over.set()
            batch.idle.wait(_LAST_WORDS)  # each says that it was cancelled
            raise
        if batch.broken:
            raise batch.broken[0]
        return [d for d in batch.done if d is not None]

    def _job(
        self, call: Wanted, turn: int, known: Mapping[str, Definition], offered: Collection[str]
    ) -> Callable[[threading.Event], Done]:
        """What is decided in the order of the calls: which tool, which arguments, the how-manieth of its kind."""
        name = resolve(call.name, known, offered)
        if isinstance(name, Failure):
            return lambda _: self._refused(call, None, None, name)
        definition = known[name]
        arguments = read_arguments(call.arguments_raw, definition)
        if isinstance(arguments, Failure):
            return lambda _: self._refused(call, definition, None, arguments)
        key = call_key(name, arguments)
        self.seen[key] += 1
        asked = ToolAsked(
            call.id, name, arguments, turn, self.seen[key],
            key=f"{self.run}-{turn}-{call.id}", timeout=definition.timeout or self.policy.call_timeout,
        )  # fmt: skip
        return lambda over: self._one(call, asked, definition, over)

    def _refused(self, call: Wanted, definition: Definition | None, arguments: Any, failure: Failure) -> Done:
        """A call that never runs: told to the model, and recorded like any other."""
        result = failure.result()
        self.watch.ended(self.watch.started(call, definition, "live"), result)
        return Done(call, result, arguments)

    def _one(self, call: Wanted, asked: ToolAsked, definition: Definition, over: threading.Event) -> Done:
        refused = self.watch.refused(call, definition)
        if refused is not None:
            return Done(call, refused, asked.arguments)
        served = self.toolbox.served(asked)
        if served is not None:
            self.watch.ended(self.watch.started(call, definition, served.origin), served)
            return Done(call, served, asked.arguments)
        wrong = check(asked.arguments, definition)
        if wrong is not None:
            return self._refused(call, definition, asked.arguments, wrong)
        token = self.watch.started(call, definition, definition.origin)
        miss = None
        try:
            result, miss = self._attempts(call, asked, definition, token, over)
        except BaseException:
            said = "the run was stopped while it ran: it may have done its work or not"
            self.watch.ended(token, Failure("cancelled", said, "cancelled").result())
            raise
        self.watch.ended(token, result)
        return Done(call, result, asked.arguments, miss)

    def _attempts(
        self, call: Wanted, asked: ToolAsked, definition: Definition, token: object, over: threading.Event
    ) -> tuple[ToolResult, str | None]:
        """The result of a call, tried again while that is allowed and may help."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(asked, token, over), None
            except ToolMiss as miss:
                return Failure("not_recorded", str(miss), "permanent").result(), str(miss)
            except (Interrupted, KeyboardInterrupt):
                raise
            except TimeoutError as error:
                failure = _timed_out(asked, error)
            except Exception as error:
                failure = failure_of(error)
            if failure.error_class != "transient" or attempt > self.policy.call_retries or not definition.repeatable:
                return _told(failure, definition, attempt), None
            wait = self.waiter.backoff(attempt, self.policy.backoff, self.policy.backoff_cap, failure.retry_after)
            left = self.waiter.left()
            if left is not None and wait >= left:
                return _told(failure, definition, attempt), None
            self.watch.retried(call, attempt, wait, failure.cause)
            self.waiter.sleep(wait, over)  # what is over is not tried again, also where only this turn's calls end

    def _attempt(self, asked: ToolAsked, token: object, over: threading.Event) -> ToolResult:
        """One attempt in a thread of its own: what does not end in time is left behind."""
        came: list[ToolResult | BaseException] = []
        ready = threading.Event()

        def body() -> None:
            try:
                with self.watch.inside(token):
                    came.append(self.toolbox.call(asked))
            except BaseException as error:  # a tool that ends its thread with SystemExit is a failed tool
                came.append(error)
            finally:
                ready.set()

        limit = asked.timeout
        left = self.waiter.left()
        if left is not None:
            limit = min(limit, max(0.0, left))
        threading.Thread(target=copy_context().run, args=(body,), daemon=True, name=f"tool {asked.name}").start()
        end = time.monotonic() + limit
        while not ready.wait(min(POLL, max(0.0, end - time.monotonic()))):
            if over.is_set() or self.waiter.hooks.stop.is_set():
                raise Interrupted("stopped while a tool ran")
            if time.monotonic() >= end:
                raise TooLate(f"no result after {limit:g} s")
        found = came[0]
        if isinstance(found, ToolResult):
            return found
        if isinstance(found, (Exception, KeyboardInterrupt)):
            raise found
        raise RuntimeError(f"the tool ended with {type(found).__name__}")


class _Batch:
    """The calls of one turn on their way; any of several workers takes the next.

    Ended workers are told by an event: a `Thread.join` that is interrupted takes its thread for ended.
    """

    def __init__(self, jobs: Sequence[Callable[[threading.Event], Done]], at_once: int) -> None:
        self.done: list[Done | None] = [None] * len(jobs)
        self.broken: list[BaseException] = []
        self.over, self.idle = threading.Event(), threading.Event()
        self._waiting = iter(list(enumerate(jobs)))
        self._workers = min(len(jobs), at_once)
        self._lock = threading.Lock()

    def start(self) -> None:
        """Lets the workers begin."""
        if not self._workers:
            self.idle.set()
        for _ in range(self._workers):
            threading.Thread(target=copy_context().run, args=(self._work,), daemon=True).start()

    def _work(self) -> None:
        while not self.over.is_set():
            with self._lock:
                index, job = next(self._waiting, (-1, None))
            if job is None:
                break
            try:
                self.done[index] = job(self.over)
            except BaseException as error:  # one that ends the run; a tool's own trouble is its result
                self.broken.append(error)
                self.over.set()
        with self._lock:
            self._workers -= 1
            if not self._workers:
                self.idle.set()


def _timed_out(asked: ToolAsked, error: TimeoutError) -> Failure:
    if not isinstance(error, TooLate):
        return failure_of(error)
    return Failure("timed_out", f"{asked.name} gave {error}; it may still be running", "transient")


def _told(failure: Failure, definition: Definition, attempts: int) -> ToolResult:
    """The failure for the model; what may be done again says so, what may have happened too."""
    if failure.retry is None and failure.error_class == "transient":
        failure = Failure(
            failure.kind, failure.cause, failure.error_class, failure.argument,
            "the same call later may work" if definition.repeatable
            else "it was not tried again, since it may have changed something: look first whether it did",
        )  # fmt: skip
    return failure.result(attempts=attempts)
