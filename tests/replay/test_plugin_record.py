"""The pytest plugin records: one tape a test, the same bytes again but for its first line, nothing in the user's store."""

import json

import pytest

from plugin_project import TEST, Project

pytest_plugins = ("pytester",)
TAPE, PAGE = "tapes/test_agent/test_revenue.tape.jsonl", "tapes/test_agent/test_revenue.tape.md"


@pytest.fixture
def project(pytester, monkeypatch):
    return Project(pytester, monkeypatch)


def test_recording_again_changes_nothing_but_the_header(project):
    result, log = project.record()
    result.stdout.fnmatch_lines([f"recorded tests/{TAPE}"])
    assert len(log) == 3
    first = project.tapes()
    assert sorted(first) == [TAPE, PAGE]
    assert project.record()[0].ret == 0
    second = project.tapes()
    assert first[PAGE] == second[PAGE]
    heads, bodies = zip(*(f[TAPE].split(b"\n", 1) for f in (first, second)), strict=True)
    assert bodies[0] == bodies[1]
    assert heads[0] != heads[1]
    assert set(json.loads(heads[0])) == {
        "kind", "format", "version", "form", "name", "looptape", "started_at", "runs", "moved",
    }  # fmt: skip
    assert b"sk-ant" not in first[TAPE]
    assert project.users_home() == []


def test_a_test_that_fails_leaves_its_tape_as_it_was(project):
    project.recorded()
    before = project.tapes()
    project.write(TEST.replace("412", "413"))
    result, log = project.record()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"not recorded, since the test failed: tests/{TAPE} is as it was"])
    assert len(log) == 3
    assert project.tapes() == before


def test_a_test_that_calls_no_model_has_nothing_to_record_and_says_so(project):
    project.write(TEST.replace('assert "412" in answer()', "pass"))
    result, _ = project.record()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["looptape: the test made no model call that looptape sees*"])
    assert project.tapes() == {}


TWO = TEST + TEST.replace("test_revenue", "test_other")


def test_missing_records_what_has_no_tape_and_replays_the_others(project):
    project.recorded()
    project.write(TWO)
    before = project.tapes()
    result, log = project.record("--looptape=missing")
    result.assert_outcomes(passed=2)
    assert len(log) == 3
    assert project.tapes()[TAPE] == before[TAPE]
    assert "tapes/test_agent/test_other.tape.jsonl" in project.tapes()


def test_off_runs_live_reads_and_writes_no_tape_and_the_fixture_still_sees_the_run(project):
    project.write(
        TEST + TEST.replace("test_revenue()", "test_seen(tape)") + "    tape.assert_tools(['search', 'search'])\n"
    )
    result, log = project.record("--looptape=off", times=2)
    result.assert_outcomes(passed=2)
    assert len(log) == 6
    assert project.tapes() == {}


NAMES = """
import pytest
from agent import answer

class TestIt:
    @pytest.mark.looptape
    @pytest.mark.parametrize("q", ["a", "a/b", "a\\\\b", "..", "ü"])
    def test_it(self, q):
        answer(q)

@pytest.mark.looptape(tape="elsewhere/own.tape.jsonl")
def test_own():
    answer()
"""


def test_every_test_of_a_class_and_every_parameter_has_a_safe_file_of_its_own(project):
    project.write(NAMES)
    result, _ = project.record(times=6)
    result.assert_outcomes(passed=6)
    tapes = [name for name in project.tapes() if name.endswith(".jsonl")]
    assert len(tapes) == 5
    assert all(name.startswith("tapes/test_agent/TestIt.test_it-") and name.isascii() for name in tapes)
    assert (project.path / "tests/elsewhere/own.tape.jsonl").exists()
    project.pytest().assert_outcomes(passed=6)


def test_two_tests_with_one_tape_are_refused(project):
    project.write(TWO.replace("looptape\n", "looptape(tape='one.tape.jsonl')\n"))
    result = project.pytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_other and tests/test_agent.py::test_revenue have one tape, *"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [([], True), (["-k", "plain"], True), (["tests/test_agent.py::test_plain"], False)],
    ids=["whole", "deselected", "one-test"],
)
def test_a_tape_without_a_test_is_told_when_its_module_was_collected_whole(project, arguments, told):
    project.recorded()
    project.write("def test_plain():\n    pass\n")
    lost = project.path / "tests/tapes/test_gone/test_x.tape.jsonl"
    lost.parent.mkdir()
    lost.write_bytes(b"")
    result = project.pytest(*arguments)
    assert result.ret == 0
    said = result.stdout.str()
    assert (f"stale tape: no test is bound to tests/{TAPE}" in said) is told
    assert "stale tape: no test is bound to tests/tapes/test_gone/test_x.tape.jsonl" in said


