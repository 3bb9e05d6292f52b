"""One model call with its retries: what is transient is asked again, in step with every other run of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from ....tracer.clock import now
from ....tracer.live import unrecorded
from ..policy import Policy
from ..waiting import POLL, Interrupted, Waiter
from .limiter import Limiter, shared
from .protocol import Model, ModelAnswer, ModelError

KEPT_PREFIXES = ("anthropic-ratelimit-", "x-ratelimit-", "retry-after")


@dataclass(slots=True)
class Asking:
    """Asks one model for one run. ``attempts`` gets a record of every attempt of the turn that is asked for."""

    model: Model
    api: str
    policy: Policy
    waiter: Waiter
    limiter: Limiter | None = None
    told: Callable[[int, float, str], None] | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.limiter is None and self.model.limited_as is not None:
            self.limiter = shared(self.model.limited_as)

    def ask(self, body: Mapping[str, Any], turn: int) -> ModelAnswer:
        """The answer, after as many attempts as the policy allows.

        Raises:
            ModelError: The last attempt's.
            ModelMiss: Nothing can answer it.
            Interrupted: The run is to end meanwhile.
        """
        waited, number = 0.0, 0
        while True:
            number += 1
            try:
                return self._once(body, turn, waited)
            except ModelError as error:
                if not error.transient or number > self.policy.model_retries:
                    raise
                wait = self.waiter.backoff(number, self.policy.backoff, self.policy.backoff_cap, error.retry_after)
                left = self.waiter.left()
                if left is not None and wait >= left:
                    raise
                if self.limiter is not None and error.status in (429, 503, 529):
                    self.limiter.refused(wait)
                if self.told is not None:
                    self.told(number, wait, error.message)
                self.waiter.sleep(wait)
                waited = wait

    def _once(self, body: Mapping[str, Any], turn: int, waited: float) -> ModelAnswer:
        if self.limiter is None:
            return self._attempt(body, turn, waited)
        with self.limiter.turn(self.waiter):
            answer = self._attempt(body, turn, waited)
        self.limiter.answered(answer.headers)
        return answer

    def _attempt(self, body: Mapping[str, Any], turn: int, waited: float) -> ModelAnswer:
        record: dict[str, Any] = {"status": None, "error": None, "error_type": None, "wait_ms": waited * 1000}
        record |= {"started_at": now(), "ended_at": None, "request_id": None, "headers": {}}
        self.attempts.append(record)
        timeout = self.policy.model_timeout
        left = self.waiter.left()
        if left is not None:
            if left <= 0:
                raise Interrupted("its time is over")
            timeout = min(timeout, left)
        token = unrecorded.set(True)  # the loop records its model calls itself, also where every client is recorded
        try:
            answer = self._asked(body, turn, timeout)
        except ModelError as error:
            record |= {"status": error.status, "error": error.message, "error_type": error.kind}
            record |= {"request_id": error.request_id, "headers": _kept(error.headers)}
            raise
        except BaseException as error:
            record |= {"error": str(error) or type(error).__name__, "error_type": type(error).__name__}
            raise
        finally:
            unrecorded.reset(token)
            record["ended_at"] = now()
        status = answer.status
        if status is None and len(self.attempts) > 1:
            status = 200  # after failures the one that went well must be told from them
        record |= {"status": status, "request_id": answer.request_id, "headers": _kept(answer.headers)}
        return answer

    def _asked(self, body: Mapping[str, Any], turn: int, timeout: float) -> ModelAnswer:
        """A live model's answer may take minutes: it is waited for in a way that a stop ends."""
        if self.model.limited_as is None:
            return self.model.ask(body, api=self.api, turn=turn, timeout=timeout)
        work: Future[ModelAnswer] = Future()

        def ask() -> None:
            try:
                work.set_result(self.model.ask(body, api=self.api, turn=turn, timeout=timeout))
            except BaseException as error:
                work.set_exception(error)

        threading.Thread(target=copy_context().run, args=(ask,), daemon=True, name="model").start()
        while not wait((work,), POLL).done:
            if self.waiter.hooks.stop.is_set():
                raise Interrupted("stopped while the model answered")
        return work.result()


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {k.lower(): v for k, v in headers.items() if k.lower().startswith(KEPT_PREFIXES)}
