"""How runs and turns are named: what is found, what is refused, and what a refusal proposes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import small_tape
from looptape.replay import reference
from looptape.replay.reference import Found, parse, project_of, resolve
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.store import Store, memory_store

IDS = ("aaaa000000000001", "aaaa000000000002", "bbbb000000000003", "cccc000000000004")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    made = memory_store()
    for number, run in enumerate(IDS):
        start = small_tape.START + number * 60 * small_tape.SECOND
        where = "/elsewhere" if number == 3 else "/work"
        made.ingest(
            small_tape.records(run, name="revenue" if number < 2 else f"other-{number}", start=start, project=where)
        )
    return made


def find(store: Store, text: str, project: str | None = None) -> Found:
    return reference.find(store, parse(text), project)


@pytest.mark.parametrize(
    ("text", "base", "first", "last", "back"),
    [
        ("last", "last", None, None, 0),
        ("last~2:7", "last~2", 7, 7, 2),
        ("a:b:7-9", "a:b", 7, 9, None),
        ("0123", "0123", None, None, None),
        ("name: with 3", "name: with 3", None, None, None),
    ],
)
def test_a_reference_taken_apart(text: str, base: str, first: int | None, last: int | None, back: int | None) -> None:
    found = parse(text)
    assert (found.base, found.first, found.last, found.back) == (base, first, last, back)


@pytest.mark.parametrize("text", ["", " ", "x:0", "x:9-7"])
def test_a_reference_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path: Path) -> None:
    odd = tmp_path / "run:7"
    odd.write_text("")
    assert parse(str(odd)).path == odd
    assert parse(f"{odd}:3").first == 3


def test_id_beginning_and_name_find_a_run_and_the_newest_of_a_name_wins(store: Store) -> None:
    assert find(store, IDS[0]).run.id == IDS[0]
    assert find(store, "bbb").run.id == IDS[2]
    named = find(store, "revenue:2")
    assert (named.run.id, named.first) == (IDS[1], 2)
    assert named.said == f"2 runs have this name: the newest is {IDS[1]}"


def test_last_is_of_this_project_first_and_says_so(store: Store) -> None:
    assert find(store, "last", "/work").run.id == IDS[2]
    assert find(store, "last~1", "/work").run.id == IDS[1]
    assert find(store, "last", "/work").said == f"last of this project: {IDS[2]} (other-2)"
    everywhere = find(store, "last", "/nowhere")
    assert (everywhere.run.id, everywhere.said) == (IDS[3], f"last of all projects: {IDS[3]} (other-3)")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("revenu", ["no run 'revenu'", "Nearest: ", "(revenue)"]),
        ("zzzz", ["no run 'zzzz'", "The newest: "]),
        ("aaaa", ["2 runs begin with 'aaaa'", IDS[0], IDS[1], "more of the id"]),
        ("bbb:3", ["has turns 1 to 2, no turn 3", f"{IDS[2]}:2"]),
        ("last~9", ["has only 4 runs", "The oldest is last~3"]),
    ],
)
def test_an_unknown_or_ambiguous_reference_is_exit_2_and_lists_the_nearest(
    store: Store, text: str, parts: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        find(store, text)
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert caught.value.exit_code == 2


def test_an_empty_store_says_how_to_begin() -> None:
    with pytest.raises(UsageError, match="looptape demo"):
        find(memory_store(), "last")


def test_a_tape_file_is_a_reference(tmp_path: Path) -> None:
    tape = small_tape.write(tmp_path / "run.jsonl", small_tape.records())
    with resolve(f"{tape}:2") as found:
        assert (found.run.id, found.first) == (small_tape.RUN, 2)
        assert found.store.turns(found.run.id)[1].text == "It is 84."


@pytest.mark.parametrize(
    ("content", "code", "part"),
    [(None, 2, "does not exist"), (b"", 3, "holds no run"), (b"not a tape\n", 3, "nope.jsonl")],
)
def test_a_file_that_is_no_tape_is_named(tmp_path: Path, content: bytes | None, code: int, part: str) -> None:
    path = tmp_path / "nope.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LooptapeError) as caught, resolve(str(path)):
        pass
    assert caught.value.exit_code == code
    assert part in str(caught.value)
    assert "nope.jsonl" in str(caught.value)


def test_a_file_with_several_runs_lists_them(tmp_path: Path) -> None:
    tape = small_tape.write(tmp_path / "two.jsonl", small_tape.records(IDS[0]), small_tape.records(IDS[2]))
    with pytest.raises(UsageError, match="holds 2 runs"), resolve(str(tape)):
        pass


def test_a_project_is_the_git_root_or_the_folder(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    assert project_of(inner) == str(inner)
    (tmp_path / "repo" / ".git").mkdir()
    assert project_of(inner) == str(tmp_path / "repo")


def test_a_name_means_the_run_and_not_its_replays() -> None:
    store = memory_store()
    store.ingest(small_tape.records("a" * 16, name="twice"))
    store.ingest(small_tape.records("b" * 16, name="twice", start=small_tape.START + 9, source="replay"))
    assert find(store, "twice").run.id == "a" * 16
