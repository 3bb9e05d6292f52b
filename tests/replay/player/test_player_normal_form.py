"""Properties of the normal form and of the walk that names differences."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from looptape.replay.matching import in_message
from looptape.replay.player.normalise import Normaliser
from looptape.replay.player.rules import around
from looptape.replay.player.stops import ReplayMismatch
from looptape.tracer.canonical import canonical
from played import Program, Turn, records, request, said, user

pieces = st.sampled_from(
    ["a", " ", "1", "é", "e\u0301", "\n", "<system-reminder>x</system-reminder>", "Token usage: 1/2; 1 remaining", "2026-11-29",
     "2026-11-29T10:00:00Z", "4f0c8f1e-0000-4000-8000-000000000001", "toolu_01AbCdEfGhIjKlMnOp", "/home/dev/x", "/tmp/tmpab12cd/x",
     "/home/dev/demo/src", "<id>", "<time>", "November 29, 2026", "{", "\"", "<system-", "reminder>"]
)  # fmt: skip
relaxed = settings(deadline=None, max_examples=examples(60))
texts = st.lists(pieces, max_size=6).map("".join) | st.text(max_size=20)
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([1.0, 0.5]) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "input_text"]), "text": texts}, optional={"cache_control": st.just({"type": "ephemeral"})}
) | st.fixed_dictionaries(
    {"type": st.just("tool_result"), "tool_use_id": texts, "content": texts | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=2)}
) | st.fixed_dictionaries({"type": st.just("tool_use"), "id": texts, "name": texts, "input": values})  # fmt: skip
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": texts | st.lists(blocks, max_size=3)}
)
RULES = Normaliser("normalised", around(["/home/dev/demo"], [1_764_424_923_000_000]))


@relaxed
@given(texts, st.sampled_from(["open", "result", "data"]))
def test_the_normal_form_of_a_text_is_its_own_normal_form(text, where):
    once = RULES.text(text, where)
    assert RULES.text(once, where) == once


@relaxed
@given(messages)
def test_the_normal_form_of_a_message_is_its_own_normal_form(message):
    once = RULES.message(message)
    assert canonical(RULES.message(once)) == canonical(once)


@st.composite
def alike(draw):
    """Two messages of which the second has a few texts of the first changed, or blocks added or dropped."""
    one = draw(messages)
    other = json.loads(json.dumps(one))
    for _ in range(draw(st.integers(0, 3))):
        places = [p for p in leaves(other) if isinstance(p[1][p[2]], str) and p[2] not in ("role", "type")]
        if places:
            _, holder, key = draw(st.sampled_from(places))
            holder[key] = draw(texts)
    if isinstance(other["content"], list) and draw(st.booleans()):
        other["content"].insert(draw(st.integers(0, len(other["content"]))), draw(blocks))
    return one, other


@settings(max_examples=examples(200), deadline=None)
@given(alike())
def test_two_messages_are_equal_in_normal_form_just_when_every_difference_has_its_rule(pair):
    one, other = pair
    same = canonical(RULES.message(one)) == canonical(RULES.message(other))
    named = all(d.rules for d in in_message(one, other, "messages[0]", RULES))
    assert same == named


@relaxed
@given(messages)
def test_a_message_differs_from_itself_in_nothing(message):
    reordered = dict(reversed(copy.deepcopy(message).items()))
    for match in ("normalised", "exact", "dialogue"):
        assert in_message(message, reordered, "m", Normaliser(match)) == []


bodies = st.builds(
    lambda m, system, temperature: request(*m, system=system, temperature=temperature, tools=[{"name": "a", "description": "d"}]),
    st.lists(messages, min_size=1, max_size=4), texts, st.integers(0, 3),
)  # fmt: skip


def leaves(value, path=""):
    """Path and setter of every text and number in a body."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        at = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}" if path else key
        if isinstance(inner, (dict, list)):
            yield from leaves(inner, at)
        elif inner is not None:
            yield at, value, key


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(bodies)
def test_equal_bodies_always_match(body):
    for match in ("normalised", "exact", "dialogue"):
        program = Program(records([Turn(body, said("ok"))]), match=match)
        assert program.ask(json.loads(json.dumps(body)))
        assert program.verdict().ok


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(bodies, st.data())
def test_any_single_edit_is_reported_at_exactly_its_path_in_exact_mode(body, data):
    edited = json.loads(json.dumps(body))
    path, holder, key = data.draw(st.sampled_from(list(leaves(edited))))
    old = holder[key]
    holder[key] = old + "!" if isinstance(old, str) else (not old if isinstance(old, bool) else old + 7)
    with pytest.raises(ReplayMismatch) as caught:
        Program(records([Turn(body, said("ok"))]), match="exact").ask(edited)
    assert caught.value.paths == (f"$.{path}",)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.data())
def test_served_and_unconsumed_are_always_what_was_recorded(words, data):
    turns = [
        Turn(request(user(w)), said("", (f"t{i}", "look", {"w": w})), {f"t{i}": (i, 11, 12)})
        for i, w in enumerate(words)
    ]
    program = Program(records(turns))
    for turn in data.draw(st.lists(st.sampled_from(turns), max_size=8)):
        try:
            program.ask(turn.body)
        except ReplayMismatch:
            continue
        for call in data.draw(st.lists(st.sampled_from(sorted(turn.ran)), max_size=2)):
            block = turn.response["content"][1]
            try:
                program.tool("look", block["input"], call)
            except ReplayMismatch:
                continue
    verdict = program.verdict()
    assert verdict.served.model + verdict.unconsumed.model == verdict.recorded.model == len(turns)
    assert verdict.served.tools + verdict.unconsumed.tools + verdict.bypassed == verdict.recorded.tools == len(turns)
