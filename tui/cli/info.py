"""`looptape info`: every path, version and effective setting with its source."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

import click

from ...tracer import paths, settings
from .. import report
from ..data import sessions
from .doctor import LIBRARIES, SDKS, version
from .options import json_option, project


@click.command("info")
@json_option
def command(as_json: bool) -> None:
    """Print every path, version and effective setting with its source."""
    facts = _facts()
    if as_json:
        report.data(facts)
        return
    for title, key in (("paths", "paths"), ("versions", "versions")):
        report.out(report.Styled(title, "accent"))
        report.table([report.Column("")] * 2, [[k, str(v or "-")] for k, v in facts[key].items()], indent="  ")
    report.out(report.Styled("settings", "accent"))
    rows = [
        [s["name"], "-" if s["value"] is None else str(s["value"]), f"{s['source']} ({s['where']})", s["env"]]
        for s in facts["settings"]
    ]
    report.table([report.Column(c) for c in ("name", "value", "from", "variable")], rows, indent="  ")
    if facts["keys"]:
        report.out(report.Styled("keys of your own", "accent"))
        report.table(
            [report.Column("")] * 2, [[name, keys or "none"] for name, keys in facts["keys"].items()], indent="  "
        )
    for problem in facts["key_problems"]:
        report.note(problem)


def _facts() -> dict[str, Any]:
    import os

    from ... import __version__

    values = settings.effective()
    settings.export(values, os.environ)
    project_file = settings.project_file(Path.cwd())
    names = (*SDKS, *LIBRARIES, "genai-prices", "click", "platformdirs", "opentelemetry-api")
    return {
        "paths": {
            "home": str(paths.home()),
            "store": str(paths.store_file()),
            "journals": str(paths.journal_dir()),
            "drained": str(paths.done_dir()),
            "lock": str(paths.lock_file()),
            "project": project(),
            "project settings": None if project_file is None else str(project_file),
            "user settings": str(settings.user_file()),
            "screen remembers": str(paths.home() / "screen.json"),
            "screen log": str(paths.home() / "screen.log"),
            "code": str(Path(__file__).parents[2]),
            **{f"kept in step {n}": str(p) for n, p in enumerate(sessions.remembered(), 1)},
        },
        "versions": {
            "looptape": __version__,
            "python": platform.python_version(),
            "platform": f"{sys.platform} {platform.release()}",
            **{name: version(name) for name in names},
        },
        "settings": [
            {"name": s.name, "value": v.value, "source": v.source, "where": v.where, "env": s.env, "help": s.help}
            for s in settings.SETTINGS
            for v in (values[s.name],)
        ],
        **_keys(),
    }


def _keys() -> dict[str, Any]:
    """Keys that settings files give to commands of the screen; what is wrong with them."""
    if not settings.layers("tui"):
        return {"keys": {}, "key_problems": []}
    from .. import keys_file  # knows the screen's commands: slow, so only where there is something to check

    read = keys_file.read()
    return {"keys": dict(read.keys), "key_problems": list(read.problems)}
