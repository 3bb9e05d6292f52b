"""Claude Code sessions: what becomes a turn, with which usage, messages and results."""

from __future__ import annotations

from claude_session import SessionLines, call, tokens
from imported import read
from looptape.tracer.importers.claude import claude_code


def test_an_answer_spread_over_several_lines_is_one_turn_with_its_usage_counted_once() -> None:  # imp-01
    usage = tokens(
        2, 500, 90000, 1000, cache_creation={"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1000}
    )
    last = tokens(3, 20, 91000, 500, cache_creation={"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 500})
    lines = SessionLines()
    lines.user("list the files")
    lines.answer("msg_A", {"type": "thinking", "thinking": "plan", "signature": "c2ln"}, usage=usage)
    lines.answer("msg_A", "I will look.", usage=usage)
    lines.answer("msg_A", call("toolu_1", command="ls"), usage=usage, stop="tool_use")
    lines.result("toolu_1", "a.txt\nb.txt", toolUseResult={"stdout": "a.txt\nb.txt"})
    lines.answer("msg_B", "Two files.", usage=last, stop="end_turn")

    got = read(claude_code, lines.text())

    turns = got.turns()
    assert got.notes.turns == len(turns) == 2
    assert [b["type"] for b in got.response(1)["content"]] == ["thinking", "text", "tool_use"]
    sums = {n: sum(t["usage"][n] for t in turns.values()) for n in ("input", "output", "cache_read", "cache_write_1h")}
    assert sums == {"input": 5, "output": 520, "cache_read": 181000, "cache_write_1h": 1500}
    assert turns[1]["response_id"] == "msg_A"
    assert turns[1]["request_id"] == "req_msg_A"
    assert got.end() == ("completed", "end_turn")


def test_the_last_line_of_an_answer_has_the_final_usage_and_no_block_is_repeated() -> None:  # imp-02
    lines = SessionLines()
    lines.user("write a poem")
    for output in (1, 1, 1, 412):
        lines.answer("msg_G", "part", usage=tokens(2, output, 15030, 8655))

    got = read(claude_code, lines.text())

    usage = got.turns()[1]["usage"]
    assert len(got.turns()) == 1
    assert (usage["input"], usage["output"], usage["cache_read"], usage["cache_write_5m"]) == (2, 412, 15030, 8655)
    assert len(got.response(1)["content"]) == 1


def test_a_request_is_what_came_before_then_the_answer_then_all_results_in_one_message() -> None:
    lines = SessionLines()
    lines.user("go")
    lines.answer("m1", call("a"))
    lines.result("a", "first")
    lines.answer("m1", call("b"))
    lines.user("and be quick")
    lines.result("b", [{"type": "text", "text": "second"}])
    lines.answer("m2", "done")

    got = read(claude_code, lines.text())

    assert got.request(1) == [{"role": "user", "content": "go"}]
    kept, answer, results, word = got.request(2)
    assert kept == {"role": "user", "content": "go"}
    assert [b["id"] for b in answer["content"]] == ["a", "b"]
    assert [b["tool_use_id"] for b in results["content"]] == ["a", "b"]
    assert word == {"role": "user", "content": "and be quick"}
    seen = {r["call"]: r for r in got.of("call_seen")}
    assert seen["b"]["path"] == "$.content[1].content"
    assert "at" not in seen["a"], "the result came while the answer was still arriving"
    assert seen["b"]["at"] > 0


def test_what_the_tool_gave_its_client_is_kept_beside_what_the_model_saw() -> None:
    lines = SessionLines()
    lines.user("go")
    lines.answer("m1", call("a"), call("b"))
    lines.result("a", "short", toolUseResult={"stdout": "long", "interrupted": False})
    lines.result("b", "no such file", error=True, toolUseResult="Error: no such file")
    lines.answer("m2", "done")

    seen = {r["call"]: r for r in read(claude_code, lines.text()).of("call_seen")}

    assert seen["a"]["returned"] == {"stdout": "long", "interrupted": False}
    assert "returned" not in seen["b"], "the same words once more"


def test_a_refusal_and_the_victim_of_another_call_are_error_classes_of_their_own() -> None:
    lines = SessionLines()
    lines.user("go")
    lines.answer("m1", call("a"), call("b"), call("c"))
    lines.result("a", "The user doesn't want to proceed with this tool use. The tool use was rejected", error=True)
    lines.result("b", "<tool_use_error>Sibling tool call errored</tool_use_error>", error=True)
    lines.result("c", "Exit code 1\nno such file", error=True)
    lines.answer("m2", "well")

    got = read(claude_code, lines.text())

    seen = {r["call"]: r for r in got.of("call_seen")}
    assert [seen[c].get("error_class") for c in "abc"] == ["denied", "cancelled", None]
    assert all(r["is_error"] for r in seen.values())
    assert got.notes.counts["tool_errors"] == 3


def test_rows_that_the_client_made_up_and_api_errors_are_events_not_turns() -> None:
    lines = SessionLines()
    lines.user("go")
    lines.add(
        "system", subtype="api_error", error={"status": 529, "headers": {"x": "y"}}, retryInMs=500, retryAttempt=1,
        maxRetries=10,
    )  # fmt: skip
    lines.answer("m1", "hello")
    lines.user("more")
    lines.answer("x", "API Error: overloaded", model="<synthetic>", isApiErrorMessage=True)

    got = read(claude_code, lines.text())

    assert got.notes.turns == 1
    assert [(e["event"], e.get("turn")) for e in got.of("event")] == [("api_error", None), ("synthetic", 1)]
    assert got.of("event")[0]["detail"] == {
        "error": {"status": 529}, "retry_ms": 500, "attempt": 1, "max_attempts": 10,
    }  # fmt: skip
    assert got.end() == ("failed", "API Error: overloaded")


def test_unknown_blocks_stay_in_order_and_a_compaction_starts_the_messages_anew() -> None:  # imp-16
    lines = SessionLines()
    lines.user("q")
    lines.answer(
        "m1",
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "server_tool_use", "id": "st1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "st1", "content": [{"type": "web_search_result"}]},
        {"type": "hologram", "payload": [1, 2]},
        "answer",
    )
    lines.add("queue-operation", operation="enqueue")
    lines.add("file-history-snapshot", snapshot={})
    lines.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 150000})
    lines.user("summary of before", isCompactSummary=True)
    lines.answer("m2", "go on")
    lines.add("telepathy", thought="?")

    got = read(claude_code, lines.text())

    kinds = [b["type"] for b in got.response(1)["content"]]
    assert kinds == ["redacted_thinking", "server_tool_use", "web_search_tool_result", "hologram", "text"]
    assert got.response(1)["content"][3] == {"type": "hologram", "payload": [1, 2]}
    assert got.turns()[1]["calls"][0]["origin"] == "provider"
    (event,) = got.of("event")
    assert (event["event"], event["turn"], event["detail"]["pre_tokens"]) == ("compaction", 1, 150000)
    assert got.request(2) == [{"role": "user", "content": "summary of before"}]
    assert [s["user_turn"] for s in got.of("turn_start")] == [True, False]
    assert got.turns()[2]["flags"] == ["compaction"]
    assert got.notes.counts["prompts"] == 1
    assert dict(got.notes.unknown) == {"block hologram": 1, "telepathy": 1}


def test_a_run_that_ends_while_a_tool_runs_is_interrupted() -> None:  # imp-14
    lines = SessionLines()
    lines.user("fix")
    lines.answer("msg_1", "ok", call("z1", command="sleep 999"), stop="tool_use")

    got = read(claude_code, lines.text())

    assert got.turns()[1]["calls"][0]["state"] == "no_result"
    status, reason = got.end()
    assert status == "interrupted"
    assert "Bash (z1)" in reason


def test_the_end_says_what_is_missing() -> None:
    def end(*more: str) -> tuple[str, str]:
        lines = SessionLines()
        lines.user("go")
        lines.answer("m1", call("a"))
        if "refused" in more:
            lines.result("a", "The user doesn't want to proceed with this tool use.", error=True)
        else:
            lines.result("a")
        if "stopped" in more:
            lines.user([{"type": "text", "text": "[Request interrupted by user]"}])
        if "asked" in more:
            lines.answer("m2", "done")
            lines.user("one more thing")
        if "cut" in more:
            lines.answer("m2", "half a sen", stop="max_tokens")
        if "left" in more:
            lines.answer("m2", "done")
            lines.user("<command-name>/exit</command-name>")
        return read(claude_code, lines.text()).end()

    assert end() == ("interrupted", "no request follows the results of turn 1")
    assert end("refused") == ("halted", "the user refused the last call")
    assert end("stopped") == ("halted", "interrupted by the user")
    assert end("asked") == ("interrupted", "the last prompt has no answer")
    assert end("cut") == ("limit", "max_tokens")
    assert end("left") == ("completed", "an answer without calls")


def test_output_tokens_that_cannot_be_true_are_flagged_and_said() -> None:
    lines = SessionLines(version="2.1.17")
    lines.user("go")
    lines.answer("m1", "short", usage=tokens(1, 2))
    lines.version = "2.1.40"
    lines.answer("m2", "word " * 200, usage=tokens(1, 4))
    lines.answer("m3", "word " * 200, usage=tokens(1, 400))

    got = read(claude_code, lines.text())

    assert [t["flags"] for t in got.turns().values()] == [["output_unreliable"], ["output_unreliable"], []]
    assert [t["usage"]["output"] for t in got.turns().values()] == [2, 4, 400]
    assert got.of("run_update")[-1]["warnings"] == ["output tokens unreliable"]
    (warning,) = got.notes.warnings
    assert warning.startswith("output tokens unreliable: 2 of 3 turns")
    assert got.of("run_start")[-1]["versions"] == {"claude-code": "2.1.17, 2.1.40"}


def test_the_title_is_the_summary_else_the_first_prompt_else_the_command() -> None:
    def title(*said: str, summary: bool = False) -> str | None:
        lines = SessionLines()
        uuid = ""
        for text in said:
            uuid = lines.user(text)["uuid"]
        if summary:
            lines.raw(f'{{"type":"summary","summary":"Fix the index","leafUuid":"{uuid}"}}')
            lines.add("user", uuid=uuid, message={"role": "user", "content": "last"})
        return read(claude_code, lines.text()).of("run_update")[-1].get("title")

    assert title("<command-name>/clear</command-name>") == "/clear"
    assert title("<command-name>/clear</command-name>", "fix the\nbug") == "fix the bug"
    assert title("<command-name>/review</command-name>\n<command-args>7</command-args>", "now") == "/review 7"
    assert title("fix the bug", summary=True) == "Fix the index"


def test_secrets_are_removed_from_everything_that_is_kept() -> None:
    secret = "sk-ant-" + "a1" * 20
    lines = SessionLines()
    lines.user(f"my key:\n{secret}")
    lines.answer("m1", call("a", command=f"curl -H 'x-api-key: {secret}'"))
    lines.result("a", f'{{"key": "{secret}"}}', toolUseResult={"stdout": secret})
    lines.answer("x", f"bad key {secret}", model="<synthetic>", isApiErrorMessage=True)

    got = read(claude_code, lines.text())

    assert secret not in str(got.records)
    assert "[redacted:anthropic-key]" in got.request(1)[0]["content"]
    assert got.notes.counts["lines_with_secrets"] == 4


def test_a_session_says_where_it_comes_from() -> None:
    lines = SessionLines()
    lines.user("go")
    lines.answer("m1", "hello")
    (start, again) = read(claude_code, lines.text()).of("run_start")

    assert start["source"] == "claude-code"
    assert start["session"] == lines.session
    assert start["project"] == "/home/dev/demo"
    assert start["tags"] == {"git_branch": "main"}
    assert start["list_price"] is True
    assert again["at"] == 1793610002000000
