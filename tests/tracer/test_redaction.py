"""Secrets go out before anything is written; everything else stays the same object."""

from __future__ import annotations

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import looptape
from examples import examples
from looptape.tracer import redaction, tape
from looptape.tracer.redaction import redact

LETTERS = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
# put together here, so that no scanner takes this file for a leak
FAKES = {
    "private-key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH " + "PRIVATE KEY-----",
    "anthropic-key": "sk-" + "ant-api03-" + LETTERS,
    "openrouter-key": "sk-" + "or-v1-" + LETTERS,
    "openai-key": "sk-" + "proj-" + LETTERS,
    "stripe-key": "sk_" + "live_" + LETTERS[:24],
    "aws-key": "AK" + "IA" + "QWERTYUIOPASDFGH",
    "google-key": "AI" + "za" + LETTERS[:35],
    "github-token": "gh" + "p_" + LETTERS,
    "gitlab-token": "gl" + "pat-" + LETTERS[:20],
    "slack-token": "xo" + "xb-" + LETTERS[:24],
    "npm-token": "np" + "m_" + LETTERS[:36],
    "pypi-token": "py" + "pi-Ag" + LETTERS * 2,
    "huggingface-token": "h" + "f_" + LETTERS[:34],
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + "JzdWIiOiIxMjM0NTYifQ." + "dBjftJeZ4CVPmB92K27uhbU",
    "bearer-token": "Bearer " + LETTERS,
    "url-password": "postgres://admin:" + "hunter2,secret@db.local/x",
}
OTHERS = {
    "openai-key": "sk-" + LETTERS,
    "github-token": "github" + "_pat_" + LETTERS * 2,
    "slack-token": "xapp" + "-1-" + LETTERS,
    "aws-key": "AS" + "IA" + "QWERTYUIOPASDFGH",
    "stripe-key": "rk_" + "test_" + LETTERS[:24],
    "private-key": "-----BEGIN " + "PRIVATE KEY-----\nMIIE... and the end is cut off",
    "bearer-token": "authorization: bearer " + LETTERS,
}
CASES = [*FAKES.items(), *OTHERS.items()]
INNOCENT = [
    "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
    "sk-ant- is how they begin",
    "sk-or-not",
    "the task-" + "force-of-the-desk-and-risk-management-board",
    "ask-" + LETTERS,
    "sk_live_ and pk_test_short",
    "AKIA and ASIA are prefixes; PAKI" + "A" + "QWERTYUIOPASDFGH",
    "AIzaShort",
    "ghp_short and github_pat_short",
    "glpat-short",
    "xoxb-short",
    "npm_install npm_config_registry",
    "pypi-Ag",
    "hf_hub_download and hf_transfer",
    "eyJhbGciOiJIUzI1NiJ9 alone",
    "the bearer of bad news; Bearer token",
    "https://example.com:8080/path?a=b@c and http://user@host/",
    'see https://a.b/c "x:y@z"',
    '{"url": "https://a.b", "email": "me:you@c.d"}',
]


@pytest.fixture(autouse=True)
def _only_built_in():
    redaction.forget()
    yield
    redaction.forget()


@pytest.mark.parametrize(("kind", "fake"), CASES, ids=[f"{k} {i}" for i, (k, _) in enumerate(CASES)])
def test_every_kind_is_taken_out_of_plain_and_of_json_text(kind, fake):
    secret = fake.removeprefix("Bearer ").removeprefix("authorization: bearer ")
    plain = redact(f"look:\n{fake}\nthere")
    assert f"[redacted:{kind}]" in plain
    assert secret not in plain
    written = redact(json.dumps({"text": f"look:\n{fake}", "n": 1}))
    assert f"[redacted:{kind}]" in written
    assert json.dumps(secret)[1:-1] not in written
    assert json.loads(written)["n"] == 1
    nested = json.dumps({"arguments": json.dumps({"a": f"x\n{fake}", "b": 2})})
    assert json.dumps(json.dumps(secret)[1:-1])[1:-1] not in redact(nested)


def test_a_text_with_a_word_of_any_pattern_is_looked_at():
    for word in redaction.words():
        assert redaction._has_word(f"so {word} is")


