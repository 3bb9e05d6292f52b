"""Search: each text found once in every run that has it, at its turn and place, however it stands in the JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small_tape
from examples import examples
from looptape.replay.search import PLACES, Hit, Search, needle
from looptape.replay.search import finding as finding_module
from looptape.tracer.errors import UsageError
from looptape.tracer.store import Filter, Store, memory_store
from looptape.tracer.tape import Record

HOUR = 3600 * small_tape.SECOND


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as made:
        yield made


def found(store: Store, text: str, places: tuple[str, ...] = PLACES, **how: object) -> list[Hit]:
    """All hits of a search."""
    regex, case = bool(how.pop("regex", False)), how.pop("case", None)
    given = Filter(limit=0, **how)  # type: ignore[arg-type]
    return [hit for run in Search(store, needle(text, regex=regex, case=case), given, places) for hit in run.hits]  # type: ignore[arg-type]


def places(hits: list[Hit]) -> list[tuple[int, str, str]]:
    return [(hit.turn, hit.where, hit.what) for hit in hits]


def test_every_place_of_a_run_is_searched_and_each_text_told_once(store: Store) -> None:
    store.ingest(
        small_tape.records(
            question="prompt zebra", arguments={"q": "argument zebra"}, result="result zebra", answer="answer zebra", thinking="thought zebra"
        )
    )  # fmt: skip
    hits = found(store, "zebra")
    assert places(hits) == [
        (1, "prompts", "user"),
        (1, "thinking", "assistant"),
        (1, "arguments", "search"),
        (1, "results", "search"),
        (2, "answers", "assistant"),
    ]
    assert [(h.before, h.match) for h in hits][:2] == [("prompt ", "zebra"), ("thought ", "zebra")]
    assert all(h.after.startswith(("", '"')) and h.count == 1 for h in hits)


@pytest.mark.parametrize("place", PLACES[:5])
def test_one_place_alone(store: Store, place: str) -> None:
    store.ingest(
        small_tape.records(question="a zebra", arguments={"q": "a zebra"}, result="a zebra", answer="a zebra", thinking="a zebra")
    )  # fmt: skip
    assert {h.where for h in found(store, "zebra", (place,))} == {place}


def test_the_system_prompt_and_the_tool_schemas_are_prompts(store: Store) -> None:
    store.ingest(small_tape.records())
    assert places(found(store, "careful analyst")) == [(1, "prompts", "system")]
    assert places(found(store, "looks up")) == [(1, "prompts", "tool schemas")]


@pytest.mark.parametrize(
    ("text", "holds", "matches"),
    [
        ("zebra", "A Zebra", True),
        ("Zebra", "a zebra", False),
        ("Zebra", "a Zebra", True),
        ("straße café", "Straße Café", True),
        ("a.c", "abc", False),
        ("a.c", "a.c", True),
        ('say "hi"', 'I say "hi" there', True),
        ("C:\\new", "in C:\\new folder", True),
        ("one\ntwo", "zero\none\ntwo", True),
        ("one\\ntwo", "zero\none\ntwo", False),
        ("</b>", "<b>x</b>", True),
        ("🦓 ran", "a 🦓 ran", True),
        ("broken \ud83e", "a broken \ud83e emoji", True),
        ("tab\there", "a tab\there", True),
    ],
)
def test_a_literal_text_is_found_as_it_stands(store: Store, text: str, holds: str, matches: bool) -> None:
    store.ingest(small_tape.records(question=holds, result=holds, answer=holds, thinking=holds, arguments={"q": holds}))
    assert len(found(store, text)) == (5 if matches else 0)


def test_case_can_be_told_either_way(store: Store) -> None:
    store.ingest(small_tape.records(question="Zebra"))
    assert len(found(store, "ZEBRA", case=False)) == 1
    assert not found(store, "zebra", case=True)


@pytest.mark.parametrize(
    ("pattern", "match"),
    [
        (r"order [A-Z]-\d+", "order B-77"),
        (r"(?i)ORDER b", "order B"),
        (r"^line two$", None),
        (r"(?m)^line two$", "line two"),
        (r"\d{2}", "77"),
        (r"quo+ted? \"it", 'quoted "it'),
        (r"nothing|order", "order"),
        (r"(first|order) B", "order B"),
        (r"colou?r", "color"),
        (r"x*order", "order"),
        (r"[[:alpha:]]-77", "B-77"),
        (r"line .wo", "line two"),
        (r"two.color", None),
    ],
)
def test_a_regular_expression_sees_the_text_not_its_json(store: Store, pattern: str, match: str | None) -> None:
    store.ingest(small_tape.records(result='the order B-77 "quoted "it"\nline two\ncolor'))
    hits = found(store, pattern, ("results",), regex=True)
    assert [h.match for h in hits] == ([match] if match else [])


def test_a_wrong_regular_expression_is_named(store: Store) -> None:
    with pytest.raises(UsageError, match=r"missing \)"):
        found(store, "a(b", regex=True)


def test_nothing_to_look_for_and_an_unknown_place_are_errors(store: Store) -> None:
    with pytest.raises(UsageError, match="nothing to look for"):
        needle("")
    with pytest.raises(UsageError, match="'bodies'"):
        Search(store, needle("x"), Filter(), ("bodies",))


def test_runs_come_in_the_order_of_the_filter_and_only_those_it_picks(store: Store) -> None:
    for number, name in enumerate(("old", "new", "other")):
        store.ingest(
            small_tape.records(f"{number:016x}", name=name, question="zebra", start=small_tape.START + number * HOUR)
        )
    newest = Search(store, needle("zebra"), Filter(limit=0))
    assert [r.run.name for r in newest] == ["other", "new", "old"]
    assert (newest.looked, newest.total) == (3, 3)
    assert [r.run.name for r in Search(store, needle("zebra"), Filter(name="*e*", sort="name"))] == ["new", "other"]


def test_a_search_that_is_left_early_has_looked_at_some(store: Store) -> None:
    store.ingest(
        record
        for number in range(70)
        for record in small_tape.records(f"{number:016x}", question="zebra", start=small_tape.START + number * HOUR)
    )
    search = Search(store, needle("zebra"), Filter(limit=0))
    assert next(iter(search)).run.id == f"{69:016x}"
    assert (search.looked, search.total) == (1, 70)
    assert len({r.run.id for r in Search(store, needle("zebra"), Filter(limit=0))}) == 70


def test_slices_do_not_change_the_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        store.ingest(
            small_tape.records(f"{number:016x}", question=f"zebra {number % 3}", result="zebra " * (number % 4), start=small_tape.START + number)
        )  # fmt: skip
    whole = found(store, "zebra")
    monkeypatch.setattr(finding_module, "FIRST", 1)
    monkeypatch.setattr(finding_module, "STEADY", 1)
    monkeypatch.setattr(finding_module, "MOST", 2)
    assert found(store, "zebra") == whole


def test_matches_in_one_text_are_counted_and_the_first_is_shown(store: Store) -> None:
    store.ingest(small_tape.records(result="x" * 500 + " zebra one zebra two Zebra"))
    (hit,) = found(store, "zebra")
    assert (hit.count, hit.match, hit.after) == (3, "zebra", " one zebra two Zebra")
    assert len(hit.before) == 120


def test_a_message_whose_json_changed_on_the_way_is_told_once(store: Store) -> None:
    """Cache marks move from message to message: the text is the same, the JSON is not."""
    records = small_tape.records(question="a zebra")
    marked = {"role": "user", "content": [{"type": "text", "text": "a zebra", "cache_control": {"type": "ephemeral"}}]}
    store.ingest(_with_first_message_of_turn_two(records, marked))
    hits = found(store, "zebra")
    assert places(hits) == [(1, "prompts", "user")]


def test_an_answer_that_the_program_changed_is_found_beside_the_recorded_one(store: Store) -> None:
    records = small_tape.records(question="hello")
    edited = {"role": "assistant", "content": "I never said zebra."}
    store.ingest(_with_first_message_of_turn_two(records, edited))
    assert places(found(store, "zebra")) == [(2, "answers", "assistant")]


def test_what_a_tool_returned_and_the_model_saw_differently_is_told_once_if_both_match(store: Store) -> None:
    records = small_tape.records(result="cut: zebra")
    call = {
        "kind": "call_end",
        "run": small_tape.RUN,
        "turn": 1,
        "call": "c1",
        "at": small_tape.START + small_tape.SECOND,
        "state": "done",
    }
    store.ingest([*records, {**call, "result": "the whole zebra and a giraffe", "is_error": False}])
    assert len(found(store, "zebra")) == 1
    assert places(found(store, "giraffe")) == [(1, "results", "search")]


def test_errors_of_turns_are_found(store: Store) -> None:
    records = small_tape.records()
    ends = [r for r in records if r["kind"] == "turn_end"]
    ends[1].update(status="error", error="overloaded zebra", error_type="APIError")
    store.ingest(records)
    assert places(found(store, "zebra")) == [(2, "errors", "assistant")]


def test_runs_without_content_are_counted(store: Store) -> None:
    bare = [
        {k: v for k, v in r.items() if k != "text"} if r["kind"] == "blob" else r
        for r in small_tape.records(question="the zebra")
    ]
    store.ingest(bare)
    store.ingest(small_tape.records("f" * 16, question="a zebra"))
    search = Search(store, needle("zebra"), Filter(limit=0))
    assert [r.run.id for r in search] == ["f" * 16]
    assert search.unrecorded() == 1


TEXTS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=12)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.data())
def test_any_part_of_any_text_is_found_where_it_is(texts: list[str], data: st.DataObject) -> None:
    """Against plain Python over what was put in."""
    whole = data.draw(st.sampled_from(texts))
    begin = data.draw(st.integers(0, len(whole) - 1))
    part = whole[begin : data.draw(st.integers(begin + 1, len(whole)))]
    with memory_store() as store:
        for number, text in enumerate(texts):
            store.ingest(
                small_tape.records(f"{number:016x}", result=text, question="?", answer="!", arguments={"q": 1})
            )
        hits = found(store, part, ("results",), case=True)
        assert {int(h.run, 16) for h in hits} == {n for n, text in enumerate(texts) if part in text}
        assert all(h.match == part for h in hits)
        assert all(h.count == len(re.findall(re.escape(part), texts[int(h.run, 16)])) for h in hits)


def test_a_thousand_words_are_not_too_many(store: Store) -> None:
    store.ingest(small_tape.records(question=" ".join(f"word{n}" for n in range(1000))))
    assert len(found(store, "word998 word999")) == 1
    assert replace(found(store, "word1 ")[0], before="").match == "word1 "


def _with_first_message_of_turn_two(records: list[Record], message: object) -> list[Record]:
    """The same run whose second request begins with this message instead of the question."""
    made = small_tape.blob(json.dumps(message))
    second = [r for r in records if r["kind"] == "turn_start"][1]
    second.update(keep=0, append=[made["hash"], *second["append"]])
    return [made, *records]
