"""What counts as the same request, what a miss says, and that it is said once."""

import json
import os
from datetime import UTC, datetime

import pytest

from looptape.replay.player.stops import ReplayMismatch, ReplayStopped
from played import Program, Turn, records, request, results, said, then, user

RECORDED = {
    "model": "acme-large-1", "max_tokens": 100, "metadata": {"user_id": "u-1"},
    "messages": [user("Today is 2026-11-02T09:00:00Z, cwd /home/dev/demo, request 4f0c8f1e-0000-4000-8000-000000000001")],
}  # fmt: skip
NEW = {
    "max_tokens": 100, "model": "acme-large-1", "metadata": {"user_id": "u-2"},
    "messages": [user([{"type": "text", "cache_control": {"type": "ephemeral"},
                        "text": "Today is 2026-11-29T17:00:00Z, cwd /home/dev/demo, request 9a9a9a9a-0000-4000-8000-000000000009"}])],
}  # fmt: skip
FOUR = {
    "$.metadata.user_id",
    "$.messages[0].content",
    "$.messages[0].content[0].text",
    "$.messages[0].content[0].cache_control",
}


def one(body: dict, **settings) -> Program:
    return Program(records([Turn(body, said("ok"))]), **settings)


def missed(program: Program, body: dict, **more) -> ReplayMismatch:
    with pytest.raises(ReplayMismatch) as caught:
        program.ask(body, **more)
    return caught.value


def test_what_changes_from_run_to_run_matches_and_each_use_is_listed():  # rpl-06
    program = one(RECORDED)
    assert program.ask(NEW)["content"][0]["text"] == "ok"
    verdict = program.verdict()
    assert verdict.ok
    assert {n["path"] for n in verdict.normalised} == FOUR
    assert len(verdict.normalised) == 4
    assert {n["path"]: n["rule"] for n in verdict.normalised}["$.messages[0].content[0].text"] == "ids, dates"


def test_exact_reports_the_same_four_paths_and_stops():  # rpl-06
    error = missed(one(RECORDED, match="exact"), NEW)
    assert set(error.paths) == FOUR
    assert "--match normalised" in error.cure


def test_a_changed_prompt_is_a_miss_that_says_where_and_what_and_how_to_go_on():  # rpl-07
    body = request(user("Review case 0001"), system="Be brief.", tools=[{"name": "a"}, {"name": "b"}])
    error = missed(one(body), {**body, "messages": [user("Review case 0002")]})
    assert error.turn == 1
    assert error.path == "$.messages[0].content"
    assert (error.recorded, error.got) == ("Review case 0001", "Review case 0002")
    lines = str(error).splitlines()
    assert len(lines) <= 8
    assert "messages[0].content" in str(error)
    assert "turn 1" in error.nearest
    assert "looptape record -- COMMAND" in error.cure


def test_the_stale_answer_is_never_given_for_a_changed_prompt():
    program = one(request(user("Review case 0001")))
    missed(program, request(user("Review case 0002")))
    verdict = program.verdict()
    assert verdict.served.model == 0
    assert verdict.unconsumed.model == 1
    assert verdict.diverged["path"] == "$.messages[0].content"


def test_long_texts_are_shown_from_where_they_part():
    start = "word " * 400
    error = missed(one(request(user(start + "left"))), request(user(start + "right")))
    assert "left" in error.recorded
    assert "right" in error.got
    assert len(error.recorded) <= 101


@pytest.mark.parametrize(
    ("recorded", "got", "rule"),
    [
        pytest.param({"temperature": 1, "top_k": 5}, {"top_k": 5.0, "temperature": 1.0}, None, id="key-order-and-1.0"),
        pytest.param({"stop_sequences": ["a", "b"]}, {"stop_sequences": ("a", "b")}, None, id="tuple"),
        pytest.param(
            {"tools": [{"name": "a"}, {"name": "b"}]},
            {"tools": [{"name": "b"}, {"name": "a"}]},
            "tool-order",
            id="tools",
        ),
        pytest.param({"system": "caf\u00e9"}, {"system": "cafe\u0301"}, "unicode-form", id="unicode"),
    ],
)
def test_forms_that_mean_the_same_match_with_a_note_where_the_text_changed(recorded, got, rule):  # rpl-13
    program = one(request(user("hi"), **recorded))
    assert program.ask(json.loads(json.dumps(request(user("hi"), **got))))
    verdict = program.verdict()
    assert verdict.ok
    assert [n["rule"] for n in verdict.normalised] == ([rule] if rule else [])


def test_nan_is_refused_with_a_message_that_names_the_place():  # rpl-13
    program = one(request(user("hi"), temperature=float("nan")))
    with pytest.raises(ReplayStopped, match=r"NaN, which JSON does not have .* at \$\.params"):
        program.ask(request(user("hi"), temperature=float("nan")))
    with pytest.raises(ReplayStopped, match=r"at \$\.messages\[0\]"):
        program.ask(request(user([{"type": "text", "text": "NaN", "n": float("inf")}])))


