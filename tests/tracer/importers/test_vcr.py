"""VCR cassettes: the model calls in them are turns, however the body was kept; the rest is counted."""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from imported import Imported, read
from looptape.tracer import tape as tapes
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import import_path
from looptape.tracer.importers.wire import cassettes, vcr
from looptape.tracer.store import Store, memory_store
from testdata import require

yaml = pytest.importorskip("yaml", reason="PyYAML is not here (extra vcr)")

ASKED: list[Any] = [{"role": "user", "content": "weather in Paris?"}]
CALL = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sun"}]}
URL = "https://api.anthropic.com/v1/messages"


def _message(name: str, *content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    usage = {"input_tokens": 7, "output_tokens": 2}
    found = {"id": name, "type": "message", "role": "assistant", "model": "claude-x-1", "usage": usage}
    return {**found, "content": list(content), "stop_reason": stop}


def _interaction(request: Any, response: Any, *, url: str = URL, status: int = 200, **headers: str) -> dict[str, Any]:
    return {
        "request": {"body": json.dumps(request), "headers": {"host": ["x"]}, "method": "POST", "uri": url},
        "response": {
            "body": {"string": response if isinstance(response, (str, bytes)) else json.dumps(response)},
            "headers": {k.replace("_", "-"): [v] for k, v in headers.items()},
            "status": {"code": status, "message": "x"},
        },
    }


FIRST = _interaction(
    {"model": "claude-x", "max_tokens": 9, "messages": ASKED},
    _message("m1", CALL, stop="tool_use"),
    Date="Tue, 29 Jul 2025 15:19:06 GMT",
    request_id="req_1",
)
SECOND = _interaction(
    {"model": "claude-x", "max_tokens": 9, "messages": [*ASKED, {"role": "assistant", "content": [CALL]}, RESULT]},
    _message("m2", {"type": "text", "text": "Sun."}),
)


def _yaml(*interactions: Any) -> str:
    return str(yaml.safe_dump({"interactions": list(interactions), "version": 1}))


def _read(*interactions: Any) -> Imported:
    text = _yaml(*interactions)
    assert vcr.recognise(text.encode())
    return read(vcr, text)


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as kept:
        yield kept


def test_calls_that_extend_each_other_are_one_run(store: Store, tmp_path: Path) -> None:
    (tmp_path / "cassette.yaml").write_text(_yaml(FIRST, SECOND))
    (tmp_path / "same.json").write_text(json.dumps({"version": 1, "interactions": [FIRST, SECOND]}))

    reports = import_path(store, tmp_path)

    assert [(r.format, r.turns, r.tool_calls) for r in reports] == [("vcr", 2, 1)] * 2
    (run,) = store.runs()
    assert (run.turns, run.status, run.usage.input, run.usage.output) == (2, "completed", 14, 4)
    first, second = store.turns(run.id)
    assert (first.request_id, first.model, second.text) == ("req_1", "claude-x-1", "Sun.")
    assert [(c.name, c.result, c.is_error) for c in first.tool_calls] == [("weather", "sun", False)]
    assert len(store.request(run.id, 2).messages) == 3
    assert store.request(run.id, 2).params == {"model": "claude-x", "max_tokens": 9}


@pytest.mark.parametrize("way", ["text", "gzip", "header kept, body decoded", "base64", "parsed", "ruby"])
def test_bodies_are_read_however_they_were_kept(way: str) -> None:
    one = json.loads(json.dumps(FIRST))
    text = one["response"]["body"]["string"]
    if way == "gzip":
        one["response"]["body"] = {"string": gzip.compress(text.encode())}
        one["response"]["headers"]["Content-Encoding"] = ["gzip"]
    elif way == "header kept, body decoded":
        one["response"]["headers"]["Content-Encoding"] = ["gzip"]
    elif way == "base64":
        one["response"]["body"] = {"base64_string": base64.b64encode(text.encode()).decode()}
    elif way == "parsed":
        one["request"]["parsed_body"] = json.loads(one["request"].pop("body"))
        one["response"] = {"headers": {}, "status": {"code": 200}, "parsed_body": json.loads(text)}
    elif way == "ruby":
        one["request"]["body"] = {"encoding": "UTF-8", "string": one["request"]["body"]}
        one["recorded_at"] = "Tue, 29 Jul 2025 15:19:06 GMT"

    found = _read(one)

    assert [(t["response_id"], t["usage"]["output"]) for t in found.turns().values()] == [("m1", 2)]
    assert json.loads(found.blobs[found.turns()[1]["response"]])["content"] == [CALL]


def test_a_stream_is_put_together() -> None:
    events = [
        {"type": "message_start", "message": _message("m1", stop="") | {"stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Sun."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    found = _read(_interaction({"model": "claude-x", "stream": True, "messages": ASKED}, stream))

    assert found.response(1)["content"] == [{"type": "text", "text": "Sun."}]
    assert (found.turns()[1]["usage"]["output"], found.of("turn_start")[0]["stream"]) == (5, True)


def test_a_refused_try_before_the_same_request_is_an_attempt_and_no_turn() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    refused = _interaction(json.loads(FIRST["request"]["body"]), error, status=529)
    found = _read(refused, FIRST)

    (turn,) = found.turns().values()
    assert [(a["status"], a.get("error_type")) for a in turn["attempts"]] == [(529, "overloaded_error"), (200, None)]
    assert turn["status"] == "ok"


def test_a_call_that_failed_for_good_is_a_turn_with_its_error() -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}}
    found = _read(_interaction({"model": "claude-x", "messages": ASKED}, error, status=400))

    (turn,) = found.turns().values()
    assert (turn["status"], turn["error"], turn["error_type"]) == ("error", "too long", "invalid_request_error")
    assert found.end() == ("failed", "too long")


def test_other_requests_are_counted_and_no_model_call_is_said() -> None:
    found = _read(_interaction({}, {"ok": True}, url="https://example.org/search?q=1"))

    assert (found.notes.runs, found.notes.counts["other_requests"]) == ({}, 1)
    assert list(found.notes.warnings) == ["none of the 1 requests is a model call that looptape knows"]


def test_a_key_in_the_url_or_a_body_is_not_kept() -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    one = _interaction({"model": "claude-x", "messages": [{"role": "user", "content": key}]}, _message("m1"))
    one["request"]["uri"] = f"{URL}?api_key=hunter2hunter2"
    one["request"]["headers"]["x-api-key"] = [key]

    told = json.dumps(_read(one).records)

    assert key not in told
    assert "hunter2" not in told


def test_bedrock_converse_is_found_by_its_path() -> None:
    answer = {
        "output": {"message": {"role": "assistant", "content": [{"text": "Sun."}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 4, "outputTokens": 2, "totalTokens": 6},
    }
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-micro-v1%3A0/converse"
    found = _read(_interaction({"messages": [{"role": "user", "content": [{"text": "weather?"}]}]}, answer, url=url))

    (turn,) = found.turns().values()
    assert (turn["model"], turn["usage"]["input"], turn["stop_reason"]) == ("amazon.nova-micro-v1:0", 4, "end_turn")
    assert found.of("turn_start")[0]["provider"] == "aws"


def test_a_binary_event_stream_is_a_turn_whose_answer_is_not_read() -> None:
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream"
    one = _interaction({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, b"\0\0\0\x99\xff", url=url)
    found = _read(one)

    assert found.of("turn_start")[0]["flags"] == ["answer_not_read"]
    assert any("the answer is not read" in w for w in found.notes.warnings)


def test_without_pyyaml_the_cure_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)

    with pytest.raises(LooptapeError) as caught:
        read(vcr, _yaml(FIRST))
    assert caught.value.cure == "Install it with: pip install 'looptape[vcr]'"
    assert read(vcr, json.dumps({"interactions": [FIRST]})).notes.turns == 1, "JSON needs nothing"


def test_broken_yaml_is_named_with_its_line(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "cassette.yaml"
    file.write_text("interactions:\n- request:\n    body: 'x\n  uri: [\n")

    with pytest.raises(LooptapeError, match=r"cassette\.yaml: line \d+: not YAML"):
        import_path(store, file)


def test_a_yaml_tag_makes_no_object() -> None:
    found = read(vcr, "interactions:\n- request: !!python/object/apply:os.system ['true']\n  response: {}\n")

    assert "not YAML" in found.notes.skipped[0]["reason"]


def test_aliases_that_unfold_to_a_bomb_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cassettes, "MAX_VALUES", 100_000)
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    text = "\n".join(["a0: &a0 [x]", *levels, "interactions:", "- request: {body: *a11}"])

    with pytest.raises(LooptapeError, match="unfolds to more than 100,000 values"):
        read(vcr, text)


def test_a_gzip_body_that_is_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cassettes, "MAX_BODY_BYTES", 1 << 20)
    found = _read(_interaction({"model": "claude-x", "messages": ASKED}, gzip.compress(b" " * (2 << 20))))

    assert any("unpacks to more than 1 MB" in w for w in found.notes.warnings)


def test_every_cassette_of_the_corpus_agrees_with_its_counts() -> None:
    corpus = require("corpus")
    listed = json.loads((corpus / "MANIFEST.json").read_text())["files"]
    files = [f for f in listed if f["format"] == "raw_api_vcr"]
    calls = {"anthropic_tools_legacy": 2, "history_with_events": 1, "openai_v2": 2, "botocore": 2}
    assert len(files) == 4
    for entry in files:
        file = corpus / entry["file"]
        assert vcr.recognise(file.read_bytes()[: 1 << 16])
        found = read(vcr, file)
        assert (len(found.notes.runs), found.notes.turns) == (1, entry["counts"]["interactions"]), file.name
        assert found.notes.tool_calls == next(n for part, n in calls.items() if part in file.name)
        assert found.notes.skipped == []
        assert found.of("turn_start")[-1]["url"].startswith(entry["counts"]["uris"][0][:40])


def test_no_other_format_is_claimed() -> None:
    for name in ("corpus", "otlp"):
        for file in sorted(p for p in require(name).rglob("*") if p.is_file() and "raw_api_vcr" not in str(p)):
            with file.open("rb") as stream:
                assert not vcr.recognise(stream.read(1 << 16)), file


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1.5, "", "x" * 300, [], [[]], {}, {"a": []}, b"\xff\x00"]
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_cassettes_never_raise_and_are_never_lost_without_a_word(data: st.DataObject) -> None:
    value = json.loads(json.dumps({"interactions": [FIRST, SECOND], "version": 1}))
    for _ in range(data.draw(st.integers(1, 3))):
        node = value
        while isinstance(node, (dict, list)) and node:
            key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else list(range(len(node)))))
            if not isinstance(node[key], (dict, list)) or not node[key] or data.draw(st.booleans()):
                odd = data.draw(ODD)
                node[key] = type(odd)(odd) if isinstance(odd, (dict, list)) else odd
                break
            node = node[key]
    text = str(yaml.safe_dump(value))
    text = text[: data.draw(st.sampled_from([len(text), len(text), len(text) // 2]))]

    found = read(vcr, text)

    for record in found.records:
        tapes.line(record)
    assert found.notes.runs or found.notes.skipped or found.notes.warnings or not found.notes.counts["objects"]
