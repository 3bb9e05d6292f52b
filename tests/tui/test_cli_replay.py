"""`looptape replay RUN -- COMMAND`: real processes, a real (fake) server that must never be asked, and every exit code."""

import json
import os
import signal

import pytest

from commandline import looptape
from fakellm import Call, FakeLLM, Scenario, Step
from launched import CLI, Launcher
from looptape.tracer.store import open_store
from looptape.tracer.store.export import records_of
from replayed import AGENT, MAIN, PYTHON, REPLAY, ran, recorded, replay, runs, steps


@pytest.fixture
def server():
    with FakeLLM({"a": Scenario(steps())}) as running:
        yield running


@pytest.fixture
def here(tmp_path, server):
    (tmp_path / "work").mkdir()
    return Launcher(tmp_path / "work", tmp_path / "home", server.url("a"))


def test_the_program_runs_as_recorded_without_server_and_tools(here, server):
    out = recorded(here, server)
    code, again, err = replay(here, ANTHROPIC_BASE_URL="http://127.0.0.1:1")
    assert (code, again) == (7, out), err
    assert (server.log, ran(here)) == ([], [])
    assert "4 of 4" in err
    original, new = runs(here)
    assert (new.source, new.parent.run, new.parent.kind, new.turns) == ("replay", original.id, "fork", 4)


def test_json_is_the_last_line_after_the_programs_own(here, server):
    out = recorded(here, server)
    code, both, _ = replay(here, "--json")
    assert code == 7
    assert both.startswith(out)
    said = json.loads(both[len(out) :])
    assert (said["version"], said["run"]) == (1, runs(here)[-1].id)
    verdict = said["verdict"]
    counts = {"model": 4, "tools": 3}
    assert (verdict["ok"], verdict["recorded"], verdict["served"]) == (True, counts, counts)
    nothing = {"model": 0, "tools": 0}
    assert (verdict["unconsumed"], verdict["live"], verdict["bypassed"]) == (nothing, nothing, 0)
    assert (verdict["network_requests"], verdict["normalised"], verdict["diverged"]) == (0, [], None)


def test_a_changed_prompt_is_a_miss_with_path_values_and_cure(here, server):
    recorded(here, server)
    code, out, err = replay(
        here, "--json", PROMPT="What is the profit?", ANTHROPIC_BASE_URL="http://api.example.invalid"
    )
    assert code == 1
    assert "Traceback" not in err
    for part in ("turn 1", "messages[0].content", "revenue", "profit", "looptape record"):
        assert part in err, err
    assert (server.log, ran(here)) == ([], [])
    diverged = json.loads(out)["verdict"]["diverged"]
    assert (diverged["turn"], diverged["path"]) == (1, "$.messages[0].content")


def test_a_miss_that_the_program_swallows_is_still_the_verdict(here, server):
    recorded(here, server)
    here.write("agent.py", AGENT + "try: loop('other')\nexcept BaseException: print('fine')\n")
    code, out, _ = replay(here)
    assert (code, out) == (1, "fine\n")


