"""A person's own price file: over the built-in list, read exactly, and refused with the place where it is wrong."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

import price_files
from looptape.tracer.errors import UsageError
from looptape.tracer.model import Usage
from looptape.tracer.prices import Served, listed
from looptape.tracer.pricing import price, sources
from testdata import REPOSITORY

DAY = 1_793_600_000_000_000  # 2 November 2026
MILLION = Usage(input=1_000_000, output=0)


@pytest.fixture
def prices(tmp_path, monkeypatch):
    def write(models=None, **more):
        file = price_files.write(tmp_path / "prices.json", models, **more)
        monkeypatch.setenv("LOOPTAPE_PRICES", str(file))
        return file

    return write


def usd(model, usage=MILLION, provider=None, at=DAY, how=None):
    return price(provider, model, usage, at, how_served=how).usd


def test_a_model_of_the_file_has_its_price_with_the_file_and_a_digest_of_it_as_source(prices):
    file = prices()
    found = price("anthropic", "acme-large-1-20261101", MILLION, DAY)
    assert (found.usd, found.matched, found.how) == (5, "acme-large-1", "dated")
    assert found.source is not None
    assert found.source.startswith("prices.json ")
    prices(version="2026-11")
    assert price("anthropic", "acme-large-1", MILLION, DAY).source == "prices.json 2026-11"
    assert file.name in sources()


@pytest.mark.parametrize(
    ("model", "wanted"), [("acme-large-1-2", "0.125"), ("acme-large-1", "0.5"), ("acme-opus-4-6", None)]
)
def test_the_file_too_matches_nothing_looser_than_id_date_and_latest(prices, model, wanted):
    prices()
    found = usd(model, Usage(input=0, output=0, cache_read=1_000_000))
    assert found == (None if wanted is None else Decimal(wanted))


def test_the_file_comes_before_the_list_and_the_list_still_has_the_rest(prices):
    prices({"claude-opus-4-5": {"input": "4.5", "output": "20"}})
    assert usd("claude-opus-4-5") == Decimal("4.5")
    assert usd("claude-haiku-4-5") == 1
    assert price(None, "claude-haiku-4-5", MILLION, DAY).source == listed.source()


@pytest.mark.parametrize(
    ("fresh", "cached", "wanted"),
    [(200_000, 0, "0.4"), (200_001, 0, "0.800004"), (1, 200_000, "0.080004"), (100_000, 100_000, "0.22")],
)
def test_a_long_context_tier_holds_for_the_whole_call_once_all_that_was_read_is_more(prices, fresh, cached, wanted):
    prices()
    assert usd("acme-long-1", Usage(input=fresh, cache_read=cached, output=0)) == Decimal(wanted)


def test_a_price_may_hold_for_a_provider_some_days_and_a_way_of_serving(prices):
    prices(
        {
            "m": [
                {"input": "1"},
                {"input": "2", "from": "2026-11-01"},
                {"input": "3", "provider": "Azure", "from": "2026-11-01"},
                {"input": "4", "from": "2026-11-01", "when": {"service_tier": "flex"}},
                {"input": "9", "until": "2026-01-31"},
            ]
        }
    )
    before = DAY - 10 * 86_400_000_000
    assert usd("m", at=before) == 1
    assert usd("m") == 2
    assert usd("m", provider="azure") == 3
    assert usd("m", how=Served((("service_tier", "flex"),))) == 4
    assert usd("m", how=Served((("speed", "fast"),))) is None


def test_numbers_are_taken_as_written(prices, tmp_path):
    prices()
    (tmp_path / "prices.json").write_text(
        '{"models": {"m": {"input": 0.1, "output": 3}, "free": {"input": 0, "output": 0}}}'
    )
    assert usd("m", Usage(input=3, output=0)) == Decimal("0.0000003")
    assert usd("free", Usage(input=3, output=9)) == 0


def test_a_file_that_changes_is_read_again(prices):
    prices({"m": {"input": "1"}})
    assert usd("m") == 1
    prices({"m": {"input": "22"}})
    assert usd("m") == 22


def test_a_settings_file_names_a_price_file_beside_itself(tmp_path, monkeypatch):
    price_files.write(tmp_path / "ours.json", {"m": {"input": "7"}})
    (tmp_path / "looptape.toml").write_text('prices = "ours.json"\n')
    (tmp_path / "deep").mkdir()
    monkeypatch.delenv("LOOPTAPE_PRICES", raising=False)
    monkeypatch.chdir(tmp_path / "deep")
    assert usd("m") == 7


@pytest.mark.parametrize(
    ("told", "part"),
    [
        ("{", "is not JSON"),
        ([], 'no object with "models"'),
        ({"models": {}, "unit": "EUR"}, "unit is 'EUR'"),
        ({"models": {"m": {"input": "abc"}}}, "models.m.input is 'abc'"),
        ({"models": {"m": {"input": -1}}}, "models.m.input is -1"),
        ({"models": {"m": {"input": "NaN"}}}, "models.m.input is 'NaN'"),
        ({"models": {"m": {"input": True}}}, "models.m.input is True"),
        ({"models": {"m": {"inptu": "1"}}}, "models.m.inptu is not known"),
        ({"models": {"m": {}}}, "models.m holds no price"),
        ({"models": {"m": []}}, "models.m is empty"),
        ({"models": {"m": [{"input": 1}, 5]}}, "models.m[1] is no object"),
        ({"models": {"m": {"input": 1, "from": "soon"}}}, "models.m.from is 'soon'"),
        ({"models": {"m": {"input": 1, "tiers": [{"input": 2}]}}}, "models.m.tiers[0] has no whole number"),
        ({"models": {"m": {"input": 1, "when": {"mood": "good"}}}}, "models.m.when asks for mood"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_a_wrong_file_is_refused_with_the_place(prices, told, part):
    file = prices()
    file.write_text(told if isinstance(told, str) else json.dumps(told))
    with pytest.raises(UsageError) as refused:
        usd("m")
    assert str(file) in refused.value.what
    assert part in refused.value.what


def test_a_file_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setenv("LOOPTAPE_PRICES", "/nowhere/prices.json")
    with pytest.raises(UsageError, match=r"/nowhere/prices\.json: No such file"):
        usd("m")


def test_the_example_of_the_docs_is_a_price_file(tmp_path, monkeypatch):
    text = (REPOSITORY / "docs" / "cost.md").read_text("utf-8")
    file = tmp_path / "prices.json"
    file.write_text(text.split("```json\n")[1].split("```")[0])
    monkeypatch.setenv("LOOPTAPE_PRICES", str(file))
    assert price(None, "acme-large-1", MILLION, DAY).source == "prices.json 2026-11"
    assert usd("my-local-model") == 0
    assert usd("gpt-5", provider="azure") == 1
    assert usd("gpt-5", how=Served((("service_tier", "flex"),))) == Decimal("0.625")
