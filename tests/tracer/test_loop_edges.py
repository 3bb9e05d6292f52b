"""The loop API at its edges: other contexts, odd values, runs entered twice."""

from __future__ import annotations

import asyncio
import contextvars
import enum
import threading
import uuid
from decimal import Decimal

import pytest

import looptape
from looptape.tracer import quiet
from recorded import asked, calls_of, recording


@pytest.fixture
def home(tmp_path):
    with recording(tmp_path) as home:
        yield home


class Unprintable:
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def stepped_elsewhere(generator):
    """Every step in a thread and a context of its own, as web servers run a sync generator."""
    found = []
    while True:
        box = []

        def step(box=box):
            try:
                box.append(next(generator))
            except StopIteration:
                pass
            except BaseException as error:
                box.append(error)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(step,))
        thread.start()
        thread.join()
        if not box:
            return found
        if isinstance(box[0], BaseException):
            raise box[0]
        found.append(box[0])


# -- other contexts ---------------------------------------------------------------------------


def test_a_generator_loop_whose_steps_run_in_other_threads_is_one_run(home):
    @looptape.tool
    def look(q):
        return q * 2

    def loop():
        with looptape.run("stepped") as run:
            yield "before its first request"
            with run.turn() as turn:
                asked(turn, "f")
                yield "asked"
                with turn.tool({"id": "c1", "name": "f", "arguments": {}}) as tool:
                    yield "in the tool"
                    tool.result("x")
            yield "between"
            with run.turn() as turn:
                turn.request("more")
                turn.response("last", stop_reason="end_turn")
                yield look(4)

    assert stepped_elsewhere(loop())[-1] == 8
    run = home.run()
    assert (run.name, run.status, len(run.turns)) == ("stepped", "completed", 2)
    assert [(c.name, c.result, c.state) for t in run.turns[:1] for c in t.tool_calls] == [("f", "x", "done")]


def test_a_wrapped_tool_in_a_turn_block_finds_its_run_in_another_context(home):
    @looptape.tool
    def look(q):
        return q * 2

    def loop():
        with looptape.run("stepped") as run:
            yield
            with run.turn() as turn:
                turn.request("more")
                turn.response("Action: look[4]")
                look(4)

    stepped_elsewhere(loop())
    assert [(c.name, c.result) for c in calls_of(home)] == [("look", 8)]


def test_an_async_generator_loop_with_a_task_for_each_step_is_one_run(home):
    async def loop():
        with looptape.run("stepped") as run, run.turn() as turn:
            asked(turn, "f")
            with turn.tool({"id": "c1", "name": "f", "arguments": {}}) as tool:
                yield "in the tool"
                tool.result("x")

    async def main():
        steps = loop()

        async def step():
            return await anext(steps, None)

        assert await asyncio.create_task(step()) == "in the tool"
        assert await asyncio.create_task(step()) is None

    asyncio.run(main())
    assert [(c.id, c.result) for c in calls_of(home)] == [("c1", "x")]


def test_a_coroutine_tool_closed_in_another_context_is_cancelled_there(home):
    @looptape.tool
    async def search():
        await asyncio.sleep(0)

    with looptape.run("closed") as run, run.turn() as turn:
        asked(turn, "search")
        coroutine = search()
        contextvars.copy_context().run(coroutine.send, None)
        coroutine.close()
    (call,) = calls_of(home)
    assert (call.state, call.error_class) == ("cancelled", "cancelled")


def test_a_context_whose_tool_ended_elsewhere_is_in_the_run_again(home):
    @looptape.tool
    def later():
        return "later"

    def steps(turn):
        with turn.tool("first"):
            yield

    with looptape.run("stuck") as run, run.turn() as turn:
        turn.request("question")
        turn.response("Action: first")
        generator = steps(turn)
        next(generator)
        contextvars.copy_context().run(next, generator, None)
        later()
    assert [(c.name, c.state) for c in calls_of(home)] == [("first", "done"), ("later", "done")]


# -- odd values -------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


def test_names_of_any_type_become_texts(home):
    session = uuid.uuid4()
    with looptape.run(5, session=session, task=4711, agent=Colour.RED, tags={1: 2, "no": Unprintable(), "none": None}):
        pass
    run = home.run()
    assert (run.name, run.session, run.task, run.agent) == ("5", str(session), "4711", "Colour.RED")
    assert run.tags == {"1": "2"}


