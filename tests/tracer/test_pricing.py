"""Money: every bucket at its own rate, by date, and never a guess."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal, localcontext

import pytest
from genai_prices import Usage as Counts
from genai_prices import data_snapshot

from looptape.tracer.model import Turn, Usage
from looptape.tracer.prices import served
from looptape.tracer.pricing import context_window, portions, price, turn_price

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
    """Where the list has no price for something that was used, the package may go by another; ours then says so."""
    at, seen, bad = datetime.fromtimestamp(NOW / 1_000_000, UTC), 0, []
    for owner in data_snapshot.get_snapshot().providers:
        for info in owner.models[::2] if owner.id in ("anthropic", "openai", "google", "aws", "deepseek") else ():
            for counts in COUNTS:
                usage = Usage(**dict(zip(BUCKETS, counts, strict=True)))
                ours = price(owner.id, info.id, usage, NOW)
                try:
                    wanted = info.calc_price(package_counts(usage), owner, genai_request_timestamp=at).total_price
                except (ValueError, LookupError):
                    assert ours.usd is None or ours.assumed
                    continue
                seen += 1
                if ours.usd is not None and ours.usd != wanted:
                    bad.append((owner.id, info.id, counts, ours.usd, wanted))
    assert not bad
    assert seen > 300


def package_counts(usage):
    """Our disjoint buckets as the package wants them: input includes what was read from and written to a cache."""
    writes = (usage.cache_write_5m or 0) + (usage.cache_write_1h or 0)
    given = {
        "input_tokens": (usage.input or 0) + (usage.cache_read or 0) + writes,
        "cache_read_tokens": usage.cache_read or 0,
        "cache_write_tokens": writes,
        "cache_write_1h_tokens": usage.cache_write_1h or 0,
        "output_tokens": usage.output or 0,
    }
    return Counts(**{k: v for k, v in given.items() if v or k in ("input_tokens", "output_tokens")})


MIXED = Usage(input=1_234, cache_read=56_789, cache_write_5m=2_345, cache_write_1h=678, output=910)
LONG = Usage(input=1_234, cache_read=200_000, cache_write_5m=2_345, cache_write_1h=678, output=910)
LIST_PRICES = [  # dollars per million tokens: input, cache read, 5-minute write, 1-hour write, output
    ("anthropic", "claude-sonnet-4-5-20250929", MIXED, ("3", "0.30", "3.75", "6", "15")),
    ("anthropic", "claude-sonnet-4-5-20250929", LONG, ("6", "0.60", "7.50", "12", "22.50")),  # above 200,000 tokens
    ("anthropic", "claude-opus-4-5-20251101", MIXED, ("5", "0.50", "6.25", "10", "25")),
    ("anthropic", "claude-haiku-4-5-20251001", MIXED, ("1", "0.10", "1.25", "2", "5")),
    (
        "openai",
        "gpt-4o-2024-08-06",
        Usage(input=1_234, cache_read=56_789, output=910),
        ("2.50", "1.25", "0", "0", "10"),
    ),
]


@pytest.mark.parametrize(
    ("provider", "model", "usage", "rates"), LIST_PRICES, ids=["sonnet", "sonnet-long", "opus", "haiku", "4o"]
)
def test_list_prices_come_out_to_the_last_digit(provider, model, usage, rates):
    counts = [getattr(usage, name) or 0 for name in BUCKETS]
    wanted = sum(Decimal(rate) * n for rate, n in zip(rates, counts, strict=True)) / 1_000_000
    found = price(provider, model, usage, NOW)
    assert found.usd == wanted
    assert found.how == "exact" if provider == "openai" else "dated"
    assert found.assumed == ()


def test_figures_worked_out_by_hand():
    """1,234 x 3 + 56,789 x 0.3 + 2,345 x 3.75 + 678 x 6 + 910 x 15 = 3,702 + 17,036.7 + 8,793.75 + 4,068 + 13,650."""
    assert price("anthropic", "claude-sonnet-4-5", MIXED, NOW).usd == Decimal("0.04725045")
    assert price("anthropic", "claude-opus-4-5", MIXED, NOW).usd == Decimal("0.07875075")
    assert price("anthropic", "claude-haiku-4-5", MIXED, NOW).usd == Decimal("0.01575015")
    assert price("openai", "gpt-4o", Usage(input=1_234, cache_read=56_789, output=910), NOW).usd == Decimal(
        "0.08317125"
    )


def test_another_precision_of_the_program_around_changes_no_digit():
    with localcontext() as narrow:
        narrow.prec = 4
        found = price("anthropic", OPUS, MIXED, NOW).usd
    assert found == Decimal("0.07875075")


LATE = 1_794_000_000_000_000  # November 2026
THOUSAND = Usage(input=1_000_000, output=0)


def served_as(raw, provider="anthropic", model="claude-haiku-4-5", at=LATE, body=None, params=None):
    how = served.served(served.facts(raw, body, params))
    return price(provider, model, THOUSAND, at, how_served=how)


@pytest.mark.parametrize(
    ("provider", "model", "raw", "body", "wanted"),
    [
        ("anthropic", "claude-haiku-4-5", {"service_tier": "standard"}, None, "1"),
        ("anthropic", "claude-haiku-4-5", {"service_tier": "batch"}, None, "0.5"),
        ("anthropic", "claude-fable-5-2", {"speed": "standard"}, None, "8"),
        ("anthropic", "claude-fable-5-2", {"speed": "fast"}, None, "16"),
        ("openai", "gpt-5", {}, {"service_tier": "default"}, "1.25"),
        ("openai", "gpt-5", {}, {"service_tier": "flex"}, "0.625"),
        ("openai", "gpt-5", {}, {"service_tier": "priority"}, "2.5"),
    ],
)
def test_speed_tier_and_batch_have_their_own_price(provider, model, raw, body, wanted):
    found = served_as(raw, provider, model, body=body)
    assert (found.usd, found.assumed) == (Decimal(wanted), ())


def test_a_way_of_serving_that_the_list_does_not_price_is_unpriced_and_not_guessed():
    found = served_as({"speed": "fast"}, model="claude-haiku-4-5")
    assert found.usd is None
    assert found.why is not None
    assert "speed fast" in found.why
    early = served_as({"service_tier": "batch"}, at=NOW)  # batch prices are listed from October 2026 on
    assert early.usd is None
    assert early.why is not None
    assert "listed only since 2026-10-14" in early.why


@pytest.mark.parametrize(
    ("raw", "part"),
    [({"service_tier": "priority"}, "bought beforehand"), ({"inference_geo": "us"}, "region us"), ({"service_tier": "scale"}, "scale")],
)  # fmt: skip
def test_what_the_list_cannot_know_is_the_standard_rate_and_marked(raw, part):
    found = served_as(raw)
    assert found.usd == 1
    assert part in " ".join(found.assumed)


def test_the_request_is_believed_only_where_the_answer_is_silent():
    asked = {"service_tier": "flex"}
    silent = served_as({}, "openai", "gpt-5", body={}, params=asked)
    assert silent.usd == Decimal("0.625")
    assert "the answer does not say how" in " ".join(silent.assumed)
    assert served_as({}, "openai", "gpt-5", body={"service_tier": "default"}, params=asked).usd == Decimal("1.25")


def test_web_searches_of_the_provider_are_on_the_bill():
    found = served_as({"server_tool_use": {"web_search_requests": 3}})
    assert found.usd == 1 + 3 * Decimal("0.01")


def test_cache_writes_of_unknown_life_are_five_minute_writes_and_marked():
    found = price("anthropic", OPUS, Usage(input=0, output=0, cache_write_5m=1_000_000), NOW)
    assert found.usd == Decimal("6.25")
    assert "5-minute rate" in " ".join(found.assumed)
    known = price("anthropic", OPUS, Usage(input=0, output=0, cache_write_5m=1_000_000, cache_write_1h=0), NOW)
    assert (known.usd, known.assumed) == (Decimal("6.25"), ())


def test_the_window_of_a_model_is_known_or_unknown_never_guessed():
    assert context_window("anthropic", "claude-sonnet-4-5") == 200_000
    assert context_window("anthropic", "claude-sonnet-4-5-20250929") == 200_000
    assert context_window("anthropic", "claude-sonnet-99") is None
    assert context_window(None, None) is None


@pytest.mark.parametrize(
    ("model", "provider", "usage"),
    [
        (OPUS, "anthropic", Usage(input=7, cache_read=39_000, cache_write_5m=300, cache_write_1h=11, output=333)),
        ("gpt-5", "openai", Usage(input=1000, cache_read=500, output=77, reasoning=40)),
        ("gemini-2.5-pro", "google", Usage(input=250_000, output=1000, reasoning=100)),
        (OPUS, "anthropic", Usage(input=0, output=5, raw={"server_tool_use": {"web_search_requests": 3}})),
    ],
    ids=["caches", "reasoning", "a tier of long contexts", "searches"],
)
def test_the_portions_of_a_price_add_up_to_it(model: str, provider: str, usage: Usage) -> None:
    turn = Turn("r", 1, provider=provider, model=model, usage=usage, started_at=NOW)
    found = portions(turn)
    assert sum(p.usd for p in found) == turn_price(turn).usd
    assert all(p.count for p in found)


def test_a_turn_without_a_price_has_no_portions() -> None:
    assert portions(Turn("r", 1, provider="anthropic", model="nobody-knows", usage=Usage(input=5, output=5))) == ()
    assert portions(Turn("r", 1, provider="anthropic", model=OPUS)) == ()
