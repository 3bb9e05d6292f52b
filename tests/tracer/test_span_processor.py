"""One line for any tracer provider: GenAI spans of the application in the store, from start to end, counted once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import looptape
import otel_sender
import scripted
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.tracer.importers import import_path
from looptape.tracer.store import Filter, open_store
from recorded import recording

KEY = "sk-" + "ant-" + "canary0123456789"
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def provider(monkeypatch):
    made = TracerProvider()
    made.add_span_processor(looptape.SpanProcessor())
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", made)
    return made


@pytest.fixture
def server():
    steps = [Step(text="let me see", calls=[Call("search", {"path": "x"})]), Step(text="done")]
    with FakeLLM(
        {
            "loop": Scenario(steps),
            "other": Scenario(steps),
            "broken": Scenario([Step(errors=[{"kind": "bad_request", "message": "no"}])]),
        }
    ) as fake:
        yield fake


def client_of(server, scenario="loop"):
    import anthropic

    return anthropic.Anthropic(base_url=server.url(scenario), api_key=KEY, max_retries=0)


def loop(client):
    scripted.run_loop(client, messages=list(HELLO), result=lambda path: "the result")


def spans_written(home):
    """(name, is it open?) of every span in the journal, in order."""
    return [
        (span["name"], record.get("open", False))
        for record in home.records()
        if record["kind"] == "otlp"
        for group in record["body"]["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    ]


def test_genai_spans_become_a_run_with_its_tool_call_and_usage(provider, tmp_path):
    with recording(tmp_path) as home:
        otel_sender.loop(provider.get_tracer("some.genai.sdk"))
        run = home.run()
    assert (run.agent, run.source, run.status, len(run.turns)) == ("demo", "otlp", "completed", 2)
    assert [(c.name, c.state, len(c.result)) for c in run.turns[0].tool_calls] == [("search", "done", 120_000)]
    assert run.turns[1].text == "up 7%"
    assert (run.usage.input, run.usage.output) == (20, 10)


def test_the_native_spans_of_anthropic_are_taken_without_wrapping(provider, server, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")
    with recording(tmp_path) as home:
        with provider.get_tracer("app").start_as_current_span("handle request"):
            loop(client_of(server))
        run = home.run()
    assert (run.source, len(run.turns), run.turns[1].text) == ("otlp", 2, "done")
    assert [c.name for c in run.turns[0].tool_calls] == ["search"]
    assert {t.step for t in run.turns} == {"handle request"}


@pytest.mark.parametrize("block", [True, False], ids=["run block", "bare loop"])
def test_calls_that_the_wrapper_records_too_are_counted_once(provider, server, tmp_path, block):
    with recording(tmp_path) as home:
        client = looptape.wrap(client_of(server))
        if block:
            with looptape.run("mine"):
                loop(client)
        else:
            loop(client)
        run = home.run()
        names = [name for name, _ in spans_written(home)]
    assert (run.source, len(run.turns)) == ("sdk", 2)
    assert not [n for n in names if n.startswith(("turn ", "chat ", "invoke_agent"))]


def test_a_failed_call_has_no_response_id_and_is_counted_once_all_the_same(provider, server, tmp_path):
    import anthropic

    with recording(tmp_path) as home:
        client = looptape.wrap(client_of(server, "broken"))
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(model="m", max_tokens=9, messages=HELLO)
        run = home.run()
    assert (run.source, len(run.turns), run.turns[0].status) == ("sdk", 1, "error")


def test_a_loop_of_which_only_some_calls_are_wrapped_keeps_the_others(provider, server, tmp_path):
    with recording(tmp_path) as home:
        loop(looptape.wrap(client_of(server)))
        with provider.get_tracer("app").start_as_current_span("invoke_agent b") as agent:
            agent.set_attribute("gen_ai.operation.name", "invoke_agent")
            loop(client_of(server, "other"))
        runs = home.runs()
    assert sorted((r.source, len(r.turns)) for r in runs) == [("otlp", 2), ("sdk", 2)]


def test_an_instrumentation_around_the_native_span_is_no_second_call(provider, server, tmp_path):
    with recording(tmp_path) as home:
        client = looptape.wrap(client_of(server))
        with provider.get_tracer("other.instrumentation").start_as_current_span("chat m") as outer:
            outer.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3})
            client.messages.create(model="m", max_tokens=9, messages=HELLO)
        run = home.run()
    assert (run.source, len(run.turns)) == ("sdk", 1)


def test_open_spans_show_while_they_run_and_are_completed_when_they_end(provider, tmp_path):
    tracer = provider.get_tracer("some.genai.sdk")
    with recording(tmp_path) as home:
        with tracer.start_as_current_span("invoke_agent slow", attributes={"gen_ai.operation.name": "invoke_agent"}):
            chat = tracer.start_span("chat m", attributes={"gen_ai.operation.name": "chat"})
            with open_store(home.path) as store:
                (first,) = store.runs(Filter(include_empty=True))
                turn = store.turns(first.id)[0]
            chat.end()
            with open_store(home.path) as store:
                (second,) = store.runs(Filter(include_empty=True))
        last = home.run()
    assert (first.status, turn.status) == ("running", "open")
    assert second.status == "running"
    assert last.status != "running"
    assert first.id == second.id == last.run.id


def test_what_is_no_genai_span_is_left_out_but_for_what_stands_around_one(provider, tmp_path):
    http, genai = provider.get_tracer("http.server"), provider.get_tracer("some.genai.sdk")
    with recording(tmp_path) as home:
        for _ in range(3):
            with http.start_as_current_span("GET /health"):
                pass
        with http.start_as_current_span("POST /ask"), http.start_as_current_span("select"):
            pass
        chat = {"gen_ai.operation.name": "chat"}
        with (
            http.start_as_current_span("POST /ask"),
            genai.start_as_current_span("chat m", attributes=chat),
            http.start_as_current_span("POST api"),
        ):
            pass
        written = spans_written(home)
    assert written == [("chat m", True), ("chat m", False), ("POST /ask", False)]


PROGRAM = textwrap.dedent(
    """
    import os, sys, time
    from opentelemetry.sdk.trace import TracerProvider
    import looptape
    provider = TracerProvider()
    provider.add_span_processor(looptape.SpanProcessor())
    tracer = provider.get_tracer("some.genai.sdk")
    with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
        with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-7"}):
            print("inside", flush=True)
            time.sleep(60)
    """
)


def test_spans_that_were_open_at_a_kill_are_in_the_store_as_an_interrupted_turn(tmp_path):
    environment = {**os.environ, "LOOPTAPE_HOME": str(tmp_path)}
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=environment)
    assert program.stdout is not None
    assert program.stdout.readline() == "inside\n"
    with open_store(tmp_path) as store:
        assert [r.status for r in store.runs(Filter(include_empty=True))] == ["running"]
    program.send_signal(signal.SIGKILL)
    program.communicate()
    with open_store(tmp_path) as store:
        (run,) = store.runs(Filter(include_empty=True))
        turns = store.sql("select status, model from turns")[2]
    assert (run.status, run.reason) == ("interrupted", "the process ended without a word (killed?) at turn 1")
    assert turns == [("interrupted", "m-7")]


def test_without_content_no_text_is_written(provider, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE_CONTENT", "none")
    with recording(tmp_path) as home:
        otel_sender.loop(provider.get_tracer("some.genai.sdk"))
        text = str(home.records())
        run = home.run()
    assert "revenue" not in text
    assert "7%" not in text
    assert (len(run.turns), run.usage.output) == (2, 10)


def test_secrets_are_removed_before_anything_is_written(provider, tmp_path):
    with recording(tmp_path) as home:
        with provider.get_tracer("some.genai.sdk").start_as_current_span("chat m") as span:
            span.set_attribute("gen_ai.input.messages", f'[{{"role":"user","parts":[{{"content":"{KEY}"}}]}}]')
        text = str(home.records())
    assert KEY not in text
    assert "[redacted:anthropic-key]" in text


def test_nothing_that_goes_wrong_reaches_the_application(provider, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("looptape.tracer.span_processor._item", lambda span: 1 / 0)
    with recording(tmp_path):
        otel_sender.loop(provider.get_tracer("some.genai.sdk"))
    assert capsys.readouterr().err.count("looptape: recording had trouble") <= 1


def test_recording_switched_off_takes_nothing(provider, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPTAPE", "off")
    with recording(tmp_path) as home:
        otel_sender.loop(provider.get_tracer("some.genai.sdk"))
        assert home.records() == []


def test_a_copied_journal_with_spans_gives_the_same_run_elsewhere(provider, tmp_path):
    with recording(tmp_path) as home:
        otel_sender.loop(provider.get_tracer("some.genai.sdk"))
        home.end()
        (journal,) = (home.path / "journal").glob("*.jsonl")
        with open_store(tmp_path / "elsewhere") as store:
            (report,) = import_path(store, journal)
        with open_store(tmp_path / "elsewhere") as store:
            (other,) = store.runs(Filter(limit=0))
        assert home.run().run.id == other.id
    assert report.format == "tape"