@pytest.mark.parametrize(("kind", "fake"), CASES, ids=[f"{k} {i}" for i, (k, _) in enumerate(CASES)])
def test_every_kind_makes_a_finished_record_be_looked_at(kind, fake):
    assert redaction.suspicious(tape.line({"kind": "run_start", "name": fake}))


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_like_one_stays_the_same_object(text):
    assert redact(text) is text


@given(text=st.text(max_size=300))
@settings(max_examples=examples(200), deadline=None)
def test_text_without_secrets_is_the_same_object(text):
    assert redact(text) is text


@given(
    before=st.text("abc \n\"'", max_size=10),
    after=st.text(" \n\"'", min_size=1, max_size=10),
    case=st.sampled_from(CASES),
)
@settings(max_examples=examples(200), deadline=None)
def test_a_second_look_finds_nothing_more(before, after, case):
    once = redact(f"{before} {case[1]}{after}")
    assert redact(once) == once


@pytest.mark.parametrize("cut", [False, True])
def test_a_private_key_in_lines_of_its_own_leaves_the_json_around_it_whole(cut):
    lines = FAKES["private-key"].replace("b3BlbnNzaC1rZXk", LETTERS).split("\n")
    written = redact(json.dumps([*lines[: 2 if cut else 3], {"id": "toolu_0123456789abcdef0123"}]))
    assert cut or LETTERS not in written
    assert json.loads(written)[-1] == {"id": "toolu_0123456789abcdef0123"}


def test_a_clients_own_key_is_taken_out_wherever_it_turns_up_with_or_without_its_scheme():
    redaction.remember("Bearer my-own-odd-key")
    redaction.remember("Basic dXNlcjpwYXNzd29yZA==")
    assert redact("x my-own-odd-key y dXNlcjpwYXNzd29yZA== z") == "x [redacted:api-key] y [redacted:api-key] z"


@pytest.mark.parametrize(
    "word", ["test", "short-key", "", "   ", "AWS4-HMAC-SHA256 Credential=a, Signature=0123456789abcdef"]
)
def test_a_word_too_short_to_be_a_key_and_a_signature_are_not_taken_for_keys(word):
    redaction.remember(word)
    text = f"a test with a short-key {word}"
    assert redact(text) is text


def test_the_newest_keys_are_known_however_many_came_before():
    for n in range(500):
        redaction.remember(f"rotating-key-number-{n:04}-end")
    assert redact("rotating-key-number-0499-end") == "[redacted:api-key]"


def test_threads_that_bring_new_keys_disturb_nobody():
    failed = []

    def use(k):
        try:
            for n in range(30):
                redaction.remember(f"key-of-thread-{k}-{n:04}")
                assert redact("nothing here " * 20)
                assert redact(f"key-of-thread-{k}-{n:04}") == "[redacted:api-key]"
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=use, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []


class LearningMeanwhile(dict):
    """The known secrets as a thread finds them while another one learns of a key with every step that it takes."""

    def __iter__(self):
        for secret in super().__iter__():
            self[f"{secret} "] = ()
            yield secret


def test_a_stream_that_is_looked_at_while_another_thread_learns_a_key_is_read_to_its_end(monkeypatch):
    redaction.remember("a key with blanks 1")
    monkeypatch.setattr(redaction, "_secrets", LearningMeanwhile({"first-key-0001": (), "second-key-0002": ()}))
    assert redaction.wants_whole_texts()


def test_whether_a_secret_has_blanks_is_known_anew_when_secrets_come_and_go():
    assert not redaction.wants_whole_texts()
    redaction.remember("a key with blanks 1")
    assert redaction.wants_whole_texts()
    for n in range(500):
        redaction.remember(f"rotating-key-number-{n:04}-end")
    assert not redaction.wants_whole_texts()


def test_the_users_functions_run_last_and_see_what_is_left():
    seen = []
    looptape.configure(redact=[lambda t: seen.append(t) or t.replace("Ada", "[name]")])
    assert redact(f"Ada has {FAKES['anthropic-key']}") == "[name] has [redacted:anthropic-key]"
    assert seen == ["Ada has [redacted:anthropic-key]"]


def test_a_users_function_that_raises_costs_the_text_and_nothing_else():
    def broken(text):
        raise KeyError("broken")

    looptape.configure(redact=[broken])
    assert redact("anything") == "[redacted:failed]"


def test_a_users_function_that_gives_no_text_costs_the_text():
    looptape.configure(redact=[lambda text: None])
    assert redact("anything") == "[redacted:failed]"