def test_a_deselected_test_is_still_bound_to_its_tape(project):
    project.recorded()
    project.write(TEST + "\ndef test_plain():\n    pass\n")
    assert "stale" not in project.pytest("-k", "plain").stdout.str()


def test_a_transcript_that_does_not_agree_is_told_and_written_anew_when_asked(project):
    project.recorded()
    page = project.path / "tests" / PAGE
    whole = page.read_text()
    for part in ("What is the revenue?", '{"q":"2025"}', "found revenue", "412 million"):
        assert part in whole
    page.write_text(whole.replace("412", "413"))
    result = project.pytest()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"stale transcript: tests/{PAGE} does not agree with its tape"])
    project.pytest("--looptape=missing").assert_outcomes(passed=1)
    assert page.read_text() == whole
    assert "stale" not in project.pytest().stdout.str()


OPEN = """
import threading, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
import os
import anthropic
import pytest
from agent import answer, request
left = []

@pytest.mark.looptape
def test_leaves_a_stream_open():
    client = anthropic.Anthropic(base_url=os.environ["FAKE_URL"].replace("/s/a", "/s/b"))
    stream = client.messages.create(**request([{"role": "user", "content": "hi"}]), stream=True)
    left.append(stream)
    next(iter(stream))
    raise ValueError("on purpose")

@pytest.mark.looptape
def test_whole(tape):
    answer()
    for stream in left:
        list(stream)  # too late: it belongs to no test any more
    assert tape.run.turns == 3
    assert len(tape.recordings) == 1

class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello")
    def log_message(self, *_): pass

@pytest.mark.looptape
def test_plain_http(tape):
    import httpx2
    server = HTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with httpx2.Client() as client:
        assert client.get(f"http://127.0.0.1:{server.server_port}/v1/telemetry").text == "hello"
        assert client.post(f"http://127.0.0.1:{server.server_port}/v1/traces", json={}).status_code == 501
    server.shutdown()
    answer()
    assert tape.run.turns == 3
"""


@pytest.mark.parametrize("order", ["as-written", "reversed"])
def test_a_stream_left_open_is_named_and_the_next_test_knows_nothing_of_it(project, order):
    project.write(OPEN)
    if order == "reversed":
        (project.path / "conftest.py").write_text("def pytest_collection_modifyitems(items):\n    items.reverse()\n")
    result, log = project.record("-W", "always::looptape.replay.plugin.StreamLeftOpen", times=4)
    result.assert_outcomes(passed=2, failed=1, warnings=1)
    result.stdout.fnmatch_lines(["*StreamLeftOpen: the stream of turn 1 of test_leaves_a_stream_open was left open*"])
    assert len(log) == 7
    tapes = {k: v for k, v in project.tapes().items() if k.endswith(".jsonl")}
    assert sorted(tapes) == ["tapes/test_agent/test_plain_http.tape.jsonl", "tapes/test_agent/test_whole.tape.jsonl"]
    assert all(v.count(b'"turn_start"') == 3 and b"telemetry" not in v for v in tapes.values())


LIVE = """
import os
import anthropic
import pytest
from agent import request
import looptape

CLIENT = looptape.wrap(anthropic.Anthropic(base_url=os.environ.get("FAKE_URL"), api_key="none"))

def test_not_bound():
    CLIENT.messages.create(**request([{"role": "user", "content": "hi"}]))
"""


def test_a_test_without_the_marker_records_as_it_did_before(project):
    project.write(LIVE)
    result, log = project.record("--looptape=replay")
    result.assert_outcomes(passed=1)
    assert len(log) == 1
    assert project.tapes() == {}


def test_what_a_tape_holds_is_found_again_by_import(project):
    from commandline import looptape

    project.recorded()
    ran = looptape("show", str(project.path / "tests" / TAPE), "--json")
    assert ran.code == 0, ran.err
    run, turns = ran.json["run"], ran.json["turns"]
    assert (run["turns"], run["tool_calls"], run["status"]) == (3, 2, "completed")
    assert run["id"] in (project.path / "tests" / TAPE).read_text().splitlines()[0]  # its own id, not that of the form
    assert all(t["started_at"] and t["generate_ms"] is not None for t in turns)
    assert turns[0]["caller"].startswith("agent.py:")
