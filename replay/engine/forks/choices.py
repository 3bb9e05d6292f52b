"""Who answers and who runs the tools of a fork, as a command line says it: words into models and toolboxes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ....tracer.errors import UsageError
from ....tracer.model import Turn
from ...fork.paths import value_of
from ..toolbox import Stub, Toolbox
from ..tools.mixed import Mixed, mixed
from ..tools.recorded import RecordedTools

ANTHROPIC, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"
_APIS = {"anthropic": (ANTHROPIC,), "openai": (CHAT, RESPONSES)}
_CLAUDE = re.compile(r"(?i)^(anthropic[./])?claude")
_OPENAI = re.compile(r"(?i)^(openai/)?(gpt|chatgpt|o\d|codex)")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as it was asked for. ``spec`` is what the engine makes it of."""

    kind: str
    spec: Mapping[str, Any]

    @property
    def live(self) -> bool:
        """True when it is asked over a network."""
        return self.kind in _APIS

    def api_for(self, recorded: str) -> str | None:
        """The wire format to rebuild the request in; None for the recording's own, or the nearest."""
        apis = _APIS.get(self.kind, ())
        return None if not apis or recorded in apis else apis[0]

    @property
    def host(self) -> str:
        """The server that a live model is asked at: the given one, the SDK's environment's, or the provider's own."""
        url = self.spec.get("base_url") or os.environ.get(f"{self.kind.upper()}_BASE_URL") or ""
        return urlsplit(str(url)).netloc or str(url) or f"api.{self.kind}.com"

    def words(self, name: Any) -> str:
        """For the line that asks before anything live runs. ``name``: the model of the request."""
        where = f" at {self.spec['base_url']}" if self.spec.get("base_url") else ""
        return f"model {self.spec.get('model') or name or '(no name)'} ({self.kind}{where})"


def model_choice(word: str, recorded_api: str, base_url: str | None = None) -> ModelChoice:
    """``recorded``, ``anthropic``, ``openai``, ``openai:BASE_URL``, ``live``, ``scripted:FILE``, or a model's name.

    Raises:
        UsageError: It is empty, or a base URL is given to what asks no server.
    """
    kind, _, rest = word.partition(":")
    if kind == "scripted" and rest:
        made = ModelChoice("scripted", {"kind": "scripted", "source": rest})
    elif word == "recorded":
        made = ModelChoice("recorded", {"kind": "recorded"})
    elif kind in _APIS:
        url = rest or base_url
        return ModelChoice(kind, {"kind": kind, "model": None, "base_url": url})
    elif word.strip():
        name = None if word == "live" else word
        kind = _provider(name, recorded_api)
        return ModelChoice(kind, {"kind": kind, "model": name, "base_url": base_url})
    else:
        raise UsageError("no-model", "--model is empty", "Say recorded, anthropic, openai:URL, scripted:FILE or a name")
    if base_url is not None:
        raise UsageError("no-server", f"--base-url says nothing to --model {word}", "It asks no server: leave it out")
    return made


def _provider(name: str | None, recorded_api: str) -> str:
    if name and _CLAUDE.search(name):
        return "anthropic"
    if name and _OPENAI.search(name):
        return "openai"
    return "openai" if recorded_api in (CHAT, RESPONSES) else "anthropic"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """A toolbox and the names of the tools in it that would really run."""

    box: Toolbox
    live: tuple[str, ...] = ()


def tool_choice(
    turns: Sequence[Turn],
    source: str,
    *,
    rest: str,
    named: Mapping[str, str],
    live: Sequence[Toolbox] = (),
) -> ToolChoice:
    """The tools of a fork.

    Args:
        turns: The recorded turns, whose results answer by name, arguments and occurrence.
        source: What to call the recording in messages.
        rest: ``recorded`` or ``live``, for tools that are not named.
        named: Per tool: ``recorded``, ``live``, ``stub:TEXT`` or ``stub:@FILE``, ``error:TEXT`` for a stub that fails.
        live: Registries and MCP servers.

    Raises:
        UsageError: A live tool is in no source, two sources have the same, or one that may change something would
            run without being named.
    """
    recorded = RecordedTools(turns, source=source)
    able = _together(live)
    names = {d.name for d in able.definitions()}
    chosen: dict[str, Toolbox | str] = {}
    for name, word in named.items():
        if word == "live" and name not in names:
            have = (
                f"There are: {', '.join(sorted(names))}" if names else "Give them by --tools-from MODULE:TOOLS or --mcp"
            )
            raise UsageError("no-live-tool", f"no source has a live tool {name}", have)
        chosen[name] = _stub(name, word)
    if rest == "live" and not names:
        raise UsageError(
            "no-live-tools", "--tools live names no source", "Give one: --tools-from MODULE:TOOLS or --mcp"
        )
    box = mixed(able, recorded, chosen, rest=rest)
    if rest == "live":  # what no source has is answered from the recording
        over = {d.name: recorded for d in recorded.definitions() if d.name not in names and d.name not in chosen}
        box = Mixed({**box.by_name, **over}, box.rest)
    runs = [n for n in sorted(names) if chosen.get(n, rest) == "live"]
    return ToolChoice(box, tuple(runs))


def _together(live: Sequence[Toolbox]) -> Toolbox:
    by_name: dict[str, Toolbox] = {}
    for box in live:
        for definition in box.definitions():
            if definition.name in by_name:
                raise UsageError(
                    "tool-twice", f"two sources have a tool {definition.name}", "Rename one, or leave a source out"
                )
            by_name[definition.name] = box
    return Mixed(by_name, None)


def _stub(name: str, word: str) -> Toolbox | str:
    if word in ("recorded", "live"):
        return word
    if word.startswith("stub:"):
        return Stub(name, value_of(word.removeprefix("stub:")))
    if word.startswith("error:"):
        return Stub(name, value_of(word.removeprefix("error:")), is_error=True)
    cure = "Say recorded, live, stub:TEXT or stub:@FILE, error:TEXT"
    raise UsageError("bad-tool", f"--tool {name}={word} says nothing", cure)
