"""What somebody wants of a fork, and everything that follows from it: limits, model, tools, the start, the opened runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ....tracer.errors import UsageError
from ....tracer.live import OpenRun
from ...fork.edits import Edit, apply
from ...fork.offered import names_of
from ...fork.start import Start
from ..policy import ContextPolicy, Policy
from ..toolbox import Definition, Toolbox
from .choices import ModelChoice, ToolChoice, model_choice, tool_choice
from .forking import Plan, opened

if TYPE_CHECKING:
    from ....tracer.store import Store
    from ..models.protocol import Model


@dataclass(frozen=True, slots=True)
class Order:
    """A fork as it is asked for; the defaults are those of ``looptape fork``.

    Attributes:
        edits, drop: What is changed, and which turns are taken out.
        model, base_url: Who answers (see `choices.model_choice`).
        rest, named: Where results come from (see `choices.tool_choice`).
        modules, commands: Sources of live tools: ``MODULE:TOOLS``, and commands of MCP servers.
        seen_tools: Offer tools whose definitions the recording lacks.
        max_turns, max_cost_usd, max_seconds: Limits of its own turns; None: the loop's default.
        context, window: What is done when the request is over the window of so many tokens.
    """

    edits: tuple[Edit, ...] = ()
    drop: tuple[int, ...] = ()
    model: str = "recorded"
    base_url: str | None = None
    rest: str = "recorded"
    named: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    seen_tools: bool = False
    max_turns: int | None = None
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    context: ContextPolicy = "stop"
    window: int | None = None

    def policy(self) -> Policy:
        """The limits, with the loop's own where none is given."""
        limits = {"max_turns": self.max_turns, "max_seconds": self.max_seconds, "max_cost_usd": self.max_cost_usd}
        asked: dict[str, Any] = {k: v for k, v in limits.items() if v is not None}
        return Policy(**asked, context=self.context, window_tokens=self.window)


@dataclass(frozen=True, slots=True)
class Ready:
    """A fork that could begin: what it would do, who answers, where it starts. Nothing has run."""

    order: Order
    plan: Plan
    model: ModelChoice
    start: Start

    @property
    def model_name(self) -> str | None:
        """The model that requests would name."""
        name = self.model.spec.get("model") or self.start.body.get("model")
        return name if isinstance(name, str) else None


def ready(order: Order, unedited: Plan) -> Ready:
    """The fork that an order asks for.

    Args:
        unedited: The turn as it was recorded (`forking.plan` without edits), read once and used for every order.

    Raises:
        UsageError: An edit leads nowhere, turns cannot be dropped, or no such model can be named.
    """
    plan = replace(unedited, after=apply(unedited.before, order.edits, order.drop))
    model = model_choice(order.model, plan.before.api, order.base_url)
    start = plan.start(api=model.api_for(plan.before.api), seen_tools=order.seen_tools)
    return Ready(order, plan, model, start)


def sources(order: Order) -> list[Toolbox]:
    """The live tools that an order names: modules are imported, MCP servers started; the caller closes them.

    Raises:
        UsageError, LooptapeError: One cannot be had; those before it are closed again.
    """
    boxes: list[Toolbox] = []
    try:
        for reference in order.modules:
            from ..tools.registry import load

            boxes.append(load(reference))
        for line in order.commands:
            from ..tools.mcp import connect

            boxes.append(connect(line))
    except BaseException:
        close(boxes)
        raise
    return boxes


def close(boxes: Sequence[Toolbox]) -> None:
    """Ends what live tools have started; one that cannot be closed does not keep the others open."""
    for box in boxes:
        with suppress(Exception):
            box.close()


def source_tools(order: Order) -> tuple[Definition, ...]:
    """The live tools that an order's sources have; whatever was started for it is ended again.

    Raises:
        UsageError, LooptapeError: A source cannot be had, or two have a tool of the same name.
    """
    boxes = sources(order)
    try:
        tool_choice((), "", rest="recorded", named={}, live=boxes)
        return tuple(d for box in boxes for d in box.definitions())
    finally:
        close(boxes)


def refuse_unknown(fork: Ready, live: Sequence[Toolbox] = ()) -> None:
    """Raises UsageError where ``--tool`` names what is neither offered, nor was called, nor has a live source."""
    called = [c.name for t in fork.plan.turns for c in t.tool_calls]
    sourced = [d.name for box in live for d in box.definitions()]
    known = dict.fromkeys([*names_of(fork.start.body.get("tools")), *called, *sourced])
    for name in fork.order.named:
        if name not in known:
            have = f"There are: {', '.join(known)}" if known else "It has none"
            raise UsageError("unknown-tool", f"--tool {name}=...: the fork has no tool {name}", have)


def tools(fork: Ready, live: Sequence[Toolbox]) -> ToolChoice:
    """The toolbox of a fork and which of it runs live.

    Raises:
        UsageError: See `choices.tool_choice` and `refuse_unknown`.
    """
    refuse_unknown(fork, live)
    source = f"run {fork.plan.before.run}"
    return tool_choice(fork.plan.turns, source, rest=fork.order.rest, named=fork.order.named, live=live)


def begun(store: Store, fork: Ready, count: int = 1) -> tuple[Model, list[OpenRun]]:
    """The model and the opened runs, for `forking.carry_out`; the store is not needed any more then.

    Raises:
        UsageError: The model lacks what it needs, or recording is off.
        LooptapeError: The journal takes nothing.
    """
    from ..making import model_of
    from .answers import recorded_model

    if fork.model.kind == "recorded":
        model: Model = recorded_model(store, fork.start, seen_tools=fork.order.seen_tools)
    else:
        model = model_of(fork.model.spec)
    return model, opened(store, fork.start, fork.order.policy(), count)
