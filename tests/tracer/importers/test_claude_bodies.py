"""Claude Code's raw API bodies: a folder becomes whole turns; names in its index never lead outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from imported import Imported, read
from looptape.tracer import tape as tapes
from looptape.tracer.errors import LooptapeError
from looptape.tracer.importers import import_path
from looptape.tracer.importers.claude import claude_bodies
from looptape.tracer.store import Store, memory_store
from testdata import require

SESSION = "00000000-0000-4000-8000-00000000cccc"
TOOLS = [{"name": "Task", "input_schema": {"type": "object"}}]


def _response(name: str, *content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "claude-x-1",
        "content": list(content),
        "stop_reason": stop,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3},
    }


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


class Bodies:
    """A folder of raw bodies in the making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        folder.mkdir(exist_ok=True)

    def call(self, messages: list[Any], response: dict[str, Any], *, system: str = "main", **entry: Any) -> None:
        number = len(self.lines) + 1
        body = {
            "model": "claude-x",
            "messages": messages,
            "system": system,
            "tools": TOOLS,
            "betas": ["b-1"],
            "stream": True,
        }
        (self.folder / f"{number}.request.json").write_text(json.dumps(body))
        (self.folder / f"req_{number}.response.json").write_text(json.dumps(response))
        line = {
            "timestamp": f"2026-11-29T16:39:{number:02}.000Z",
            "session_id": SESSION,
            "query_source": "sdk",
            "request_id": f"req_{number}",
            "message_id": response["id"],
            "request_file": f"{number}.request.json",
            "response_file": f"req_{number}.response.json",
        }
        self.lines.append(json.dumps({**line, **entry}))
        (self.folder / "index.jsonl").write_text("\n".join(self.lines) + "\n")


def _session(folder: Path) -> Bodies:
    """A main loop that starts a sub-agent, and a title question beside it."""
    bodies = Bodies(folder)
    task = {
        "type": "tool_use",
        "id": "t1",
        "name": "Task",
        "input": {"prompt": "count files", "subagent_type": "counter"},
    }
    prompt = [_text("<system-reminder>today</system-reminder>"), _text("how many files?")]
    bodies.call([{"role": "user", "content": prompt}], _response("m1", _text("I ask."), task, stop="tool_use"))
    bodies.call(
        [{"role": "user", "content": "a title for: how many files?"}], _response("m2", _text("Files")), system="t"
    )
    bodies.call([{"role": "user", "content": [_text("count files")]}], _response("m3", _text("three")), system="sub")
    said = [_text("I ask."), task]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "three", "is_error": False}
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": said}]
    bodies.call([*messages, {"role": "user", "content": [result]}], _response("m4", _text("Three files.")))
    return bodies


@pytest.fixture
def store() -> Iterator[Store]:
    with memory_store() as kept:
        yield kept


def _read(bodies: Bodies) -> Imported:
    return read(claude_bodies, bodies.folder / "index.jsonl")


def test_a_folder_becomes_one_whole_run_with_its_sub_agent_and_side_questions_apart(
    store: Store, tmp_path: Path
) -> None:
    _session(tmp_path / "bodies")

    (report,) = import_path(store, tmp_path)

    assert report.format == "claude-bodies"
    assert (len(report.runs), report.turns, report.tool_calls) == (3, 4, 1)
    runs = {r.title: r for r in store.runs()}
    main = runs["how many files?"]
    assert (main.session, main.turns, main.status, main.reason) == (SESSION, 2, "completed", "end_turn")
    child = runs["count files"]
    assert child.parent is not None
    assert (child.parent.run, child.parent.turn, child.parent.call, child.parent.kind) == (
        main.id,
        1,
        "t1",
        "sub-agent",
    )
    assert child.agent == "counter"
    assert runs["a title for: how many files?"].parent is None
    (call,) = store.turns(main.id)[0].tool_calls
    assert (call.result, call.is_error, call.child_run) == ("three", False, child.id)


def test_request_and_response_are_kept_to_the_last_field(store: Store, tmp_path: Path) -> None:
    bodies = _session(tmp_path / "bodies")
    import_path(store, bodies.folder / "index.jsonl")

    main = next(r for r in store.runs() if r.turns == 2)
    wire = store.wire(main.id, 2)
    assert json.loads(wire.response_text or "") == json.loads((bodies.folder / "req_4.response.json").read_text())
    request = json.loads((bodies.folder / "4.request.json").read_text())
    assert request.pop("stream") is True, "kept as a fact of the turn"
    assert json.loads(wire.request_text or "") == request