@pytest.mark.parametrize("damage", ["empty", "truncated", "version", "no calls", "garbage"])
def test_an_unusable_recording_fails_before_anything_runs(here, server, damage):
    recorded(here, server)
    run = runs(here)[0].id
    tape = here.work / "one.tape.jsonl"
    assert here.run(run, "-o", tape, by=[*REPLAY[:-1], "export"])[0] == 0
    lines = tape.read_bytes().splitlines(keepends=True)
    turn = next(i for i, text in enumerate(lines) if b'"turn_start"' in text)
    whole = {
        "empty": b"",
        "truncated": b"".join(lines)[: sum(map(len, lines)) // 2],
        "version": lines[0].replace(b'"version":1', b'"version":99') + b"".join(lines[1:]),
        "no calls": b"".join(lines[:turn]),
        "garbage": lines[0] + b"\x00\xff\n",
    }[damage]
    tape.write_bytes(whole)
    here.write("agent.py", "open('started', 'w')\n")
    code, out, err = replay(here, run=str(tape))
    assert (code, out) == (3, ""), err
    assert err.count("\n") == 1
    assert "cannot be replayed" in err
    assert not (here.work / "started").exists()
    assert server.log == []


@pytest.mark.parametrize("run", ["nowhere", "./nowhere.tape.jsonl", "last"])
def test_an_unknown_recording_is_a_usage_error(here, run):
    here.write("agent.py", "open('started', 'w')\n")
    code, _, err = replay(here, run=run)
    assert code == 2, err
    assert not (here.work / "started").exists()


def test_tools_that_are_not_wrapped_stop_it_before_turn_1_unless_they_may_run(here, server):
    recorded(here, server)
    here.write("agent.py", MAIN.replace("@looptape.tool\n", ""))
    code, out, err = replay(here)
    assert (code, out) == (2, "")
    assert "search" in err
    assert "--unwrapped run" in err
    assert ran(here) == []
    code, _, err = replay(here, "--unwrapped", "run")
    assert (code, ran(here)) == (7, ["search"] * 3), err
    assert server.log == []


def test_a_repeated_call_gets_its_own_result_and_one_too_many_is_a_miss(here, server):
    popping = AGENT + (
        "results = iter('ABC')\n"
        "@looptape.tool\n"
        "def pop_next(queue): ran('pop'); return next(results)\n"
        "TOOLS['pop_next'] = pop_next\n"
        "loop('go')\n"
        "if os.environ.get('MORE'): print('never', pop_next(queue='q'))\n"
    )
    server.scenarios["a"] = Scenario([
        *(Step(calls=[Call("pop_next", {"queue": "q"}, f"toolu_{n}")]) for n in range(3)), Step(text="done"),
    ])  # fmt: skip
    recorded(here, server, 0, popping)
    here.write("agent.py", popping.replace("loop('go')\n", "print([m['content'] for m in loop('go')[2::2]])\n"))
    code, out, err = replay(here)
    assert code == 0, err
    assert [out.index(f"'content': '{letter}'") for letter in "ABC"] == sorted(
        out.index(f"'content': '{letter}'") for letter in "ABC"
    )
    code, out, err = replay(here, MORE="1")
    assert (code, "never" in out) == (1, False), err
    assert "pop_next" in err
    assert ran(here) == []


def test_several_processes_are_one_replay(here, server):
    here.write("worker.py", AGENT + "print(loop(sys.argv[1], 1)[-1]['content'][0]['text'], flush=True)\n")
    text = AGENT + (
        "import subprocess\nprint(loop('lead', 1)[-1]['content'][0]['text'], flush=True)\n"
        "for _ in range(2): subprocess.run([sys.executable, 'worker.py', 'the same'], check=True)\n"
    )
    server.scenarios["a"] = Scenario([Step(text=f"answer {n}") for n in range(9)])
    out = recorded(here, server, 0, text)
    assert out == "answer 0\nanswer 1\nanswer 2\n"
    lead, *workers = [r.id for r in runs(here)]
    others = [part for run in workers for part in ("--with", run)]
    code, again, err = replay(here, *others, run=lead)
    assert (code, again) == (0, out), err
    assert "3 of 3" in err
    code, again, err = replay(here, "--with", workers[0], run=lead)
    assert (code, again) == (1, "answer 0\nanswer 1\n"), err
    assert server.log == []


LIVE = ("--from", "3", "--model", "live")


def test_after_kill_9_it_goes_on_live_from_the_recorded_turns(here, server):
    killing = AGENT + (
        "def kill(n):\n    if n == 2 and os.environ.get('KILL'): os.kill(os.getpid(), 9)\n"
        "print(json.dumps(loop('What is the revenue?', on_turn=kill)))\n"
    )
    here.write("agent.py", killing)
    code, _, _ = here.run(PYTHON, "agent.py", by=CLI, KILL="1")
    assert code == -signal.SIGKILL
    assert len(server.log) == 2
    server.log.clear()
    (here.work / "ran").unlink()
    code, out, err = replay(here, *LIVE, "--tool", "search=live")
    assert code == 0, err
    assert len(server.log) == 2  # turns 3 and 4
    assert ran(here) == ["search"] * 2  # of turn 2, which had no result yet, and of turn 3
    assert "412 million" in out
    old, new = runs(here)
    assert (old.turns, old.status, new.turns, new.status) == (2, "interrupted", 4, "completed")
    assert (new.parent.run, new.parent.turn) == (old.id, 3)
    with open_store(here.home) as store:
        assert [t.inherited for t in store.turns(new.id)] == [True, True, False, False]


def test_a_replay_of_a_replay_knows_its_parent_and_leaves_the_originals_alone(here, server):
    server.scenarios["a"] = Scenario(steps(6))
    recorded(here, server)
    original = runs(here)[0].id
    with open_store(here.home) as store:
        before = list(records_of(store, original))
    server.scenarios["a"] = Scenario(steps(6)[2:])
    code, _, err = replay(here, *LIVE, run=original)
    assert code == 7, err
    assert len(server.log) == 4  # a fork at 3 asks for turn 3 again, not for 1 and 2
    middle = runs(here)[1]
    server.log.clear()
    server.scenarios["a"] = Scenario(steps(6)[4:])
    code, _, err = replay(here, "--from", "5", "--model", "live", run=middle.id)
    assert code == 7, err
    assert len(server.log) == 2
    assert ran(here) == []
    first, second, third = runs(here)
    assert [(r.parent.run, r.parent.turn, r.parent.kind) for r in (second, third)] == [
        (first.id, 3, "fork"), (second.id, 5, "fork"),
    ]  # fmt: skip
    with open_store(here.home) as store:
        assert list(records_of(store, original)) == before
    code, _, err = here.run("last", by=[*REPLAY[:-1], "show"])
    assert third.id in err


def test_run_colon_turn_is_the_turn_to_go_on_from(here, server):
    recorded(here, server)
    server.scenarios["a"] = Scenario([Step(text="A new end.")])
    code, out, err = replay(here, "--model", "live", run=f"{runs(here)[0].id}:4")
    assert (code, len(server.log)) == (7, 1), err
    assert "A new end." in out


def test_another_model_is_asked_by_its_name(here, server):
    recorded(here, server)
    server.scenarios["a"] = Scenario([Step(text="Said another.")])
    code, _, err = replay(here, "--from", "4", "--model", "m-2")
    assert code == 7, err
    assert [e["body"]["model"] for e in server.log] == ["m-2"]


def test_a_stub_answers_one_tool(here, server):
    recorded(here, server)
    server.scenarios["a"] = Scenario(steps(4)[1:])
    (here.work / "said.txt").write_text("what the stub says")
    code, out, err = replay(here, "--from", "2", "--model", "live", "--tool", "search=stub:@said.txt")
    assert code == 7, err
    assert ran(here) == []
    assert out.count("what the stub says") == 2
    assert out.count("found part") == 1


def test_a_tool_that_changes_things_never_runs_live_without_its_name(here, server):
    sending = [Step(calls=[Call("send", {"to": "x"}, "toolu_1")]), Step(text="sent")]
    server.scenarios["a"] = Scenario(list(sending))
    recorded(here, server)
    server.scenarios["a"] = Scenario([Step(calls=[Call("send", {"to": "y"}, "toolu_9")]), Step(text="sent")])
    code, _, err = replay(here, "--from", "1", "--model", "live", "--tools", "live")
    assert (code, ran(here)) == (1, []), err
    assert "--tool send=live" in err
    server.scenarios["a"] = Scenario([Step(calls=[Call("send", {"to": "y"}, "toolu_9")]), Step(text="sent")])
    code, _, err = replay(here, "--from", "1", "--model", "live", "--tool", "send=live")
    assert (code, ran(here)) == (7, ["send"]), err


def test_a_cap_on_live_turns_stops_it(here, server):
    recorded(here, server)
    server.scenarios["a"] = Scenario(steps(9))
    code, _, err = replay(
        here, "--from", "2", "--model", "live", "--max-turns", "2", "--tools", "live", "--tool", "search=live"
    )
    assert code == 1, err
    assert len(server.log) == 2
    assert "max-turns" in err or "2 live turns" in err


def test_a_cap_on_what_live_turns_cost_stops_it(here, server):
    recorded(here, server)
    costly = steps(9)
    for step in costly:
        step.usage = {"input": 100_000, "output": 1000}
    server.scenarios["a"] = Scenario(costly)
    live = ("--from", "2", "--model", "claude-sonnet-4-5", "--tool", "search=live")
    code, _, err = replay(here, *live, "--max-cost", "0.05")
    assert (code, len(server.log), "--max-cost" in err) == (1, 1, True), err


def test_a_program_that_dials_out_is_refused_and_it_is_told(here, server):
    out = recorded(here, server)
    dialling = "import socket\ntry: socket.create_connection(('203.0.113.7', 443), 1)\nexcept OSError as e: print(e, file=sys.stderr)\n"
    here.write("agent.py", MAIN.replace("print(json", dialling + "print(json"))
    code, again, err = replay(here, "--json")
    assert again.startswith(out)
    assert "closed to the network, 203.0.113.7:443 was refused" in err
    assert json.loads(again[len(out) :])["verdict"]["network_requests"] == 0
    assert code == 7


def test_recording_switched_off_replays_all_the_same_and_keeps_nothing(here, server):
    out = recorded(here, server)
    code, again, err = replay(here, LOOPTAPE="off")
    assert (code, again) == (7, out), err
    assert len(runs(here)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_program_and_the_verdict_comes_all_the_same(here, server, number):
    recorded(here, server)
    here.write(
        "agent.py",
        AGENT + "import signal, time\ndef stop(n, f): sys.exit(5)\n"
        f"signal.signal({int(number)}, stop)\nloop('What is the revenue?')\nprint('ready', flush=True)\nfor _ in range(300): time.sleep(0.1)\n",
    )
    process = here.start("last", "--", PYTHON, "agent.py", by=REPLAY)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 5, err
    assert "4 of 4" in err


# -- without the program --------------------------------------------------------------------------


def test_without_a_program_the_built_in_loop_replays_it(here, server):
    recorded(here, server)
    code, out, err = here.run("last", "--json", by=REPLAY)
    assert code == 0, err
    said = json.loads(out)
    assert said["verdict"]["served"] == {"model": 4, "tools": 3}
    assert said["run"] == runs(here)[-1].id
    assert (server.log, ran(here)) == ([], [])
    code, _, err = here.run("last", "--from", "2", "--model", "live", by=REPLAY)
    assert (code, "looptape fork" in err) == (2, True), err


def test_resume_refuses_a_run_that_the_built_in_loop_did_not_make(here, server):
    recorded(here, server)
    code, out, err = here.run("last", "--resume", by=REPLAY)
    assert (code, out, err.count("\n") <= 2) == (2, "", True), err


# -- what is typed wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["last", "--resume", "--", "true"], "Leave the rest out"),
        (["last", "--"], "looptape replay last -- python agent.py"),
        (["last", "--tool", "search", "--", "true"], "NAME=stub:@file"),
        (["last", "--tool", "search=stub:@nowhere", "--", "true"], "nowhere"),
        (["last", "--match", "fuzzy", "--", "true"], "dialogue"),
        (["last", "--from", "0", "--", "true"], "--from"),
        (["last", "--frm", "0", "--", "true"], "--from"),
        (["--", "true"], "RUN"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_one_line_that_says_what_to_type(arguments, says):
    done = looptape("replay", *arguments)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert says in done.err


def test_last_stands_for_what_a_replay_replayed_unless_it_went_on_live(here, server):
    recorded(here, server)
    original = runs(here)[0].id
    for prompt, code in (("What is the profit?", 1), ("What is the revenue?", 7), ("What is the revenue?", 7)):
        got, _, err = replay(here, PROMPT=prompt)
        assert got == code, err
    assert f"that is a replay of {original} (agent): replaying that one" in err
    server.scenarios["a"] = Scenario([Step(text="A new end.")])
    assert replay(here, "--from", "4", "--model", "live")[0] == 7
    server.log.clear()
    code, out, err = replay(here)
    assert (code, "A new end." in out, server.log) == (7, True, []), err
    assert "that is a replay of" not in err


def test_a_turn_that_is_not_there_and_a_command_that_is_not_there(here, server):
    recorded(here, server)
    code, _, err = replay(here, "--from", "6")
    assert (code, "--from 5" in err) == (2, True), err
    code, _, err = replay(here, "--model", "live")
    assert (code, "--from 1 makes every turn live" in err) == (2, True), err
    code, _, err = here.run("--", "nowhere-at-all", by=[*REPLAY, "last"])
    assert (code, "nowhere-at-all: no such command" in err) == (2, True), err
    code, _, err = replay(here, "--from", "2", run=f"{runs(here)[0].id}:3")
    assert (code, "Give one of them" in err) == (2, True), err


def test_the_help_names_every_option():
    text = looptape("replay", "--help").out
    for name in (
        "--from",
        "--model",
        "--tools",
        "--tool",
        "--match",
        "--on-miss",
        "--unwrapped",
        "--max-turns",
        "--max-cost",
    ):
        assert name in text
    assert "-- COMMAND" in text
    assert os.environ.get("LOOPTAPE_REPLAY") is None


RESULTS = """
import dataclasses
@dataclasses.dataclass
class Found:
    title: str
    pages: tuple
class Refused(Exception):
    def __init__(self, code, *, why): super().__init__(f'{code}: {why}'); self.code = code
def answer(q):
    ran('search')
    if q == 'part 1': return {'figures': [1, 2.5, None]}
    if q == 'part 2': return Found('Report', (3, 4))
    raise [KeyError('q'), OSError(2, 'No such file', 'x'), Refused(403, why='not yours')][int(q[-1]) - 3]
answer = looptape.tool(name='search')(answer)
def search(q):
    try: return json.dumps(answer(q), default=lambda v: [type(v).__name__, *dataclasses.astuple(v)])
    except (KeyError, OSError, Refused) as error: return f'{type(error).__name__} {error}'
TOOLS['search'] = search
print(json.dumps(loop('all kinds')))
"""


def test_a_tool_gives_back_and_raises_what_it_did_and_not_its_text(here, server):
    server.scenarios["a"] = Scenario(steps(6))
    out = recorded(here, server, 0, AGENT + RESULTS)
    for told in ("Found", "KeyError 'q'", "No such file: 'x'", "Refused 403: not yours"):
        assert told in out
    code, again, err = replay(here)
    assert (code, again) == (0, out), err
    assert (server.log, ran(here)) == ([], [])
    assert "5 of 5 tool calls" in err
