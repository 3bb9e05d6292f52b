"""Forks of every sample trace and of imported sessions run with a scripted model, and their record can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import testdata
from looptape.replay.engine.forks.forking import carry_out, opened, plan
from looptape.replay.engine.models.scripted import Scripted
from looptape.replay.engine.outcome import Outcome
from looptape.replay.engine.policy import Policy
from looptape.replay.engine.toolbox import NoTools
from looptape.replay.fork.start import Start
from looptape.tracer import process
from looptape.tracer.importers import import_path
from looptape.tracer.journal import Journal
from looptape.tracer.providers import by_api
from looptape.tracer.recorder import Recorder
from looptape.tracer.store import Filter, Store, memory_store, open_store

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "sample_traces").glob("*.jsonl"))
KINDS = ("claude_code", "codex", "gemini_cli", "inspect", "mini_swe_agent", "opencode", "otlp_json", "raw_api_vcr",
         "swe_agent", "tau_bench", "who_and_when")  # fmt: skip


def done(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": "Done.", "usage": {"input_tokens": 5, "output_tokens": 2}}


def fork(store: Store, run: str, number: int) -> tuple[Outcome, Start]:
    start = plan(store, run, number).start()
    runs = opened(store, start, Policy(), 1)
    spread = carry_out(start, runs, Scripted(done), NoTools(), Policy())
    assert spread.failures == ()
    return spread.outcomes[0], start


def check_legal(api: str, body: Mapping[str, Any]) -> None:
    """Every call is answered and every result has its call: what providers refuse otherwise."""
    open_calls: set[str] = set()
    provider = by_api(api)
    for message in body[provider.LIST_KEY]:
        told = {r.call for r in provider.results(message)}
        assert told <= open_calls
        open_calls -= told
        if api == "anthropic.messages" and message["role"] == "assistant":
            assert not open_calls
        wrapped = (
            {"choices": [{"message": message}]}
            if api == "openai.chat"
            else {"output": [message]}
            if api == "openai.responses"
            else message
        )
        if message.get("role", "assistant") == "assistant" and "output" not in message:
            open_calls |= {c.id for c in provider.answer(wrapped).calls if not c.provider_side}
    assert not open_calls


def check_record(home: Path, made: list[tuple[Outcome, Start]]) -> None:
    active = process.recorder()
    assert active is not None
    active.at_exit()
    with open_store(home) as store:
        for outcome, start in made:
            run = store.run(outcome.run)
            assert (run.status, run.source) == ("completed", "fork")
            assert run.parent is not None
            assert (run.parent.run, run.parent.turn, run.parent.kind) == (start.run, start.turn, "fork")
            turns = store.turns(run.id)
            assert [t.number for t in turns if not t.inherited] == [start.inherited + 1]
            assert turns[-1].text == "Done."
            assert [t.number for t in turns] == list(range(1, start.inherited + 2))
        assert store.rows("select * from base.bad_record") == []


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, list[tuple[Outcome, Start]]]]]:
    """Every run of every sample, forked at its last turn (one at its first too), all in one store."""
    home = tmp_path_factory.mktemp("home")
    former = process.replace(Recorder(Journal(home)))
    made: dict[str, list[tuple[Outcome, Start]]] = {}
    with open_store(home) as store:
        for tape in SAMPLES:
            import_path(store, tape)
        for run in store.runs(Filter(limit=0)):
            made[run.id] = [
                fork(store, run.id, number)
                for number in sorted({1, run.turns} if run.name == "revenue" else {run.turns})
            ]
    check_record(home, [one for several in made.values() for one in several])
    process.replace(former)
    return home, made


@pytest.mark.parametrize("tape", SAMPLES, ids=lambda p: p.stem)
def test_a_sample_forks_at_its_last_turn(forks: Any, tape: Path) -> None:
    store = memory_store()
    import_path(store, tape)
    for run in store.runs(Filter(limit=0)):
        assert forks[1][run.id]
        for outcome, start in forks[1][run.id]:
            assert outcome.reason == "model"
            check_legal(start.api, start.body)


@pytest.mark.parametrize("kind", KINDS)
def test_an_imported_session_forks_in_its_middle_and_says_what_it_lacks(home: Path, kind: str) -> None:
    folder = testdata.require("corpus") / kind
    files = sorted(
        (f for f in folder.iterdir() if f.is_file() and f.stat().st_size > 2000),
        key=lambda f: (f.stat().st_size, f.name),
    )
    with open_store(home) as store:
        for file in files:
            import_path(store, file)
            if found := store.runs(Filter(limit=0)):  # some logs hold no turn
                break
        run = max(found, key=lambda r: r.turns)
        made = fork(store, run.id, max(1, (run.turns + 1) // 2))
    outcome, start = made
    check_legal(start.api, start.body)
    assert outcome.reason == "model"
    assert start.lacks or start.source in ("vcr", "inspect", "otlp")
    check_record(home, [made])
