"""The tapes that come with looptape: made by the loops beside them, and each shows what it is there for."""

import json
import platform
from pathlib import Path

import pytest

from looptape.sample_traces import __main__ as command
from looptape.sample_traces import demo, loops, taping
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, open_store

HOST, HOME = "host-of-the-canary", "/home/of-the-canary"
LOOPS = {sample.name for sample in loops.SAMPLES}


@pytest.fixture(scope="module")
def made():
    """Every tape, made again on a machine of this name, by a user at home there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "node", lambda: HOST)
        patch.setenv("HOME", HOME)
        return taping.make()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The shipped tapes in a fresh store."""
    with open_store(tmp_path_factory.mktemp("home")) as opened:
        for tape in demo.tapes():
            import_path(opened, tape)
        yield opened


def one(store, name):
    """The only run of this name, with its turns."""
    (run,) = store.runs(Filter(name=name, limit=0))
    return run, store.turns(run.id)


def calls(turns):
    return [call for turn in turns for call in turn.tool_calls]


def test_the_loops_make_the_tapes_again_byte_for_byte(made):
    """When a loop or the recorder changed on purpose: python -m looptape.sample_traces, and look at the difference."""
    shipped = {tape.name: tape.read_bytes() for tape in demo.tapes()}
    assert set(made) == set(shipped)
    assert [name for name in made if made[name] != shipped[name]] == []


def test_making_them_twice_in_one_process_gives_the_same_bytes(made):
    assert taping.make() == made


def test_every_loop_is_listed_and_has_a_tape():
    programs = {file.stem for file in Path(loops.__file__).parent.glob("*.py")} - {"__init__"}
    assert programs == LOOPS == {tape.stem for tape in demo.tapes()}


def test_the_tapes_are_small():
    sizes = [tape.stat().st_size for tape in demo.tapes()]
    assert max(sizes) < 150_000
    assert sum(sizes) < 600_000


def test_no_tape_says_anything_about_the_machine_that_made_it(made):
    text = b"".join(made.values()).decode()
    here = [HOST, HOME, str(Path(loops.__file__).parents[2]), "site-packages", "/tmp/"]
    assert [word for word in here if len(word) > 3 and f"{word}" in text] == []
    heads = [json.loads(data.splitlines()[0]) for data in made.values()]
    assert {key for head in heads for key in head} & {"host", "pid", "journal"} == set()


def test_check_names_the_tapes_that_would_change_and_changes_nothing(made, monkeypatch, capsys):
    monkeypatch.setattr(command, "make", lambda: {**made, "revenue.jsonl": b"{}\n"})
    before = (Path(command.__file__).parent / "revenue.jsonl").read_bytes()
    assert command.main(["--check"]) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith("would change revenue.jsonl")
    assert (Path(command.__file__).parent / "revenue.jsonl").read_bytes() == before
    assert command.main(["--nonsense"]) == 2


def test_every_turn_but_the_refused_one_has_a_price(store):
    turns = [turn for run in store.runs(Filter(limit=0)) for turn in store.turns(run.id)]
    assert [(t.run, t.number) for t in turns if t.cost_usd is None and t.status == "ok"] == []
    assert sum(t.status != "ok" for t in turns) == 1


def test_the_good_run_searches_calculates_and_answers(store):
    run, turns = one(store, "revenue")
    assert (run.status, run.outcome["verdict"]) == ("completed", "pass")
    assert [[c.name for c in t.tool_calls] for t in turns] == [["search"], ["calculator"], []]
    assert {c.timing for c in calls(turns)} == {"measured"}


def test_the_cycle_repeats_one_failing_call_with_a_thought_between_until_the_cap(store):
    run, turns = one(store, "where-is-my-parcel")
    assert run.status == "limit"
    assert [c.name for c in calls(turns)] == ["find_order", "think"] * 4
    searches = [c for c in calls(turns) if c.name == "find_order"]
    assert len({(c.arguments_raw, c.result, c.is_error) for c in searches}) == 1
    assert searches[0].is_error


def test_the_tools_fail_in_three_ways_and_the_run_completes(store):
    run, turns = one(store, "complaint")
    assert run.status == "completed"
    failed = [(c.name, c.error_class) for c in calls(turns) if c.is_error]
    assert failed == [("refund", "permanent"), ("delete_review", "denied"), ("send_mail", "transient")]


def test_the_malformed_call_is_kept_as_it_came(store):
    _, turns = one(store, "reorder-mugs")
    first, second, third = calls(turns)
    assert (first.valid, second.valid, third.valid) == (False, True, True)
    assert first.arguments_raw.endswith('("Fjord 2"')
    assert [c.is_error for c in (first, second, third)] == [True, True, False]
    assert all(t.stream for t in turns)


def test_one_of_three_parallel_calls_times_out_and_the_others_do_not_wait_for_it(store):
    _, turns = one(store, "weather")
    bergen, porto, tartu = turns[0].tool_calls
    assert [c.is_error for c in (bergen, porto, tartu)] == [False, False, True]
    assert tartu.state == "cancelled"
    assert max(c.started_at for c in (bergen, porto, tartu)) < porto.ended_at < bergen.ended_at < tartu.ended_at
    assert round((tartu.ended_at - tartu.started_at) / 1e6) == 3


def test_the_context_grows_is_summarised_and_begins_anew(store):
    run, turns = one(store, "broken-returns")
    assert run.status == "completed"
    sizes = [t.usage.context for t in turns]
    assert sizes[:5] == sorted(sizes[:5])
    assert sizes[5] < sizes[4] / 5
    assert [t.number for t in turns if "compaction" in t.flags] == [6]
    assert sum(t.usage.cache_read for t in turns) > 0


def test_the_rate_limit_shows_every_try_and_how_long_it_waited(store):
    _, turns = one(store, "handbook")
    tries = turns[0].attempts
    assert [(a.status, a.error_type) for a in tries] == [
        (429, "rate_limit_error"),
        (529, "overloaded_error"),
        (200, None),
    ]
    assert [round(a.wait_ms / 1000) for a in tries] == [0, 11, 3]


def test_the_interrupted_run_ends_with_a_call_that_has_no_result(store):
    run, turns = one(store, "photos")
    assert run.status == "interrupted"
    assert "turn 3" in run.reason
    assert [c.state for c in calls(turns)] == ["done", "done", "no_result"]


def test_each_sub_agent_is_the_child_of_the_call_that_started_it(store):
    run, turns = one(store, "suppliers")
    children = [r for r in store.runs(Filter(limit=0)) if r.parent is not None and r.parent.run == run.id]
    assert {c.child_run for c in turns[0].tool_calls} == {child.id for child in children}
    assert [child.status for child in children] == ["completed", "completed"]


def test_the_signature_of_a_thinking_block_goes_back_as_it_came(store):
    run, turns = one(store, "streaming")
    assert run.status == "completed"
    answered = json.loads(store.wire(run.id, 1).response_text)["content"]
    sent = store.request(run.id, 2).messages[1]["content"]
    assert answered[0]["type"] == "thinking"
    assert len(answered[0]["signature"]) > 200
    assert sent[0]["signature"] == answered[0]["signature"]
    assert len(store.wire(run.id, 1).chunks) > 5
    assert [c.timing for c in calls(turns)] == ["inferred"]


def test_the_forgotten_result_makes_the_run_fail(store):
    run, turns = one(store, "mugs-in-store")
    assert run.status == "failed"
    assert "without `tool_result`" in run.reason
    assert [c.state for c in calls(turns)] == ["done", "no_result"]
