"""The loop must not feel that it is recorded: early exits, cancellation, odd values, trouble of others, threads."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
import threading

import anthropic
import pytest

import looptape
import scripted
from fakellm import FakeLLM, Scenario, Step
from looptape.tracer import process, quiet, tape
from looptape.tracer.journal import Journal
from recorded import recording

KEY = "test-key-of-nobody"
ASK = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "go"}]}
WORDS = "one two three four five six seven eight nine ten eleven twelve "


@pytest.fixture(autouse=True)
def _nothing_said_yet():
    quiet.forget()
    yield
    quiet.forget()


@pytest.fixture
def server():
    """Its first answer stops after a few events, a second whole one follows: what was left early had not come whole."""
    usage = {"input": 25, "output": 50}
    steps = [Step(text=WORDS, usage=usage, pause_after=8), Step(text=WORDS, usage=usage)]
    with FakeLLM({"slow": Scenario(steps)}) as fake:
        yield fake


def sync_client(server, *, recorded=True):
    client = anthropic.Anthropic(base_url=server.url("slow"), api_key=KEY, max_retries=0)
    return looptape.wrap(client) if recorded else client


def async_client(server, *, recorded=True):
    client = anthropic.AsyncAnthropic(base_url=server.url("slow"), api_key=KEY, max_retries=0)
    return looptape.wrap(client) if recorded else client


# -- leaving a stream early -------------------------------------------------------------------


class Stop(RuntimeError):
    """What the caller's own code raises."""


def leave(client, how):
    """Reads four events of a stream and leaves it; gives what the caller noticed."""
    if how == "del":
        stream = client.messages.create(stream=True, **ASK)
        seen = [next(stream).type for _ in range(4)]
        del stream
        gc.collect()
        return seen

    def inside():
        seen = []
        with client.messages.create(stream=True, **ASK) as stream:
            for event in stream:
                seen.append(event.type)
                if len(seen) == 4:
                    if how == "raise":
                        raise Stop(str(seen))
                    if how == "return":
                        return seen
                    if how == "close":
                        stream.close()
                    break
        return seen

    try:
        return inside()
    except Stop as stop:
        return f"Stop: {stop}"


async def leave_async(client, how):
    """The same, async."""
    if how == "del":
        stream = await client.messages.create(stream=True, **ASK)
        seen = [(await anext(stream)).type for _ in range(4)]
        del stream
        gc.collect()
        await asyncio.sleep(0.01)
        return seen

    async def inside():
        seen = []
        async with await client.messages.create(stream=True, **ASK) as stream:
            async for event in stream:
                seen.append(event.type)
                if len(seen) == 4:
                    if how == "raise":
                        raise Stop(str(seen))
                    if how == "return":
                        return seen
                    if how == "close":
                        await stream.close()
                    break
        return seen

    try:
        return await inside()
    except Stop as stop:
        return f"Stop: {stop}"


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("how", ["break", "return", "close", "raise", "del"])
def test_a_stream_left_early_is_one_abandoned_turn_with_what_had_come(server, tmp_path, how, kind):
    def play(recorded):
        if kind == "sync":
            return leave(sync_client(server, recorded=recorded), how)
        return asyncio.run(leave_async(async_client(server, recorded=recorded), how))

    bare = play(False)
    server.scenarios["slow"].pos = 0
    with recording(tmp_path) as home:
        assert play(True) == bare
        run = home.run()
    (turn,) = run.turns
    assert (turn.status, turn.error, turn.error_type) == ("abandoned", None, None)
    assert turn.text
    assert WORDS.startswith(turn.text)
    assert (turn.usage.input, turn.usage.partial) == (25, True)
    assert turn.stop_reason is None
    assert turn.started_at < turn.first_chunk_at <= turn.ended_at
    assert len(turn.attempts) == 1
    assert run.status == "interrupted"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_stream_of_the_helper_left_early_is_abandoned_too(server, tmp_path, kind):
    async def asynchronous():
        async with async_client(server).messages.stream(**ASK) as stream:
            async for _ in stream.text_stream:
                break

    with recording(tmp_path) as home:
        if kind == "async":
            asyncio.run(asynchronous())
        else:
            with sync_client(server).messages.stream(**ASK) as stream:
                for _ in stream.text_stream:
                    break
        (turn,) = home.run().turns
    assert (turn.status, turn.usage.partial) == ("abandoned", True)


