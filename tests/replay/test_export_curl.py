"""A turn's request as a curl command: a shell sends exactly the recorded body, with the key by its name only."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import small_tape
from looptape.replay.export_curl import curl
from looptape.tracer.errors import UsageError
from looptape.tracer.store import memory_store

SECRET = "sk-ant-api03-" + "a1B2" * 12
CURL = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word" >> "$OUT/words"; done
cat > "$OUT/body"
"""


def sent(command: str, folder: Path, **env: str) -> tuple[list[str], str]:
    """What a shell makes of it: curl's words and its standard input."""
    program = folder / "curl"
    program.write_text(CURL)
    program.chmod(0o755)
    subprocess.run(
        ["sh", "-c", command], env={"PATH": f"{folder}:/usr/bin:/bin", "OUT": str(folder), **env}, check=True
    )
    return (folder / "words").read_text().splitlines(), (folder / "body").read_text("utf-8")


def command(question: str = "What is 7%?", **more: object) -> str:
    with memory_store() as store:
        store.ingest(small_tape.records(question=question, **more))
        return curl(store, store.run(small_tape.RUN), 1)


def test_the_shell_sends_the_request_and_the_key_of_its_environment(tmp_path: Path) -> None:
    words, body = sent(command(), tmp_path, ANTHROPIC_API_KEY="mine")
    assert "https://api.anthropic.com/v1/messages" in words
    assert "x-api-key: mine" in words
    assert json.loads(body)["messages"] == [{"role": "user", "content": "What is 7%?"}]
    assert json.loads(body)["system"] == "You are a careful analyst."


def test_another_server_is_asked_where_the_environment_names_one(tmp_path: Path) -> None:
    words, _ = sent(command(), tmp_path, ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    assert "http://127.0.0.1:9/v1/messages" in words


@pytest.mark.parametrize(
    "text",
    ['it\'s $(touch owned) `id` $HOME \\ "x"', "one\nJSON\nJSON_1\ntwo", "漢字 \u2028"],
    ids=["shell", "mark", "unicode"],
)
def test_nothing_in_the_body_acts_on_the_shell(text: str, tmp_path: Path) -> None:
    _, body = sent(command(text), tmp_path)
    assert json.loads(body)["messages"][0]["content"] == text
    assert not Path("owned").exists()


def test_no_key_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    text = command(f"my key is {SECRET}")
    assert SECRET not in text
    assert "$ANTHROPIC_API_KEY" in text


def test_a_run_without_a_turn_number_gives_its_last_request_and_a_wrong_one_is_said() -> None:
    with memory_store() as store:
        store.ingest(small_tape.records())
        run = store.run(small_tape.RUN)
        assert "tool_result" in curl(store, run)
        with pytest.raises(UsageError, match="no turn 9"):
            curl(store, run, 9)
