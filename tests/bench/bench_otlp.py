"""OTLP spans of 1.6 KB into the store, per CPU second: as JSON lines and as protobuf, for traces of several shapes.

MIXES says what is in a file. In each, an agent's run is one trace: the agent's span, model calls that keep their content
(each repeats the conversation so far), a tool for each call but the last. What differs is how long runs are and how many
spans of other instrumentations (HTTP, graph nodes) stand beside each GenAI span.

The aim is 20,000 spans per CPU second. Nothing fails here; a number on a busy machine is not a verdict. A first file is
imported before the clock runs: what Python, DuckDB and the price list take to load is no cost of a span.
`--profile` shows where the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from looptape.tracer.importers import import_path
from looptape.tracer.store import memory_store

SPAN_BYTES = 1600
NOTE = " ".join(f"step {n}: the customer's order was looked up in the shop_orders table and sent on" for n in range(40))
START = 1_795_969_000_000_000_000
MODEL = {"gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-opus-4-5"}  # one that has a price


class Mix(NamedTuple):
    """What a file holds: model calls of a run, and other spans for each GenAI span."""

    turns: int
    others: int
    what: str


MIXES = {
    "calls": Mix(4, 0, "GenAI spans only, 4 model calls a run: half of all spans are model calls"),
    "long": Mix(40, 0, "GenAI spans only, 40 model calls a run: messages outgrow 1.6 KB"),
    "mixed": Mix(4, 4, "4 model calls a run, 4 HTTP spans for each GenAI span: a tenth are model calls"),
    "services": Mix(4, 19, "4 model calls a run in a service that traces all it does: a fortieth are model calls"),
}


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
            trace_id, f"{number + 1:08x}{turn + 1:04x}0001", root, "chat", at, 3,
            {
                "gen_ai.operation.name": "chat", **MODEL, "gen_ai.response.id": f"msg_{number}_{turn}",
                "gen_ai.usage.input_tokens": 1000 + turn, "gen_ai.usage.output_tokens": 20,
                "gen_ai.usage.cache_read.input_tokens": 900,
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
        at = at // 1000 % 997
        attributes.append({"key": "app.note", "value": {"stringValue": NOTE[at : at + missing]}})
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


def requests(spans: int, mix: Mix, batch: int = 512) -> Iterator[dict]:
    """Export requests with about so many spans in all."""
    per_trace = 2 * mix.turns * (1 + mix.others)
    made = (s for number in range(max(1, spans // per_trace)) for s in trace(number, mix.turns))
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bench"}}]}
    part: list[dict] = []
    for one in with_others(made, mix.others):
        part.append(one)
        if len(part) == batch:
            yield _request(resource, part)
            part = []
    if part:
        yield _request(resource, part)


def _request(resource: dict, spans: list[dict]) -> dict:
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "bench"}, "spans": spans}]}]}


def write_lines(path: Path, made: Iterable[dict]) -> None:
    """A request a line, as collectors write them."""
    with path.open("w") as file:
        file.writelines(json.dumps(one) + "\n" for one in made)


def write_protobuf(path: Path, made: Iterable[dict]) -> None:
    """Messages with their length before each, as the collector's file exporter writes them."""
    from base64 import b64encode

    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with path.open("wb") as file:
        for one in made:
            resource, spans = one["resourceSpans"][0]["resource"], one["resourceSpans"][0]["scopeSpans"][0]["spans"]
            # OTLP has its ids in hex, JSON of protobuf has bytes in base64
            spans = [{**s, **{n: b64encode(bytes.fromhex(s[n])).decode() for n in _IDS}} for s in spans]
            data = ParseDict(_request(resource, spans), ExportTraceServiceRequest()).SerializeToString()
            file.write(len(data).to_bytes(4, "big") + data)


_IDS = ("traceId", "spanId", "parentSpanId")
WAYS = {"json": write_lines, "protobuf": write_protobuf}


def measured(path: Path, spans: int, what: str, profile: cProfile.Profile | None) -> None:
    """Imports a file into a store in memory and prints spans per CPU second."""
    with memory_store() as store:
        if profile:
            profile.enable()
        wall, cpu = time.perf_counter(), time.process_time()
        (report,) = import_path(store, path)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if profile:
            profile.disable()
    assert report.counts["spans"] == spans, report.counts
    size = path.stat().st_size / spans
    print(
        f"  {what:8} {spans / cpu:7,.0f} spans per CPU second (aim: 20,000): {spans} spans of {size:.0f} bytes, "
        f"{report.turns} turns, {report.tool_calls} calls; {cpu:.2f} CPU s, {wall:.2f} s wall"
    )


def main() -> None:
    """Measures each mix in each form."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--spans", type=int, default=20_000)
    options.add_argument("--mix", choices=MIXES, help="only this one")
    options.add_argument("--turns", type=int, help="model calls of a run, in place of a mix")
    options.add_argument("--others", type=int, default=0, help="other spans for each GenAI span, with --turns")
    options.add_argument("--form", choices=WAYS, help="only this one")
    options.add_argument("--profile", action="store_true")
    given = options.parse_args()
    mixes = {given.mix: MIXES[given.mix]} if given.mix else MIXES
    if given.turns:
        mixes = {"given": Mix(given.turns, given.others, f"{given.turns} model calls a run")}
    profile = cProfile.Profile() if given.profile else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "first")
        write_lines(path, requests(80, MIXES["calls"]))
        with memory_store() as store:
            import_path(store, path)
        for name, mix in mixes.items():
            print(f"{name}: {mix.what}")
            for form in [given.form] if given.form else WAYS:
                path = Path(folder, f"{name}.{form}")
                count = sum(len(r["resourceSpans"][0]["scopeSpans"][0]["spans"]) for r in requests(given.spans, mix))
                WAYS[form](path, requests(given.spans, mix))
                measured(path, count, form, profile)
                path.unlink()
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    main()
