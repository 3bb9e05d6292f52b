"""Traces in one file and log records in another: one run, however and in whichever order they are imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commandline import looptape
from looptape.tracer.importers import import_path, named_together
from looptape.tracer.store import Filter, Store, memory_store
from otlp_spans import START, TRACE, chat, protobuf, span
from otlp_spans import request as export

BODY = {"model": "claude-x", "system": "be brief", "max_tokens": 9}
HI, YO = {"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "yo"}]}
ASKED = [[HI], [HI, YO, {"role": "user", "content": "and now?"}]]
USED = {"input_tokens": 5, "output_tokens": 2}
SCOPE = "com.anthropic.claude_code.tracing"


def log(name: str, number: int, at: int, **facts: Any) -> dict[str, Any]:
    attributes = span(1, {"event.name": name, "session.id": "s1", "request_id": f"req_{number}", **facts})["attributes"]
    time = str((START + at * 1000) * 1000)
    made = {"timeUnixNano": time, "body": {"stringValue": name}, "attributes": attributes}
    return {**made, "traceId": f"{number:032x}", "spanId": f"{number:016x}"}


@pytest.fixture(params=["json", "protobuf", "spans in protobuf"])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Path]:
    """A conversation of two calls, each in a trace of its own; spans have the tokens, log records the words."""
    form = request.param
    spans, logs = [], []
    for number, messages in enumerate(ASKED, 1):
        at = number * 1000
        facts = chat(**{"span.type": "llm_request", "request_id": f"req_{number}", "success": True, **USED})
        spans.append(span(number, facts, name="claude_code.llm_request", ms=90, at=at, trace=f"{number:032x}"))
        answer = {"type": "message", "id": f"msg_{number}", **YO, "stop_reason": "end_turn"}
        asked = json.dumps({**BODY, "messages": messages})
        logs.append(log("claude_code.api_request_body", number, at, body=asked, request_body_id=f"b{number}"))
        logs.append(
            log("claude_code.api_response_body", number, at + 90, body=json.dumps(answer), request_body_id=f"b{number}")
        )
    made = export(*spans, scope=SCOPE)
    told = {"resourceLogs": export(logs=logs, scope="com.anthropic.claude_code.events")["resourceLogs"]}
    (tmp_path / "logs").mkdir()
    places = {"traces": tmp_path / "traces.jsonl", "logs": tmp_path / "logs" / "logs.jsonl"}
    places["traces"].write_bytes(json.dumps(made).encode() + b"\n" if form == "json" else protobuf(made))
    places["logs"].write_bytes(protobuf(told) if form == "protobuf" else json.dumps(told).encode() + b"\n")
    return places


def taken(store: Store, *paths: Path) -> list[str]:
    """Imports as one command line does; gives the warnings."""
    return [w for p in named_together(paths) for r in import_path(store, p) for w in r.warnings]


def whole(store: Store) -> Any:
    """Everything that a reader sees of the only run."""
    (run,) = store.runs(Filter(include_empty=True))
    turns = store.turns(run.id)
    return run.id, run.status, run.session, turns, [store.request(run.id, t.number).messages for t in turns]


@pytest.mark.parametrize(
    "imports",
    [
        [["traces", "logs"]],
        [["logs", "traces"]],
        [["traces"], ["logs"]],
        [["logs"], ["traces"]],
        [["traces"], ["traces", "logs"]],
        [["traces", "logs"], ["logs"], ["traces"]],
        [["logs"], ["logs"], ["traces"], ["traces"], ["traces", "logs"]],
    ],
    ids=lambda imports: " then ".join("+".join(names) for names in imports),
)
def test_traces_and_logs_are_one_run_however_they_come(imports: list[list[str]], files: dict[str, Path]) -> None:
    with memory_store() as together, memory_store() as store:
        taken(together, files["traces"], files["logs"])
        expected = whole(together)
        assert len(expected[3]) == 2
        assert [(t.usage.input, t.usage.output, t.text) for t in expected[3]] == [(5, 2, "yo")] * 2
        assert list(expected[4][1]) == ASKED[1]
        warnings = [taken(store, *(files[name] for name in names)) for names in imports]
        assert whole(store) == expected
        assert not any("differs" in w for told in warnings for w in told)


def test_half_a_file_after_the_whole_adds_nothing_and_says_so(files: dict[str, Path]) -> None:
    with memory_store() as store:
        taken(store, files["traces"], files["logs"])
        for name in ("traces", "logs"):
            (report,) = import_path(store, files[name])
            assert report.runs == ()
            assert "what it tells is here already, from files that told more" in report.warnings


def test_spans_alone_are_a_run_that_ends_when_they_did_and_can_be_imported_again(files: dict[str, Path]) -> None:
    with memory_store() as store:
        first = import_path(store, files["traces"])
        before = [store.turns(run) for run in first[0].runs]
        assert [len(t) for t in before] == [1, 1]
        assert {store.run(r).status for r in first[0].runs} == {"completed"}
        assert [store.turns(run) for run in import_path(store, files["traces"])[0].runs] == before


def test_the_command_line_reads_otlp_files_that_are_named_together_as_one(files: dict[str, Path]) -> None:
    done = looptape("import", str(files["logs"]), str(files["traces"]), "--json")
    (report,) = json.loads(done.out)["files"]
    assert (report["path"], len(report["runs"]), report["turns"]) == (f"{files['logs']} and 1 more", 1, 2)


def test_a_trace_of_no_model_call_is_no_half(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(export(span(1, {"gen_ai.operation.name": "invoke_agent"}, trace=TRACE))) + "\n")
    with memory_store() as store:
        (report,) = import_path(store, path)
        assert any("no GenAI spans" in w for w in report.warnings)
        assert store.rows("select * from base.otlp_traces") == []
