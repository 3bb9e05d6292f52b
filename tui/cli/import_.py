"""`looptape import`: sessions and tapes that are already there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...tracer.errors import LooptapeError, UsageError
from .. import format as fmt
from .. import report
from ..data import sessions
from .options import json_option

if TYPE_CHECKING:
    from ...tracer.importers import FileReport
    from ...tracer.importers.context import Source
    from ...tracer.store import Store


BAD_SHOWN = 5
TOLD_SINGLY = 5
TOOLS_SHOWN = 5
SKIPS_SHOWN = 10

_CLIENTS = (  # whose, its folders, where they usually are, the variable that names others and what it names
    ("Claude Code", sessions.claude_folders, "~/.claude/projects", "CLAUDE_CONFIG_DIR", sessions.claude_places),
    ("Codex", sessions.codex_folders, "~/.codex/sessions", "CODEX_HOME", sessions.codex_places),
)


@click.command("import")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--format", "form", metavar="NAME", help="The format, when it cannot be recognised.")
@click.option("--strict", is_flag=True, help="Refuse files with lines or kinds that cannot be read (exit 3).")
@click.option(
    "--claude-code", is_flag=True, help="The Claude Code sessions of this machine; kept in step from then on."
)
@click.option("--codex", is_flag=True, help="The Codex sessions of this machine; kept in step from then on.")
@json_option
def command(
    paths: tuple[str, ...], form: str | None, strict: bool, claude_code: bool, codex: bool, as_json: bool
) -> int:
    """Bring in files and folders of any known format; - is stdin."""
    from ...tracer.store import open_store

    folders = _usual(claude_code, codex)
    if not paths and not folders:
        raise UsageError(
            "usage", "nothing to import was named", "Give a file or folder, - for stdin, --claude-code or --codex"
        )
    if form and not paths:
        raise UsageError(
            "usage", "--format is for files that are named; sessions are recognised", "Leave it out, or name the files"
        )
    codes = [report.FINE]
    with open_store() as store:
        reports = []
        for path in _together(paths, form):
            some, code = _import(store, path, form, strict)
            reports += some
            codes.append(code)
        if folders:
            some = _remembered(store, folders, strict)
            reports += some
            codes.append(_code(some, strict))
        for text in store.notices:
            report.note(text)
    if as_json:
        report.data({"files": [r.as_json() for r in reports]})
    else:
        _print(reports)
    return max(codes)


def _together(paths: tuple[str, ...], form: str | None) -> list[str | Path | Source]:
    from ...tracer.importers import named_together

    return named_together([path if path == "-" else Path(path).expanduser() for path in paths], form)


def _import(store: Store, place: str | Path | Source, form: str | None, strict: bool) -> tuple[list[FileReport], int]:
    """The reports of one argument and its exit code; a bad one is a report too, so that the others still come in."""
    from ...tracer.importers import FileReport, import_path

    path = str(getattr(place, "label", place))
    report.progress(f"importing {path}")
    try:
        found = list(import_path(store, place, format=form, strict=strict))
    except LooptapeError as error:
        if isinstance(error, UsageError) and error.slug == "unknown-format":
            raise  # --format names nothing: true of every file
        return [FileReport(path=path, format=None, error=error.what, cure=error.cure)], error.exit_code
    finally:
        report.progress("")
    return found, _code(found, strict)


def _code(found: list[FileReport], strict: bool) -> int:
    """The exit code: a file of no known format in a walked folder is nothing bad, unless somebody asked to be strict."""
    bad = any(r.error is not None or (strict and r.format is None) for r in found)
    return report.UNUSABLE if bad else report.FINE


def _remembered(store: Store, folders: list[Path], strict: bool) -> list[FileReport]:
    """What is new in these folders and in those that were remembered before."""
    for folder in folders:
        sessions.remember(folder)
    found = sessions.in_step(store, report.progress, everything=True, strict=strict)
    report.progress("")
    if not found:
        report.note(f"nothing new in {fmt.counted(len(sessions.remembered()), 'folder')} kept in step")
    return found


def _usual(claude_code: bool, codex: bool) -> list[Path]:
    """The usual folders of the clients that were asked for; one of two that is not here is only told.

    Raises:
        UsageError: None of them is here.
    """
    asked = [client for client, wanted in zip(_CLIENTS, (claude_code, codex), strict=True) if wanted]
    found, lacking = [], []
    for whose, folders, usual, variable, named in asked:
        here, places = folders(), named()
        found += here
        if not here:
            where = f"{' and '.join(map(str, places))}, where {variable} says that they are" if places else usual
            lacking.append((f"no {whose} sessions in {where}", variable))
        for place in places:
            if here and place.parent not in {folder.parent for folder in here}:
                report.note(f"{variable} names {place.parent}, but there is no folder {place}")
    if lacking and not found:
        what, variables = (" and ".join(words) for words in zip(*lacking, strict=True))
        raise UsageError("no-sessions", f"there are {what}", f"Set {variables}, or name the folder")
    for what, variable in lacking:
        report.note(f"{what} (is it another folder? Set {variable})")
    return found


def _print(reports: list[FileReport]) -> None:
    done = [r for r in reports if r.error is None and r.format is not None]
    for one in done:
        _print_file(one)
        if len(done) <= TOLD_SINGLY:
            for text in _content([one]):
                report.note(f"  {text}")
    _print_others(reports)
    runs = {run for r in done for run in r.runs}
    if len(done) > 1:
        turns = sum(r.turns + r.counts.get("sub_agent_turns", 0) for r in done)
        figures = (fmt.counted(len(done), "file"), fmt.counted(len(runs), "run"), fmt.counted(turns, "turn"))
        report.note(", ".join(figures))
    if len(done) > TOLD_SINGLY:
        for text in _content(done):
            report.note(f"  {text}")


def _print_file(one: FileReport) -> None:
    turns = one.turns + one.counts.get("sub_agent_turns", 0)
    calls = one.tool_calls + one.counts.get("sub_agent_calls", 0)
    figures = f"{fmt.counted(len(one.runs), 'run')}, {fmt.counted(turns, 'turn')}, {fmt.counted(calls, 'call')}"
    report.out(one.path, report.Styled(f"  {one.format}  ", "dim"), figures)
    for skip in list(one.skipped)[:SKIPS_SHOWN]:
        report.note(f"  line {skip.get('line')}: {skip.get('reason')}")
    if len(one.skipped) > SKIPS_SHOWN:
        report.note(f"  … {len(one.skipped) - SKIPS_SHOWN:,} more lines skipped: --json names them")
    if one.unknown:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in list(one.unknown.items())[:5])
        more = f", … {len(one.unknown) - 5} more: --json" if len(one.unknown) > 5 else ""
        report.note(f"  kinds that looptape does not know: {kinds}{more}")
    for warning in one.warnings:
        report.note(f"  ⚠ {warning}")


def _print_others(reports: list[FileReport]) -> None:
    """Files that did not come in."""
    bad = [r for r in reports if r.error is not None]
    for one in bad[:BAD_SHOWN]:
        report.error(LooptapeError("import", one.error or "", one.cure or ""))
    if len(bad) > BAD_SHOWN:
        report.note(f"… {len(bad) - BAD_SHOWN:,} more files could not be imported: --json names them")
    strange = [Path(r.path).name for r in reports if r.error is None and r.format is None]
    if strange:
        names = ", ".join(strange[:3]) + (", …" if len(strange) > 3 else "")
        report.note(f"{fmt.counted(len(strange), 'file')} of no known format passed over: {names}")
        for warning in dict.fromkeys(w for r in reports if r.format is None for w in r.warnings[1:]):
            report.note(f"⚠ {warning}")


def _content(files: list[FileReport]) -> Iterator[str]:
    """What is in these files, in one or two lines."""
    tools, models, secrets = Counter[str](), Counter[str](), Counter[str]()
    for one in files:
        tools.update(one.tools)
        models.update(one.models)
        secrets.update(one.secrets)
    told = [
        _most("tools", [f"{name} {count:,}" for name, count in tools.most_common()]),
        _most("models", [name for name, _ in models.most_common()]),
        _tokens(files),
        _most("secrets removed", [f"{kind} {count:,}" for kind, count in secrets.most_common()]),
    ]
    if any(told):
        yield " · ".join(t for t in told if t)
    lacks = [text for one in files for text in one.missing]
    if len(files) > 1:  # shares of turns are those of one file
        kinds = Counter(re.sub(r" of [\d,]+ of .*| \(.*", "", text) for text in lacks)
        lacks = [f"{kind} ({fmt.counted(count, 'file')})" for kind, count in kinds.most_common()]
    if lacks:
        yield f"missing for a replay: {', '.join(lacks)}"


def _most(head: str, names: list[str]) -> str:
    more = f", … {len(names) - TOOLS_SHOWN} more" if len(names) > TOOLS_SHOWN else ""
    return f"{head}: {', '.join(names[:TOOLS_SHOWN])}{more}" if names else ""


def _tokens(files: list[FileReport]) -> str:
    """``tokens: 12k in, 41k from cache, 1.2k out``; without what no file tells."""
    parts = []
    for head, names in (
        ("in", ("input",)),
        ("from cache", ("cache_read",)),
        ("to cache", ("cache_write_5m", "cache_write_1h")),
        ("out", ("output",)),
    ):
        known = [n for one in files for name in names if (n := one.tokens.get(name)) is not None]
        if known and (head in ("in", "out") or sum(known)):
            parts.append(f"{fmt.short_tokens(sum(known))} {head}")
    return f"tokens: {', '.join(parts)}" if parts else ""
