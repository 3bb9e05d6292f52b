"""What an application's own exporter sees: one span a turn, every call counted once, identity that survives, no content unasked."""

from __future__ import annotations

import json
import logging

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import looptape
import scripted
from fakellm import Call, FakeLLM, Scenario, Step
from looptape.tracer import spans
from recorded import recording

USAGE = "gen_ai.usage.output_tokens"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
KEY = "sk-" + "ant-" + "canary0123456789"
HELLO = [{"role": "user", "content": "canary question"}]


class App:
    """An application's provider and what its exporter got."""

    def __init__(self, **options):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    def named(self, start):
        return [s for s in self.spans if s.name.startswith(start)]

    def native(self):
        return [s for s in self.spans if s.instrumentation_scope.name.startswith("com.anthropic")]

    def ours(self):
        return [s for s in self.spans if s.instrumentation_scope.name == "looptape"]


@pytest.fixture
def use_provider(monkeypatch):
    """Sets the process's provider for one test: a function that takes its options."""

    def use(provider=None, **options):
        app = App(**options)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider or app.provider)
        return app

    return use


@pytest.fixture
def server():
    steps = [Step(text="canary answer", calls=[Call("search", {"path": "canary argument"})]), Step(text="done")]
    with FakeLLM({"loop": Scenario(steps), "chat": Scenario([Step(text="canary answer")])}) as fake:
        yield fake


def anthropic_client(server, **options):
    import anthropic

    return looptape.wrap(anthropic.Anthropic(base_url=server.url("loop"), api_key=KEY, **options))


def two_turns(client):
    scripted.run_loop(client, messages=list(HELLO), result=lambda path: "canary result")


def hexadecimal(span):
    return f"{span.context.span_id:016x}"


def test_a_native_chat_span_stays_the_only_one_with_usage_and_the_turn_is_its_sibling(use_provider, server, tmp_path):
    app = use_provider()
    with recording(tmp_path) as home:
        client = anthropic_client(server)
        with looptape.run("agent", agent="researcher"):
            two_turns(client)
        run = home.run()
    (agent,) = app.named("invoke_agent researcher")
    turns, chats = app.named("turn "), app.native()
    assert [s.name for s in turns] == ["turn 1", "turn 2"]
    assert len(chats) == 2
    assert app.named("chat ") == []
    assert [USAGE in s.attributes for s in app.spans].count(True) == 2
    assert all(s.kind is trace.SpanKind.INTERNAL for s in turns)
    assert {s.parent.span_id for s in (*turns, *chats)} == {agent.context.span_id}
    assert [t.span_id for t in run.turns] == [hexadecimal(s) for s in turns]
    assert [s.attributes["looptape.turn.number"] for s in turns] == [1, 2]
    assert {s.attributes["looptape.run.id"] for s in (*turns, agent)} == {run.id}
    assert [s.attributes.get("looptape.stop_reason") for s in turns] == ["tool_use", "end_turn"]


def test_without_a_run_block_the_turn_hangs_beside_the_native_span(use_provider, server, tmp_path):
    app = use_provider()
    with recording(tmp_path) as home:
        with trace.get_tracer("app").start_as_current_span("handle request"):
            two_turns(anthropic_client(server))
        home.end()
    (agent,) = app.named("invoke_agent")
    (outer,) = app.named("handle")
    assert agent.parent.span_id == outer.context.span_id
    assert {s.parent.span_id for s in app.native()} == {outer.context.span_id}
    assert {s.parent.span_id for s in app.named("turn")} == {agent.context.span_id}


@pytest.mark.parametrize("kind", ["anthropic without traces", "openai"])
def test_where_the_sdk_traces_nothing_the_chat_span_is_ours(use_provider, server, tmp_path, kind):
    app = use_provider()
    with recording(tmp_path) as home:
        if kind == "openai":
            import openai

            client = looptape.wrap(openai.OpenAI(base_url=server.url("chat"), api_key=KEY))
            client.chat.completions.create(model="m", messages=HELLO)
        else:
            client = anthropic_client(server, open_telemetry={"traces": {"enabled": False}})
            client.messages.create(model="m", max_tokens=9, messages=HELLO)
        home.end()
    (turn,), (chat,) = app.named("turn"), app.named("chat")
    assert (chat.name, chat.instrumentation_scope.name, chat.kind) == ("chat m", "looptape", trace.SpanKind.CLIENT)
    assert chat.parent.span_id == turn.context.span_id
    assert chat.attributes[USAGE] == 5
    assert USAGE not in turn.attributes
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.request.model"] == "m"


