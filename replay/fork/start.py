"""Where a fork begins: the request of turn N as the model would get it, and what is already known of that turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Stage = Literal["generate", "execute", "resume"]


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call that is still to be run. ``arguments_raw`` is JSON text as the model wrote it, maybe no JSON."""

    id: str
    name: str
    arguments_raw: str = "{}"


@dataclass(frozen=True, slots=True)
class KnownResult:
    """A tool result that is there already.

    Attributes:
        content: What the model is told: text, or the provider's content blocks.
        origin: ``recorded``, ``edited``, or ``error`` for one that was put in since the recording has none.
    """

    call: OpenCall
    content: Any
    is_error: bool = False
    origin: str = "recorded"


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of a fork. Nothing in it is shared with a store; the body is its own copy.

    Attributes:
        run, turn: The recorded run and N.
        api: The wire format of ``body``: ``anthropic.messages``, ``openai.chat`` or ``openai.responses``.
        body: The request body, decoded: model, messages (or input), system, tools, parameters. At stage
            ``generate`` and ``resume`` it is ready to be sent. At ``execute`` it ends with the model's answer of
            turn N: the results (``known`` and those of ``pending``, in the order of ``calls``) are to be added first.
        stage: ``generate``: ask the model for turn N. ``execute``: turn N's answer is kept, ``pending`` is to be
            run, then turn N+1 is asked for. ``resume``: all results are there, turn N+1 is asked for.
        inherited: The new run has turns 1 to ``inherited`` already: N-1, or N where its answer is kept.
        response: The answer of turn N where it is kept (maybe edited), as the provider's response body.
        calls: Ids of that answer's calls in their order.
        pending: Those of them that have no result yet: run them first.
        known: Those of them that have one.
        asked: How often the turns that stand in the request asked each tool with which arguments (by `call_key`).
        unanswered: Calls of earlier turns without any result in the record: asked about, or answered with an
            error, before anything live runs.
        lacks: What a faithful request would need and the record has not, one line each.
        notes: What was done to make the request, one line each (a wire format chosen, a chain put together).
        edits: The edits as the user wrote them.
        source: Import format of the run, ``sdk`` for a recorded one.
    """

    run: str
    turn: int
    api: str
    body: dict[str, Any]
    stage: Stage = "generate"
    inherited: int = 0
    response: Any = None
    calls: tuple[str, ...] = ()
    pending: tuple[OpenCall, ...] = ()
    known: Mapping[str, KnownResult] = field(default_factory=dict)
    asked: Mapping[str, int] = field(default_factory=dict)
    unanswered: tuple[OpenCall, ...] = ()
    lacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    source: str = "sdk"
