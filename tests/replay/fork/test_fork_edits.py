"""Edits of a fork: by the paths as printed, of everything that can be edited; bad ones are told in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import talking
from looptape.replay.fork.draft import Draft, draft
from looptape.replay.fork.edits import apply, edit, turns_of
from looptape.replay.fork.faithful import start
from looptape.replay.fork.showing import diff
from looptape.replay.fork.start import OpenCall, Start
from looptape.tracer.errors import UsageError


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Draft]]:
    home = tmp_path_factory.mktemp("home")
    run = talking.record(home, talking.ANTHROPIC, talking.loop())
    with talking.stored(home) as store:
        yield {n: draft(store, run, n) for n in (1, 2, 3, 4)}


def edited(given: Draft, *edits: str, drop: str = "") -> Start:
    return start(apply(given, [edit(e) for e in edits], turns_of(drop) if drop else ()))


@pytest.mark.parametrize(
    ("said", "where", "value"),
    [
        ("system=Be brief.", ("system",), "Be brief."),
        ("model=claude-opus-4-8", ("model",), "claude-opus-4-8"),
        ("temperature=0.2", ("temperature",), 0.2),
        ("params.temperature=0.2", ("temperature",), 0.2),
        ("params.top_k=5", ("top_k",), 5),
        ("max_tokens=9", ("max_tokens",), 9),
        ("messages[1].content=How much?", ("messages", 0, "content"), "How much?"),
        ("$.messages[0].content=How much?", ("messages", 0, "content"), "How much?"),
        ("messages[1].content[1].text=How much?", ("messages", 0, "content"), "How much?"),
        ('messages[1].content=[{"type":"text","text":"a"}]', ("messages", 0, "content", 0, "text"), "a"),
        ("messages[2].content[1].text=Hm", ("messages", 1, "content", 0, "text"), "Hm"),
        ('messages[3].content[1].content={"rows": 3}', ("messages", 2, "content", 0, "content"), '{"rows": 3}'),
        ("tools[1].description=finds", ("tools", 0, "description"), "finds"),
        ("tools.search.description=finds", ("tools", 0, "description"), "finds"),
        ("tools=[]", ("tools",), []),
        ("turn[1].calls[1].result=none", ("messages", 2, "content", 0, "content"), "none"),
        ('turn[1].calls[1].arguments={"q":"y"}', ("messages", 1, "content", 1, "input"), {"q": "y"}),
        ("turn[1].calls[1].arguments.q=y", ("messages", 1, "content", 1, "input", "q"), "y"),
        ("turn[2].response.text=Hm", ("messages", 3, "content", 0, "text"), "Hm"),
        ("turn[2].text=Hm", ("messages", 3, "content", 0, "text"), "Hm"),
    ],
)  # fmt: skip
def test_an_edit_changes_that_and_nothing_else(
    drafts: dict[int, Draft], said: str, where: tuple[Any, ...], value: Any
) -> None:
    before = json.dumps(drafts[4].body)
    made = edited(drafts[4], said)
    found: Any = made.body
    for step in where:
        found = found[step]
    assert found == value
    assert made.stage == "generate"
    assert made.edits == (said,)
    assert json.dumps(drafts[4].body) == before
    if where[0] == "messages":  # nothing beside it
        untouched = [i for i in range(len(made.body["messages"])) if i != where[1]]
        assert all(made.body["messages"][i] == drafts[4].messages[i] for i in untouched)


def test_a_value_comes_from_a_file(drafts: dict[int, Draft], tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Line one\nLine two\n")
    assert edited(drafts[2], f"system=@{tmp_path / 'prompt.txt'}").body["system"] == "Line one\nLine two\n"
    assert edited(drafts[2], "system=@@me").body["system"] == "@me"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("messages[9].content=x", "there is no messages[9].content. messages has 1 to 7"),
        ("messages[2].text=x", "messages[2] has role, content"),
        ("tempature=1", "There are: model, system, messages[1-7], tools[1-1], turn[1-4]"),
        ("tools.serch.description=x", "tools has search"),
        ("tools[2].description=x", "tools has only 1"),
        ("turn[9].response.text=x", "turn[N] has 1 to 4 here"),
        ("turn[2].calls[3].result=x", "turn[2].calls has only 1"),
        ("turn[2].calls[1].reslt=x", "has arguments, name, result"),
        ("turn[2].foo=x", "has response, calls, text"),
        ("max_tokens=many", "is a number"),
        ("messages[0].content=x", "numbers begin at 1"),
        ("messages[1=x", "is no path"),
        ("no equals", "has no ="),
        ("system=@/nowhere/at/all", "cannot be read"),
        ("turn[4].calls[1].result=x", "turn[4].calls has nothing"),
    ],
)
def test_a_bad_path_says_in_one_line_what_is_there(drafts: dict[int, Draft], said: str, part: str) -> None:
    with pytest.raises(UsageError) as trouble:
        edited(drafts[4], said)
    assert part in str(trouble.value)
    assert "\n" not in str(trouble.value)
    assert trouble.value.exit_code == 2


def test_an_edited_result_of_n_keeps_its_answer_and_resumes(drafts: dict[int, Draft]) -> None:
    made = edited(drafts[2], "turn[2].calls[1].result=nothing found")
    assert (made.stage, made.inherited, made.pending) == ("resume", 2, ())
    assert made.body["messages"][:4] == drafts[3].messages[:4]
    assert made.body["messages"][4]["content"][0]["content"] == "nothing found"
    assert len(made.body["messages"]) == 5


def test_edited_arguments_of_n_are_run_again(drafts: dict[int, Draft]) -> None:
    made = edited(drafts[2], 'turn[2].calls[1].arguments={"q":"profit"}')
    assert (made.stage, made.inherited) == ("execute", 2)
    assert made.pending == (OpenCall("c2", "search", '{"q": "profit"}'),)
    assert made.body["messages"][-1]["role"] == "assistant"
    assert made.body["messages"][-1]["content"][1]["input"] == {"q": "profit"}


def test_an_edited_text_of_n_keeps_results_and_resumes(drafts: dict[int, Draft]) -> None:
    made = edited(drafts[2], "turn[2].response.text=Once more.")
    assert made.stage == "resume"
    assert made.body["messages"][3]["content"][0]["text"] == "Once more."
    assert made.body["messages"][4] == drafts[3].messages[4]


def test_a_whole_answer_may_call_something_else(drafts: dict[int, Draft]) -> None:
    content = [{"type": "tool_use", "id": "new", "name": "search", "input": {}}]
    made = edited(drafts[4], f"turn[4].response={json.dumps(talking.answer(content, 'tool_use'))}")
    assert made.stage == "execute"
    assert [c.id for c in made.pending] == ["new"]


def test_an_answer_after_which_nothing_comes_cannot_be_kept(drafts: dict[int, Draft]) -> None:
    with pytest.raises(UsageError, match="turn 4 ends the run"):
        edited(drafts[4], "turn[4].response.text=It is 85.")


def test_dropped_turns_go_with_their_results_and_the_rest_stays(drafts: dict[int, Draft]) -> None:
    made = edited(drafts[4], drop="1-2")
    messages = made.body["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[0] == drafts[4].messages[0]
    assert messages[1]["content"][1]["id"] == messages[2]["content"][0]["tool_use_id"] == "c3"


def test_what_a_person_said_beside_a_dropped_result_stays(tmp_path: Path) -> None:
    talk = talking.loop()
    for body, _ in talk[1:]:
        body["messages"][2] = {
            "role": "user",
            "content": [*body["messages"][2]["content"], {"type": "text", "text": "Hurry."}],
        }
    run = talking.record(tmp_path, talking.ANTHROPIC, talk)
    with talking.stored(tmp_path) as store:
        made = edited(draft(store, run, 4), drop="1")
    roles = [m["role"] for m in made.body["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert made.body["messages"][0]["content"][-1] == {"type": "text", "text": "Hurry."}


@pytest.mark.parametrize(
    ("drop", "part"),
    [("4", "cannot be dropped from the request of turn 4"), ("3-1", "names no turns"), ("0", "names no turns"), ("x", "names no turns")],
)  # fmt: skip
def test_turns_that_cannot_be_dropped_are_said(drafts: dict[int, Draft], drop: str, part: str) -> None:
    with pytest.raises(UsageError) as trouble:
        edited(drafts[4], drop=drop)
    assert part in str(trouble.value)


def test_the_chat_format_is_edited_by_the_same_paths(tmp_path: Path) -> None:
    call = {"id": "k1", "type": "function", "function": {"name": "search", "arguments": '{"q":"x"}'}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    tools = [{"type": "function", "function": {"name": "search", "description": "looks up", "parameters": {}}}]
    first = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How much?"}]
    one = {"model": "gpt-5", "tools": tools, "messages": first}
    two = {**one, "messages": [*first, said, {"role": "tool", "tool_call_id": "k1", "content": "1200"}]}
    asked = {"id": "a", "choices": [{"message": said, "finish_reason": "tool_calls"}]}
    run = talking.record(tmp_path, talking.CHAT, [(one, asked), (two, None)])
    with talking.stored(tmp_path) as store:
        at_one, at_two = draft(store, run, 1), draft(store, run, 2)
    made = edited(
        at_two,
        "system=Be long.",
        "tools[1].description=finds",
        "turn[1].calls[1].result=7",
        "turn[1].calls[1].arguments.q=y",
    )
    assert made.body["messages"][0] == {"role": "system", "content": "Be long."}
    assert made.body["tools"][0]["function"]["description"] == "finds"
    assert made.body["messages"][3]["content"] == "7"
    assert json.loads(made.body["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {"q": "y"}
    kept = edited(at_one, "turn[1].calls[1].result=9")
    assert kept.stage == "resume"
    assert kept.body["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "k1",
        "content": "9",
    }


def test_the_diff_shows_what_is_edited_and_only_that(drafts: dict[int, Draft]) -> None:
    after = apply(drafts[2], [edit("system=Be brief.\nBe kind."), edit("turn[2].calls[1].result=none")])
    lines = diff(drafts[2], after)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [
        "-system: You look things up.", "+system:", "+  Be brief.", "+  Be kind.",
        "-turn[2].calls[1].result: revenue 2: 1200", "+turn[2].calls[1].result: none",
    ]  # fmt: skip
    assert lines[0] == f"--- {drafts[2].run}:2"
    assert diff(drafts[2], drafts[2].copy()) == []


def test_thinking_with_other_words_loses_its_signature_and_goes(tmp_path: Path) -> None:
    talk = talking.loop()
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    for body, _ in talk[1:]:
        body["messages"][1] = {"role": "assistant", "content": [thought, *body["messages"][1]["content"]]}
    run = talking.record(tmp_path, talking.ANTHROPIC, talk)
    with talking.stored(tmp_path) as store:
        given = draft(store, run, 3)
    assert start(given).body["messages"][1]["content"][0] == thought
    made = edited(given, "messages[2].content[1].thinking=aha")
    assert [b["type"] for b in made.body["messages"][1]["content"]] == ["text", "tool_use"]
    assert made.lacks == ("1 thinking part without a signature: left out",)