@pytest.mark.parametrize(
    ("recorded", "got"),
    [
        pytest.param("total 412.07", "total 412.08", id="number"),
        pytest.param("due 2031-01-05", "due 2031-01-06", id="a-date-that-is-no-clock"),
        pytest.param("opens 2031-01-05T09:00:00Z", "opens 2031-01-05T10:00:00Z", id="a-time-that-is-no-clock"),
        pytest.param("/tmp/report-q3.txt", "/tmp/report-q4.txt", id="a-file-name"),
        pytest.param("sha 0cc175b9c0f1b6a831c399e269772661", "sha 92eb5ffee6ae2fec3ad71c777531578f", id="a-checksum"),
        pytest.param("case_1234", "case_1235", id="a-number-with-a-word"),
    ],
)
def test_results_that_say_something_else_never_match(recorded, got):
    body = request(user("go"))
    answer = said("", ("t1", "look", {}))
    turns = [
        Turn(body, answer, {"t1": (recorded, 12, 13)}),
        Turn(then(body, answer, results(("t1", recorded))), said("end")),
    ]
    program = Program(records(turns))
    program.ask(body)
    error = missed(program, then(body, answer, results(("t1", got))))
    assert error.path.startswith("$.messages[2].content[0].content")
    assert error.turn == 2


def test_results_given_back_under_each_others_id_do_not_match():
    body = request(user("go"))
    ids = ("toolu_01AbCdEfGhIjKlMnOp", "toolu_01ZyXwVuTsRqPoNmLk")
    answer = said("", (ids[0], "look", {"n": 1}), (ids[1], "look", {"n": 2}))
    turns = [Turn(body, answer), Turn(then(body, answer, results((ids[0], "one"), (ids[1], "two"))), said("end"))]
    program = Program(records(turns))
    program.ask(body)
    error = missed(program, then(body, answer, results((ids[1], "one"), (ids[0], "two"))))
    assert error.path == "$.messages[2].content[0].tool_use_id"


def test_a_new_id_stands_for_one_recorded_id_only():
    one_id, other = ("4f0c8f1e-0000-4000-8000-00000000000" + n for n in "12")
    new = "9a9a9a9a-0000-4000-8000-000000000009"
    body = request(user(f"session {one_id}"), user(f"again {one_id}"))
    assert one(body).ask(request(user(f"session {new}"), user(f"again {new}")))
    error = missed(
        one(request(user(f"a {one_id}"), user(f"b {other}"))), request(user(f"a {other}"), user(f"b {one_id}"))
    )
    assert error.path == "$.messages[0].content"


def test_reminders_come_and_go():
    body = request(user([{"type": "text", "text": "fix it"}]))
    got = request(
        user(
            [
                {"type": "text", "text": "<system-reminder>Token usage: 5</system-reminder>"},
                {"type": "text", "text": "fix it"},
            ]
        )
    )
    program = one(body)
    assert program.ask(got)
    assert [(n["path"], n["rule"]) for n in program.verdict().normalised] == [("$.messages[0].content[0]", "reminders")]


def test_dialogue_lets_the_prompt_change_and_lists_it_as_drift():
    tool = {"name": "look", "description": "looks", "input_schema": {"type": "object"}}
    body = request(user("hi"), system="Be brief.", tools=[tool], temperature=0)
    changed = {**body, "system": "Be kind.", "temperature": 1, "tools": [{**tool, "description": "looks well"}]}
    missed(one(body), changed)
    program = one(body, match="dialogue")
    assert program.ask(changed)
    verdict = program.verdict()
    assert verdict.ok
    assert {d["path"] for d in verdict.drift} == {"$.system", "$.tools[0].description", "$.temperature"}
    assert missed(one(body, match="dialogue"), {**changed, "messages": [user("ho")]}).path == "$.messages[0].content"
    renamed = {**changed, "tools": [{**tool, "name": "see"}]}
    assert missed(one(body, match="dialogue"), renamed).path == "$.tools[0].name"


def loop(word: str, length: int = 4) -> list[Turn]:
    body, found = request(user(f"start {word}"), system="s"), []
    for number in range(1, length + 1):
        answer = said(f"answer {number}", message=f"msg_{number}")
        found.append(Turn(body, answer))
        body = then(body, answer, user(f"more {number}"))
    return found


def test_only_the_first_difference_is_reported_and_not_its_echo_in_later_turns():
    turns, edited = loop("one"), loop("two")
    program = Program(records(turns), on_miss="warn")
    for turn in edited:
        assert program.ask(turn.body)
    verdict = program.verdict()
    assert not verdict.ok
    assert verdict.diverged["turn"] == 1
    assert verdict.served.model == 4
    assert len([e for e in program.events.all() if e["event"] == "miss"]) == 1
    assert any("--on-miss warn" in note for note in verdict.notes)