def test_tools_have_their_span_under_the_turn_that_called(use_provider, server, tmp_path):
    app = use_provider()

    @looptape.tool(name="search")
    def search(path):
        raise ValueError("canary tool error")

    def result(path):
        try:
            return search(path)
        except ValueError as error:
            return str(error)

    with recording(tmp_path) as home:
        scripted.run_loop(anthropic_client(server), messages=list(HELLO), result=result)
        home.end()
    (tool,) = app.named("execute_tool search")
    assert tool.parent.span_id == app.named("turn 1")[0].context.span_id
    assert tool.attributes["error.type"] == "ValueError"
    assert not tool.status.is_ok
    assert "canary" not in "".join(s.to_json() for s in app.ours())


def test_no_content_is_on_spans_unless_it_is_asked_for_and_then_it_is_redacted(
    use_provider, server, tmp_path, monkeypatch
):
    app = use_provider()
    with recording(tmp_path / "one") as home:
        two_turns(anthropic_client(server))
        home.end()
    assert "canary" not in "".join(s.to_json() for s in app.ours())
    server.scenarios["loop"].pos = 0
    monkeypatch.setenv(CONTENT, "span_only")
    app = use_provider()
    with recording(tmp_path / "two") as home:
        messages = [{"role": "user", "content": f"canary question, my key is {KEY}"}]
        scripted.run_loop(anthropic_client(server), messages=messages, result=lambda path: f"found {KEY}")
        home.end()
    turns = app.named("turn")
    assert "canary question" in turns[0].attributes["gen_ai.input.messages"]
    assert "canary answer" in turns[0].attributes["gen_ai.output.messages"]
    assert json.loads(turns[1].attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == "done"
    assert KEY not in "".join(s.to_json() for s in app.ours())


def test_a_failed_call_is_an_error_on_the_turn_and_its_text_is_redacted(use_provider, tmp_path):
    import anthropic

    app = use_provider()
    step = Step(errors=[{"kind": "bad_request", "message": f"no such key: {KEY}"}])
    with FakeLLM({"loop": Scenario([step])}) as server, recording(tmp_path) as home:
        client = anthropic_client(server, open_telemetry={"traces": {"enabled": False}})
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(model="m", max_tokens=9, messages=HELLO)
        home.end()
    for span in (*app.named("turn"), *app.named("chat")):
        assert (span.status.status_code, span.attributes["error.type"]) == (
            trace.StatusCode.ERROR,
            "invalid_request_error",
        )
    assert KEY not in "".join(s.to_json() for s in app.ours())


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_the_step_is_named_after_an_enclosing_span_that_is_no_genai_span(use_provider, server, tmp_path, kind):
    use_provider()
    with recording(tmp_path) as home:
        if kind == "openai":
            import openai

            client = looptape.wrap(openai.OpenAI(base_url=server.url("chat"), api_key=KEY))
            ask = client.chat.completions.create
        else:
            client = anthropic_client(server, open_telemetry={"traces": {"enabled": False}})
            ask = client.messages.create
        with trace.get_tracer("graph").start_as_current_span("node: plan"):
            ask(model="m", max_tokens=9, messages=HELLO)
        run = home.run()
    assert run.turns[0].step == "node: plan"


@pytest.mark.parametrize("kind", ["none", "sampled out", "disabled"])
def test_every_turn_has_its_ids_also_where_nobody_exports(use_provider, server, tmp_path, kind, monkeypatch):
    if kind == "sampled out":
        app = use_provider(sampler=ALWAYS_OFF)
    elif kind == "disabled":
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        app = use_provider()
    else:
        app = App()
    with recording(tmp_path) as home:
        with looptape.run("ids"):
            two_turns(anthropic_client(server))
        run = home.run()
    assert app.spans == ()
    ids = [t.span_id for t in run.turns]
    assert len(set(ids)) == 2
    assert all(len(i) == 16 and int(i, 16) for i in ids)
    assert len({t.trace_id for t in run.turns}) == 1
    assert int(run.turns[0].trace_id, 16)
    assert "traceparent" not in server.log[-1]["headers"] or kind == "sampled out"


def test_the_random_numbers_of_a_seeded_program_are_the_same_as_without_us(server, tmp_path):
    import random

    def draws(home):
        random.seed(7)
        with looptape.run("seeded"):
            two_turns(anthropic_client(server))
        home.end()
        return random.random()

    with recording(tmp_path) as home:
        scripted.anthropic_client(scripted.loop_answer(0))
        recorded = draws(home)
    assert recorded == random.Random(7).random()


@pytest.mark.parametrize("where", ["count", "length"])
def test_run_and_turn_survive_narrow_limits_and_the_turn_says_what_was_cut(
    use_provider, server, tmp_path, monkeypatch, where
):
    """An environment that keeps few or short attributes; the oldest go first."""
    if where == "count":
        monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "3")
    else:
        monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "20")
    app = use_provider()
    with recording(tmp_path) as home:
        two_turns(anthropic_client(server))
        run = home.run()
    turns = app.named("turn")
    assert [(s.attributes["looptape.run.id"], s.attributes["looptape.turn.number"]) for s in turns] == [
        (run.id, 1),
        (run.id, 2),
    ]
    assert all("otel_attributes_cut" in t.flags for t in run.turns)


