"""`looptape show`: a run as a transcript, one turn whole, the request, the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...tracer.errors import UsageError
from .. import report
from .options import json_option, run_argument

if TYPE_CHECKING:
    from ...replay.reference import Found


@click.command("show")
@run_argument()
@click.option("--request", "as_request", is_flag=True, help="What the model really saw in that turn.")
@click.option("--raw", is_flag=True, help="What was on the wire in that turn.")
@json_option
def command(run: str, as_request: bool, raw: bool, as_json: bool) -> None:
    """Read a run as a transcript; RUN:7 shows turn 7 whole."""
    from .reading import found

    if raw and as_request:
        raise UsageError("usage", "--raw and --request exclude each other", "Choose one")
    with found(run) as one:
        if raw:
            _raw(one, as_json)
        elif as_request:
            _request(one, as_json)
        else:
            _transcript(one, as_json)


def _transcript(one: Found, as_json: bool) -> None:
    from ...replay.recording import load
    from ..told import json_shape, transcript

    if as_json:
        turns = one.store.turns(one.run.id, one.first, one.last)
        numbers = {t.number for t in turns}
        events = [e for e in one.store.events(one.run.id) if one.first is None or e.turn in numbers]
        report.data(
            {
                "run": json_shape.run(one.run),
                "turns": [json_shape.turn(t) for t in turns],
                "events": [json_shape.event(e) for e in events],
            }
        )
        return
    recording = load(one.store, one.run, one.first, one.last)
    if one.first is None:
        transcript.show_run(recording)
        if not recording.turns:
            report.note("this run has no turns")
        return
    report.out(transcript.subtitle(one.run))
    for turn in recording.turns:
        transcript.show_turn(recording, turn, whole=True)


def _request(one: Found, as_json: bool) -> None:
    from ..told import json_shape, request_text

    number = _one_turn(one, "--request")
    request = one.store.request(one.run.id, number)
    if as_json:
        report.data({"run": one.run.id, "turn": number, "request": json_shape.request(request)})
        return
    before = one.store.request(one.run.id, number - 1) if number > 1 else None
    request_text.show(one.run, number, request, before)


def _raw(one: Found, as_json: bool) -> None:
    number = _one_turn(one, "--raw")
    wire = one.store.wire(one.run.id, number)
    if as_json:
        chunks = [{"offset_us": offset, "text": text} for offset, text in wire.chunks]
        report.data(
            {
                "run": one.run.id,
                "turn": number,
                "wire": {"request": wire.request_text, "response": wire.response_text, "chunks": chunks},
            }
        )
        return
    response = "".join(text for _, text in wire.chunks) or wire.response_text
    for name, text in (("request", wire.request_text), ("response", response)):
        report.note(f"{name}:" if text else f"no {name} was recorded")
        if text:
            report.exact(text + "\n")


def _one_turn(one: Found, option: str) -> int:
    if one.first is not None and one.first == one.last:
        return one.first
    if one.first is None and one.run.turns == 1:
        return 1
    raise UsageError(
        "usage", f"{option} shows one turn", f"Say which: looptape show {one.run.id}:{one.run.turns or 1} {option}"
    )
