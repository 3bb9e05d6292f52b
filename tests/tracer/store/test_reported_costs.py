"""Recorded costs of other programs beside ours: mini-swe-agent's corpus, by its own prices and by the list."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

import price_files
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, memory_store
from looptape.tracer.store.reprice import reprice
from testdata import require

# What DeepSeek took in April 2026, when these runs were made, and what the recorded costs were worked out with.
THEN = {"input": "0.28", "cache_read": "0.028", "output": "0.42"}
CENT = Decimal("0.01")


@pytest.fixture
def store():
    with memory_store() as one:
        yield one


def test_computed_costs_agree_with_the_recorded_ones_by_the_prices_of_that_time(
    store, tmp_path, monkeypatch, record_property
):
    folder = require("corpus") / "mini_swe_agent"
    file = price_files.write(tmp_path / "prices.json", {"deepseek-chat": THEN, "deepseek-reasoner": THEN})
    monkeypatch.setenv("LOOPTAPE_PRICES", str(file))
    import_path(store, folder)
    compared = 0
    for run in store.runs(Filter(limit=0)):
        if not run.models:
            continue
        turns = [t for t in store.turns(run.id) if t.cost_usd is not None and t.reported_cost_usd is not None]
        compared += len(turns)
        for turn in turns:
            assert turn.cost_usd == pytest.approx(turn.reported_cost_usd, abs=1e-12), (run.id, turn.number)
        assert run.cost_difference_usd == pytest.approx(0, abs=1e-9)
        assert run.cost_usd == pytest.approx(run.reported_cost_usd, abs=1e-9)
    record_property("turns that agree to the last digit", compared)
    assert compared > 800
    _by_the_list(store, monkeypatch, record_property)


def _by_the_list(store, monkeypatch, record_property):
    """The list may have other prices for that day: then the difference is told, never hidden."""
    monkeypatch.delenv("LOOPTAPE_PRICES")
    done = store.write(reprice)
    runs = [r for r in store.runs(Filter(limit=0)) if r.models]
    ours, theirs = sum(r.cost_usd or 0 for r in runs), sum(r.reported_cost_usd or 0 for r in runs)
    record_property("by the list, USD", f"{ours:.6f} where {theirs:.6f} was recorded")
    told = sum(r.cost_difference_usd or 0 for r in runs)
    assert told == pytest.approx(ours - theirs, abs=1e-9)
    assert float(done.after) == pytest.approx(ours, abs=1e-9)


def _run(store, *turns, reported=None):
    """A run whose turns are (model, usage, reported cost)."""
    records = [{"kind": "run_start", "run": "a" * 16, "at": 1, "source": "sdk"}]
    for number, (model, usage, cost) in enumerate(turns, 1):
        start = {"kind": "turn_start", "run": "a" * 16, "turn": number, "at": number * 1_000_000, "model": model}
        end = {"kind": "turn_end", "run": "a" * 16, "turn": number, "at": number * 1_000_000 + 1, "usage": usage}
        records += [start, {**end, "reported_cost_usd": cost} if cost is not None else end]
    if reported is not None:
        records.append({"kind": "run_update", "run": "a" * 16, "at": 9, "reported_cost_usd": reported})
    store.ingest(json.loads(json.dumps(records)))
    return store.run("a" * 16)


@pytest.fixture
def acme(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE_PRICES", str(price_files.write(tmp_path / "prices.json")))


TOKENS = {"input": 1000, "output": 100}  # $0.0075


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("turns", "reported", "wanted"),
    [
        ([("acme-large-1", TOKENS, None)], None, (None, None)),
        ([("acme-large-1", TOKENS, None)], 0.01, (0.01, -0.0025)),
        ([("acme-large-1", TOKENS, 0.0070), ("acme-large-1", TOKENS, None)], None, (0.007, 0.0005)),
        ([("acme-large-1", TOKENS, 0.0070), ("unknown-1", TOKENS, 0.5)], None, (0.507, 0.0005)),
        ([("acme-large-1", TOKENS, None), ("unknown-1", TOKENS, None)], 0.5, (0.5, None)),
        ([("unknown-1", TOKENS, 0.5)], None, (0.5, None)),
    ],
    ids=["none", "of-the-run", "of-some-turns", "of-an-unpriced-turn", "of-a-partly-priced-run", "of-unpriced-only"],
)
def test_the_difference_is_over_what_both_know(store, turns, reported, wanted):
    run = _run(store, *turns, reported=reported)
    assert run.reported_cost_usd == wanted[0]
    assert run.cost_difference_usd == (None if wanted[1] is None else pytest.approx(wanted[1], abs=1e-12))


@pytest.mark.usefixtures("acme")
def test_a_run_names_every_price_list_behind_its_cost(store):
    run = _run(store, ("acme-large-1", TOKENS, None), ("claude-opus-4-5", TOKENS, None), ("unknown-1", TOKENS, None))
    assert [s.split()[0] for s in run.price_sources] == ["genai-prices", "prices.json"]
    assert (run.unpriced_turns, run.cost_usd) == (1, 0.015)


@pytest.mark.usefixtures("acme")
def test_speed_and_tier_of_the_answer_or_the_request_reach_the_price(store):
    def kept(value):
        from looptape.tracer.tape import blob

        return blob(json.dumps(value))

    params, body = kept({"service_tier": "flex"}), kept({"id": "r1", "model": "gpt-5", "service_tier": "priority"})
    silent = kept({"id": "r2", "model": "gpt-5"})
    run, day = "b" * 16, 1_794_000_000_000_000
    records = [{"kind": "run_start", "run": run, "at": day, "source": "sdk"}, params, body, silent]
    for number, response in enumerate((body, silent), 1):
        about = {"run": run, "turn": number, "at": day + number}
        records.append(
            {"kind": "turn_start", **about, "model": "gpt-5", "provider": "openai", "params": params["hash"]}
        )
        usage = {"input": 1_000_000, "output": 0}
        records.append({"kind": "turn_end", **about, "usage": usage, "response": response["hash"]})
    store.ingest(records)
    first, second = store.turns(run)
    assert (first.cost_usd, dict(first.price.served)) == (2.5, {"service_tier": "priority"})
    assert (second.cost_usd, dict(second.price.served)) == (0.625, {"service_tier": "flex", "asked": True})