@pytest.mark.parametrize(
    "odd",
    [
        {"tags": 5},
        {"tags": "prod"},
        {"tags": {Unprintable(): "a"}},
        {"tags": {"a": Unprintable()}},
        {"session": Unprintable()},
        {"limits": 5},
        {"limits": [1]},
        {"limits": looptape.Limits(turns="many")},
    ],
)
def test_what_cannot_be_used_is_left_out_and_the_run_is_recorded(home, odd, capsys):
    with looptape.run("odd", **odd) as run, run.turn() as turn:
        turn.request("question")
        turn.response("x", tool_calls=["f"], stop_reason="tool_use")
    run = home.run()
    assert (run.name, run.status, run.tags, run.limits) == ("odd", "limit", {}, {})
    assert capsys.readouterr().err == ""


def test_limits_may_be_a_mapping_and_its_numbers_of_any_kind(home):
    with looptape.run("capped", limits={"turns": "3", "cost_usd": Decimal("0.5"), "seconds": float("nan"), "other": 1}):
        pass
    assert home.run().limits == {"turns": 3, "cost_usd": 0.5}


def test_odd_answers_outcomes_and_tags_cost_nothing_but_themselves(home, capsys):
    with looptape.run("odd") as run, run.turn() as turn:
        turn.request(5)
        turn.response(object(), usage=7)
        run.tag(a=1, b=Unprintable())
    run.outcome("pass", 5, score="many")
    seen = home.run()
    assert (seen.tags, seen.outcome, seen.turns[0].status) == ({"a": "1"}, {"verdict": "pass", "note": "5"}, "ok")
    assert capsys.readouterr().err == ""


def test_a_result_that_another_thread_is_still_adding_to_is_recorded_as_it_was_when_it_came(home):
    shared = {}

    class Adds:
        def model_dump(self, **options):
            shared[f"later {len(shared)}"] = 1  # as another thread would just then
            return {"x": 1}

    @looptape.tool
    def look():
        return shared

    shared["first"] = Adds()
    with looptape.run("shared") as run, run.turn() as turn:
        asked(turn, "look")
        assert look() is shared
    (call,) = calls_of(home)
    assert call.result == {"first": {"x": 1}}


def test_a_redactor_may_be_given_alone(home):
    looptape.configure(redact=lambda text: text.replace("Smith", "[name]"))
    with looptape.run("redacted") as run:
        run.outcome("pass", "said Smith")
    assert home.run().outcome["note"] == "said [name]"


def test_a_loop_key_that_raises_costs_the_key_and_not_the_call(home):
    @looptape.tool(loop_key=lambda q: 1 / 0)
    def search(q):
        return "found"

    quiet.forget()
    with looptape.run("keyed") as run, run.turn() as turn:
        asked(turn, "search", arguments={"q": 1})
        assert search(q=1) == "found"
    (call,) = calls_of(home)
    assert (call.id, call.result, call.loop_key) == ("c1", "found", None)


# -- one object, entered more than once ---------------------------------------------------------


def one_turn(run):
    with run.turn() as turn:
        turn.request("question")
        turn.response("answer", stop_reason="end_turn")


def test_a_run_that_is_entered_again_is_a_new_run_that_resumes_the_first(home):
    run = looptape.run("twice", session="s", agent="a", tags={"k": "v"})
    ids = []
    for verdict in ("first", "second"):
        with run:
            one_turn(run)
            ids.append(run.id)
        run.outcome(verdict)
    first, second = home.runs()
    assert [first.id, second.id] == ids
    for seen, verdict in ((first, "first"), (second, "second")):
        assert (seen.name, seen.session, seen.agent, seen.tags) == ("twice", "s", "a", {"k": "v"})
        assert (seen.status, len(seen.turns), seen.outcome) == ("completed", 1, {"verdict": verdict})
    assert (second.parent.run, second.parent.kind) == (first.id, "resume")


def test_threads_that_share_one_run_object_have_a_run_each(home):
    run = looptape.run("shared")
    together = threading.Barrier(3)

    def work():
        together.wait()
        with run:
            together.wait()
            one_turn(run)
            together.wait()
            run.outcome("pass")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(r.name, r.status, len(r.turns), r.outcome) for r in home.runs()] == [
        ("shared", "completed", 1, {"verdict": "pass"})
    ] * 3


def test_a_loop_that_its_reader_leaves_is_halted(home):
    def loop():
        with looptape.run("left"):
            yield 1
            yield 2

    steps = loop()
    next(steps)
    steps.close()
    assert (home.run().status, home.run().reason) == ("halted", "GeneratorExit")
