"""What the official SDKs put together from a stream is what we put together from its bytes."""

import pytest

from fakellm import Call, FakeLLM, Scenario, Step
from looptape.tracer.providers import by_api
from looptape.tracer.streams import sse_events
from wire import post

ASK = [{"role": "user", "content": "hi"}]
SEARCH = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "revenue"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
]


def step(extra=()):
    calls = [Call("search", {"q": "7 %", "n": [1, 2.5]}, "c1"), Call("now", {}, "c2")]
    usage = {"input": 30, "cache_read": 400, "cache_write": 7, "output": 12}
    return Step("Let me look.", "hm", calls, usage, extra_blocks=list(extra))


def ours(url, api, path, body):
    streamed, whole = by_api(api).assemble(sse_events(post(url + path, {**body, "stream": True})[2]))
    assert whole
    return by_api(api).answer(streamed)


@pytest.fixture
def server():
    with FakeLLM({"search": Scenario([step(SEARCH)]), "plain": Scenario([step()])}) as running:
        yield running


def same(left, right):
    def told(a):
        calls = [(c.id, c.name, c.arguments_raw, c.provider_side) for c in a.calls]
        u = a.usage
        return a.text, a.thinking, a.stop_reason, calls, (u.input, u.cache_read, u.cache_write_5m, u.output), a.end

    return told(left) == told(right)


def test_anthropic_messages(server):
    anthropic = pytest.importorskip("anthropic")
    body = {"model": "acme", "max_tokens": 9, "messages": ASK, "thinking": {"type": "adaptive"}}
    client = anthropic.Anthropic(base_url=server.url("search"), api_key="test")
    with client.messages.stream(**body) as stream:
        message = stream.get_final_message()
    answer = ours(server.url("search"), "anthropic.messages", "/v1/messages", body)
    assert len(answer.calls) == 3
    assert same(answer, by_api("anthropic.messages").answer(message.model_dump(mode="json")))


def test_openai_chat_completions(server):
    openai = pytest.importorskip("openai")
    body = {"model": "acme", "messages": ASK, "stream_options": {"include_usage": True}}
    client = openai.OpenAI(base_url=server.url("plain") + "/v1", api_key="test")
    with client.chat.completions.stream(**body) as stream:
        completion = stream.until_done().get_final_completion()
    answer = ours(server.url("plain"), "openai.chat", "/v1/chat/completions", body)
    assert len(answer.calls) == 2
    assert same(answer, by_api("openai.chat").answer(completion.model_dump(mode="json")))


def test_openai_responses(server):
    openai = pytest.importorskip("openai")
    body = {"model": "acme", "input": ASK, "reasoning": {"summary": "auto"}}
    client = openai.OpenAI(base_url=server.url("plain") + "/v1", api_key="test")
    with client.responses.stream(**body) as stream:
        response = stream.until_done().get_final_response()
    answer = ours(server.url("plain"), "openai.responses", "/v1/responses", body)
    assert len(answer.calls) == 2
    assert same(answer, by_api("openai.responses").answer(response.model_dump(mode="json")))
