"""The environment before the screen opens: mended where Textual reads it otherwise than it is meant."""

from __future__ import annotations

from collections.abc import MutableMapping

_SYSTEMS = frozenset({"auto", "standard", "256", "truecolor", "windows"})


def prepare(env: MutableMapping[str, str]) -> None:
    """Mend what Textual reads otherwise than the conventions say. Call it before Textual is imported.

    An empty NO_COLOR means nothing; TEXTUAL_COLOR_SYSTEM=none asks for no colour, and what is no colour system at
    all is no reason to crash.
    """
    if env.get("NO_COLOR") == "":
        del env["NO_COLOR"]
    system = env.get("TEXTUAL_COLOR_SYSTEM")
    if system is not None and system not in _SYSTEMS:
        del env["TEXTUAL_COLOR_SYSTEM"]
        if system.lower() == "none":
            env.setdefault("NO_COLOR", "1")
