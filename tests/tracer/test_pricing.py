"""Money: every bucket at its own rate, by date, and never a guess."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from looptape.tracer import pricing
from looptape.tracer.model import Usage
from looptape.tracer.pricing import price

NOW = 1_764_424_923_000_000
OPUS = "claude-opus-4-5"  # 5 in, 25 out, 0.5 cache read, 6.25 and 10 cache write, per million


def usd(usage, model=OPUS, provider="anthropic", at=NOW):
    return price(provider, model, usage, at).usd


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (Usage(input=1_000_000, output=0), "5"),
        (Usage(input=0, output=1_000_000), "25"),
        (Usage(input=0, output=0, cache_read=1_000_000), "0.5"),
        (Usage(input=0, output=0, cache_write_5m=1_000_000), "6.25"),
        (Usage(input=0, output=0, cache_write_1h=1_000_000), "10"),
        (Usage(input=0, output=0, cache_write_5m=1_000_000, cache_write_1h=1_000_000), "16.25"),
        (Usage(input=5, cache_read=128_955, cache_write_5m=1_253, output=100), "0.07483375"),
        (Usage(input=10, output=20, reasoning=15), "0.00055"),
        (Usage(input=0, output=0), "0"),
    ],
)
def test_every_bucket_has_its_own_rate(usage, wanted):
    assert usd(usage) == Decimal(wanted)


def test_parts_sum_exactly():
    parts = [Usage(input=7, output=3), Usage(input=11, output=1, cache_read=13)]
    whole = Usage(input=18, output=4, cache_read=13)
    assert sum(usd(p) for p in parts) == usd(whole)


def test_the_source_and_the_matched_model_are_told():
    found = price("anthropic", OPUS, Usage(input=1, output=1), NOW)
    assert found.source is not None
    assert found.source.startswith("genai-prices 0.")
    assert found.matched == f"anthropic/{OPUS}"


@pytest.mark.parametrize("model", [OPUS, f"{OPUS}-20251101", f"{OPUS}-2025-11-01", f"{OPUS}-latest", OPUS.upper()])
def test_an_id_may_carry_a_date_or_latest(model):
    assert usd(Usage(input=1_000_000, output=0), model) == 5


@pytest.mark.parametrize(
    "model",
    [
        f"{OPUS}-1",
        f"{OPUS}x",
        "claude-opus-4-55",
        f"{OPUS}-fast",
        f"{OPUS}-20251101-v2",
        f"my-{OPUS}",
        "acme-large-1",
        "claude",
        "gpt-9-omega",
    ],
)
def test_a_model_that_only_resembles_another_is_not_priced(model):
    found = price("anthropic", model, Usage(input=1000, output=1000), NOW)
    assert found.usd is None
    assert found.why is not None
    assert model in found.why


def test_the_provider_may_be_unknown():
    assert usd(Usage(input=1_000_000, output=0), OPUS, None) == 5
    assert usd(Usage(input=1_000_000, output=0), OPUS, "my-gateway") == 5
    assert usd(Usage(input=1_000_000, output=0), "gpt-4o", "openai") == Decimal("2.5")


@pytest.mark.parametrize("usage", [Usage(), Usage(reasoning=5)])
def test_without_usage_there_is_no_price(usage):
    assert price("anthropic", OPUS, usage, NOW).usd is None


def test_without_a_model_there_is_no_price():
    assert price("anthropic", None, Usage(input=1, output=1), NOW).usd is None


def test_the_price_of_the_day_counts():
    """The list says that long contexts of this model cost double until a day in March 2026."""
    long = Usage(input=1_000_000, output=0)
    days = [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (10, 20)]
    at = [int(day.timestamp()) * 1_000_000 for day in days]
    assert [usd(long, "claude-opus-4-6", at=when) for when in at] == [10, 5]
    assert usd(long, "claude-opus-4-6", at=None) == 5


BUCKETS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
COUNTS = [  # below, at and beyond the begin of price tiers
    (1, None, None, None, 1), (7_001, 13, None, None, 0), (0, 200_000, None, None, 3), (150_000, 50_001, None, None, 17),
    (272_000, 3, 500, None, 90), (200_001, None, 7, 11, 5), (5, 1_000_003, None, 19, 23), (0, None, None, None, 0),
]  # fmt: skip


def test_every_listed_price_is_what_the_price_list_itself_works_out():
    from genai_prices import Usage as Counts
    from genai_prices import data_snapshot

    at, seen, bad = datetime.fromtimestamp(NOW / 1_000_000, UTC), 0, []
    for owner in data_snapshot.get_snapshot().providers:
        for info in owner.models[::2] if owner.id in ("anthropic", "openai", "google") else ():
            for counts in COUNTS * 2:  # the second time by rates that are known
                usage = Usage(**dict(zip(BUCKETS, counts, strict=True)))
                given = pricing._counts(usage)
                try:
                    wanted = info.calc_price(Counts(**given), owner, genai_request_timestamp=at).total_price
                except (ValueError, LookupError):
                    with pytest.raises((ValueError, LookupError)):
                        pricing._total(owner, info, usage, at)
                    continue
                seen += 1
                if pricing._total(owner, info, usage, at) != wanted:
                    bad.append((owner.id, info.id, counts))
    assert not bad
    assert seen > 300
