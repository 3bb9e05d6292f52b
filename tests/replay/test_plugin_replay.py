"""The pytest plugin replays: offline, without a key, and a miss is a failure of its own whatever the program makes of it."""

import socket

import pytest

from looptape.tracer import process, substitute
from played import forget_wrapped
from plugin_project import TEST, Project

pytest_plugins = ("pytester",)


@pytest.fixture
def project(pytester, monkeypatch):
    return Project(pytester, monkeypatch)


@pytest.fixture
def connections(monkeypatch):
    """Every address that a socket of this process connects to."""
    made = []
    original = socket.socket.connect

    def connect(self, address):
        made.append(address)
        return original(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    return made


def test_a_recorded_test_passes_offline_without_a_key_and_runs_no_tool(project, connections):
    project.recorded()
    connections.clear()
    project.write(TEST + "    assert ran == []\n")
    project.pytest().assert_outcomes(passed=1)
    assert connections == []
    assert process.recorder() is None or process.recorder().journal._home != project.path  # the former one is back
    assert substitute.installed() is None
    assert project.users_home() == []


def test_a_changed_prompt_fails_with_path_nearest_recording_and_the_command_that_records_again(project, connections):
    project.recorded()
    connections.clear()
    result = project.pytest(PROMPT="What is the cost?")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "looptape: tests/tapes/test_agent/test_revenue.tape.jsonl was not replayed as recorded",
            "turn 1 asks for something that is not in the recording",
            "*at        *messages[[]0[]].content",
            "*recorded  What is the revenue?",
            "*got       What is the cost?",
            "*nearest   turn 1*",
            "*pytest --looptape=record tests/test_agent.py::test_revenue",
        ]
    )
    said = result.stdout.str()
    assert "Connection error" not in said
    assert "Traceback" not in said
    assert connections == []


SWALLOWED = """
import pytest
from agent import answer, request
import anthropic, os

@pytest.mark.looptape
def test_swallowed():
    try:
        answer()
    except BaseException:
        pass

@pytest.mark.looptape
def test_disguised():
    try:
        answer()
    except BaseException as error:
        raise RuntimeError("Connection error") from None
"""


def test_a_miss_that_the_program_swallows_or_disguises_still_fails_the_test(project):
    project.write(SWALLOWED)
    project.record(times=2)[0].assert_outcomes(passed=2)
    result = project.pytest(PROMPT="What is the cost?")
    result.assert_outcomes(failed=2)
    said = result.stdout.str()
    assert said.count("  got       What is the cost?") in (2, 4)  # under CI pytest's summary repeats it
    assert "the test then ended with RuntimeError: Connection error" in said


def test_a_turn_that_is_not_asked_for_fails_the_test(project):
    project.recorded()
    project.write(TEST.replace('assert "412" in answer()', "pass"))
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*not asked for: 3 model calls, 2 tool calls"])


def test_a_failing_assertion_keeps_its_own_report_and_says_how_the_replay_stood(project):
    project.recorded()
    project.write(TEST.replace("412", "413"))
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       AssertionError*", "*replay ok: 3 of 3 model calls*"])


def test_a_missing_tape_fails_with_the_command_that_records_it(project, connections):
    result = project.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "looptape: tests/test_agent.py::test_revenue has no tape tests/tapes/test_agent/test_revenue.tape.jsonl. "
            "Record it: pytest --looptape=record tests/test_agent.py::test_revenue",
        ]
    )
    assert connections == []


@pytest.mark.parametrize("content", [b"", b"not json\n", b'{"kind":"header","format":"looptape","version":99}\n'])
def test_a_tape_that_cannot_be_used_is_named_with_its_line(project, content):
    project.recorded()
    (project.path / "tests/tapes/test_agent/test_revenue.tape.jsonl").write_bytes(content)
    result = project.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["looptape: *test_revenue.tape.jsonl cannot be replayed: *"])


NETWORK = """
import socket, threading, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
import pytest
from agent import answer

class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello")
    def log_message(self, *_): pass

@pytest.mark.looptape
def test_revenue():
    answer()
    server = HTTPServer(("127.0.0.1", 0), Hello)
    threading.Thread(target=server.handle_request, daemon=True).start()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/x") as reply:
        assert reply.read() == b"hello"
    with pytest.raises(ConnectionError, match="closed to the network"):
        socket.create_connection(("192.0.2.1", 443), timeout=5)
"""


def test_the_network_is_closed_but_loopback_passes(project):
    project.recorded()
    project.write(NETWORK)
    project.pytest().assert_outcomes(passed=1)


