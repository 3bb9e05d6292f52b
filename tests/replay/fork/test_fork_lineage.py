"""A fork is a run of its own that knows its parent: it shares what it inherits, and the original stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import talking
from looptape.replay.engine.forks.forking import Plan, carry_out, opened, plan
from looptape.replay.engine.models.scripted import Scripted
from looptape.replay.engine.outcome import Outcome
from looptape.replay.engine.policy import Policy
from looptape.replay.engine.toolbox import Stub
from looptape.replay.fork.edits import edit
from looptape.tracer import process
from looptape.tracer.importers import import_path
from looptape.tracer.journal import Journal
from looptape.tracer.recorder import Recorder
from looptape.tracer.store import Filter, memory_store, open_store
from looptape.tracer.store.export import records_of
from looptape.tracer.tape import line

CALL = {
    "text": "Again.",
    "calls": [{"name": "search", "arguments": {"q": "again"}}],
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
DONE = {"text": "It is 90.", "usage": {"input_tokens": 9, "output_tokens": 4}}


def forked(home: Path, run: str, number: int, *edits: str, script: list[Any] | None = None) -> tuple[Outcome, Plan]:
    """A fork with a scripted model and a stubbed tool, run to its end in a process of its own."""
    process.replace(Recorder(Journal(home)))
    with open_store(home) as store:
        made = plan(store, run, number, [edit(e) for e in edits])
        start = made.start()
        runs = opened(store, start, Policy(), 1)
    spread = carry_out(start, runs, Scripted(script or [CALL, DONE]), Stub("search", "nothing"), Policy())
    active = process.recorder()
    assert active is not None
    active.at_exit()
    assert spread.failures == ()
    return spread.outcomes[0], made


def exported(home: Path, run: str) -> bytes:
    with open_store(home) as store:
        return b"".join(map(line, records_of(store, run)))


def test_a_fork_of_a_fork_leaves_both_originals_byte_for_byte(home: Path) -> None:
    """rpl-09: three runs with parent links, inherited turns not executed again."""
    run = talking.record(home, talking.ANTHROPIC, talking.loop(laps=5))
    before = exported(home, run)
    first, _ = forked(home, run, 3, script=[CALL, CALL, CALL, DONE])
    between = exported(home, first.run)
    second, _ = forked(home, first.run, 5, script=[DONE])
    assert exported(home, run) == before
    assert exported(home, first.run) == between
    with open_store(home) as store:
        found = {i: store.run(i) for i in (run, first.run, second.run)}
        inherited = {i: [t.number for t in store.turns(i) if t.inherited] for i in found}
        turns = {i: [t.number for t in store.turns(i)] for i in found}
        marked = store.rows("select number from base.turns where run = ? and inherited order by number", [second.run])
    assert [r["number"] for r in marked] == [1, 2, 3, 4]  # said by the fork itself, not found out from equal answers
    parents = [(p.run, p.turn, p.kind) for r in found.values() if (p := r.parent)]
    assert parents == [(run, 3, "fork"), (first.run, 5, "fork")]
    assert found[run].parent is None
    assert [r.source for r in found.values()] == ["sdk", "fork", "fork"]
    assert inherited == {run: [], first.run: [1, 2], second.run: [1, 2, 3, 4]}
    assert turns == {run: [1, 2, 3, 4, 5, 6], first.run: [1, 2, 3, 4, 5, 6], second.run: [1, 2, 3, 4, 5]}


def test_what_is_inherited_costs_nothing_again_and_takes_no_room(home: Path) -> None:
    run = talking.record(home, talking.ANTHROPIC, talking.loop())
    with open_store(home) as store:
        blobs = store.rows("select count(*) as n from base.blobs")[0]["n"]
    outcome, _ = forked(home, run, 3, script=[DONE])
    with open_store(home) as store:
        fork, turns = store.run(outcome.run), store.turns(outcome.run)
        now = store.rows("select count(*) as n from base.blobs")[0]["n"]
        original = store.turns(run, 1, 2)
        assert store.rows("select * from base.bad_record") == []
    assert (fork.usage.input, fork.usage.output) == (9, 4)
    assert now == blobs + 1  # the new answer; every message and the tools are those of the original
    assert [(c.result, c.state) for t in turns[:2] for c in t.tool_calls] == [
        ("revenue 1: 1200", "done"),
        ("revenue 2: 1200", "done"),
    ]
    assert [t.response for t in turns[:2]] == [t.response for t in original]
    assert [t.started_at for t in turns[:2]] == [t.started_at for t in original]


def test_the_request_of_the_fork_is_the_edited_one(home: Path) -> None:
    talk = talking.loop()
    run = talking.record(home, talking.ANTHROPIC, talk)
    outcome, _ = forked(home, run, 3, "system=Be brief.", "turn[2].calls[1].result=other", script=[DONE])
    with open_store(home) as store:
        request = store.request(outcome.run, 3)
        (told,) = [e.detail for e in store.events(outcome.run) if e.kind == "fork"]
        seen = store.turns(outcome.run, 2, 2)[0].tool_calls[0].result
    assert request.system == "Be brief."
    assert request.messages[4]["content"][0]["content"] == "other"
    assert list(request.messages[:4]) == talk[2][0]["messages"][:4]
    assert seen == "other"
    assert told["edits"] == ["system=Be brief.", "turn[2].calls[1].result=other"]


def test_an_edited_call_runs_in_the_turn_whose_answer_is_kept(home: Path) -> None:
    run = talking.record(home, talking.ANTHROPIC, talking.loop())
    outcome, _ = forked(home, run, 2, 'turn[2].calls[1].arguments={"q":"profit"}', script=[DONE])
    with open_store(home) as store:
        turns = store.turns(outcome.run)
        request = store.request(outcome.run, 3)
    assert [(t.number, t.inherited) for t in turns] == [(1, True), (2, True), (3, False)]
    assert "edited" in turns[1].flags
    (call,) = turns[1].tool_calls
    assert (call.arguments, call.result, call.origin) == ({"q": "profit"}, "nothing", "stub")
    assert request.messages[3]["content"][1]["input"] == {"q": "profit"}
    assert request.messages[4]["content"][0]["content"] == "nothing"
    assert outcome.turns == 1


def test_an_edited_result_is_marked_so_in_the_turn_that_is_kept(home: Path) -> None:
    run = talking.record(home, talking.ANTHROPIC, talking.loop())
    outcome, _ = forked(home, run, 2, "turn[2].calls[1].result=edited by hand", script=[DONE])
    with open_store(home) as store:
        (call,) = store.turns(outcome.run, 2, 2)[0].tool_calls
    assert (call.result, call.origin, call.state) == ("edited by hand", "edited", "done")


def test_lineage_survives_export_and_import(home: Path, tmp_path: Path) -> None:
    run = talking.record(home, talking.ANTHROPIC, talking.loop())
    outcome, _ = forked(home, run, 3, "system=Be brief.")
    tape = tmp_path / "fork.tape.jsonl"
    tape.write_bytes(exported(home, outcome.run))
    store = memory_store()
    import_path(store, tape)
    (found,) = store.runs(Filter(limit=0))
    with open_store(home) as first:
        assert [t.inherited for t in store.turns(found.id)] == [t.inherited for t in first.turns(outcome.run)]
        assert store.request(found.id, 4) == first.request(outcome.run, 4)
        assert [e.detail for e in store.events(found.id)] == [e.detail for e in first.events(outcome.run)]
    assert found.parent is not None
    assert (found.parent.run, found.parent.turn, found.parent.kind, found.source) == (run, 3, "fork", "fork")


def test_no_inherited_turn_seems_to_have_lasted_until_the_fork(home: Path) -> None:
    run = talking.record(home, talking.ANTHROPIC, talking.loop())
    with open_store(home) as store:
        day = 86_400_000_000
        store.write(
            lambda con: con.execute(
                f"update base.turns set started_at = started_at - {day}, ended_at = ended_at - {day}"
            )
        )
        store.write(lambda con: con.execute(f"update base.calls set seen_at = seen_at - {day}"))
    outcome, _ = forked(home, run, 3, script=[DONE])
    with open_store(home) as store:
        turns = store.turns(outcome.run)
    assert all((t.execute_ms or 0) < 60_000 and (t.resume_ms or 0) < 60_000 for t in turns)
    assert all((c.ms or 0) < 60_000 for t in turns for c in t.tool_calls)


def test_a_secret_in_an_edit_is_not_written(home: Path) -> None:
    run = talking.record(home, talking.ANTHROPIC, talking.loop())
    secret = "AKIA" + "Z" * 16
    forked(home, run, 2, f"turn[2].calls[1].result=key {secret}", f"system=use {secret}", script=[DONE])
    for file in (home / "journal").glob("*.jsonl"):
        assert secret not in file.read_text()
    with open_store(home) as store:
        texts = json.dumps([r["text"] for r in store.rows("select text from base.blobs")])
    assert secret not in texts
    assert "[redacted:aws-key]" in texts
