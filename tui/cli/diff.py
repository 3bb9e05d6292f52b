"""`looptape diff`: two runs, turns or requests, or many runs against one."""

from __future__ import annotations

import click

from ...tracer import settings
from ...tracer.errors import UsageError
from .. import report
from .options import json_option, run_argument


@click.command("diff")
@run_argument("first")
@run_argument("others", nargs=-1, required=False)
@click.option("--format", "form", type=click.Choice(("text", "json", "markdown")), default="text", show_default=True, help="How it is written.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), help="Tell at most so many changes; 0 for all.  [default: 50]")
@click.option("--exit-code", is_flag=True, help="End with 1 when they differ, for scripts.")
@json_option
def command(
    *, first: str, others: tuple[str, ...], form: str, limit: int | None, exit_code: bool, as_json: bool
) -> int:
    """Compare runs (A B), turns with their requests (A:3 B:4) or stretches (A:3-9 B:3-9): the first divergence first.

    More runs are each compared with the first. A difference is no error: the exit code is 0 unless --exit-code is given.
    """
    from ...replay.diff import Side, diff, side
    from ..told import diff_markdown, diff_shape, diff_text
    from .reading import found

    if not others:
        raise UsageError("usage", "diff compares at least two", f"looptape diff {first} OTHER, e.g. last~1")
    sides: list[Side] = []
    for text in (first, *others):
        with found(text) as one:
            sides.append(side(one.store, one.run, one.first, one.last))
    diffs = [diff(sides[0], other) for other in sides[1:]]
    limit = int(settings.effective({"limit": limit})["limit"].value)
    if as_json or form == "json":
        report.data(diff_shape.shape(diffs))
    elif form == "markdown":
        diff_markdown.show(diffs, limit)
    elif len(diffs) > 1:
        diff_text.show_many(diffs)
    else:
        diff_text.show(diffs[0], limit)
    return report.BAD if exit_code and not all(d.same for d in diffs) else report.FINE
