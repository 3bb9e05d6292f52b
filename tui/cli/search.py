"""`looptape search`: a text in everything that was recorded, hits grouped by run, the first shown while it goes on."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ...tracer import settings
from ...tracer.errors import UsageError
from .. import report
from .options import asked, filter_argument, filter_options, json_option, sort_option

if TYPE_CHECKING:
    from ...replay.search import Search
    from ...tracer.store import Filter

PLACES = ("prompts", "thinking", "answers", "arguments", "results", "errors")
PER_RUN = 10
"""Hits shown of a run where several were looked at."""


@click.command("search")
@click.argument("sought", metavar="TEXT")
@filter_argument
@click.option("--regex", is_flag=True, help="TEXT is a regular expression (RE2); (?i) in front for any case.")
@click.option("--in", "places", multiple=True, metavar="PLACE", help=f"Only there: {', '.join(PLACES)}.")
@filter_options
@sort_option
@click.option("--limit", type=click.IntRange(min=0), help="At most so many hits; 0 for all.  [default: 50]")
@json_option
def command(
    *, sought: str, words: tuple[str, ...], regex: bool, places: tuple[str, ...], sort: str, limit: int | None,
    as_json: bool, **picked: Any,
) -> None:  # fmt: skip
    """Look for TEXT in everything that was recorded, in the newest runs first.

    As it stands, whatever its case unless it holds capitals. FILTER picks the runs, as in `looptape runs`:

    \b
      looptape search "connection refused" --in results error:yes since:7d
      looptape search 'order [A-Z]-\\d+' --regex 'model:claude*'

    A message is told once a run, at its first turn, however many turns carried it.
    """
    from ...replay.search import PLACES as KNOWN
    from ...replay.search import needle

    looked_for = needle(sought, regex=regex)
    wanted = replace(asked(time.time_ns() // 1000, picked, words), sort=sort, limit=0)
    limit = int(settings.effective({"limit": limit})["limit"].value)
    _run(looked_for, wanted, _chosen(places) or KNOWN, limit, as_json=as_json)


def _chosen(places: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(one.strip() for place in places for one in place.split(",")))
    unknown = [place for place in found if place not in PLACES]
    if unknown:
        raise UsageError("bad-place", f"nothing is called {unknown[0]!r}", f"--in takes {', '.join(PLACES)}")
    return found


def _run(sought: Any, wanted: Filter, places: tuple[str, ...], limit: int, *, as_json: bool) -> None:
    from ...replay.filters import ready
    from ...replay.search import Search
    from .reading import reading

    with reading() as store:
        ready(store, wanted, report.progress)
        search = Search(store, sought, wanted, places)
        most = 0 if search.total == 1 or not limit else PER_RUN
        shown, complete = _gather(search, limit, most, as_json=as_json)
        report.progress("")
        unrecorded = search.unrecorded()
    hits = sum(len(one["hits"]) for one in shown)
    if as_json:
        report.data(
            {
                "runs": shown,
                "hits": hits,
                "looked_at": search.looked,
                "total": search.total,
                "complete": complete,
                "without_content": unrecorded,
            }
        )
    _tell(search, shown, hits, unrecorded, complete=complete)


def _gather(search: Search, limit: int, most: int, *, as_json: bool) -> tuple[list[dict[str, Any]], bool]:
    """Shows the hits as they come; gives them as JSON has them, and whether all runs were gone through."""
    from ..told import search_text

    shown: list[dict[str, Any]] = []
    left = limit
    for found in search:
        room = min(left if limit else len(found.hits), most or len(found.hits))
        count = min(room, len(found.hits))
        if not as_json:
            report.progress("")
            search_text.show(found, count, first=not shown)
            sys.stdout.flush()
        shown.append(search_text.as_json(found, count))
        left -= count
        if limit and left <= 0:
            return shown, search.looked == search.total and count == len(found.hits)
        report.progress(f"{search.looked:,} of {search.total:,} runs looked at")
    return shown, True


def _tell(search: Search, shown: list[dict[str, Any]], hits: int, unrecorded: int, *, complete: bool) -> None:
    from ..format import counted

    if not search.total:
        report.note("no run matches")
    elif not shown:
        report.note(f"not found in {counted(search.total, 'run')}")
    elif complete:
        report.note(f"{counted(hits, 'hit')} in {len(shown):,} of {counted(search.total, 'run')}")
    else:
        report.note(
            f"the first {counted(hits, 'hit')}, {search.looked:,} of {counted(search.total, 'run')} looked at: --limit 0 for all"
        )
    if unrecorded:
        whose = "was" if unrecorded == 1 else "were"
        report.note(
            f"{counted(unrecorded, 'run')} {whose} recorded without content: nothing can be found in what was left out"
        )
