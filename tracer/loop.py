"""The API a loop uses: `run()` names a run, `run.turn()` records a turn by hand, `configure()` sets redaction."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import endings, given, observers, quiet, redaction, spans
from .clock import new_id
from .errors import LooptapeError, UsageError
from .hand_turns import Turn
from .live import OpenRun, Where, leave, where
from .model import Limits
from .process import here, quietly, recorder
from .recorder import Recorder

_RUN_ID = re.compile(r"[0-9a-f]{16}")


def run(
    name: str | None = None,
    *,
    session: str | None = None,
    task: str | None = None,
    agent: str | None = None,
    tags: Mapping[str, str] | None = None,
    limits: Limits | Mapping[str, float] | None = None,
    guard: observers.Watcher | None = None,
    resume: str | None = None,
) -> Run:
    """One run of a loop, as a context manager: everything recorded inside belongs to it.

    Entered once more it is a new run with its own id that resumes the one before. Names, tags and
    limits of other types become texts and numbers; what cannot is left out, never an error.

    Args:
        name: What to call it in lists; ``RUN`` references accept it.
        session: Groups the runs of one conversation.
        task: Groups runs that do the same job; the name otherwise.
        agent: The agent's name, for multi-agent programs.
        tags: Short texts by name.
        limits: The caps the loop enforces itself, as `Limits` or by its names; recorded, so that a run that
            ends at one says so.
        guard: A `looptape.Guard` that watches the run as it goes; its limits are recorded with the others.
        resume: The run that this one goes on from: its id; with a guard also its name or ``last``. What the guard
            knew of it comes back.

    With recording off the block runs all the same.

    Raises:
        UsageError: ``bad-guard``: what was given is no guard.
    """
    return Run(name, session=session, task=task, agent=agent, tags=tags, limits=limits, guard=guard, resume=resume)


def configure(*, redact: Sequence[redaction.Redact] = ()) -> None:
    """Settings of this process.

    Args:
        redact: Functions ``str -> str`` that run after the built-in ones over every text before it is
            written. A function that raises costs the text it was given.
    """
    redaction.add(given.listed(redact))


class Run:
    """A run that is being recorded. Use `run()` to make one."""

    def __init__(
        self,
        name: Any,
        *,
        session: Any,
        task: Any,
        agent: Any,
        tags: Any,
        limits: Any,
        guard: Any = None,
        resume: Any = None,
    ) -> None:
        name = given.text(name)
        self._given: dict[str, Any] = {"task": given.text(task) or name, "tags": given.tags(tags)}
        self._open = OpenRun(id=new_id(), explicit=True, session=given.text(session), agent=given.text(agent))
        self._open.name = name or self._open.name
        if guard is not None and not hasattr(guard, "watch"):
            raise UsageError("bad-guard", f"guard={guard!r} is no guard", "Give looptape.Guard(...)")
        self._guard: observers.Watcher | None = guard
        self._resume = given.text(resume)
        self._open.limits = {**given.limits(limits), **(given.limits(guard.given()) if guard is not None else {})}
        self._unused = [self._open]
        self._active: Recorder | None = None
        self._blocks: list[_Block] = []

    @property
    def id(self) -> str:
        """The run's id, 16 hex digits."""
        return self._open.id

    def __enter__(self) -> Run:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit(error)

    @quietly
    def _enter(self) -> None:
        active = recorder()
        if active is None:
            self._watch_unrecorded()
            return
        opened, above = self._fresh(), here()
        earlier = self._earlier(opened)
        if opened.parent is None and above is not None:
            opened.parent = {
                "run": above.run.id,
                "turn": above.call.turn if above.call else (above.run.turns or None),
                "call": above.call.id if above.call else None,
                "kind": "sub-agent",
            }
            opened.session = opened.session or above.run.session
        if above is not None:
            opened.observers = above.run.observers
        opened.above = above
        self._open, self._active = opened, active
        active.open_run(opened, **self._given)
        if self._guard is not None:
            observers.watch(self._guard, opened, active, earlier)
        block = _Block(opened, where.set(Where(opened)))
        self._blocks.append(block)
        if opened.span is not None:
            block.span = spans.enter(opened.span.span)

    def _watch_unrecorded(self) -> None:
        """A guard sees the loop through the recorder: without it only its goal check is left, which is said."""
        if self._guard is not None and not self._open.observers:
            observers.watch(self._guard, self._open, None)
            quiet.say(
                "recording is off, so the guard cannot watch: no limits, no notices; only its goal check is asked"
            )

    def _earlier(self, opened: OpenRun) -> Any:
        """What the guard knew of the run that this one goes on from, which becomes its parent."""
        reference = opened.parent["run"] if opened.parent is not None else self._resume
        if reference is None:
            return None
        known = quietly(self._guard.earlier)(reference) if self._guard is not None else None
        if opened.parent is None:
            if known is None and not _RUN_ID.fullmatch(reference):
                quiet.say(f"no run {reference!r} was found to resume; this one begins anew")
                return None
            told = known or {}
            opened.parent = {
                "run": told.get("run", reference),
                "turn": told.get("turns"),
                "call": None,
                "kind": "resume",
            }
            opened.session = opened.session or told.get("session")
        return known

    def _fresh(self) -> OpenRun:
        """The run to open: the one that was made; once that has been entered, another that resumes it."""
        before = self._open
        with contextlib.suppress(IndexError):  # another thread may enter the same object just now
            if self._unused.pop().pid == os.getpid():
                return before
        opened = OpenRun(id=new_id(), explicit=True, limits=before.limits)
        opened.name, opened.session, opened.agent = before.name, before.session, before.agent
        if before.ended:
            opened.follow(before)
        return opened

    @quietly
    def _exit(self, error: BaseException | None) -> None:
        active, block = self._active, self._leaving()
        if active is None or block is None:
            return
        same_context = leave(block.token)
        if block.span is not None:
            spans.leave(block.span, same_context=same_context)
        opened = active.adopt(block.run)
        with active.lock:
            active.end_run(opened, *endings.of_block(opened, error))

    def _leaving(self) -> _Block | None:
        """The block that is left: this context's, where several threads share the object; else the last entered."""
        place = where.get()
        for block in reversed(self._blocks):
            if place is not None and place.run is block.run:
                self._blocks.remove(block)
                return block
        return self._blocks.pop() if self._blocks else None

    def _mine(self, active: Recorder) -> OpenRun:
        """The run of this context's block; outside of the blocks the one that was entered last."""
        place = where.get()
        entered = [b.run for b in self._blocks]
        while place is not None and place.run not in entered:
            place = place.run.above
        return active.adopt(place.run if place is not None else self._open)

    @quietly
    def outcome(self, verdict: str, note: str | None = None, *, score: float | None = None) -> None:
        """Says how the run went, in the block or after it.

        Args:
            verdict: Your word for it: ``pass``, ``fail``, ``partial``, ...
            note: One sentence.
            score: A number, if there is one.
        """
        if self._active is not None:
            told = {
                "verdict": redaction.redact(given.text(verdict) or ""),
                "note": redaction.redact(said) if (said := given.text(note)) else said,
                "score": given.number(score),
            }
            self._active.update_run(self._mine(self._active), outcome={k: v for k, v in told.items() if v is not None})

    def done(self, text: str = "") -> str | None:
        """Asks the guard's goal check, when the model says that it is done. The verdict is the run's outcome.

        Args:
            text: The model's last words.

        Returns:
            None when it is done (or nobody checks); else what to tell the model, as the next user message.

        Raises:
            LoopStopped: The goal is not reached and the guard's author wants the run to end there.
            UsageError: ``async-goal``: the check is a coroutine function.
        """
        observer = self._observer()
        if observer is None:
            return None
        try:
            return observer.done(text)
        except LooptapeError:
            raise
        except Exception as error:  # the guard's own trouble; the check's is a verdict
            quiet.trouble("Run.done", error)
            return None

    async def done_async(self, text: str = "") -> str | None:
        """`done` for a goal check that is a coroutine function."""
        observer = self._observer()
        if observer is None:
            return None
        try:
            return await observer.done_async(text)
        except Exception as error:  # the guard's own trouble; the check's is a verdict
            quiet.trouble("Run.done_async", error)
            return None

    def _observer(self) -> observers.Observer | None:
        """The observer of the run's own guard."""
        if self._guard is None:
            return None
        opened = self._mine(self._active) if self._active is not None else self._open
        return opened.observers[0] if opened.observers else None

    @quietly
    def tag(self, **tags: str) -> None:
        """Adds tags to the run."""
        if self._active is not None:
            self._active.update_run(self._mine(self._active), tags=given.tags(tags))

    def turn(self, *, agent: str | None = None) -> Turn:
        """A turn that the loop records by hand (a provider without a recorded client, a ReAct loop).

        Use as a context manager around GENERATE and the tools that follow it.
        """
        opened = self._mine(self._active) if self._active is not None else self._open
        return Turn(self._active, opened, agent)


@dataclass(slots=True, eq=False)
class _Block:
    """One time that a `run()` block was entered."""

    run: OpenRun
    token: Token[Where | None]
    span: tuple[object, Any] | None = None
