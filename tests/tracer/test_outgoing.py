"""The last look before the journal: no secret in any field of a record, and with content none nothing that was said."""

from __future__ import annotations

import json
import re

import httpx2
import pytest

import looptape
import scripted
from acknowledged import every_byte
from looptape.tracer import outgoing, redaction
from looptape.tracer.journal import Journal
from looptape.tracer.recorder import Recorder
from looptape.tracer.store import sync
from recorded import recording


@pytest.fixture(autouse=True)
def _only_built_in():
    redaction.forget()
    yield
    redaction.forget()


class Marks:
    """Another token for each place it is put at; tells the places by their tokens."""

    def __init__(self):
        self.places = {}

    def __call__(self, place):
        token = "gh" + f"p_{len(self.places):02d}" + "A1b2C3d4E5" * 3 + "zz"
        self.places[token] = place
        return token

    def found_in(self, data):
        return [place for token, place in self.places.items() if token.encode() in data]


def test_a_secret_in_any_name_id_or_report_reaches_neither_journal_nor_store(tmp_path):
    k = Marks()

    def answer(body):
        use = {"type": "tool_use", "id": f"toolu_{k('tool id')}", "name": f"n_{k('tool name')}", "input": {}}
        return {
            "id": f"msg_{k('message id')}", "type": "message", "role": "assistant", "model": f"m-{k('answer model')}",
            "content": [use], "stop_reason": f"stop_{k('stop reason')}", "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip

    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(answer))
        places = {n: f"{n} {k(n)}" for n in ("session", "task", "agent")}
        with looptape.run(f"deploy {k('run name')}", tags={k("tag key"): k("tag value")}, **places) as run:
            run.outcome(k("verdict"), k("note"))
            run.tag(**{k("later tag key"): k("later tag value")})
            client.messages.create(model=f"mo-{k('model')}", max_tokens=5, messages=[{"role": "user", "content": "go"}])
            with run.turn(agent=k("agent of a turn")) as turn:
                turn.request("x", model=k("model by hand"))
                usage = {"input_tokens": 3, "note": k("usage"), k("usage key"): 1}
                turn.response("y", id=k("id by hand"), stop_reason=k("stop by hand"), usage=usage)
                with turn.tool(k("tool by hand"), {}) as tool:
                    tool.result("r")

                @looptape.tool(name=f"f {k('decorator')}", loop_key=k("loop key"))
                def decorated(q):
                    return q

                decorated(q=1)
        home.end()
        journals = every_byte(home.path)
        sync(home.path)
        assert b"[redacted:github-token]" in journals
        assert k.found_in(journals + every_byte(home.path)) == []
        ids = {r["call"] for r in home.records() if "call" in r} or {"toolu_[redacted:github-token]"}
        assert all("gh" + "p_" not in i for i in ids)


def test_the_id_of_a_call_is_replaced_by_the_same_text_wherever_it_binds(tmp_path):
    secret = "toolu_" + "gh" + "p_" + "A1b2C3d4E5" * 3 + "zz"

    def answer(body):
        last = len(body["messages"]) > 1
        content = (
            [{"type": "text", "text": "ok"}] if last else [{"type": "tool_use", "id": secret, "name": "f", "input": {}}]
        )
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "end_turn" if last else "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip

    @looptape.tool
    def f():
        return "found"

    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(answer))
        messages = [{"role": "user", "content": "go"}]
        message = client.messages.create(model="m", max_tokens=5, messages=messages)
        messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in message.content]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": secret, "content": f()}]})
        client.messages.create(model="m", max_tokens=5, messages=messages)
        first, _ = home.run().turns
    (call,) = first.tool_calls
    assert (call.id, call.name, call.result, call.timing) == ("toolu_[redacted:github-token]", "f", "found", "measured")


def test_ids_and_hashes_stay_as_they_are_even_where_a_short_key_stands_in_them():
    redaction.remember("abc123")
    record = {"kind": "call_start", "run": "00abc12300000000", "turn": 1, "call": "c1", "name": "the abc123 tool"}
    written = json.loads(outgoing.lines([record], content=True))
    assert written == {**record, "name": "the [redacted:api-key] tool"}


def test_a_record_without_secrets_is_written_without_looking_at_its_fields(monkeypatch):
    monkeypatch.setattr(outgoing, "_clean", None)
    record = {"kind": "turn_start", "run": "0" * 16, "url": "https://api.example.com/v1/messages", "caller": "a.py:1"}
    assert json.loads(outgoing.lines([record], content=True)) == record


def test_the_authors_own_functions_see_the_names_that_the_author_gave(tmp_path):
    looptape.configure(redact=[lambda t: re.sub("Ada Lovelace|Ada", "[name]", t)])
    with recording(tmp_path) as home:
        with looptape.run(
            "mail to Ada Lovelace", session="of Ada", task="write Ada", agent="Ada's", tags={"to": "Ada"}
        ):
            pass
        (start,) = [r for r in home.records() if r["kind"] == "run_start"]
        assert b"Ada" not in every_byte(home.path)
    assert (start["name"], start["session"]) == ("mail to [name]", "of [name]")


def test_without_content_no_free_text_of_any_field_is_kept(tmp_path):
    usage = {"input_tokens": 3, "service_tier": "standard", "note": "canary words", "deep": {"list": [1, "canary too"]}}
    with recording(tmp_path) as home:
        home.recorder = Recorder(Journal(tmp_path / "none", content=False))
        looptape.tracer.process.replace(home.recorder)
        with looptape.run("name", tags={"customer": "canary tag"}) as run:
            with run.turn() as turn:
                turn.request("canary request", model="m")
                turn.response("canary answer", usage=usage)

                @looptape.tool(loop_key=lambda q: f"canary {q}")
                def search(q):
                    return "canary result"

                search(q="x")
                search(q="x")
                search(q="y")
            run.tag(later="canary later")
            run.outcome("pass", "canary note", score=0.5)
        home.recorder.at_exit()
        assert b"canary" not in every_byte(tmp_path / "none")
        home.path = tmp_path / "none"
        records = home.records()
    by = {
        kind: [r for r in records if r["kind"] == kind]
        for kind in ("run_start", "run_update", "turn_end", "call_start")
    }
    assert by["run_start"][0]["tags"] == {"customer": ""}
    assert [r["outcome"] for r in by["run_update"] if "outcome" in r] == [{"verdict": "pass", "score": 0.5}]
    kept = by["turn_end"][0]["usage_raw"]
    assert (kept["input_tokens"], kept["service_tier"], kept["note"], kept["deep"]) == (
        3,
        "standard",
        None,
        {"list": [1, None]},
    )
    keys = [r["loop_key"] for r in by["call_start"]]
    assert keys[0] == keys[1] != keys[2]
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)


def test_a_password_in_the_base_url_is_nowhere_also_when_it_is_repeated(tmp_path):
    password = "Sup3r" + "S3cretPw"
    with recording(tmp_path) as home:
        http = looptape.wrap(
            httpx2.Client(
                transport=httpx2.MockTransport(
                    lambda r: httpx2.Response(400, json={"error": {"message": f"not {password}"}})
                )
            )
        )
        http.post(f"http://user:{password}@localhost/v1/messages", json={"model": "m", "messages": []})
        assert b"turn_end" in every_byte(home.path)
        assert password.encode() not in every_byte(home.path)
