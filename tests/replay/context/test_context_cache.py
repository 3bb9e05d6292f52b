"""Where the cached prefix broke and what that cost, against sums written out here."""

from __future__ import annotations

from decimal import Decimal

import pytest

import conversation_tape as talk
from looptape.replay.context import Break, context
from looptape.tracer.store import memory_store

RUN = "c" * 16
READ, WRITE, WRITE_1H, INPUT = (Decimal(n) / 1_000_000 for n in ("0.30", "3.75", "6", "3"))  # claude-sonnet-4-5
TOOLS = [{"name": "read", "description": "reads", "input_schema": {"type": "object"}},
         {"name": "write", "description": "writes", "input_schema": {"type": "object"}}]  # fmt: skip


def turns() -> list[talk.Said]:
    steps = [([talk.call("read", f"t{n}", n=n)], [talk.result(f"t{n}", f"result {n}")]) for n in range(1, 4)]
    found = talk.grown(steps, tools=TOOLS)
    usages = [(10, 0, 5000), (10, 5000, 500), (10, 5500, 400)]
    for turn, (fresh, read, wrote) in zip(found, usages, strict=True):
        turn.usage = {"input": fresh, "cache_read": read, "cache_write_5m": wrote, "cache_write_1h": 0, "output": 20}
    return found


def breaks(given: list[talk.Said]) -> tuple[Break, ...]:
    store = memory_store()
    store.ingest(talk.records(given))
    return context(store, RUN, len(given)).breaks


def lost_all(turn: talk.Said) -> None:
    turn.usage = {"input": 10, "cache_read": 0, "cache_write_5m": 5900, "cache_write_1h": 0, "output": 20}


def test_a_request_that_only_grows_breaks_nothing() -> None:
    assert breaks(turns()) == ()


def test_an_edited_message_is_named_with_its_turn_its_part_and_its_cost() -> None:
    given = turns()
    given[2].messages = [talk.user("go, please"), *given[2].messages[1:]]
    lost_all(given[2])
    (found,) = breaks(given)
    assert (found.turn, found.cause, found.message, found.part) == (3, "message", 1, 1)
    assert found.place == "messages[1] part 1"
    assert found.tokens == 5500
    assert found.usd == pytest.approx(float(5500 * (WRITE - READ)), abs=1e-9)


def test_the_part_of_a_message_that_changed_is_counted() -> None:
    given = turns()
    block = [talk.text("a"), talk.text("b")]
    for turn in given:
        turn.messages = [{"role": "user", "content": block}, *turn.messages[1:]]
    given[1].messages = [{"role": "user", "content": [talk.text("a"), talk.text("B")]}, *given[1].messages[1:]]
    given[2].messages = [given[1].messages[0], *given[2].messages[1:]]
    assert [(f.turn, f.message, f.part) for f in breaks(given)] == [(2, 1, 2)]


@pytest.mark.parametrize("what", ["system", "tools", "model", "params"])
def test_what_changed_before_the_messages_is_named(what: str) -> None:
    given = turns()
    changed = {
        "system": "You are another agent.",
        "tools": list(reversed(TOOLS)),
        "model": "claude-opus-4-5",
        "params": {"max_tokens": 100, "tool_choice": {"type": "any"}},
    }
    setattr(given[2], what, changed[what])
    lost_all(given[2])
    (found,) = breaks(given)
    assert (found.turn, found.cause, found.tokens) == (3, what, 5500)
    place = {"system": "system", "tools": "tools[1] write", "model": "claude-sonnet-4-5 to claude-opus-4-5"}
    assert found.place == place.get(what, "tool_choice")


def test_a_long_pause_is_told_as_such() -> None:
    given = turns()
    given[2].at = talk.START + 20 * talk.SECOND + 400 * talk.SECOND
    lost_all(given[2])
    (found,) = breaks(given)
    assert (found.cause, found.idle_s) == ("expired", 399.0)


def test_a_loss_without_a_cause_says_that_none_is_known() -> None:
    given = turns()
    lost_all(given[2])
    assert [(f.cause, f.tokens) for f in breaks(given)] == [("unknown", 5500)]


def test_a_moved_cache_mark_and_another_spelling_break_nothing() -> None:
    given = turns()
    marked = {"role": "user", "content": [{**talk.text("go"), "cache_control": {"type": "ephemeral"}}]}
    given[1].messages = [marked, *given[1].messages[1:]]
    assert breaks(given) == ()


def test_tokens_written_for_an_hour_cost_what_an_hour_costs() -> None:
    given = turns()
    given[2].system = "another"
    given[2].usage = {"input": 10, "cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 5900, "output": 20}
    (found,) = breaks(given)
    assert found.usd == pytest.approx(float(5500 * (WRITE_1H - READ)), abs=1e-9)


def test_tokens_read_fresh_cost_the_input_price() -> None:
    given = turns()
    given[2].system = "another"
    given[2].usage = {"input": 5910, "cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 0, "output": 20}
    (found,) = breaks(given)
    assert found.usd == pytest.approx(float(5500 * (INPUT - READ)), abs=1e-9)


def test_without_a_word_on_the_cache_the_break_is_told_without_figures() -> None:
    given = turns()
    for turn in given:
        turn.usage = {"input": 5000, "output": 20}
    given[2].system = "another"
    (found,) = breaks(given)
    assert (found.cause, found.tokens, found.usd) == ("system", None, None)


def test_an_unpriced_model_has_tokens_and_no_money() -> None:
    given = turns()
    for turn in given:
        turn.model = "unheard-of"
    lost_all(given[2])
    (found,) = breaks(given)
    assert (found.tokens, found.usd) == (5500, None)