def test_a_stream_that_the_server_cuts_is_an_error_of_the_sdk_and_of_the_turn(tmp_path):
    step = Step(text=WORDS, errors=[{"cut_stream": 6}])
    with FakeLLM({"slow": Scenario([step])}) as server, recording(tmp_path) as home:
        with pytest.raises(Exception) as raised:  # noqa: PT011
            list(sync_client(server).messages.create(stream=True, **ASK))
        run = home.run()
    (turn,) = run.turns
    assert (turn.status, turn.error_type) == ("error", type(raised.value).__name__)
    assert WORDS.startswith(turn.text)
    assert turn.usage.partial
    assert run.status == "failed"


CUT_SHORT = """: comment line

event: message_start
data: {"type": "message_start", "message": {"id": "msg_01", "type": "message", "role": "assistant", "content": [], "model": "m-1", "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 25, "output_tokens": 1}}}

event: content_block_start
data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 0}

event: content_block_start
data: {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {}}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\\"command\\": \\"rm"}}

event: error
data: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_in_band"}

"""


def test_an_error_inside_a_stream_of_status_200_is_an_error_and_its_half_call_is_kept_as_incomplete(tmp_path):
    with FakeLLM({"slow": Scenario([Step(raw_sse=CUT_SHORT)])}) as server, recording(tmp_path) as home:
        client = sync_client(server)
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            list(client.messages.create(stream=True, **ASK))
        run = home.run()
    (turn,) = run.turns
    assert (turn.status, turn.error_type, turn.error, turn.stop_reason) == (
        "error",
        "overloaded_error",
        "Overloaded",
        None,
    )
    assert turn.request_id == turn.attempts[0].request_id
    assert turn.request_id
    assert turn.text == "Half"
    (call,) = turn.tool_calls
    assert (call.id, call.name, call.arguments_raw, call.valid) == ("toolu_1", "shell", '{"command": "rm', False)
    assert call.started_at is None
    assert (turn.usage.input, turn.usage.partial) == (25, True)
    assert (turn.attempts[0].status, turn.attempts[0].error_type) == (200, "overloaded_error")


# -- generators and cancellation --------------------------------------------------------------


def exporting(monkeypatch):
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


async def early_break(client, server):
    async def texts():
        async with client.messages.stream(**ASK) as stream:
            async for text in stream.text_stream:
                yield text

    async for _ in texts():
        break  # the generator is closed later, by the event loop's finaliser
    gc.collect()
    await asyncio.sleep(0.02)


async def cancelled(client, server):
    async def read():
        async with client.messages.stream(**ASK) as stream:
            async for _ in stream.text_stream:
                reading.set()

    reading = asyncio.Event()
    task = asyncio.create_task(read())
    await reading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def timed_out(client, server):
    async def read():
        async with asyncio.timeout(None) as limit, client.messages.stream(**ASK) as stream:
            async for _ in stream.text_stream:
                limit.reschedule(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError):
        await read()


