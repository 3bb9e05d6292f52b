"""A parent that comes in a later import: what named it is no orphan any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...tape import Record
from .assembled import Assembled
from .model_call import AgentSpan, Span
from .span_tree import SpanTree

Orphans = Mapping[str, Sequence[tuple[str, int, Sequence[str]]]]


def reattached(orphans: Orphans, runs: Sequence[Assembled], spans: Iterable[Span], tree: SpanTree) -> Iterator[Record]:
    """Records that take the flag from turns whose parent is here, and link their runs to the tool that started them."""
    owners = {t.span_id: (run, a) for run in runs for turn in run.asked for a in turn for t in a.spans if t.span_id}
    told = {run.id for run in runs}
    for span in spans:
        for run, turn, flags in orphans.get(span.span_id or "", ()):
            if run in told:
                continue  # told anew just now, with its parent
            kept = [f for f in flags if f != f"parent {span.span_id} not received"]
            own = (span.name,) if isinstance(span, AgentSpan) and span.kind != "agent" else ()
            step = " > ".join((*tree.place(span).steps, *own)) or None
            amended: Record = {
                "kind": "turn_start",
                "run": run,
                "turn": turn,
                "amends": True,
                "flags": kept,
                "step": step,
            }
            yield {k: v for k, v in amended.items() if v is not None}
            detail = {"span": span.span_id, "name": span.name}
            yield {
                "kind": "event",
                "run": run,
                "turn": turn,
                "at": span.started_at,
                "event": "parent_received",
                "detail": detail,
            }
            above = owners.get(span.span_id or "")
            if above is not None and above[0].id != run:
                parent = {"run": above[0].id, "turn": above[1].turn, "call": above[1].call.id, "kind": "sub-agent"}
                yield {"kind": "run_start", "run": run, "parent": parent}
