"""OTLP exports that go to a collector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...tracer.errors import LooptapeError
from ...tracer.otlp_out import export_requests
from .. import format as fmt
from .. import report

if TYPE_CHECKING:
    from ...replay.reference import Found


def send(endpoint: str, chosen: list[Found]) -> None:
    """Posts the runs to a collector and says how many spans it took.

    Raises:
        LooptapeError: It cannot be reached, or refused something.
    """
    from ...tracer.otlp_send import post, target

    url = target(endpoint)

    def requests() -> Iterator[dict[str, Any]]:
        for number, one in enumerate(chosen, 1):
            report.progress(f"{number} of {len(chosen)}")
            yield from export_requests(one.store, one.run, one.first, one.last)

    sent = post(endpoint, requests())
    report.progress("")
    if sent.rejected:
        said = f" ({sent.said})" if sent.said else ""
        raise LooptapeError("collector-refused", f"{url} refused {sent.rejected} of {sent.spans} spans{said}")
    report.note(f"sent {fmt.counted(sent.spans, 'span')} of {fmt.counted(len(chosen), 'run')} to {url}")
    if sent.said:
        report.note(f"{url} says: {sent.said}")
