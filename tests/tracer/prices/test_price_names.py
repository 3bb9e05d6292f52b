"""Which ids are one model's: the exact one, with a date, with -latest; nothing looser, whatever the list's own match says."""

from __future__ import annotations

import pytest
from genai_prices import data_snapshot

from looptape.tracer.prices import listed
from looptape.tracer.prices.names import candidates

PROVIDERS = ("anthropic", "openai", "google", "aws", "azure", "deepseek", "openrouter")


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("m-1", [("m-1", "exact")]),
        ("M-1-20251101", [("m-1-2025-11-01", "exact"), ("m-1", "dated")]),
        ("m-1-2025-11-01", [("m-1-2025-11-01", "exact"), ("m-1", "dated")]),
        ("m-1@20251101", [("m-1-2025-11-01", "exact"), ("m-1", "dated")]),
        ("m-1-latest", [("m-1-latest", "exact"), ("m-1", "latest")]),
        ("m-1-20251399", [("m-1-20251399", "exact")]),
        ("m-1-fast", [("m-1-fast", "exact")]),
        ("m-1-v1:0", [("m-1-v1:0", "exact")]),
    ],
)
def test_candidates_are_the_id_itself_and_the_id_without_its_date(model, wanted):
    assert list(candidates(model)) == wanted


def test_a_bedrock_id_may_end_in_a_version():
    assert ("us.m-1", "dated") in list(candidates("us.m-1-20251101-v1:0", bedrock=True))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_id_of_the_list_finds_its_own_model(provider):
    owner = next(p for p in data_snapshot.get_snapshot().providers if p.id == provider)
    for info in owner.models:
        found = listed.find(provider, info.id)
        assert found is not None
        assert (found.owner.id, found.info.id, found.how, found.assumed) == (provider, info.id, "exact", ())


@pytest.mark.parametrize(
    ("tail", "ours"),
    [("-20271231", True), ("-latest", True), ("-1", False), ("-fast", False), ("-mini", False), ("x", False), ("-9-20271231", False)],
)  # fmt: skip
def test_a_newer_neighbour_is_not_priced_where_the_lists_own_match_would(tail, ours):
    """The package finds a price for most of these by their beginning."""
    snapshot = data_snapshot.get_snapshot()
    theirs = 0
    for base in ("claude-opus-4-5", "claude-haiku-4-5", "claude-sonnet-4-5"):
        snapshot.find_provider_model(base + tail, None, "anthropic", None)
        theirs += 1
        found = listed.find("anthropic", base + tail)
        assert (found is not None) is ours
        assert found is None or found.info.id == base
    assert theirs == 3


def test_a_snapshot_with_a_price_of_its_own_is_not_priced_as_another_day():
    """gpt-4o of May 2024 cost twice what the later snapshots do."""
    old = listed.find("openai", "gpt-4o-2024-05-13")
    new = listed.find("openai", "gpt-4o-2024-08-06")
    assert old is not None
    assert new is not None
    assert old.info.id != new.info.id
    assert old.how == new.how == "exact"


@pytest.mark.parametrize(
    ("provider", "url", "model", "matched", "assumed"),
    [
        ("anthropic", None, "claude-opus-4-5", "anthropic/claude-opus-4-5", False),
        ("openai", "https://openrouter.ai/api/v1/chat/completions", "anthropic/claude-opus-4.5", "openrouter/anthropic/claude-opus-4.5", False),
        ("aws", None, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws/regional.anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("aws", None, "global.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws/global.anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("google", None, "claude-opus-4-5@20251101", "google/claude-opus-4-5", False),
        ("azure", None, "gpt-4o-2024-08-06", "azure/gpt-4o", False),
        ("my-gateway", None, "claude-opus-4-5", "anthropic/claude-opus-4-5", True),
        ("openai", "http://127.0.0.1:4000/v1", "claude-opus-4-5", "anthropic/claude-opus-4-5", True),
        (None, None, "claude-opus-4-5", "anthropic/claude-opus-4-5", False),
    ],
)  # fmt: skip
def test_the_provider_is_whose_address_was_called_and_regions_have_their_own_price(
    provider, url, model, matched, assumed
):
    found = listed.find(provider, model, url)
    assert found is not None
    assert found.matched == matched
    assert bool(found.assumed) is assumed


def test_a_region_costs_more_where_the_list_says_so():
    def rates(model):
        return listed.sheet("aws", model, None, 1_793_000_000_000_000, ()).base.input

    tail = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert rates(f"us.{tail}") > rates(f"global.{tail}")
