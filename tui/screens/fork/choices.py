"""The choices of the fork screen: who answers, how a tool is answered, where live tools come from, limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from textual.app import App

from ....replay.engine.forks.choices import model_choice
from ....replay.engine.forks.order import Order
from ....replay.engine.forks.telling import ToolFact
from ....replay.engine.policy import CONTEXT_POLICIES, ContextPolicy
from ....replay.fork.edits import turns_of
from ....tracer.errors import LooptapeError
from ...format import counted
from ...outside.editable import editable
from ..line import Line
from ..menu import Choice, Menu
from .editor import TextEditor
from .reading import Reading, Sketch


class Chooser(Protocol):
    """The screen, seen by its choices."""

    @property
    def app(self) -> App[Any]:
        """The app."""

    @property
    def reading(self) -> Reading | None:
        """The turn."""

    @property
    def sketch(self) -> Sketch:
        """What the order comes to."""

    def say(self, text: str) -> None:
        """A line that stays until the next key."""

    def change(self, wanted: Order) -> None:
        """Another order."""

    def try_sources(self, wanted: Order) -> None:
        """An order with other sources of live tools, once they are loaded."""

    def add_parameter(self, name: str, value: str) -> None:
        """A parameter that was not sent."""


def model(screen: Chooser) -> None:
    """Who answers."""
    wanted, reading = screen.sketch.order, screen.reading
    if reading is None:
        return
    live = model_choice("live", reading.plan.before.api)
    name = reading.plan.after.body.get("model") or "(no model named)"
    variable = f"{live.kind.upper()}_API_KEY"
    missing = "" if os.environ.get(variable) else f"{variable} is not set here: {live.host} may refuse a live model."
    choices = (
        Choice("recorded", "the recording, else stop", "r", "sends nothing"),
        Choice("live", f"live: {name}", "l", f"asks {live.host}"),
        Choice("other", "another …", "o", "a model, openai:URL, scripted:FILE"),
    )

    def take(word: str | None) -> None:
        if word == "other":
            _line(screen, "model", wanted.model if wanted.model not in ("recorded", "live") else "",
                  "a model's name, anthropic, openai:BASE_URL, scripted:FILE",
                  lambda text: screen.change(replace(wanted, model=text, base_url=None)))  # fmt: skip
        elif word is not None:
            screen.change(replace(wanted, model=word, base_url=None))

    selected = wanted.model if wanted.model in ("recorded", "live") else "other"
    _menu(screen, "who answers", choices, take, selected, missing)


def tool(screen: Chooser, fact: ToolFact) -> None:
    """How a tool is answered."""
    calls = f"{counted(fact.calls, 'call')}" if fact.calls else "no call of it"
    able = "really runs it" if fact.able else "no source has it: name one first"
    choices = (
        Choice("recorded", "from the recording, else stop", "r", calls),
        Choice("live", "live", "l", able + (", changes things" if fact.effect == "mutate" else "")),
        Choice("stub", "stub: always this text …", "s", "runs nothing"),
        Choice("error", "stub: always this error …", "e", "runs nothing"),
    )

    def take(word: str | None) -> None:
        if word in ("stub", "error"):
            _stub(screen, fact, word)
        elif word == "live" and not fact.able:
            screen.say(f"no source has a live tool {fact.name}: Enter on “live tools from” names one")
        elif word is not None:
            put_tool(screen, fact.name, word)

    selected = {"stub error": "error"}.get(fact.how, fact.how)
    _menu(screen, f"how {fact.name} is answered", choices, take, selected)


def put_tool(screen: Chooser, name: str, word: str) -> None:
    """A tool is answered another way."""
    named = {k: v for k, v in screen.sketch.order.named.items() if k != name}
    screen.change(replace(screen.sketch.order, named=named if word == "recorded" else {**named, name: word}))


def _stub(screen: Chooser, fact: ToolFact, word: str) -> None:
    """Its text, in the editor; at first what the recording has."""
    text = fact.text if fact.how.startswith("stub") else _first_result(screen, fact.name)

    def take(edited: str | None) -> None:
        if edited is not None:
            put_tool(screen, fact.name, f"{word}:{'@' if edited.startswith('@') else ''}{edited}")

    what = "error of every call" if word == "error" else "result of every call"
    screen.app.push_screen(TextEditor(f"{fact.name}: the {what}", editable(text), lambda _text: None), take)


def _first_result(screen: Chooser, name: str) -> str:
    turns = screen.reading.plan.turns if screen.reading is not None else ()
    found = (c.result for t in turns for c in t.tool_calls if c.name == name and isinstance(c.result, str))
    return next(found, "")


def sources(screen: Chooser) -> None:
    """Where live tools come from."""
    wanted = screen.sketch.order
    choices = [
        Choice("module", "a Python module …", "p", "imports it: MODULE:TOOLS"),
        Choice("mcp", "an MCP server …", "m", "starts it: its command"),
    ]
    choices += [Choice(f"-{m}", f"without {m}", note="module") for m in wanted.modules]
    choices += [Choice(f"-{c}", f"without {c}", note="MCP server") for c in wanted.commands]

    def take(word: str | None) -> None:
        if word == "module":
            _line(screen, "module", "", "MODULE:TOOLS, for example agent.tools:TOOLS",
                  lambda text: screen.try_sources(replace(wanted, modules=(*wanted.modules, text))))  # fmt: skip
        elif word == "mcp":
            _line(screen, "MCP server", "", "its command, for example python -m files_server",
                  lambda text: screen.try_sources(replace(wanted, commands=(*wanted.commands, text))))  # fmt: skip
        elif word is not None:
            modules = tuple(m for m in wanted.modules if f"-{m}" != word)
            screen.try_sources(
                replace(wanted, modules=modules, commands=tuple(c for c in wanted.commands if f"-{c}" != word))
            )

    _menu(screen, "where live tools come from", choices, take)


def limits(screen: Chooser) -> None:
    """When it stops by itself."""
    wanted, policy = screen.sketch.order, screen.sketch.order.policy()
    choices = (
        Choice("max_turns", "turns of its own", "t", str(policy.max_turns)),
        Choice("max_cost_usd", "cost in dollars", "c", "no limit" if policy.max_cost_usd is None else f"${policy.max_cost_usd:g}"),
        Choice("max_seconds", "seconds", "s", f"{policy.max_seconds:g}"),
        Choice("context", "when the window is full", "w", policy.context),
        Choice("window", "the model's window in tokens", "k", "as the server says" if wanted.window is None else f"{wanted.window:,}"),
    )  # fmt: skip

    def take(word: str | None) -> None:
        if word == "context":
            _window(screen)
        elif word is not None:
            number = getattr(wanted, word)
            _line(screen, word.replace("max_", "").replace("_usd", " in $"), "" if number is None else f"{number:g}",
                  "a number; empty for the usual", lambda text: _limit(screen, word, text), empty=True)  # fmt: skip

    _menu(screen, "limits", choices, take)


def _window(screen: Chooser) -> None:
    wanted = screen.sketch.order

    def take(word: str | None) -> None:
        chosen = next((c for c in CONTEXT_POLICIES if c == word), None)
        if chosen is not None:
            screen.change(replace(wanted, context=cast(ContextPolicy, chosen)))

    _menu(screen, "when the window is full", [Choice(c, c) for c in CONTEXT_POLICIES], take, wanted.context)


def _limit(screen: Chooser, name: str, text: str) -> None:
    whole = name in ("max_turns", "window")
    least = 1000 if name == "window" else 1 if whole else 0
    try:
        value = (int(text) if whole else float(text)) if text else None
    except ValueError:
        screen.say(f"{text!r} is no number")
        return
    if value is not None and (value < least or value == 0 or value != value or value == float("inf")):
        screen.say(f"it must be {'at least ' + str(least) if least else 'more than 0'}")
        return
    screen.change(replace(screen.sketch.order, **{name: value}))  # type: ignore[arg-type]


def parameter(screen: Chooser) -> None:
    """A parameter that was not sent."""

    def take(text: str) -> None:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or any(c in name for c in ".[]"):
            screen.say("say NAME=VALUE, for example temperature=0")
        else:
            screen.add_parameter(name.strip(), value.strip())

    _line(screen, "parameter", "", "NAME=VALUE, for example temperature=0", take)


def fresh(wanted: Order, row: str) -> Order:
    """The order with the choice of a line as it is at first."""
    usual = Order()
    names = {
        "@model": ("model", "base_url"), "@seen": ("seen_tools",), "@drop": ("drop",),
        "@limits": ("max_turns", "max_cost_usd", "max_seconds", "context", "window"),
    }.get(row, ())  # fmt: skip
    return replace(wanted, **{name: getattr(usual, name) for name in names})


def dropped(screen: Chooser) -> None:
    """Turns that are taken out."""
    wanted = screen.sketch.order

    def take(text: str) -> None:
        try:
            screen.change(replace(wanted, drop=turns_of(text) if text else ()))
        except LooptapeError as error:
            screen.say(str(error))

    _line(screen, "turns taken out", ",".join(map(str, wanted.drop)), "2-4, or 2,5-6; empty for none", take, empty=True)


def _menu(
    screen: Chooser,
    title: str,
    choices: Sequence[Choice],
    take: Callable[[str | None], None],
    selected: str = "",
    words: str = "",
) -> None:
    screen.app.push_screen(Menu(title, choices, selected=selected, words=words), take)


def _line(
    screen: Chooser, sign: str, value: str, placeholder: str, take: Callable[[str], object], *, empty: bool = False
) -> None:
    def taken(text: str | None) -> None:
        if text is not None and (text.strip() or empty):
            take(text.strip())

    screen.app.push_screen(Line(sign, value, placeholder=placeholder), taken)
