"""OTLP spans of 1.6 KB into the store, per CPU second: model calls with their tools, as agents send them.

`--others N` adds N spans of other instrumentations (HTTP, graph nodes) for each of those, as most traces have them.
The aim is 20,000 spans per CPU second. Nothing fails here; a number on a busy machine is not a verdict.
`--profile` shows where the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from looptape.tracer.importers import import_path
from looptape.tracer.store import memory_store

SPAN_BYTES = 1600
START = 1_795_969_000_000_000_000


def trace(number: int, turns: int) -> Iterator[dict]:
    """An agent's run: one agent span, `turns` model calls that keep their content, a tool for each but the last."""
    trace_id = f"{number + 1:032x}"
    begin = START + number * 10_000_000_000
    root = f"{number + 1:08x}00000000"
    said = [{"role": "user", "parts": [{"type": "text", "content": f"question {number}"}]}]
    for turn in range(turns):
        last = turn == turns - 1
        at = begin + turn * 100_000_000
        call = f"call_{number}_{turn}"
        asked = {"type": "tool_call", "id": call, "name": "look", "arguments": {"page": turn}}
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": "done"} if last else asked]}]
        yield span(
            trace_id, f"{number + 1:08x}{turn + 1:04x}0001", root, "chat acme", at, 3,
            {
                "gen_ai.operation.name": "chat", "gen_ai.provider.name": "acme", "gen_ai.request.model": "acme-large-1",
                "gen_ai.response.id": f"msg_{number}_{turn}", "gen_ai.usage.input_tokens": 1000,
                "gen_ai.usage.output_tokens": 20, "gen_ai.usage.cache_read.input_tokens": 900,
                "gen_ai.input.messages": json.dumps(said), "gen_ai.output.messages": json.dumps(answer),
            },
        )  # fmt: skip
        if last:
            continue
        result = f"page {turn}"
        yield span(
            trace_id, f"{number + 1:08x}{turn + 1:04x}0002", root, "execute_tool look", at + 50_000_000, 1,
            {
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": call,
                "gen_ai.tool.call.arguments": json.dumps({"page": turn}), "gen_ai.tool.call.result": result,
            },
        )  # fmt: skip
        said += answer
        said.append({"role": "user", "parts": [{"type": "tool_call_response", "id": call, "response": result}]})
    facts = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bench"}
    yield span(trace_id, root, "", "invoke_agent bench", begin, 1, facts, length=turns * 100_000_000)


def span(trace_id, span_id, parent, name, at, kind, facts, length=40_000_000) -> dict:
    """A span in OTLP/JSON, filled up to its size with an attribute that nobody reads."""
    attributes = [
        {"key": k, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for k, v in facts.items()
    ]
    made = {
        "traceId": trace_id, "spanId": span_id, "parentSpanId": parent, "name": name, "kind": kind,
        "startTimeUnixNano": str(at), "endTimeUnixNano": str(at + length), "attributes": attributes, "status": {},
    }  # fmt: skip
    missing = SPAN_BYTES - len(json.dumps(made)) - 70
    if missing > 0:
        attributes.append({"key": "app.note", "value": {"stringValue": "x" * missing}})
    return made


def with_others(spans: Iterator[dict], others: int) -> Iterator[dict]:
    """The spans, each with so many siblings that are no GenAI spans."""
    for number, one in enumerate(spans):
        yield one
        for index in range(others):
            facts = {
                "http.request.method": "GET",
                "url.full": f"http://localhost/{number}/{index}",
                "http.response.status_code": 200,
            }
            name = f"{number:08x}{index:04x}ffff"
            yield span(one["traceId"], name, one["parentSpanId"], "GET", int(one["startTimeUnixNano"]), 3, facts)


def write(path: Path, spans: int, turns: int, batch: int = 512, others: int = 0) -> tuple[int, int]:
    """A file of export requests with about so many spans; gives their number and the bytes."""
    per_trace = 2 * turns * (1 + others)
    made = with_others((s for number in range(max(1, spans // per_trace)) for s in trace(number, turns)), others)
    count = 0
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bench"}}]}
    with path.open("w") as file:
        part: list[dict] = []
        for one in made:
            part.append(one)
            count += 1
            if len(part) == batch:
                file.write(json.dumps(_request(resource, part)) + "\n")
                part = []
        if part:
            file.write(json.dumps(_request(resource, part)) + "\n")
    return count, path.stat().st_size


def _request(resource: dict, spans: list[dict]) -> dict:
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "bench"}, "spans": spans}]}]}


def main() -> None:
    """Writes the file, imports it into a store in memory, prints spans per CPU second."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--spans", type=int, default=20_000)
    options.add_argument("--turns", type=int, default=4, help="model calls of a run")
    options.add_argument("--others", type=int, default=0, help="other spans for each GenAI span")
    options.add_argument("--profile", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spans.jsonl")
        count, size = write(path, given.spans, given.turns, others=given.others)
        profile = cProfile.Profile() if given.profile else None
        with memory_store() as store:
            if profile:
                profile.enable()
            wall, cpu = time.perf_counter(), time.process_time()
            (report,) = import_path(store, path)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if profile:
                profile.disable()
        print(
            f"{count} spans of {size / count:.0f} bytes: {cpu:.2f} CPU s, {count / cpu:,.0f} a CPU second "
            f"({wall:.2f} s wall; {report.turns} turns, {report.tool_calls} calls; aim: 20,000)"
        )
        if profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main()
