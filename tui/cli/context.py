"""`looptape context`: what fills the window at a turn, by origin."""

from __future__ import annotations

import click

from ...tracer.errors import UsageError
from .. import report
from .options import json_option, run_argument


@click.command("context")
@run_argument()
@json_option
def command(run: str, as_json: bool) -> None:
    """Show what fills the model's window at RUN:N (RUN: at its last turn), how it grew, and what it carries in vain.

    Tokens are shared out from the recorded total; the column "how" says what was recorded and what estimated.
    """
    from ...replay.context import context
    from ..told import context_text
    from .reading import found

    with found(run) as one:
        if one.first != one.last:
            raise UsageError(
                "usage", "context looks at one turn", f"Say which: looptape context {one.run.id}:{one.first}"
            )
        number = one.first or one.run.turns
        if not number:
            raise UsageError("no-turn", f"{one.run.id} has no turns", "Name a run that has some: looptape runs")
        answer = context(one.store, one.run.id, number)
        if as_json:
            report.data(context_text.shape(answer))
        else:
            context_text.show(one.run, answer)
