"""Models and toolboxes from their descriptions: what a command line says, and what a run has saved to be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tracer.errors import UsageError
from .models.protocol import Model
from .toolbox import NoTools, Stub, Toolbox
from .tools.recorded import RecordedTools


def model_of(spec: Mapping[str, Any]) -> Model:
    """A model from what its `spec` said.

    Raises:
        UsageError: It cannot be made again (``model-not-saved``), or is missing what it needs.
    """
    kind = spec.get("kind")
    if kind == "anthropic":
        from .models.live_anthropic import LiveAnthropic

        return LiveAnthropic(spec.get("model"), base_url=spec.get("base_url"))
    if kind == "openai":
        from .models.live_openai import LiveOpenAI

        return LiveOpenAI(spec.get("model"), base_url=spec.get("base_url"))
    if kind == "scripted":
        from .models.scripted import Scripted, load

        if spec.get("source"):
            return load(str(spec["source"]))
        if isinstance(spec.get("answers"), list):
            return Scripted(spec["answers"])
    raise UsageError(
        "model-not-saved",
        "the run's model was given in code and cannot be made again",
        "Name one, or resume it from Python: replay.engine.resume.resume(store, run, model=...)",
    )


def toolbox_of(spec: Mapping[str, Any], recorded: RecordedTools | None) -> Toolbox:
    """A toolbox from what its `spec` said.

    Args:
        recorded: The results of the run that was forked; None when it is not here any more.

    Raises:
        UsageError: It cannot be made again (``tools-not-saved``), or is missing what it needs.
        LooptapeError: An MCP server does not start.
    """
    kind = spec.get("kind")
    if kind == "none":
        return NoTools()
    if kind == "recorded" and recorded is not None:
        return recorded
    if kind == "stub":
        return Stub(str(spec["of"]), spec.get("content"), bool(spec.get("is_error")))
    if kind == "registry" and spec.get("source"):
        from .tools.registry import load

        return load(str(spec["source"]))
    if kind == "mcp":
        from .tools.mcp import connect

        return connect(str(spec["command"]))
    if kind in ("mixed", "namespaced"):
        return _combined(spec, recorded)
    what = (
        "the recording that its tools were answered from is not here"
        if kind == "recorded"
        else "its tools were given in code"
    )
    raise UsageError("tools-not-saved", f"{what}: they cannot be made again", "Name them: --tools-from MODULE:NAME")


def _combined(spec: Mapping[str, Any], recorded: RecordedTools | None) -> Toolbox:
    from .tools.mixed import Mixed, Namespaced

    if spec["kind"] == "namespaced":
        return Namespaced(str(spec["namespace"]), toolbox_of(spec["inner"], recorded))
    made: dict[str, Toolbox] = {}  # one server for all names that share it

    def part(given: Mapping[str, Any]) -> Toolbox:
        key = repr(given)
        if key not in made:
            made[key] = toolbox_of(given, recorded)
        return made[key]

    by_name = {name: part(given) for name, given in spec["by_name"].items()}
    return Mixed(by_name, part(spec["rest"]) if spec.get("rest") else None)