ASSERTIONS = """
import pytest
from agent import answer

@pytest.mark.looptape
def test_revenue(tape):
    answer()
    assert (tape.run.turns, tape.run.name, tape.run.status) == (3, "test_revenue", "completed")
    tape.assert_tools(["search", ("search", {"q": "2025"})])
    tape.assert_no_cycles()
    tape.assert_within(turns=3, tokens=40, usd=0.01, tolerance=0.2)
    if tape.replayed:
        assert tape.verdict.ok, tape.verdict
    EXTRA
"""


def test_the_fixture_asserts_tools_budgets_cycles_and_the_verdict_when_recorded_and_when_replayed(project):
    project.write(ASSERTIONS.replace("EXTRA", ""))
    project.record()[0].assert_outcomes(passed=1)
    project.pytest().assert_outcomes(passed=1)


WRONG = {
    "tape.assert_tools(['search'])": '*got     search({"q":"2025"})',
    "tape.assert_tools(['search', ('search', {'q': '2024'})])": '*wanted  search({"q":"2024"})',
    "tape.assert_within(turns=2)": "*turns: 3, at most 2",
    "tape.assert_within(tokens=3)": "*tokens: *, at most 3",
    "tape.assert_within(usd=0.0000001)": "*usd: $0.000*, at most $0.000000",
    "tape.assert_within()": "*assert_within() checks nothing*",
}


@pytest.mark.parametrize("line", list(WRONG), ids=["tools", "arguments", "turns", "tokens", "usd", "nothing"])
def test_an_assertion_that_does_not_hold_says_what_was_got(project, line):
    project.recorded(ASSERTIONS.replace("EXTRA", ""))
    project.write(ASSERTIONS.replace("EXTRA", line))
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([WRONG[line]])


def test_a_model_without_a_price_fails_a_cost_budget_and_never_counts_as_free(project):
    agent = project.path / "agent.py"
    agent.write_text(agent.read_text().replace("claude-sonnet-5", "acme-large-1"))
    project.write(ASSERTIONS.replace("EXTRA", "").replace("usd=0.01, ", ""))
    project.record()[0].assert_outcomes(passed=1)
    project.write(ASSERTIONS.replace("EXTRA", ""))
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*usd cannot be checked: 3 of 3 turns cannot be priced (acme-large-1)"])


ROUND = """
import pytest
from agent import answer

@pytest.mark.looptape
def test_revenue(tape):
    answer()
    tape.assert_no_cycles()
"""


def test_a_loop_that_goes_round_in_circles_fails_also_when_it_is_replayed(project, monkeypatch):
    import plugin_project
    from fakellm import Call, Step

    same = [Step(calls=[Call("search", {"q": "again"})]) for _ in range(6)] + [Step(text="412")]
    monkeypatch.setattr(plugin_project, "steps", lambda times=1: same)
    project.write(ROUND.replace("    tape.assert_no_cycles()\n", ""))
    project.record()[0].assert_outcomes(passed=1)
    project.write(ROUND)
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ran search(*again*) * times and got the same result each time"])


def test_the_markers_options_reach_the_replay_and_an_unknown_one_is_refused(project):
    project.recorded()
    project.write(TEST.replace("looptape\n", "looptape(match='dialogue', unwrapped='run')\n"))
    project.pytest().assert_outcomes(passed=1)
    project.write(TEST.replace("looptape\n", "looptape(macth='exact')\n"))
    result = project.pytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_revenue: @pytest.mark.looptape knows no macth; it has match, *"])


def test_the_fixture_without_the_marker_says_so(project):
    project.write("def test_revenue(tape):\n    pass\n")
    result = project.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the tape fixture needs @pytest.mark.looptape on the test"])


def test_tools_that_are_not_wrapped_stop_the_test_before_they_run(project, monkeypatch):
    project.recorded()
    agent = project.path / "agent.py"
    agent.write_text(agent.read_text().replace("@looptape.tool\n", ""))
    forget_wrapped(monkeypatch)
    result = project.pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*would really run: search.", "*@pytest.mark.looptape(unwrapped='run')"])


def test_a_skipped_test_needs_no_tape_and_an_expected_failure_stays_one(project):
    project.write(
        TEST.replace("@pytest.mark.looptape", '@pytest.mark.skip(reason="later")\n@pytest.mark.looptape')
        + TEST.replace("@pytest.mark.looptape", "@pytest.mark.xfail(strict=True)\n@pytest.mark.looptape").replace(
            "test_revenue", "test_other"
        )
    )
    project.pytest().assert_outcomes(skipped=1, xfailed=1)


def test_clients_made_by_fixtures_are_answered_too(project):
    project.write(
        """
import pytest
from agent import answer

@pytest.fixture
def said():
    return answer()

@pytest.mark.looptape
def test_revenue(said):
    assert "412" in said
"""
    )
    project.record()[0].assert_outcomes(passed=1)
    project.pytest().assert_outcomes(passed=1)
    result = project.pytest(PROMPT="What is the cost?")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*got       What is the cost?"])