def test_spans_that_two_threads_forget_at_once_disturb_neither():
    class Forgetting(dict):
        """The oldest is gone as soon as somebody has looked which it is."""

        def __iter__(self):
            for key in list(super().__iter__()):
                yield key
                self.pop(key, None)

    known = Forgetting.fromkeys(range(1010))
    spans._keep_newest(known)
    assert len(known) <= 1000


def test_a_long_conversation_needs_few_attributes(use_provider, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "16")
    monkeypatch.setenv(CONTENT, "true")
    app = use_provider()
    messages = [{"role": "user", "content": f"message {n}"} for n in range(300)]
    with recording(tmp_path) as home:
        client = looptape.wrap(scripted.anthropic_client(scripted.loop_answer(0)))
        client.messages.create(model="m", max_tokens=9, system="be brief", messages=messages)
        run = home.run()
    (turn,) = app.named("turn")
    assert len(turn.attributes) <= 16
    assert turn.attributes["looptape.run.id"] == run.id
    assert len(json.loads(turn.attributes["gen_ai.input.messages"])) == 300
    assert run.turns[0].flags == ()


def test_a_provider_that_raises_everywhere_costs_no_turn(use_provider, server, tmp_path, capfd):
    class Broken:
        def on_start(self, span, parent_context=None):
            raise RuntimeError("processor trouble")

        def on_end(self, span):
            raise RuntimeError("processor trouble")

        def _on_ending(self, span):
            pass

        def shutdown(self):
            pass

        def force_flush(self, timeout_millis=0):
            return True

    app = use_provider()
    with recording(tmp_path) as home:
        client = anthropic_client(server, open_telemetry={"traces": {"enabled": False}})
        app.provider.add_span_processor(Broken())
        two_turns(client)
        run = home.run()
    assert [t.status for t in run.turns] == ["ok", "ok"]
    assert len({t.span_id for t in run.turns}) == 2
    assert run.status == "completed"
    assert capfd.readouterr().err.count("looptape:") == 1


def test_spans_of_a_run_left_in_another_context_log_no_error(use_provider, server, tmp_path, caplog):
    import contextvars

    use_provider()
    with recording(tmp_path) as home, caplog.at_level(logging.WARNING):
        run = looptape.run("wandering")
        contextvars.copy_context().run(run.__enter__)
        two_turns(anthropic_client(server))
        contextvars.copy_context().run(run.__exit__, None, None, None)
        home.end()
    assert caplog.records == []
