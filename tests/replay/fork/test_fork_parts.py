"""The parts of a turn that can be edited: every one can, exactly that changes, and what is the same is no edit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import talking
from looptape.replay.fork import align
from looptape.replay.fork.draft import Draft, draft
from looptape.replay.fork.edits import apply, edit
from looptape.replay.fork.parts import Part, edit_of, excludes, parts, place_of
from looptape.tracer.errors import UsageError

ODD = "a\u202eb\x1b[2J\r\nc\u2028d 👩\u200d💻 ‹U+001B› \t"
IMAGE = {"type": "image", "source": {"type": "base64", "data": "QUJD"}}


def anthropic() -> list[Any]:
    """A body with every kind of block, and the answer to it."""
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 500,
        "temperature": 0.5,
        "system": [
            {"type": "text", "text": "You are kind.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": ODD},
        ],
        "tools": [{"name": "search", "description": "looks up", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": ODD},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": ODD}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "found"}]},
                IMAGE, {"type": "text", "text": "and?"},
            ]},
        ],
    }  # fmt: skip
    said = [
        {"type": "text", "text": "Again."},
        {"type": "tool_use", "id": "c2", "name": "search", "input": {"q": "x"}},
    ]
    later = [
        *body["messages"],
        {"role": "assistant", "content": said},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "none"}]},
    ]
    return [
        (body, talking.answer(said, "tool_use")),
        ({**body, "messages": later}, talking.answer([{"type": "text", "text": "No."}], "end_turn", 2)),
    ]


def chat() -> list[Any]:
    """The same in OpenAI's chat format."""
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    body = {
        "model": "gpt-5",
        "tools": [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "You are kind."},
            {"role": "user", "content": [{"type": "text", "text": ODD}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": ODD},
        ],
    }
    message = {"role": "assistant", "content": "84"}
    return [(body, {"id": "x", "model": "gpt-5", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})]  # fmt: skip


def responses() -> list[Any]:
    """The same in the Responses format."""
    body = {
        "model": "gpt-5",
        "instructions": "You are kind.",
        "input": [
            {"role": "user", "content": "What?"},
            {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "x"}'},
            {"type": "function_call_output", "call_id": "c1", "output": ODD},
        ],
    }
    text = {"type": "output_text", "text": "84", "annotations": []}
    output = [{"type": "message", "id": "m", "role": "assistant", "content": [text]}]
    return [(body, {"id": "r", "model": "gpt-5", "status": "completed", "output": output})]


TALKS = {talking.ANTHROPIC: anthropic, talking.CHAT: chat, talking.RESPONSES: responses}


def drafted(home: Path, api: str) -> Draft:
    run = talking.record(home, api, TALKS[api]())
    with talking.stored(home) as store:
        return draft(store, run, 1)


def seen(made: Draft) -> Any:
    """All that an edit can touch."""
    return json.loads(json.dumps([made.body, made.response, {k: r.content for k, r in made.results.items()}]))


@pytest.mark.parametrize("api", TALKS)
def test_every_part_can_be_edited_and_is_then_what_was_typed(tmp_path: Path, api: str) -> None:
    made = drafted(tmp_path, api)
    found = parts(made)
    assert len({p.path for p in found}) == len(found)
    for part in found:
        text = edited(part)
        made_edit = edit_of(part, text)
        assert made_edit is not None, part.path
        after = apply(made, [made_edit])
        assert seen(after) != seen(made), part.path
        again = {p.path: p for p in parts(after)}
        now = again.get(part.path)
        if now is not None and part.kind != "response" and part.steps[0] != "turn":
            assert (json.loads(now.text) if part.json else now.text) == (json.loads(text) if part.json else text)


def edited(part: Part) -> str:
    """Another text of the same kind."""
    if not part.json:
        return part.text + ODD
    value = json.loads(part.text)
    if isinstance(value, dict):
        return json.dumps({**value, "added": ODD})
    return json.dumps([{"name": "other"}] if isinstance(value, list) else (value or 0) + 1)


@pytest.mark.parametrize("text", ['{"a": 1}', '"quoted"', "[1, 2]", '[{"type": "text", "text": "x"}]', "12", "@file", "@@x", "!" + ODD], ids=["object", "string", "list", "blocks", "number", "file", "at", "odd"])  # fmt: skip
def test_words_that_look_like_something_else_stay_the_words_they_are(tmp_path: Path, text: str) -> None:
    made = drafted(tmp_path, talking.ANTHROPIC)
    part = next(p for p in parts(made) if p.path == "messages[1].content")
    one = edit_of(part, text)
    assert one is not None
    assert apply(made, [one]).body["messages"][0]["content"] == text
    assert apply(made, [edit(one.said)]).body["messages"][0]["content"] == text  # as the command line would say it


def test_unedited_parts_keep_every_character(tmp_path: Path) -> None:
    made = drafted(tmp_path, talking.ANTHROPIC)
    part = next(p for p in parts(made) if p.path == "system[1].text")
    one = edit_of(part, "You are brief.")
    assert one is not None
    after = apply(made, [one])
    before = json.loads(json.dumps(made.body))
    before["system"][0]["text"] = "You are brief."
    assert after.body == before


def test_a_text_that_is_the_same_is_no_edit(tmp_path: Path) -> None:
    for part in parts(drafted(tmp_path, talking.ANTHROPIC)):
        assert edit_of(part, part.text) is None
        if part.json:
            assert edit_of(part, json.dumps(json.loads(part.text))) is None  # other blanks, the same value


@pytest.mark.parametrize(
    ("text", "line", "column"), [('{"a": }', 1, 7), ('{\n  "a": 1,\n}', 2, 10), ("", 1, 1), ('{"a": 1} x', 1, 10)]
)
def test_what_is_no_json_is_refused_with_its_place(tmp_path: Path, text: str, line: int, column: int) -> None:
    part = next(p for p in parts(drafted(tmp_path, talking.ANTHROPIC)) if p.path == "tools[1]")
    with pytest.raises(UsageError) as caught:
        edit_of(part, text)
    place = place_of(text)
    assert place is not None
    assert f"line {place[0] + 1}, column {place[1] + 1}" in str(caught.value)
    assert place[0] + 1 in (line, line + 1)  # Python versions differ about a trailing comma
    assert place[0] + 1 != line or abs(place[1] + 1 - column) <= 1


def test_a_whole_takes_the_place_of_its_parts(tmp_path: Path) -> None:
    found = {p.path: p for p in parts(drafted(tmp_path, talking.ANTHROPIC))}
    assert excludes(found["tools"], found["tools[1]"])
    assert excludes(found["turn[1].response.text"], found["turn[1].response"])
    assert excludes(found["turn[1].calls[1].arguments"], found["turn[1].response"])
    assert not excludes(found["turn[1].calls[1].result"], found["turn[1].response"])
    assert not excludes(found["messages[1].content"], found["model"])


def test_each_message_is_searched_once_however_many_turns_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = talking.record(tmp_path, talking.ANTHROPIC, talking.loop(laps=30))
    with talking.stored(tmp_path) as store:
        made = draft(store, run, 30)
    looked: list[int] = []
    inner = align.results_of
    monkeypatch.setattr(align, "results_of", lambda message: looked.append(1) or inner(message))
    assert len(align.places(made.turns, made.messages)) == 29
    assert len(looked) == len(made.messages)


def test_a_run_without_system_prompt_can_be_given_one(tmp_path: Path) -> None:
    for api in (talking.ANTHROPIC, talking.CHAT):
        talk = TALKS[api]()
        for body, _ in talk:
            body.pop("system", None)
            body["messages"] = [m for m in body["messages"] if m["role"] != "system"]
        home = tmp_path / api
        run = talking.record(home, api, talk)
        with talking.stored(home) as store:
            made = draft(store, run, 1)
        part = next(p for p in parts(made) if p.kind == "system")
        assert not part.there
        one = edit_of(part, '{"not": "decoded"}')
        assert one is not None
        assert apply(made, [one]).body["system"] == '{"not": "decoded"}'
