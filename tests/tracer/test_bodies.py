"""A request body taken apart with the help of the one before gives the same messages as taken apart alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from looptape.tracer.bodies import NotAList, advance, extends

few = settings(max_examples=examples(300), deadline=None)
words = st.text(st.sampled_from('ab "\\,]}[{:é😀\n\u2028'), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**20) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
messages = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": values}) | values
rest = st.dictionaries(st.sampled_from(["model", "max_tokens", "système", "tools", "message"]), values, max_size=3)


@st.composite
def styles(draw):
    """A way to write JSON: separators, indent, escapes, and where the list stands."""
    return {
        "indent": draw(st.sampled_from([None, None, 0, 2])),
        "ascii": draw(st.booleans()),
        "separators": draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\n")])),
        "first": draw(st.booleans()),
        "around": draw(st.sampled_from(["", " ", "\n\t"])),
    }


def written(items, other, style) -> bytes:
    body = {"messages": items, **other} if style["first"] else {**other, "messages": items}
    text = json.dumps(body, ensure_ascii=style["ascii"], indent=style["indent"], separators=style["separators"])
    return (style["around"] + text + style["around"]).encode()


@st.composite
def edits(draw):
    """A conversation, what became of it, and how both were written."""
    before = draw(st.lists(messages, max_size=6))
    after = list(before)
    for _ in range(draw(st.integers(0, 3))):
        where = draw(st.integers(0, len(after)))
        kind = draw(st.sampled_from(["append", "append", "insert", "drop", "change", "cut"]))
        if kind == "append":
            after.append(draw(messages))
        elif kind == "insert":
            after.insert(where, draw(messages))
        elif kind == "cut":
            after = after[where:]
        elif after:
            where = min(where, len(after) - 1)
            after[where : where + 1] = [] if kind == "drop" else [draw(messages)]
    style = draw(styles())
    other = draw(rest)
    return (
        (before, written(before, other, style)),
        (
            after,
            written(
                after, other if draw(st.booleans()) else draw(rest), style if draw(st.booleans()) else draw(styles())
            ),
        ),
    )


def same(left, right) -> bool:
    return json.dumps(left) == json.dumps(right)


@given(case=edits())
@few
def test_the_kept_and_the_new_messages_are_the_body(case):
    (_, first), (after, second) = case
    earlier = advance(first, "messages", None)
    step = advance(second, "messages", earlier.body)
    alone = advance(second, "messages", None)
    assert same([*[json.loads(t) for t in earlier.texts[: step.keep]], *step.values], after)
    assert step.keep + len(step.texts) == len(after)
    assert (*earlier.texts[: step.keep], *step.texts) == alone.texts  # kept is a true common beginning, to the byte
    assert [json.loads(t) for t in step.texts] == list(step.values)
    assert same(step.body.rest, alone.body.rest)
    assert step.body.ends == alone.body.ends
    assert (step.body.whole, step.body.head, step.body.tail) == (second, alone.body.head, alone.body.tail)
    if step.same_rest:
        assert same(step.body.rest, earlier.body.rest)


@given(case=edits(), more=st.lists(messages, min_size=1, max_size=2))
@few
def test_a_third_body_is_compared_with_a_second_that_was_itself_compared(case, more):
    (_, first), (after, second) = case
    style = {"indent": None, "ascii": True, "separators": (",", ":"), "first": False, "around": ""}
    third = written([*after, *more], {"model": "m"}, style)
    body = advance(second, "messages", advance(first, "messages", None).body).body
    texts = advance(second, "messages", None).texts
    step = advance(third, "messages", body)
    assert (*texts[: step.keep], *step.texts) == advance(third, "messages", None).texts


@given(
    before=st.lists(messages, min_size=1, max_size=5),
    more=st.lists(messages, min_size=1, max_size=3),
    style=styles(),
    other=rest,
)
@few
def test_a_grown_conversation_keeps_everything_that_stood_before(before, more, style, other):
    earlier = advance(written(before, other, style), "messages", None)
    grown = written(before + more, other, style)
    step = advance(grown, "messages", earlier.body)
    assert step.keep == len(before)
    assert len(step.texts) == len(more)
    if extends(grown, earlier.body):
        assert advance(grown, "messages", earlier.body, extended=True) == step


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (b'{"a": {"messages": [1]}, "messages": [2]}', ("2",)),
        (b'{"messages": []}', ()),
        (b' {"messages" : [ 1 , {"a":1} ] } ', ("1", '{"a":1}')),
        ('{"messages":["é","😀"]}'.encode(), ('"é"', '"😀"')),
        (b'{"messages":[{"a":1,"a":2}]}', ('{"a":1,"a":2}',)),
    ],
)
def test_the_list_at_the_top_is_the_one(body, texts):
    assert advance(body, "messages", None).texts == texts


def test_of_a_key_that_stands_twice_the_same_list_counts_before_and_after():
    first = b'{"messages":[1],"messages":[2,3]}'
    step = advance(first, "messages", None)
    again = advance(first, "messages", step.body)
    assert (*step.texts[: again.keep], *again.texts) == step.texts
    assert "messages" not in step.body.rest


def test_a_number_that_goes_on_is_no_kept_message():
    earlier = advance(b'{"messages":[1,2]}', "messages", None)
    step = advance(b'{"messages":[1,25,3]}', "messages", earlier.body)
    assert (step.keep, step.texts) == (1, ("25", "3"))


@pytest.mark.parametrize("body", [b'{"messages": "text"}', b"{}", b"[]", b'"messages"', b'{"message": []}'])
def test_a_body_without_the_list_says_so(body):
    with pytest.raises(NotAList):
        advance(body, "messages", None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"messages":[1',
        b'{"messages":[1 2]}',
        b'{"messages":[1],}',
        b'{"messages":[nope]}',
        b'\xff\xfe{"messages":[]}',
    ],
)
def test_what_is_no_json_is_a_value_error_with_and_without_an_earlier_body(body):
    earlier = advance(b'{"messages":[1,2]}', "messages", None).body
    for before in (None, earlier):
        with pytest.raises(ValueError):  # noqa: PT011
            advance(body, "messages", before)
