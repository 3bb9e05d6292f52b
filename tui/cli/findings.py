"""What `lint` and `cycles` share: formats, the level that fails, how a report goes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ...tracer.errors import UsageError
from .. import report

if TYPE_CHECKING:
    from ...replay.rules import Report

FORMATS = ("text", "json", "sarif", "github", "junit")
_LEVELS: dict[str, tuple[str, ...]] = {"error": ("error",), "warning": ("error", "warning"), "never": ()}


def output_options(function: Any) -> Any:
    """``--format``, ``--json`` and ``--fail-on``."""
    options = (
        click.option("--format", "form", type=click.Choice(FORMATS), help="How to print it.  [default: text]"),
        click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
        click.option(
            "--fail-on",
            type=click.Choice(tuple(_LEVELS)),
            default="error",
            show_default=True,
            help="Exit with 1 when a finding is at least this bad.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def chosen_format(form: str | None, *, as_json: bool) -> str:
    """The one format that was asked for. Raises UsageError when two were."""
    if as_json and form not in (None, "json"):
        raise UsageError("usage", f"--json and --format {form} exclude each other", "Choose one")
    return "json" if as_json else form or "text"


def exit_code(found: Report, fail_on: str) -> int:
    """1 when a finding is at or above the level."""
    return report.BAD if any(f.severity in _LEVELS[fail_on] for f in found.findings) else report.FINE


def machine(form: str, found: Report, titles: Mapping[str, str], fail_on: str) -> None:
    """Prints a report as sarif, github or junit."""
    from ...replay import reports

    text = reports.write(form, found, titles, _LEVELS[fail_on])
    for line in text.split("\n"):
        report.out(line)
    for trouble in found.troubles:
        report.note(trouble)
