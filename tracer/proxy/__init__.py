"""A loopback proxy that records: for programs that are not Python, or whose Python has no looptape.

The program is told to send its model calls here (ANTHROPIC_BASE_URL, OPENAI_BASE_URL); they go on to
where it would have sent them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from .. import facts
from ..command import Command
from ..process import recorder
from .child import run
from .server import ProxyServer

UPSTREAMS = {
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
}
HERE = "LOOPTAPE_PROXY"
"""Tells a program that records itself where the proxy is, so that no call is recorded twice."""


def run_behind_proxy(
    command: Command,
    reason: str,
    environment: Mapping[str, str],
    *,
    doing: str = "recording",
    output: int | None = None,
) -> int:
    """Runs a command with its model calls going through a recording proxy; gives its exit code.

    Args:
        command: What to run.
        reason: Why it does not record itself, for the line on stderr.
        environment: What it is started with, but for the addresses.
        doing: The word for the line on stderr.
        output: Descriptor that the program's stdout goes to; ours otherwise.

    Raises:
        OSError: When the command cannot be started.
    """
    from ..version import __version__

    facts.describe(name=command.name, source="proxy", versions={"looptape": __version__})
    if recorder() is None:
        return run(command, environment, output=output)
    sys.stderr.write(f"looptape: {doing} through a proxy on 127.0.0.1 ({reason})\n")
    sys.stderr.flush()
    targets = {name: environment.get(variable) or default for name, (variable, default) in UPSTREAMS.items()}
    with ProxyServer(targets) as proxy:
        return run(command, pointed_at(proxy.url, environment), output=output)


def pointed_at(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which SDKs send their calls to the proxy, also where another proxy leads to the network."""
    given = dict(environment)
    given |= {variable: f"{url}/{name}" for name, (variable, _) in UPSTREAMS.items()}
    given[HERE] = url
    for name in ("no_proxy", "NO_PROXY"):
        known = [part for part in given.get(name, "").split(",") if part.strip()]
        given[name] = ",".join([*known, "127.0.0.1"] if "127.0.0.1" not in known else known)
    return given
