"""Lines that may hold a secret are found whatever way they are written, and blobs are written as json would."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptape.tracer import redaction
from looptape.tracer.importers.hints import may_hold_secret, searches
from looptape.tracer.importers.reading import objects
from looptape.tracer.importers.report import Notes
from looptape.tracer.importers.writing import writer

SECRETS = (
    "sk-ant-" + "a1B2" * 6, "sk-or-" + "a1B2" * 6, "sk-" + "a1B2" * 6, "rk_live_" + "a1B2" * 6, "AKIA" + "A1B2" * 4,
    "ASIA" + "A1B2" * 4, "AIza" + "a1B2c" * 7, "ghp_" + "a1B2" * 9, "ghr_" + "a1B2" * 9, "github_pat_" + "a1B2" * 12,
    "glpat-" + "a1B2" * 6, "xoxb-" + "1234-" * 4, "xapp-" + "1234-" * 4, "npm_" + "a1B2" * 9, "hf_" + "a1B2" * 9,
    "pypi-Ag" + "a1B2" * 15, "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "Bearer " + "a1B2" * 6,
    "https://me:pass1word@host.example/x", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
)  # fmt: skip


def read(line: bytes) -> tuple[dict, int]:
    notes = Notes()
    ((_, value),) = objects([(1, line)], notes)
    return value, notes.counts["lines_with_secrets"]


@pytest.mark.parametrize("secret", SECRETS)
def test_every_kind_of_secret_is_taken_out_of_a_line(secret):
    value, counted = read(json.dumps({"a": [f"x {secret} y"]}).encode() + b"\n")

    assert redaction.redact(secret) != secret
    assert "[redacted:" in value["a"][0]
    assert counted == 1


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_written_in_escapes_is_taken_out_too(secret):
    escaped = "".join(f"\\u{ord(c):04x}" for c in secret)
    slashes = json.dumps(secret)[1:-1].replace("/", "\\/")

    assert "[redacted:" in read(f'{{"a":"{escaped}"}}\n'.encode())[0]["a"]
    assert "[redacted:" in read(f'{{"a":"{slashes}"}}\n'.encode())[0]["a"]


def test_a_line_that_only_looks_like_one_with_secrets_is_not_counted():
    value, counted = read(b'{"a":"a task-list by me@example.org, \\u001b[0m npm_config"}\n')

    assert value == {"a": "a task-list by me@example.org, \x1b[0m npm_config"}
    assert counted == 0


def test_clean_lines_are_passed_over():
    assert not may_hold_secret(b'{"a":"def f(self): return self.items [\\u001b[0m] mail me@example.org"}\n')


@given(st.lists(st.text(alphabet="abJx_-", min_size=1, max_size=4), min_size=1, max_size=5), st.text("abJx_-"))
def test_searches_find_what_looking_for_each_word_finds(words, line):
    found = any(search(line.encode()) for search in searches(w.encode() for w in words))

    assert found == any(w in line for w in words)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)))
def test_a_blob_is_written_as_json_writes_it_with_letters_as_they_are(value):
    assert writer()(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_control_characters_and_delete_are_written_the_same_way():
    assert writer()({"a": "\x1b[0m\x7f"}) == json.dumps({"a": "\x1b[0m\x7f"}, ensure_ascii=False, separators=(",", ":"))