async def cancelled_before_the_answer(client, server):
    scenario = server.scenarios["slow"]
    asked, go, following = threading.Event(), threading.Event(), scenario.next

    def held(has_tools):
        asked.set()
        go.wait(60)
        return following(has_tools)

    scenario.next = held
    task = asyncio.create_task(client.messages.create(**ASK))
    assert await asyncio.to_thread(asked.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    scenario.next = following
    go.set()


async def run_block_in_a_generator(client, server):
    async def texts():
        with looptape.run("inside"):
            async with client.messages.stream(**ASK) as stream:
                async for text in stream.text_stream:
                    yield text

    async for _ in texts():
        break
    gc.collect()
    await asyncio.sleep(0.02)


@pytest.mark.parametrize("provider", [False, True], ids=["alone", "exporting"])
@pytest.mark.parametrize(
    "leaving",
    [early_break, cancelled, timed_out, cancelled_before_the_answer, run_block_in_a_generator],
    ids=lambda f: f.__name__,
)
def test_whatever_ends_a_stream_early_logs_nothing_and_the_next_turn_is_not_under_it(
    server, tmp_path, monkeypatch, caplog, leaving, provider
):
    exporter = exporting(monkeypatch) if provider else None

    async def main():
        client = async_client(server)
        await leaving(client, server)
        second = await client.messages.create(**{**ASK, "messages": [{"role": "user", "content": "another"}]})
        await client.close()
        return second

    with caplog.at_level(logging.WARNING), recording(tmp_path) as home:
        assert asyncio.run(main()).stop_reason == "end_turn"
        runs = home.runs()
    assert [r for r in caplog.records if r.name != "asyncio" or "detach" in r.message] == []
    first, second = sorted((t for r in runs for t in r.turns), key=lambda t: t.started_at)
    assert first.status in ("abandoned", "cancelled")
    assert second.status == "ok"
    assert first.run != second.run
    if exporter is not None:
        spans = {f"{s.context.span_id:016x}": s for s in exporter.get_finished_spans()}
        assert {first.span_id, second.span_id} <= set(spans)
        after = spans[second.span_id]
        agent = spans[f"{after.parent.span_id:016x}"]
        assert agent.name.startswith("invoke_agent")
        assert agent.parent is None


# -- the six faults of others ------------------------------------------------------------------


class Evil:
    """An object that will not be looked at."""

    def __repr__(self):
        raise ValueError("no repr")

    def __getattr__(self, name):
        raise RuntimeError("no attributes either")


def cycle():
    value: dict = {}
    value["self"] = value["again"] = value
    return value


ODD = {
    "a cycle": cycle,
    "no repr": Evil,
    "huge": lambda: "x" * 1_200_000,
    "bytes": lambda: b"\xff\x00",
    "half a character": lambda: "\ud800",
}


@pytest.mark.parametrize("odd", list(ODD))
def test_odd_arguments_and_results_of_tools_come_through_as_they_are(tmp_path, odd, capfd):
    value = ODD[odd]()

    @looptape.tool
    def echo(thing):
        return thing

    @looptape.tool
    def fail(thing):
        raise LookupError(thing)

    dispatch = looptape.tools(lambda name, arguments: arguments)
    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(0)))
        with looptape.run("odd") as run:
            client.messages.create(**ASK)
            assert echo(value) is value
            with pytest.raises(LookupError) as raised:
                fail(value)
            assert raised.value.args[0] is value
            arguments = {"thing": value}
            assert dispatch("any", arguments) is arguments
            with run.turn() as turn:
                turn.request([{"role": "user", "content": value}], model="m", odd=value)
                with turn.tool("by hand", {"thing": value}) as tool:
                    tool.result(value)
                turn.response([{"type": "text", "text": value}], stop_reason="end_turn", usage={"output": 1})
            run.outcome("pass", note="fine")
        recorded = home.run()
    assert [t.status for t in recorded.turns] == ["ok", "ok"]
    names = [c.name for t in recorded.turns for c in t.tool_calls]
    assert sorted(names) == ["any", "by hand", "echo", "fail"]
    assert all(c.state == "done" for t in recorded.turns for c in t.tool_calls)
    assert capfd.readouterr().err == ""


def test_an_exporter_that_raises_is_its_own_trouble(server, tmp_path, monkeypatch, caplog):
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

    class Broken(SpanExporter):
        def export(self, spans):
            raise OSError("collector is gone")

        def shutdown(self):
            pass

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Broken()))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    with recording(tmp_path) as home, caplog.at_level(logging.CRITICAL):
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(3)))
        assert len(scripted.run_loop(client)) == 8
        assert [t.status for t in home.run().turns] == ["ok"] * 4


