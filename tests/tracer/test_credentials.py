"""A secret is known whichever header carried it; a word that texts need is never taken for one."""

from __future__ import annotations

import json

import httpx2
import pytest

import looptape
from acknowledged import every_byte
from looptape.tracer import credentials, redaction
from looptape.tracer.redaction import redact
from recorded import recording

RANDOM = "Zq9xRt7" + "Lm2Pw5Kv8"
GONE = "[redacted:api-key]"


@pytest.fixture(autouse=True)
def _nothing_known():
    redaction.forget()
    yield
    redaction.forget()


def after(name, value, text, url="https://a.b/v1/messages"):
    """The text once a request with this header has been seen."""
    credentials.learn(url, {name: value})
    return redact(text)


@pytest.mark.parametrize(
    "header",
    [
        "x-portkey-api-key",
        "x-my-secret",
        "X-LiteLLM-Api-Key",
        "api_key",
        "x-auth",
        "apikey",
        "x-goog-user-key",
        "x-workspace",
    ],
)
def test_a_key_in_a_header_nobody_listed_is_nowhere_when_the_server_repeats_it(tmp_path, header):
    reply = httpx2.Response(400, json={"type": "error", "error": {"type": "x", "message": f"key {RANDOM}"}})
    with recording(tmp_path) as home:
        http = looptape.wrap(httpx2.Client(transport=httpx2.MockTransport(lambda r: reply)))
        http.post("http://localhost/v1/messages", json={"model": "m", "messages": []}, headers={header: RANDOM})
        written = every_byte(home.path)
    assert b"turn_end" in written
    assert RANDOM.encode() not in written


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("x-api-key", "short-key1", "short-key1"),
        ("authorization", "Bearer ab12cd", "ab12cd"),
        ("x-api-key", "schlüssel-1234567", "schlüssel-1234567"),
        ("x-api-key", "with space 12345678 x", "with space 12345678 x"),
        ("x-webhook-signature", "correct-horse-battery", "correct-horse-battery"),
        ("cookie", f'theme=dark; sid="{RANDOM}"; lang=en-US', RANDOM),
        ("authorization", "Basic dXNlcjpodW50ZXIyLWxvbmc=", "hunter2-long"),
    ],
)
def test_odd_keys_are_taken_out_of_plain_and_of_json_text(name, value, secret):
    assert after(name, value, f"it is {secret}!") == f"it is {GONE}!"
    for ascii_only in (True, False):
        assert redact(json.dumps({"a": secret}, ensure_ascii=ascii_only)) == json.dumps({"a": GONE})
        nested = json.dumps(json.dumps(secret, ensure_ascii=ascii_only), ensure_ascii=ascii_only)
        assert redact(nested) == json.dumps(json.dumps(GONE))


def test_a_key_in_a_parameter_of_the_query_is_known_by_the_parameters_name():
    url = f"https://a.b/v1/messages?api-version=2024-06-01&x-my-token={RANDOM}"
    assert after("accept", "*/*", f"{RANDOM} 2024-06-01", url) == f"{GONE} 2024-06-01"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-team", "research"),
        ("x-model", "claude-sonnet-4-5-20250929"),
        ("x-project", "my-project-2024"),
        ("x-feature", "application/json"),
        ("x-flag", "true"),
        ("x-number", "1234567890123456"),
        ("x-where", "https://example.com/a1b2c3d4e5"),
        ("x-app", "billing service v1.2.3"),
        ("x-session-id", "3f2a9c1e-77b1-4c59-9e1d-2b7f60aa91c3"),
        ("idempotency-key", "stainless-python-retry-3f2a9c1e77b14c59"),
        ("x-stainless-runtime-version", "3.11.7a1b2c3d4"),
        ("user-agent", "Anthropic/Python a1b2c3d4e5f6"),
        ("x-auth-provider", "organization"),
        ("authorization", "Bearer ollama"),
        ("x-api-key", "EMPTY"),
        ("cookie", "theme=dark; lang=en-US"),
    ],
)
def test_words_names_versions_and_ids_stay_in_texts(name, value):
    text = f"about {value} and {value.split()[-1]} of a dark theme in en-US"
    assert after(name, value, text) is text


def test_a_header_that_changes_each_time_does_not_push_the_key_out_or_make_texts_slow():
    credentials.learn("", {"x-api-key": "the-key-of-the-client"})
    for n in range(300):
        credentials.learn("", {"x-nonce": f"a1b2c3d4e5f6{n:04}", f"x-odd{n}": f"z9y8x7w6v5u4{n:04}"})
    assert redact("the-key-of-the-client a1b2c3d4e5f60000") == f"{GONE} a1b2c3d4e5f60000"
    assert redact("z9y8x7w6v5u40299") == GONE
    assert len(redaction._known) < 40