def test_a_folder_that_grew_is_the_same_run(store: Store, tmp_path: Path) -> None:
    bodies = _session(tmp_path / "bodies")
    whole = (bodies.folder / "index.jsonl").read_text()
    (bodies.folder / "index.jsonl").write_text(bodies.lines[0] + "\n")
    import_path(store, bodies.folder)
    assert [r.turns for r in store.runs()] == [1]

    (bodies.folder / "index.jsonl").write_text(whole)
    for _ in range(2):
        import_path(store, bodies.folder)
        assert sorted(r.turns for r in store.runs()) == [1, 1, 2]


@pytest.mark.parametrize(
    "name", ["../secret.json", "/etc/hostname", "a/b", "a\\b", "..", "", 7, "x\0y", "link.json", "no"]
)
def test_a_name_in_the_index_never_leads_outside_the_folder(tmp_path: Path, name: Any) -> None:
    (tmp_path / "secret.json").write_text('{"messages": [{"role": "user", "content": "outside"}]}')
    bodies = _session(tmp_path / "bodies")
    (bodies.folder / "link.json").symlink_to(tmp_path / "secret.json")
    bodies.call([{"role": "user", "content": "x"}], _response("m9"), request_file=name)

    found = _read(bodies)

    assert [s["line"] for s in found.notes.skipped] == [5]
    assert "outside" not in json.dumps(found.records)
    assert found.notes.turns == 4


def test_a_damaged_body_is_named_and_the_others_are_imported(tmp_path: Path) -> None:
    bodies = _session(tmp_path / "bodies")
    (bodies.folder / "req_2.response.json").write_text('{"id": "m2", "conte')
    (bodies.folder / "3.request.json").write_text("[]")
    (bodies.folder / "lost.request.json").write_text("{}")

    found = _read(bodies)

    assert [(s["line"], s["reason"].split(":")[0]) for s in found.notes.skipped] == [
        (2, "response file req_2.response.json"),
        (3, "request file 3.request.json"),
    ]
    assert any("1 request files are named by no line" in w for w in found.notes.warnings)
    cut = next(r for r in found.notes.runs if "answer_not_read" in json.dumps(found.of("turn_start", r)))
    assert len(found.turns(cut)) == 1


def test_an_index_from_standard_input_says_what_to_do_instead(tmp_path: Path) -> None:
    index = (_session(tmp_path / "bodies").folder / "index.jsonl").read_bytes()

    assert claude_bodies.recognise(index)
    with pytest.raises(LooptapeError, match="Import the folder"):
        read(claude_bodies, index)


def test_secrets_in_bodies_are_removed(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    bodies = Bodies(tmp_path / "bodies")
    bodies.call([{"role": "user", "content": f"use {key}"}], _response("m1", _text(key)), system=key)

    assert key not in json.dumps(_read(bodies).records)


def test_the_capture_agrees_with_its_truth() -> None:
    found = read(claude_bodies, require("otlp") / "claude-raw-bodies" / "big" / "index.jsonl")

    assert (len(found.notes.runs), found.notes.turns, found.notes.tool_calls) == (1, 3, 3)
    assert not found.notes.skipped
    usage = [t["usage"] for t in found.turns().values()]
    sums = {k: sum(u[k] for u in usage) for k in ("input", "cache_read", "cache_write_5m", "output")}
    assert sums == {"input": 190, "cache_read": 2200, "cache_write_5m": 1200, "output": 170}
    for number, name in enumerate(("req_3be8e9840a9244b7", "req_ccca1f1a06374354", "req_33fb05f9301844d9"), 1):
        file = require("otlp") / "claude-raw-bodies" / "big" / f"{name}.response.json"
        assert found.blobs[found.turns()[number]["response"]] == file.read_text(), "byte for byte"
    params = json.loads(found.blobs[found.of("turn_start")[0]["params"]])
    assert "claude-code-20250219" in params["betas"]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_folders_never_raise(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    bodies = _session(tmp_path_factory.mktemp("fuzz"))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(sorted(bodies.folder.iterdir())))
        text = path.read_bytes()
        at = data.draw(st.integers(0, len(text)))
        path.write_bytes(text[:at] + data.draw(st.sampled_from([b"", b"null", b'"', b"{}", b"\xff"])) + text[at + 2 :])

    found = _read(bodies)

    for record in found.records:
        tapes.line(record)
    assert (
        found.notes.turns == 4 or found.notes.skipped or found.notes.unknown or found.notes.warnings or found.notes.runs
    )
