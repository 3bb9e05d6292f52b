"""The seam for observers: who is told what, words added to a result, trouble that stays with the observer."""

from __future__ import annotations

import asyncio
import json

import pytest

import looptape
from guarded import Counted, circling, drive
from looptape.tracer.errors import LooptapeStop
from looptape.tracer.observers import MARK, Addition, Refusal, added, shape, without
from recorded import recording

RESULTS = {
    "text": "plain text",
    "empty text": "",
    "text that looks like JSON": "{not json",
    "an object as text": '{"rows": [], "n": 0}',
    "an empty object as text": " {} ",
    "blocks": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}],
}


@pytest.mark.parametrize("kind", RESULTS)
def test_words_are_added_and_can_be_taken_out_again(kind):
    result = RESULTS[kind]
    before = json.dumps(result)

    told = added(result, Addition('You have seen this "before"\n{really}'))

    assert json.dumps(result) == before, "the program's own object is not touched"
    assert type(told) is type(result)
    assert MARK in json.dumps(told)
    if kind.endswith("as text"):
        assert {k: v for k, v in json.loads(told).items() if k != "looptape_guard"} == json.loads(result)
    if isinstance(told, str):
        assert without(told).strip() == result.strip()


@pytest.mark.parametrize(
    "result", [None, 1, 2.5, {"a": 1}, [1], [], (1,), b"x", '["a"]', object()], ids=lambda value: type(value).__name__
)
def test_what_a_program_may_look_into_is_left_alone(result):
    assert shape(result) == "other"
    assert added(result, Addition("words", "instead")) is result


def test_a_payload_can_be_replaced():
    assert added("long " * 200, Addition(None, f"{MARK} the same")) == f"{MARK} the same"
    assert without(added("long", Addition("and this", f"{MARK} the same"))) == ""


class Watching:
    """An observer that keeps what it is told."""

    goal = None

    def __init__(self, **does):
        self.told = []
        self.does = does

    def given(self):
        return {"turns": 7}

    def earlier(self, reference):
        return None

    def watch(self, run, active, state=None):
        return self

    def _do(self, name, *said):
        self.told.append((name, *said))
        does = self.does.get(name)
        return does(*said) if callable(does) else does

    def asking(self, call):
        self._do("asking", len(call.results), call.again)

    def answered(self, turn, answer):
        self._do("answered", turn.number, turn.status, len(answer.calls))

    def tool_starting(self, call, *, straight=False):
        return self._do("starting", call.name)

    def tool_ended(self, ended):
        return self._do("ended", ended.call.name, ended.text, ended.refused)

    def notice(self, run):
        return None

    def done(self, text):
        return self._do("done", text)

    async def done_async(self, text):
        return self._do("done", text)

    def closing(self, run):
        self._do("closing")


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


def test_an_observer_is_told_everything_in_order(home):
    seen = Watching()
    with looptape.run("x", guard=seen):
        drive(circling(turns=1).client(), {"search": Counted("found").tool})

    assert seen.told == [
        ("asking", 0, False), ("answered", 1, "ok", 1), ("starting", "search"), ("ended", "search", "found", False),
        ("asking", 1, False), ("answered", 2, "ok", 0), ("closing",),
    ]  # fmt: skip
    assert home.run().limits == {"turns": 7}


def test_a_refusal_stands_in_the_place_of_the_tool(home):
    tool = Counted("found")
    with looptape.run("x", guard=Watching(starting=Refusal("no", "no"))):
        model = circling(turns=1)
        drive(model.client(), {"search": tool.tool})

    assert (tool.ran, model.results()) == (0, ["no"])


def test_a_coroutine_tool_and_a_generator_are_refused_too(home):
    ran = []

    @looptape.tool
    async def ask(q):
        ran.append(q)

    @looptape.tool
    def pieces(q):
        ran.append(q)
        yield q

    with looptape.run("x", guard=Watching(starting=Refusal("no", "no"))) as run, run.turn() as turn:
        turn.request("go")
        turn.response("on it", tool_calls=[{"id": n, "name": n, "arguments": {"q": 1}} for n in ("ask", "pieces")])
        assert asyncio.run(ask(1)) == "no"
        assert list(pieces(1)) == ["no"]

    assert ran == []


def test_an_addition_reaches_what_a_coroutine_gives(home):
    @looptape.tool
    async def ask(q):
        return "found"

    @looptape.tool
    def later(q):
        async def found():
            return "found"

        return found()

    with looptape.run("x", guard=Watching(ended=Addition("again"))) as run, run.turn() as turn:
        turn.request("go")
        turn.response("on it", tool_calls=[{"id": n, "name": n, "arguments": {"q": 1}} for n in ("ask", "later")])
        assert asyncio.run(ask(1)) == asyncio.run(later(1)) == f"found\n\n{MARK} again"


NAMES = ("asking", "answered", "starting", "ended", "done", "closing")


@pytest.mark.parametrize("name", NAMES)
def test_an_observers_own_trouble_stays_with_it(home, name):
    seen = Watching(**{name: lambda *a: 1 / 0})
    with looptape.run("x", guard=seen) as run:
        assert drive(circling(turns=2).client(), {"search": Counted("found").tool}) == "I give up."
        assert run.done("x") is None

    found = home.run()
    assert (found.status, len(found.turns)) == ("completed", 3)


def test_a_stop_reaches_the_loop_and_no_call_goes_out(home):
    class Enough(LooptapeStop):
        pass

    def stop(results, again):
        if results:
            raise Enough("enough")

    model = circling()
    with pytest.raises(Enough), looptape.run("x", guard=Watching(asking=stop)):
        drive(model.client(), {"search": Counted("found").tool})

    run = home.run()
    assert (len(model.requests), len(run.turns), run.status) == (1, 1, "halted")


def test_requests_are_never_rewritten(home):
    """What the program sends is what the model gets, byte for byte."""
    plain, watched = circling(turns=3), circling(turns=3)
    with looptape.run("x"):
        drive(plain.client(), {"search": Counted("found").tool})
    with looptape.run("y", guard=Watching()):
        drive(watched.client(), {"search": Counted("found").tool})

    assert plain.requests == watched.requests
