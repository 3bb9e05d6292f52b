"""Texts that databases and JSON parsers stumble over come back exactly as they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import long_tape
from examples import examples
from looptape.tracer import tape
from looptape.tracer.store import sync
from looptape.tracer.store.opening import open_store
from looptape.tracer.store.text import at_path, decode, encode, facts, result_text, same_result

RUN = "c" * 16
ODD = {
    "surrogate": '{"tool":"t","result":"bad \\ud83e end"}',
    "raw surrogate": '{"tool":"t","result":"bad \ud83e end \ufdd0 1234"}',
    "nul": '{"tool":"t","result":"nul \\u0000 end"}',
    "raw nul": '{"tool":"t","result":"nul \x00 end"}',
    "big_number": '{"tool":"t","n":123456789012345678901234567890}',
    "nan": '{"tool":"t","n":NaN}',
    "duplicate_key": '{"tool":"t","a":1,"a":2}',
    "not_json": "{half",
    "deep": "[" * 20_000 + "]" * 20_000,
    "huge number": '{"n":' + "9" * 6000 + "}",
}


def tape_with(texts):
    """A run whose only turn was sent these texts as messages."""
    blobs = [tape.blob(t) for t in texts]
    yield {"kind": "run_start", "run": RUN, "at": 1, "name": "odd"}
    yield from blobs
    yield {
        "kind": "turn_start",
        "run": RUN,
        "turn": 1,
        "at": 2,
        "keep": 0,
        "append": [b["hash"] for b in blobs],
        "api": "manual",
    }


@pytest.mark.parametrize("how", ["given", "through a journal"])
def test_odd_texts_are_stored_and_read_back_exactly(tmp_path, how):
    with open_store(tmp_path) as store:
        if how == "given":
            store.ingest(tape_with(ODD.values()))
        else:
            long_tape.journal(tmp_path, "w", [tape.line(r) for r in tape_with(ODD.values())])
    report = sync(tmp_path)
    assert report.bad == 0
    with open_store(tmp_path) as store:
        wanted = '{"messages":[' + ",".join(ODD.values()) + "]}"
        assert store.wire(RUN, 1).request_text == wanted
        got = store.request(RUN, 1).messages
        assert got[0]["result"] == "bad \ud83e end"
        assert got[2]["result"] == "nul \x00 end"
        assert got[4]["n"] == 123456789012345678901234567890
        assert got[7] == ODD["not_json"]
        assert got[8] == ODD["deep"]
        flags = [f for (f,) in store.sql("select flags from messages order by position")[2]]
    assert flags == [
        "surrogate", "surrogate", "nul", "not_json,nul", "big_number", "nan", "duplicate_key", "not_json", "deep", "big_number",
    ]  # fmt: skip


@given(st.text(st.characters(categories=["Cs", "L", "N", "Cc"], include_characters="\ufdd0\ufdd10ADF")))
@settings(max_examples=examples(300))
def test_encoding_is_reversible_and_fit_for_utf8(text):
    coded = encode(text)
    assert decode(coded) == text
    coded.encode("utf-8")


def test_ordinary_text_is_stored_as_it_is():
    for text in ("plain", "naïve 🤖 \x00 \\ud83e", "日本語"):
        assert encode(text) == text


def test_names_and_errors_may_be_odd_too(tmp_path):
    name = "run \ud800 \ufdd0"
    with open_store(tmp_path) as store:
        store.ingest([{"kind": "run_start", "run": "x\udfff", "at": 1, "name": name, "tags": {"k": "\udc00"}}])
        run = store.run("x\udfff")
        assert (run.name, run.tags) == (name, {"k": "\udc00"})
        assert store.find(name) == [run]
        assert store.sql("select name from runs")[2] == [(name,)]


def test_role_and_oddities_of_a_text():
    assert facts('{"role":"user","content":"x"}') == ("user", None, {"role": "user", "content": "x"})
    assert facts('{"type":"function_call_output"}')[:2] == ("function_call_output", None)
    assert facts('"just text"') == (None, None, "just text")
    assert facts('{"a":"\\ud83e\\udd16"}') == (None, None, {"a": "\U0001f916"})
    assert facts('{"n":1234567890123456789}') == (None, None, {"n": 1234567890123456789})
    assert facts('{"a":"\\udd16"}') == (None, "surrogate", None)
    assert facts('{"n":18446744073709551616}') == (None, "big_number", None)
    assert facts('{"a":1,"a":2}') == (None, "duplicate_key", None)
    assert facts("[NaN]") == (None, "nan", None)
    assert facts("[") == (None, "not_json", None)


def test_a_result_is_found_by_its_path():
    message = {"content": [{"type": "text"}, {"content": "found", "odd key": [7]}]}
    assert at_path(message, "$.content[1].content") == "found"
    assert at_path(message, '$.content[1]["odd key"][0]') == 7
    assert at_path(message, "$") == message
    for path in ("$.content[9].content", "$.nothing", "$.content.content", "$.content[", "$..x"):
        assert at_path(message, path) is None


def test_what_a_tool_returned_and_what_the_model_saw_are_compared_as_text():
    blocks = [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
    assert same_result("42", blocks)
    assert same_result({"b": 1, "a": [2]}, json.dumps({"a": [2], "b": 1}))
    assert same_result(42, "42")
    assert not same_result("42", "43")
    assert not same_result({"a": 1}, "cut ...")
    assert result_text(None) is None
