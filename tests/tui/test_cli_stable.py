"""`looptape stable RUN -- COMMAND`: what differs from run to run is named with its place, its cause and its cure."""

import json
import sys

import pytest

from fakellm import FakeLLM, Scenario, Step
from launched import CLI, INSIDE, Launcher
from looptape.replay.program import causes
from looptape.replay.program.causes import cause_of, places

PYTHON = sys.executable
STABLE = [sys.executable, "-P", "-m", "looptape.tui.cli", "stable"]
STEADY = "print(ask(os.environ['ANTHROPIC_BASE_URL'], 'What is the revenue?'))\n"
UNSTEADY = (
    "import random, time, uuid\n"
    "def prompt():\n"
    "    words = {f'word{n}' for n in range(40)}\n"  # so many that no two runs have them in the same order
    "    return (f'run {uuid.uuid4()}', f'at {time.time():.6f}', f'pid {os.getpid()}', f'seed {random.random():.9f}',\n"
    "            ' '.join(words), 'steady')\n"
    "url = os.environ['ANTHROPIC_BASE_URL']\n"
    "body = {'model': 'm-1', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': [\n"
    "    {'type': 'text', 'text': t} for t in prompt()]}]}\n"
    "print(HTTP(url + '/v1/messages', body))\n"
)


@pytest.fixture
def here(tmp_path):
    (tmp_path / "work").mkdir()
    with FakeLLM({"a": Scenario([Step(text="hello")])}) as server:
        launcher = Launcher(tmp_path / "work", tmp_path / "home", server.url("a"))
        launcher.server = server
        yield launcher


def stable(here, text, *options, now=None):
    """Exit code and output of `stable` for a program that was recorded."""
    here.write("agent.py", INSIDE + text)
    assert here.run(PYTHON, "agent.py", by=CLI)[0] == 0
    here.server.log.clear()
    if now is not None:
        here.write("agent.py", INSIDE + now)
    result = here.run(*options, "--", PYTHON, "agent.py", by=[*STABLE, "last"])
    assert here.server.log == []
    return result


def test_a_steady_program_is_stable_and_keeps_nothing(here):
    code, out, err = stable(here, STEADY)
    assert (code, out) == (0, "stable: 1 turn, the same requests in both runs\n"), err
    assert here.recorded() == [("agent", "sdk", "completed", 1)]


def test_every_unsteady_piece_is_named_with_its_cause_place_and_rule(here):
    code, out, err = stable(here, UNSTEADY, "--json")
    assert code == 1, err
    found = {d["path"]: d for d in json.loads(out)["differences"]}
    path = "$.messages[0].content[{}].text"
    assert [found[path.format(i)]["cause"] for i in range(5)] == ["uuid", "time", "number", "random", "order"]
    assert path.format(5) not in found
    assert found[path.format(0)]["rules"] == ["ids"]
    assert found[path.format(2)]["rules"] == []
    line = UNSTEADY.splitlines().index(
        "    return (f'run {uuid.uuid4()}', f'at {time.time():.6f}', f'pid {os.getpid()}', f'seed {random.random():.9f}',"
    )
    number = INSIDE.count("\n") + line + 1
    for index, call in enumerate(("uuid.uuid4()", "time.time()", "os.getpid()", "random.random()")):
        assert f"agent.py:{number} {call}" in found[path.format(index)]["places"]
    assert all(d["cure"] and d["caller"].startswith("agent.py:") for d in found.values())


def test_in_words_it_says_what_a_replay_would_stop_at(here):
    code, out, _ = stable(here, UNSTEADY)
    assert code == 1
    assert "4 differences that a replay stops at, 1 that matching allows" in out
    assert "uuid.uuid4()" in out
    assert "allowed   by the rule ids" in out


def test_what_changed_since_the_recording_is_no_instability(here):
    code, out, err = stable(here, STEADY, now=STEADY.replace("revenue", "profit"))
    assert code == 0, err
    assert "messages[0].content" in out
    assert "the same in both runs, but not as recorded" in out


def test_a_normaliser_of_the_users_own_makes_it_stable(here):
    here.write("mine.py", "import re\ndef steady(text): return re.sub(r'pid \\d+', 'pid', text)\n")
    text = "import os\nprint(ask(os.environ['ANTHROPIC_BASE_URL'], f'pid {os.getpid()}'))\n"
    assert stable(here, text)[0] == 1
    code, out, err = stable(here, text, "--normaliser", "mine:steady")
    assert code == 0, err
    assert "mine:steady" in out


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        ("id 0b3c1a52-3f7e-4a1f-9a52-0b3c1a523f7e.", "id 5f7e1a52-3f7e-4a1f-9a52-0b3c1a523f00.", "uuid"),
        ("now 1780000000.123456", "now 1780000009.654321", "time"),
        ("at 12:03:04", "at 12:03:05", "time"),
        ("in /tmp/tmpab12cd34/x", "in /tmp/tmpzz99yy88/x", "path"),
        ("key 9f86d081884c7d65", "key 5e884898da280471", "random"),
        ("port 41234", "port 51234", "number"),
        ("a b c", "c a b", "order"),
        ("blue sky", "grey sky", "text"),
    ],
)
def test_the_kind_of_a_value_is_told_by_its_shape(left, right, name):
    assert cause_of(left, right).name == name


def test_places_are_looked_for_in_python_files_that_can_be_read(tmp_path):
    (tmp_path / "bad.py").write_text("def (")
    assert places(causes.TIME, [str(tmp_path / "bad.py"), str(tmp_path / "absent.py")]) == ()
