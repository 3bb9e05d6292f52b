"""`looptape why`: where the cost and the turns above the usual went."""

from __future__ import annotations

import click

from ...tracer.errors import UsageError
from .. import report
from . import COMMANDS
from .options import json_option, project, run_argument


@click.command("why")
@run_argument()
@click.option("--against", metavar="RUN", help="Compare with this run, not with the median of the same task or name.")
@json_option
def command(run: str, against: str | None, as_json: bool) -> None:
    """Say why a run cost more and took longer than usual, split by cause."""
    from ...replay import reference
    from ...replay.why import explain
    from ..told import why_text
    from .reading import found

    with found(run) as one:
        if one.first is not None:
            raise UsageError("usage", "why is asked of a whole run", f"looptape why {one.run.id}")
        other = None
        if against is not None:
            named = reference.parse(against)
            if named.first is not None or named.path is not None:
                raise UsageError("usage", "--against names a whole run that is in the store", "Give its id or its name")
            picked = reference.find(one.store, named, project())
            if picked.said:
                report.note(picked.said)
            other = picked.run
        explained = explain(one.store, one.run, other)
    if as_json:
        report.data(why_text.as_json(explained))
    else:
        why_text.show(explained, {c.name for c in COMMANDS})
