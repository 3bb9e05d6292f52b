"""A streamed answer says what the plain one says; a cut one says a part of it and nothing else."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fakellm_anthropic
import fakellm_openai
import fakellm_responses
from examples import examples
from fakellm import Call, FakeLLM, Scenario, Step
from fakellm_steps import Ids
from looptape.tracer import providers
from looptape.tracer.streams import sse_events
from wire import post

APIS = {
    "anthropic.messages": (fakellm_anthropic, "/v1/messages", {"max_tokens": 9, "thinking": {"type": "adaptive"}}),
    "openai.chat": (fakellm_openai, "/v1/chat/completions", {"stream_options": {"include_usage": True}}),
    "openai.responses": (fakellm_responses, "/v1/responses", {"reasoning": {"summary": "auto"}}),
}
SEARCH = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "revenue"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result"}]},
]
each_api = pytest.mark.parametrize("api", APIS)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.text(max_size=8), values, max_size=3)
calls = st.builds(Call, st.text(min_size=1, max_size=8), arguments, st.just(""))
tokens = st.fixed_dictionaries({}, optional={k: st.integers(0, 10**6) for k in ("input", "cache_read", "cache_write")})
steps = st.builds(
    Step,
    text=st.text(max_size=40),
    thinking=st.text(max_size=30),
    calls=st.lists(calls, max_size=3),
    usage=tokens,
    stop=st.sampled_from(["", "", "max_tokens", "length", "refusal", "pause_turn", "max_output_tokens"]),
)


def bodies(api, step):
    """The plain body of a step and the events of its stream, both as they come off the wire."""
    dialect, _, request = APIS[api]
    whole = dialect.whole(step, request, Ids("counter"))
    events = [(e, d if isinstance(d, str) else json.dumps(d)) for e, d in dialect.events(whole, request)]
    return json.loads(json.dumps(whole)), events


@each_api
@settings(max_examples=examples(60), deadline=None)
@given(step=steps)
def test_a_stream_describes_the_same_answer_as_the_plain_body(api, step):
    provider = providers.by_api(api)
    plain, events = bodies(api, step)
    streamed, whole = provider.assemble(events)
    assert whole
    assert provider.answer(streamed) == provider.answer(plain)


@each_api
@settings(max_examples=examples(25), deadline=None)
@given(step=steps, data=st.data())
def test_a_stream_cut_anywhere_says_a_part_of_the_answer(api, step, data):
    provider = providers.by_api(api)
    plain, events = bodies(api, step)
    full = provider.answer(plain)
    body, whole = provider.assemble(events[: data.draw(st.integers(0, len(events)))])
    part = provider.answer(body)
    assert (full.text or "").startswith(part.text or "")
    assert (full.thinking or "").startswith(part.thinking or "")
    assert len(part.calls) <= len(full.calls)
    for cut, call in zip(part.calls, full.calls, strict=False):
        assert (cut.id, cut.name) == (call.id, call.name)
        assert cut.arguments_raw == call.arguments_raw if cut.state is None else not whole
    assert part.stop_reason in (None, full.stop_reason)
    if not whole and part.stop_reason is None:
        assert part.end is None
        assert part.usage.partial or part.usage.raw is None


@each_api
def test_what_the_server_sends_over_http_is_read_whole_plain_and_streamed(api):
    _, path, request = APIS[api]
    extra = SEARCH if api == "anthropic.messages" else []
    step = Step(
        "Let me look. \N{SNOWMAN}\N{LINE SEPARATOR}", "hm", [Call("search", {"q": "7 % of\n1"}, "c1"), Call("now", {}, "c2")],
        {"input": 30, "cache_read": 400, "cache_write": 7, "output": 12}, extra_blocks=extra,
    )  # fmt: skip
    body = {"model": "acme", "messages": [], **request}
    provider = providers.by_api(api)
    assert providers.by_path(path) is provider
    with FakeLLM({"one": Scenario([step])}, ids="counter") as server:
        _, _, plain = post(server.url("one") + path, body)
        _, _, text = post(server.url("one") + path, {**body, "stream": True})
    streamed, whole = provider.assemble(sse_events(text))
    answer = provider.answer(streamed)
    other = provider.answer(json.loads(plain))
    assert whole
    assert (answer.text, answer.thinking, answer.calls, answer.usage) == (
        other.text, other.thinking, other.calls, other.usage,
    )  # fmt: skip
    assert answer.text == "Let me look. \N{SNOWMAN}\N{LINE SEPARATOR}"
    assert [(c.id, json.loads(c.arguments_raw)) for c in answer.calls if not c.provider_side] == [
        ("c1", {"q": "7 % of\n1"}),
        ("c2", {}),
    ]
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.cache_write_5m, answer.usage.output) == (
        30, 400, 7, 12,
    )  # fmt: skip
    assert answer.end is None


@each_api
def test_an_error_status_gives_its_message_and_type(api):
    _, path, request = APIS[api]
    provider = providers.by_api(api)
    step = Step("ok", errors=[{"kind": "rate_limit", "message": "slow down"}])
    with FakeLLM({"one": Scenario([step])}) as server:
        status, _, text = post(server.url("one") + path, {"model": "acme", "messages": [], **request})
    answer = provider.answer(json.loads(text))
    assert status == 429
    assert answer.error == "slow down"
    assert "rate_limit" in answer.error_type
    assert answer.usage.origin == "missing"
