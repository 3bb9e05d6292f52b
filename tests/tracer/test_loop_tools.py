"""Tools of every shape, and results that come after the tool has returned: each call is recorded, ended in its time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import threading

import pytest

import looptape
from recorded import asked, calls_of, recording


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


# -- odd tools --------------------------------------------------------------------------------


def test_partials_objects_methods_and_class_methods_are_tools(home):
    def power(base, q):
        return base**q

    class Searcher:
        def __call__(self, q):
            return f"object {q}"

        def method(self, q):
            return f"method {q}"

        @looptape.tool
        @classmethod
        def above_class(cls, q):
            return f"{cls.__name__} {q}"

        @classmethod
        @looptape.tool
        def below_class(cls, q):
            return f"{cls.__name__} {q}"

        @looptape.tool(name="static")
        @staticmethod
        def above_static(q):
            return f"static {q}"

        @looptape.tool
        def own(self, q):
            return f"own {q}"

    tools = [
        looptape.tool(functools.partial(power, 2)),
        looptape.tool(name="named")(functools.partial(power, 3)),
        looptape.tool(Searcher()),
        looptape.tool(Searcher().method),
        Searcher.above_class,
        Searcher().below_class,
        Searcher.above_static,
        Searcher().own,
    ]
    names = ["power", "named", "Searcher", "method", "above_class", "below_class", "static", "own"]
    with looptape.run("shapes") as run, run.turn() as turn:
        asked(turn, *names, arguments={"q": 2})
        results = [tool(q=2) for tool in tools]
    assert results == [4, 9, "object 2", "method 2", "Searcher 2", "Searcher 2", "static 2", "own 2"]
    calls = calls_of(home)
    assert [(c.name, c.arguments, c.result) for c in calls] == [
        (n, {"q": 2}, r) for n, r in zip(names, results, strict=True)
    ]
    assert {c.timing for c in calls} == {"measured"}


def test_a_decorated_tool_is_of_the_same_kind_as_the_function():
    async def coroutine():
        """Its words."""

    def generator():
        yield

    async def generator_async():
        yield

    assert inspect.iscoroutinefunction(looptape.tool(coroutine))
    assert inspect.isgeneratorfunction(looptape.tool(generator))
    assert inspect.isasyncgenfunction(looptape.tool(generator_async))
    assert looptape.tool(coroutine).__doc__ == "Its words."
    assert looptape.tool(5) == 5
    assert looptape.tool("named")(coroutine).__wrapped__ is coroutine


# -- results that come late -------------------------------------------------------------------


def late_dispatcher(kind):
    async def work(q):
        await asyncio.sleep(0.03)
        if q == "bad":
            raise TimeoutError("slow")
        return f"late {q}"

    def dispatch(name, arguments):
        coroutine = work(**arguments)
        return coroutine if kind == "coroutine" else asyncio.ensure_future(coroutine)

    return looptape.tools(dispatch)


@pytest.mark.parametrize("kind", ["coroutine", "task"])
def test_a_call_whose_tool_gives_back_an_awaitable_ends_when_that_ends(home, kind):
    dispatch = late_dispatcher(kind)

    async def main():
        with looptape.run("late") as run, run.turn() as turn:
            turn.request("question")
            calls = [{"id": q, "name": "search", "arguments": {"q": q}} for q in ("good", "bad", "gone")]
            turn.response(None, tool_calls=calls, stop_reason="tool_use")
            assert await dispatch("search", {"q": "good"}) == "late good"
            with pytest.raises(TimeoutError):
                await dispatch("search", {"q": "bad"})
            task = asyncio.ensure_future(dispatch("search", {"q": "gone"}))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    good, bad, gone = calls_of(home)
    assert (good.result, good.is_error, good.state) == ("late good", False, "done")
    assert good.ended_at - good.started_at >= 25_000
    assert (bad.result, bad.is_error, bad.error_class) == ("TimeoutError: slow", True, "transient")
    assert (gone.state, gone.error_class) == ("cancelled", "cancelled")


def test_a_future_is_given_back_as_the_same_object(home):
    future = concurrent.futures.Future()
    submit = looptape.tool(name="submit")(lambda: future)
    with looptape.run("future") as run, run.turn() as turn:
        asked(turn, "submit")
        assert submit() is future
        future.set_result(7)
    (call,) = calls_of(home)
    assert (call.result, call.state) == (7, "done")


def test_tools_by_hand_that_begin_in_several_threads_at_once_are_calls_of_their_own(home):
    together = threading.Barrier(4)

    def work(turn):
        together.wait(60)
        with turn.tool("search", {"q": 1}) as tool:
            together.wait(60)
            tool.result("found")

    with looptape.run("by hand") as run, run.turn() as turn:
        turn.request("question")
        turn.response("Action: search", stop_reason="tool_use")
        threads = [threading.Thread(target=work, args=(turn,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(c.id for c in calls_of(home)) == [f"call_1_{n}" for n in range(1, 5)]


def test_a_sub_agent_inside_a_late_coroutine_belongs_to_the_call(home):
    async def work():
        with looptape.run("child"):
            return "done"

    dispatch = looptape.tools(lambda name, arguments: work())

    async def main():
        with looptape.run("parent") as run, run.turn() as turn:
            asked(turn, "delegate")
            await dispatch("delegate", {})

    asyncio.run(main())
    parent, child = home.runs()
    assert (child.parent.run, child.parent.call, child.parent.kind) == (parent.id, "c1", "sub-agent")


def numbers(log):
    try:
        got = yield 1
        log.append(got)
        try:
            yield 2
        except KeyError:
            yield 3
        return "returned"
    finally:
        log.append("closed")


@pytest.mark.parametrize("recorded", [False, True])
def test_a_generator_tool_works_as_without_recording(home, recorded):
    log = []
    made = (looptape.tool(numbers) if recorded else numbers)(log)
    with looptape.run("generator") as run, run.turn() as turn:
        turn.request("question")
        turn.response("go")
        assert inspect.isgenerator(made)
        assert (next(made), made.send("sent"), made.throw(KeyError("thrown"))) == (1, 2, 3)
        with pytest.raises(StopIteration) as stop:
            next(made)
    assert (stop.value.value, log) == ("returned", ["sent", "closed"])
    if recorded:
        assert [(c.name, c.result, c.state) for c in calls_of(home)] == [("numbers", [1, 2, 3], "done")]


def test_the_call_of_a_generator_tool_ends_with_its_iteration(home):
    @looptape.tool
    def words():
        yield "one "
        yield "two"

    @looptape.tool
    def left_early():
        yield "first"
        yield "second"

    @looptape.tool
    def fails():
        yield 1
        raise ValueError("broken")

    handed_on = looptape.tools(lambda name, arguments: (n for n in (1, 2)))
    with looptape.run("generators") as run, run.turn() as turn:
        asked(turn, "words", "left_early", "fails", "handed_on")
        assert "".join(words()) == "one two"
        early = left_early()
        next(early)
        early.close()
        with pytest.raises(ValueError, match="broken"):
            list(fails())
        assert list(handed_on("handed_on", {})) == [1, 2]
    assert [(c.name, c.result, c.state, c.is_error) for c in calls_of(home)] == [
        ("words", "one two", "done", False),
        ("left_early", "first", "cancelled", False),
        ("fails", "ValueError: broken", "done", True),
        ("handed_on", [1, 2], "done", False),
    ]


def test_async_generator_tools_too(home):
    log = []

    @looptape.tool
    async def counted():
        try:
            log.append((yield 1))
            yield 2
        finally:
            log.append("closed")

    plain = looptape.tool(name="plain")(lambda: counted.__wrapped__())

    async def main():
        with looptape.run("generators") as run, run.turn() as turn:
            asked(turn, "counted", "plain")
            steps = counted()
            assert (await anext(steps), await steps.asend("sent")) == (1, 2)
            assert [x async for x in steps] == []
            steps = plain()
            assert inspect.isasyncgen(steps)
            await anext(steps)
            await steps.aclose()

    asyncio.run(main())
    assert log == ["sent", "closed", "closed"]
    assert [(c.name, c.result, c.state) for c in calls_of(home)] == [
        ("counted", [1, 2], "done"),
        ("plain", [1], "cancelled"),
    ]


def test_what_runs_between_a_generator_tools_steps_is_not_inside_it(home):
    @looptape.tool
    def steps():
        yield 1
        yield 2

    with looptape.run("parent") as run, run.turn() as turn:
        asked(turn, "steps")
        for _ in steps():
            with looptape.run("between"):
                pass
    assert [r.parent.call for r in home.runs()[1:]] == [None, None]
