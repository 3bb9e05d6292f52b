"""`looptape export`: runs as a tape or as markdown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...tracer.errors import LooptapeError, UsageError
from .. import format as fmt
from .. import report
from .options import run_argument

if TYPE_CHECKING:
    from ...replay.reference import Found
    from ...tracer.model import Run
    from ...tracer.store import Store

ENDINGS = {"tape": ".tape.jsonl", "markdown": ".md"}


@click.command("export")
@run_argument(required=False)
@click.option("--to", "form", type=click.Choice(tuple(ENDINGS)), default="tape", show_default=True, help="The format.")
@click.option("-o", "--output", metavar="FILE", help="The file, or with --all the folder. Without it: stdout.")
@click.option("--all", "everything", is_flag=True, help="All runs, each into its own file of the folder -o.")
def command(run: str | None, form: str, output: str | None, everything: bool) -> None:
    """Write a run, or with RUN:N-M some of its turns, to a file."""
    if everything == (run is not None):
        raise UsageError(
            "usage", "name one run, or --all" if everything else "no run was named", "Try: looptape export last"
        )
    if everything:
        _all(form, output)
        return
    from .reading import found

    with found(run or "") as one:
        if form == "tape" and one.first is not None:
            raise UsageError(
                "usage", "a tape holds whole runs", f"Leave the turns out, or use --to markdown: {one.run.id}"
            )
        texts = _texts(one.store, one.run, form, one)
        if output in (None, "-"):
            for text in texts:
                report.exact(text)
            return
        _write(Path(output or "").expanduser(), texts)
    report.note(f"wrote {output}")


def _all(form: str, output: str | None) -> None:
    if not output or output == "-":
        raise UsageError("usage", "--all writes one file a run", "Name a folder: -o FOLDER")
    from ...tracer.store import Filter
    from .reading import reading

    folder = Path(output).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("bad-output", f"{folder}: {error.strerror}", "Name a folder that can be made") from None
    with reading() as store:
        runs = store.runs(Filter(limit=0))
        ids = {r.id for r in runs}
        heads = [
            r for r in runs if form != "tape" or not (r.parent and r.parent.kind == "sub-agent" and r.parent.run in ids)
        ]
        for number, run in enumerate(heads, 1):
            report.progress(f"{number} of {len(heads)}")
            _write(folder / f"{run.id}{ENDINGS[form]}", _texts(store, run, form))
    report.progress("")
    more = f" (with {len(runs) - len(heads)} child runs inside)" if len(runs) > len(heads) else ""
    report.note(f"wrote {fmt.counted(len(heads), 'file')}{more} to {folder}")


def _texts(store: Store, run: Run, form: str, one: Found | None = None) -> Iterator[str]:
    if form == "tape":
        from ...tracer.store.export import records_of
        from ...tracer.tape import line

        for record in records_of(store, run.id):
            yield line(record).decode("ascii")
        return
    from ...replay.export_markdown import markdown
    from ...replay.recording import load
    from ..safe_text import clean

    recording = load(store, run, one.first if one else None, one.last if one else None)
    yield markdown(recording, lambda text: clean(text, multiline=True))


def _write(path: Path, texts: Iterator[str]) -> None:
    """Writes beside the file and moves it there, so that a failure leaves no half file."""
    new = path.with_name(path.name + ".new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
            for text in texts:
                out.write(text)
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise LooptapeError(
            "bad-output", f"{path}: {error.strerror}", "Name a file that can be written", exit_code=2
        ) from None
