"""How a replay is to be done: what answers from the recording, what may be live, how strictly requests are matched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Match = Literal["normalised", "exact", "dialogue"]
OnMiss = Literal["stop", "warn", "live"]


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The choices of one replay; the defaults are offline.

    Attributes:
        from_turn: Turns before it are answered from the recording; from it on ``model`` and ``tools`` hold.
        model: ``recorded``, ``live`` (as the program asks), or a model's name (live, with that model).
        tools: ``recorded`` or ``live``: tools that change nothing run live, others must be named in ``tool``.
        tool: Per tool: ``recorded``, ``live`` or ``stub:TEXT``.
        unwrapped: ``stop`` before turn 1 when the recording has calls of tools that are not wrapped; ``run`` goes on.
        max_turns, max_cost_usd: Caps on what is live.
        network: ``closed`` to everything but loopback, or ``open``.
        normalisers: The user's own, as ``module:function``.
    """

    match: Match = "normalised"
    on_miss: OnMiss = "stop"
    from_turn: int | None = None
    model: str = "recorded"
    tools: str = "recorded"
    tool: Mapping[str, str] = field(default_factory=dict)
    unwrapped: Literal["stop", "run"] = "stop"
    max_turns: int | None = None
    max_cost_usd: float | None = None
    network: Literal["closed", "open"] = "closed"
    normalisers: tuple[str, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether connections off this machine are refused: nothing live was asked for, nor the network by name."""
        live = self.model != "recorded" or self.tools == "live" or self.on_miss == "live"
        live = live or any(how == "live" for how in self.tool.values())
        return self.network == "closed" and not live

    def to_json(self) -> str:
        """As one JSON object, for another process."""
        return json.dumps(asdict(self), ensure_ascii=False)


def from_json(text: str) -> ReplaySettings:
    """Settings that `ReplaySettings.to_json` wrote; unknown names are left out."""
    given: dict[str, Any] = json.loads(text)
    known = {f.name for f in fields(ReplaySettings)}
    values = {k: v for k, v in given.items() if k in known}
    values["normalisers"] = tuple(values.get("normalisers", ()))
    return ReplaySettings(**values)
