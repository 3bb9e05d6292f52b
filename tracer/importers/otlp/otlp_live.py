"""Spans and log records that are in the store already, into the runs that they tell of: the importer without a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ... import tape
from ..calls.assembly import assemble
from ..report import Notes
from . import FORMAT
from .dialects import sorted_out
from .wire import RawEvent, RawSpan, from_json


def assembled(requests: Iterable[Mapping[str, Any]]) -> Iterator[tape.Record]:
    """The records of the runs in these export requests (OTLP/JSON); the same spans from a file give the same runs."""
    spans: list[RawSpan] = []
    logs: list[RawEvent] = []
    for number, request in enumerate(requests, 1):
        for one in from_json(request, number):
            if isinstance(one, RawSpan):
                spans.append(one)
            else:
                logs.append(one)
    found = sorted_out(spans, logs)
    yield from assemble(found.calls, source=FORMAT, notes=Notes(), tools=found.tools, spans=found.around)