def test_a_rule_that_applied_to_an_early_message_is_noted_once():
    first, second = (loop(f"at 2026-11-0{n}T09:00:00Z") for n in (2, 3))
    program = Program(records(first))
    for turn in second:
        assert program.ask(turn.body)
    assert [(n["turn"], n["path"]) for n in program.verdict().normalised] == [(1, "$.messages[0].content")]


def test_the_miss_names_the_turn_that_was_next_and_the_place_in_its_history():
    turns = loop("one")
    program = Program(records(turns))
    for turn in turns[:2]:
        program.ask(turn.body)
    got = json.loads(json.dumps(turns[2].body))
    got["messages"][4]["content"] = "less 2"
    error = missed(program, got)
    assert (error.turn, error.path, error.recorded, error.got) == (3, "$.messages[4].content", "more 2", "less 2")


def test_a_turn_that_is_asked_again_says_that_its_answer_was_given():
    turns = loop("one", 1)
    program = Program(records(turns))
    program.ask(turns[0].body)
    assert "repeats turn 1" in str(missed(program, turns[0].body))


def test_a_request_beyond_the_recording_names_the_nearest_turn():
    turns = loop("one", 2)
    program = Program(records(turns))
    for turn in turns:
        program.ask(turn.body)
    error = missed(program, then(turns[1].body, said("answer 2", message="msg_2"), user("and now?")))
    assert error.turn == 2
    assert error.path == "$.messages[3]"
    assert error.recorded is None


def test_users_normalisers_apply_and_are_named(tmp_path, monkeypatch):
    (tmp_path / "my_normaliser_rules.py").write_text(
        "import re\n\ndef tickets(text):\n    return re.sub(r'TICKET-\\d+', 'TICKET', text)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    program = one(request(user("see TICKET-1")), normalisers=("my_normaliser_rules:tickets",))
    assert program.ask(request(user("see TICKET-2")))
    assert program.verdict().normalised[0]["rule"] == "normaliser my_normaliser_rules:tickets"


def test_the_stream_flag_matters_in_exact_only():
    body = request(user("hi"))
    assert one(body).player.answer(one(body).asked({**body, "stream": True}))
    assert missed(one(body, match="exact"), {**body, "stream": True}).path == "$.stream"


def test_a_turn_whose_answer_was_lost_stops_there_and_says_how_to_go_on():
    turns = loop("one", 3)
    turns[1].response = None
    program = Program(records(turns))
    program.ask(turns[0].body)
    error = missed(program, turns[1].body)
    assert error.turn == 2
    assert "no answer" in str(error)
    assert "--from 2 --model live" in error.cure


@pytest.mark.parametrize(
    ("recorded", "got", "rule"),
    [
        pytest.param("Today is {then}", "Today is {now}", "dates", id="day-of-the-recording-and-of-now"),
        pytest.param("At Sat, 29 Nov 2025 14:02:03 GMT", "At Mon, 1 Dec 2025 08:00:00 GMT", "dates", id="http-date"),
        pytest.param("in /home/dev/demo/src", "in {cwd}/src", "paths", id="project-and-working-directory"),
        pytest.param("/tmp/tmpab12cd34/x", "/tmp/tmpzz98yy76/x", "paths", id="temporary-directory"),
        pytest.param("/home/alice/x", "/Users/bob/x", "paths", id="home"),
        pytest.param("call_AbCd1234EfGh5678", "call_ZyXw9876VuTs5432", "ids", id="provider-id"),
    ],
)
def test_what_only_tells_where_and_when_it_ran_matches_by_its_rule(recorded, got, rule):
    filled = {"then": "2025-11-29", "now": datetime.now(UTC).date().isoformat(), "cwd": os.getcwd()}
    program = one(request(user(recorded.format(**filled))))
    assert program.ask(request(user(got.format(**filled))))
    assert [n["rule"] for n in program.verdict().normalised] == [rule]


def test_what_a_client_says_of_itself_may_differ_but_not_be_missing():
    body = request(user("hi"), client_metadata={"turn": '{"id": "a", "started_ms": 1}', "window": "w:0"})
    got = {**body, "client_metadata": {"turn": '{"id": "b", "started_ms": 2}', "window": "w:0"}}
    program = one(body)
    assert program.ask(got)
    assert [(n["path"], n["rule"]) for n in program.verdict().normalised] == [("$.client_metadata.turn", "ids")]
    assert missed(one(body, match="exact"), got).path == "$.client_metadata.turn"
    assert missed(one(body), {**body, "client_metadata": {"window": "w:0"}}).path == "$.client_metadata.turn"


def test_the_same_reminder_at_another_place_is_named_by_its_rule():
    program = one(request(user("fix it<system-reminder>x</system-reminder>")))
    assert program.ask(request(user("fix<system-reminder>x</system-reminder> it")))
    assert [n["rule"] for n in program.verdict().normalised] == ["reminders"]
