"""What of a replay is live: from which turn on, which tools may run, and the caps on both."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ...tracer.bodies import NotAList, advance
from ...tracer.live import OpenTurn
from ...tracer.pricing import price
from ...tracer.providers import Provider, by_api
from .settings import ReplaySettings
from .stops import ReplayStopped

HARMLESS = frozenset({"read", "poll", "bookkeeping"})


class Caps:
    """Counts what is live against its caps, in this process and in the others of the same replay.

    Args:
        tell: Takes what a live call has cost (US dollars, None: not known) and its model, for the other processes.
    """

    def __init__(
        self, settings: ReplaySettings, tell: Callable[[float | None, str], None] = lambda usd, model: None
    ) -> None:
        self._tell = tell
        self._turns = settings.max_turns
        self._usd = settings.max_cost_usd
        self.turns = 0
        self.usd = 0.0
        self._unpriced: str | None = None
        self._open: list[OpenTurn] = []

    def one_more(self, turn: OpenTurn) -> None:
        """Another live model call is about to be made.

        Raises:
            ReplayStopped: A cap is reached.
        """
        self.settle()
        if self._turns is not None and self.turns >= self._turns:
            count = f"{self.turns} live turn{' was' if self.turns == 1 else 's were'}"
            raise ReplayStopped(f"{count} asked for with --max-turns, another was needed")
        if self._usd is not None and self._unpriced is not None:
            raise ReplayStopped(f"the price of {self._unpriced} is not known, so --max-cost cannot be kept")
        if self._usd is not None and self.usd >= self._usd:
            raise ReplayStopped(f"live turns have cost ${self.usd:.4f}, the cap of --max-cost is ${self._usd:g}")
        self.turns += 1
        if self._usd is not None:
            self._open.append(turn)

    def cost(self, usd: float | None, model: str) -> None:
        """A live call of this process or another has cost so much."""
        if usd is None:
            self._unpriced = model
        else:
            self.usd += usd

    def settle(self) -> None:
        """Counts what the live calls cost that have been answered by now."""
        done = [t for t in self._open if not t.in_flight]
        self._open = [t for t in self._open if t.in_flight]
        for turn in done:
            if turn.answer is None or turn.answer.usage.output is None:
                continue
            cost = price(by_api(turn.api).NAME, turn.answer.model, turn.answer.usage, turn.started_at).usd
            told = None if cost is None else float(cost), turn.answer.model or "the model"
            self.cost(*told)
            self._tell(*told)


def with_model(provider: Provider, raw: bytes, name: str) -> bytes:
    """A request with another model's name, its other bytes as they are.

    Raises:
        ReplayStopped: This API does not name the model in the body.
    """
    try:
        body = advance(raw, provider.LIST_KEY, None).body
        head, tail, old = raw[: body.head], raw[body.end :], body.rest.get("model")
        middle = raw[body.head : body.end]
    except NotAList:
        value = json.loads(raw)
        head, middle, tail, old = raw, b"", b"", value.get("model")
    if not isinstance(old, str):
        raise ReplayStopped(
            f"the model of {provider.API} requests is not named in their body: --model {name} cannot be done"
        )
    pattern = re.compile(rb'("model"\s*:\s*)' + re.escape(json.dumps(old).encode()))
    places = len(pattern.findall(head)) + len(pattern.findall(tail))
    if places == 1:
        new = json.dumps(name).encode()
        return pattern.sub(lambda m: m[1] + new, head) + middle + pattern.sub(lambda m: m[1] + new, tail)
    whole: dict[str, Any] = json.loads(raw)
    whole["model"] = name
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def stub_value(text: str, recorded: list[Any]) -> Any:
    """What a stub returns: its text; decoded JSON where the recorded results of the tool are no texts."""
    if any(isinstance(v, str) for v in recorded):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def may_run(side_effect: str | None) -> bool:
    """Whether a tool may run live without having been named."""
    return side_effect in HARMLESS