def test_two_threads_with_a_loop_each_are_two_runs(tmp_path):
    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(15)))
        done = []

        def loop(name):
            done.append(len(scripted.run_loop(client, messages=[{"role": "user", "content": name}])))

        threads = [threading.Thread(target=loop, args=(f"task {n}",)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runs = home.runs()
    assert done == [32, 32]
    assert [len(r.turns) for r in runs] == [16, 16]
    for run in runs:
        prompts = {q.messages[0]["content"] for q in run.requests}
        assert len(prompts) == 1
        assert [len(q.messages) for q in run.requests] == list(range(1, 33, 2))


def test_a_fault_of_our_own_is_said_once_and_the_loop_gets_the_same_answers(tmp_path, monkeypatch, capfd):
    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(3)))

        def broken(*_, **__):
            raise AssertionError("a bug of ours")

        monkeypatch.setattr(home.recorder, "request", broken)
        assert len(scripted.run_loop(client)) == 8
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "your program is not affected" in err


def test_where_there_is_no_home_at_all_the_loop_runs_unrecorded(monkeypatch, capfd):
    from looptape.tracer import paths, process

    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("LOOPTAPE_HOME", raising=False)
    monkeypatch.setattr(paths, "home", nowhere)
    former = process.replace(None)
    try:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(2)))
        with looptape.run("nowhere"):
            assert len(scripted.run_loop(client)) == 6
    finally:
        process.replace(former)
    assert capfd.readouterr().err.count("\n") == 1


def test_requests_and_answers_are_the_same_bytes_with_and_without_recording(server, tmp_path):
    def play(client):
        start = len(server.log)
        message = client.messages.create(**ASK)
        with client.messages.stream(**ASK) as stream:
            texts = list(stream.text_stream)
        asked = [(e["path"], e["body"], sorted(e["headers"])) for e in server.log[start:]]
        return message.content[0].text, texts, asked

    bare = play(sync_client(server, recorded=False))
    with recording(tmp_path), looptape.run("same"):
        assert play(sync_client(server)) == bare


def settings_loop(tmp_path, toml):
    """A fresh process in a folder with this looptape.toml records one turn by hand; its home, exit code and stderr."""
    (tmp_path / "looptape.toml").write_text(toml)
    program = (
        "import looptape\n"
        "with looptape.run('r') as run, run.turn() as turn:\n"
        "    turn.request('a secret question')\n"
        "    turn.response('an answer', stop_reason='end_turn')\n"
        "print('ok')\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LOOPTAPE")}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**environment, "XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "ok\n"), ran.stderr
    return ran.stderr


def test_a_settings_file_is_obeyed_by_the_recorder_itself(tmp_path):
    home = tmp_path / "elsewhere"
    assert settings_loop(tmp_path, f'home = "{home}"\ncontent = "none"\n') == ""
    (journal,) = (home / "journal").glob("*.jsonl")
    written = journal.read_text()
    assert '"content":"none"' in written
    assert '"turn_end"' in written
    assert "secret" not in written


def test_a_settings_file_can_turn_recording_off(tmp_path):
    home = tmp_path / "elsewhere"
    assert settings_loop(tmp_path, f'home = "{home}"\nrecording = "off"\n') == ""
    assert not home.exists()


def test_settings_that_cannot_be_read_record_nothing_and_say_so_once(tmp_path):
    said = settings_loop(tmp_path, 'contents = "none"\n')
    assert said.count("\n") == 1
    assert "line 1: unknown setting 'contents'" in said
    assert "Recording is off" in said
    assert not (tmp_path / "data").exists()


class OutOfTime(Exception):
    """A time limit of the program's own."""


@pytest.mark.parametrize("place", ["quietly", "journal"])
def test_a_time_limit_that_the_programs_signal_handler_raises_while_we_work_reaches_the_program(
    tmp_path, monkeypatch, place
):
    def over(number, frame):
        raise OutOfTime

    monkeypatch.setattr(tape, "line", lambda record: signal.raise_signal(signal.SIGUSR1))
    write = Journal(tmp_path).write if place == "journal" else process.quietly(lambda records: tape.line(records[0]))
    former = signal.signal(signal.SIGUSR1, over)
    try:
        with pytest.raises(OutOfTime):
            write([{"kind": "event"}])
    finally:
        signal.signal(signal.SIGUSR1, former)


def test_trouble_of_our_own_does_not_reach_the_program_whatever_its_handlers_are(capfd):
    former = signal.signal(signal.SIGUSR1, lambda number, frame: None)
    try:
        assert process.quietly(lambda: 1 // 0)() is None
    finally:
        signal.signal(signal.SIGUSR1, former)
