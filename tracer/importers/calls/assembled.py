"""A run that was put together from calls, before it is told as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...providers.answer import Answer
from .chains import Chain
from .model_call import AgentSpan, ToolSpan
from .tool_match import Asked


@dataclass(slots=True, eq=False)
class Assembled:
    """One run before it is told.

    Attributes:
        chain: Its calls; without links for a run of which only spans around calls were received.
        answers: What each call answered, calls with ids.
        tools: Per turn (from 0) the calls and the tools that ran for them.
        loose: Tools that no answer asked for, by turn.
    """

    id: str
    chain: Chain
    agent: AgentSpan | None = None
    answers: list[Answer] = field(default_factory=list)
    asked: list[list[Asked]] = field(default_factory=list)
    loose: dict[int, list[ToolSpan]] = field(default_factory=dict)
    parent: Mapping[str, Any] | None = None
