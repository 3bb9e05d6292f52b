"""Runs one fork several times and reports how the outcomes spread."""

from __future__ import annotations

import statistics
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace

from ...tracer.clock import new_id
from ...tracer.errors import LooptapeError, UsageError
from ...tracer.live import OpenRun
from ...tracer.process import recorder as process_recorder
from ...tracer.recorder import Recorder
from ..fork.start import Start
from .goals import Judgement, by_command, by_function
from .loop import run
from .models.protocol import Model
from .outcome import Outcome, Spread
from .policy import Goal, Hooks, Policy
from .toolbox import Toolbox
from .waiting import POLL


def samples(
    start: Start,
    count: int,
    model: Model,
    tools: Toolbox,
    policy: Policy | None = None,
    *,
    check: str | Goal | None = None,
    at_once: int = 4,
    hooks: Hooks | None = None,
    opened: Callable[[int], OpenRun] | None = None,
    recorder: Recorder | None = None,
    told: Callable[[int, Outcome], None] | None = None,
) -> Spread:
    """The fork, ``count`` times, at most ``at_once`` together; rate limits are shared between them.

    Args:
        check: A command (the last text on its standard input, exit 0 is a pass) or a function, asked once a run.
        opened: Opens the run of a sample (from 1); called here, before any of them begins.
        told: Is told every outcome as it comes, with the sample's number.

    Raises:
        UsageError: ``count`` is not positive.
        Exception: What ``told`` raised; the other samples are stopped then.
    """
    if count < 1:
        raise UsageError("bad-samples", f"{count} samples cannot be run", "Say at least 1")
    hooks, policy = hooks or Hooks(), policy or Policy()
    runs = [opened(i) if opened is not None else None for i in range(1, count + 1)]
    work = _Work(count)

    def one(index: int) -> None:
        try:
            outcome = run(start, model.fresh(), tools, policy, hooks=hooks, opened=runs[index], recorder=recorder)
            work.outcomes[index] = _checked(outcome, check, policy, hooks, recorder)
        except LooptapeError as error:
            work.failures.append(f"sample {index + 1}: {error}")
        except Exception as error:  # one sample that breaks does not cost the others
            work.failures.append(f"sample {index + 1}: {type(error).__name__}: {error}")
        found = work.outcomes[index]
        if told is not None and found is not None:
            told(index + 1, found)

    work.start(one, hooks, max(1, min(at_once, count)))
    try:
        work.wait()
    except KeyboardInterrupt:
        hooks.stop.set()
        work.wait()
    if work.broken:
        raise work.broken[0]
    return spread([o for o in work.outcomes if o is not None], tuple(sorted(work.failures)), checked=check is not None)


def spread(outcomes: Sequence[Outcome], failures: tuple[str, ...] = (), *, checked: bool = False) -> Spread:
    """How outcomes lie apart. With ``checked`` their verdicts are counted."""
    texts: dict[str, list[str]] = {}
    shown: dict[str, str] = {}
    for outcome in outcomes:
        key = " ".join((outcome.text or "").split())
        texts.setdefault(key, []).append(outcome.run)
        shown.setdefault(key, (outcome.text or "").strip())
    groups = sorted(texts.items(), key=lambda g: (-len(g[1]), g[0]))
    costs = [o.cost_usd for o in outcomes]
    return Spread(
        tuple(outcomes),
        dict(Counter(o.reason for o in outcomes).most_common()),
        _range([o.turns for o in outcomes]),
        _range([c for c in costs if c is not None]) if None not in costs else None,
        tuple((shown[key], tuple(ids)) for key, ids in groups),
        sum(o.verdict == "pass" for o in outcomes) if checked else 0,
        sum(o.verdict is not None for o in outcomes) if checked else 0,
        failures,
    )


class _Work:
    """The samples that are still to be run."""

    def __init__(self, count: int) -> None:
        self.outcomes: list[Outcome | None] = [None] * count
        self.failures: list[str] = []
        self.broken: list[BaseException] = []
        self._next = iter(range(count))
        self._lock = threading.Lock()
        self._workers = 0
        self._idle = threading.Event()

    def start(self, one: Callable[[int], None], hooks: Hooks, workers: int) -> None:
        """Lets so many threads take samples until there are none, or the user stops."""
        self._workers = workers
        for _ in range(workers):
            threading.Thread(target=copy_context().run, args=(self._take, one, hooks), daemon=True).start()

    def wait(self) -> None:
        """Returns when every thread has ended (an event tells it: an interrupted `Thread.join` would not)."""
        while not self._idle.wait(POLL):
            pass

    def _take(self, one: Callable[[int], None], hooks: Hooks) -> None:
        try:
            while not hooks.stop.is_set():
                with self._lock:
                    index = next(self._next, None)
                if index is None:
                    break
                one(index)
        except BaseException as error:  # whoever waits must hear of it, and that nobody works any more
            self.broken.append(error)
            hooks.stop.set()
        finally:
            with self._lock:
                self._workers -= 1
                if not self._workers:
                    self._idle.set()


def _checked(
    outcome: Outcome, check: str | Goal | None, policy: Policy, hooks: Hooks, recorder: Recorder | None
) -> Outcome:
    """The outcome with the check's verdict, which the run keeps as well."""
    if check is None or outcome.reason == "user":
        return outcome
    said = _ask(check, outcome, policy, hooks)
    verdict = "pass" if said.passed else "fail"
    active = recorder or process_recorder()
    if active is not None:
        note = {"note": said.note} if said.note else {}
        active.update_run(OpenRun(id=outcome.run or new_id(), explicit=True), outcome={"verdict": verdict, **note})
    return replace(outcome, verdict=verdict)


def _ask(check: str | Goal, outcome: Outcome, policy: Policy, hooks: Hooks) -> Judgement:
    if isinstance(check, str):
        return by_command(check, outcome.text or "", outcome.run, policy.goal_timeout, hooks.stop)
    return by_function(check, outcome.text or "", outcome.run)


def _range(values: Sequence[float]) -> tuple[float, float, float] | None:
    return (min(values), statistics.median(values), max(values)) if values else None
