"""Whatever a server, a proxy or a broken file says, reading it never raises: real bodies with odd values inside."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fakellm_anthropic
import fakellm_openai
import fakellm_responses
from examples import examples
from fakellm import Call, Step
from fakellm_steps import Ids
from looptape.tracer.model import Usage
from looptape.tracer.providers import PROVIDERS, Answer, by_api
from looptape.tracer.tape import plain

APIS = {
    "anthropic.messages": fakellm_anthropic,
    "manual": fakellm_anthropic,
    "openai.chat": fakellm_openai,
    "openai.responses": fakellm_responses,
}
REQUEST = {
    "model": "acme",
    "thinking": {"type": "adaptive"},
    "thread": {"previous_message_id": "msg_0"},
    "reasoning": {"summary": "auto"},
    "stream_options": {"include_usage": True},
}
SERVED = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": {"type": "web_search_tool_result_error"}},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
    {"type": "shell_call", "id": "sh_1", "call_id": "c9", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "id": "so_1", "call_id": "c9", "output": []},
]
MESSAGES = [
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}, {"type": "text"}]},
    {"role": "tool", "tool_call_id": "a", "content": "1"},
    {"role": "function", "name": "f", "content": "1"},
    {"type": "function_call_output", "call_id": "a", "output": "1"},
]
STEP = Step("text", "hm", [Call("f", {"x": 1}, "c1"), Call("g", {}, "c2")], extra_blocks=SERVED)

odd = st.sampled_from(
    [None, True, 0, -1, 10**30, 0.5, float("nan"), "", "x", [], [None, 1, "x"], {}, {"type": 1}, [[]]]
)
anything = st.recursive(odd, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3))
# Gemini has no fake server: test_gemini_answers.py has its own odd data
SERVED_HERE = [p for p in PROVIDERS if p.API in APIS]
each_provider = pytest.mark.parametrize("provider", SERVED_HERE, ids=lambda p: p.API)


def nodes(value, path=()):
    """The path of every value inside a JSON value."""
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        found += nodes(part, (*path, key))
    return found


def spoilt(data, value, times):
    """A copy of the value in which some inner values are replaced by odd ones."""
    value = copy.deepcopy(value)
    for _ in range(times):
        *way, last = data.draw(st.sampled_from(nodes(value)[1:] or [("",)]))
        holder = value
        for key in way:
            holder = holder[key]
        if isinstance(holder, (dict, list)) and holder:
            holder[last] = copy.deepcopy(data.draw(odd))
    return value


def read(provider, body):
    answer = provider.answer(body)
    assert isinstance(answer, Answer)
    assert isinstance(answer.usage, Usage)
    assert all(isinstance(c.arguments_raw, str) and isinstance(c.id, str) for c in answer.calls)


@each_provider
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), times=st.integers(0, 3))
def test_a_body_with_odd_values_is_still_an_answer(provider, data, times):
    whole = APIS[provider.API].whole(STEP, REQUEST, Ids("counter"))
    read(provider, spoilt(data, whole, times))
    read(provider, data.draw(anything))


@each_provider
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_stream_with_odd_values_still_builds_a_body(provider, data):
    dialect = APIS[provider.API]
    events = [d for _, d in dialect.events(dialect.whole(STEP, REQUEST, Ids("counter")), REQUEST)]
    events.insert(3, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    spoilt_ones = data.draw(st.sets(st.integers(0, len(events) - 1), max_size=14))
    texts = [json.dumps(spoilt(data, e, 2) if i in spoilt_ones else e) for i, e in enumerate(events)]
    left_out = data.draw(st.sets(st.integers(0, len(events) - 1), max_size=3))
    body, whole = provider.assemble([(None, t) for i, t in enumerate(texts) if i not in left_out])
    assert whole in (True, False)
    read(provider, body)
    json.dumps(plain(body))


@each_provider
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_odd_requests_and_messages_are_read(provider, data):
    message = spoilt(data, data.draw(st.sampled_from(MESSAGES)), 2)
    assert all(isinstance(seen.call, str) for seen in provider.results(message))
    assert provider.is_prompt(message) in (True, False)
    assert list(provider.results(data.draw(anything))) == []
    assert provider.request(spoilt(data, {**REQUEST, "tools": [{}]}, 2)).mode in ("full", "thread", "previous_response")


@each_provider
def test_arguments_nested_beyond_reason_are_invalid_and_not_a_crash(provider):
    deep = "[" * 200_000
    call = {"type": "tool_use", "id": "a", "name": "f", "partial_json": deep}
    item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": deep}
    message = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": deep}}]}
    body = {"content": [call], "output": [item], "choices": [{"message": message}]}
    [got] = by_api(provider.API).answer(body).calls
    assert (got.valid, got.arguments_raw) == (False, deep)
