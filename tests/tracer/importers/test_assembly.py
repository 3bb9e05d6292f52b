"""Model calls, tools and spans into runs: what the words say, ids only as hints."""

from __future__ import annotations

import json

from imported import read
from looptape.tracer.importers import otlp
from looptape.tracer.importers.calls.assembly import ModelCall, assemble
from looptape.tracer.importers.report import Notes
from otlp_spans import asked, came, chat, loop, request, said, span, words

OTHER = "1" * 32


def told(*requests):
    return read(otlp, "\n".join(json.dumps(r) for r in requests) + "\n")


def runs(found):
    """Turns of each run."""
    return {run: len(found.of("turn_start", run)) for run in found.notes.runs}


def parent_of(found, run):
    return next((r["parent"] for r in found.of("run_start", run) if r.get("parent")), None)


def agent(number, *, parent=None, at=0, ms=1000, name="worker", **more):
    facts = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **more}
    return span(number, facts, parent=parent, at=at, ms=ms, name=f"invoke_agent {name}")


def tool(number, name="look", *, parent=None, at=0, ms=20, **more):
    facts = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}
    return span(number, facts, parent=parent, at=at, ms=ms, name=f"execute_tool {name}")


def test_a_trace_per_turn_is_one_run():
    one, two = loop()
    two["traceId"] = OTHER
    assert list(runs(told(request(one, two))).values()) == [2]


def test_two_questions_in_one_trace_are_two_runs():
    assert list(runs(told(request(*loop(1), *loop(11, at=5, question="else")))).values()) == [2, 2]


def test_a_clock_that_runs_behind_does_not_turn_the_turns_around():
    one, two = loop()
    late = span(2, {}, at=-4000)
    two.update(startTimeUnixNano=late["startTimeUnixNano"], endTimeUnixNano=late["endTimeUnixNano"])
    found = told(request(two, one))
    assert list(runs(found).values()) == [2]
    assert [len(found.request(n)) for n in (1, 2)] == [1, 3]


def test_of_turns_that_begin_at_once_the_shorter_conversation_is_the_earlier():
    """As an import writes them that knows one time for two answers, the later with the longer span."""
    told_of = [
        ("user", words("hi")),
        ("assistant", words("I look")),
        ("assistant", asked("c1")),
        ("user", came("c1", "x")),
    ]
    calls = [
        chat(**{"gen_ai.input.messages": said(*told_of[:n]), "gen_ai.output.messages": said(answer)})
        for n, answer in ((1, told_of[1]), (2, told_of[2]), (4, ("assistant", words("done"))))
    ]
    spans = [
        span(n, facts, at=at, ms=ms)
        for n, facts, at, ms in zip((1, 3, 2), calls, (0, 50, 50), (10, 0, 10), strict=True)
    ]
    found = told(request(*spans))
    assert list(runs(found).values()) == [3]
    assert [len(t["calls"] or ()) for t in found.turns().values()] == [0, 1, 0]


def test_usage_of_the_agents_span_is_not_counted():
    counts = {"gen_ai.usage.input_tokens": 500, "gen_ai.usage.output_tokens": 50}
    one, two = loop(parent=0xA)
    for made in (one, two):
        made["attributes"] += span(1, {"gen_ai.usage.input_tokens": 250, "gen_ai.usage.output_tokens": 25})[
            "attributes"
        ]
    ends = told(request(one, two, agent(0xA, **counts))).of("turn_end")
    assert [e["usage"]["input"] for e in ends] == [250, 250]


def test_calls_under_a_tool_are_the_child_run_of_its_call():
    inner = loop(0x21, parent=0xB, at=20, question="sub")
    calls = loop(parent=0xA)
    calls[1] = span(2, {a["key"]: a["value"].get("stringValue") for a in calls[1]["attributes"]}, parent=0xA, at=900)
    runner = tool(0xB, parent=0xA, at=15, ms=800, **{"gen_ai.tool.call.id": "c1"})
    found = told(request(*calls, *inner, runner, agent(0xA)))
    assert sorted(runs(found).values()) == [2, 2]
    outer, child = found.notes.runs
    assert parent_of(found, child) == {"run": outer, "turn": 1, "call": "c1", "kind": "sub-agent"}
    assert parent_of(found, outer) is None


def test_names_of_enclosing_spans_become_the_step():
    node = span(0x50, {}, name="plan", parent=0xA)
    one, two = loop(parent=0x50)
    starts = told(request(one, two, node, agent(0xA))).of("turn_start")
    assert [s["step"] for s in starts] == ["plan", "plan"]
    assert {s["agent"] for s in starts} == {"worker"}


def test_a_new_prompt_to_an_agent_that_had_ended_resumes_its_run():
    one, two = loop(parent=0xA)
    more = said(
        ("user", words("hi")), ("assistant", asked("c1", page=1)), ("user", came("c1", "page")),
        ("assistant", words("done")), ("user", words("and now?")),
    )  # fmt: skip
    answer = said(("assistant", words("now this")))
    three = span(3, chat(**{"gen_ai.input.messages": more, "gen_ai.output.messages": answer}), parent=0xB, at=5000)
    found = told(request(one, two, three, agent(0xA), agent(0xB, at=4990)))
    first, second = found.notes.runs
    assert list(runs(found).values()) == [2, 1]
    assert parent_of(found, second) == {"run": first, "turn": 2, "kind": "resume"}


def test_a_leaked_context_does_not_make_another_loop_a_part_of_the_agents_run():
    leaked = loop(0x31, parent=0xA, at=9000, question="unrelated")
    assert list(runs(told(request(*loop(parent=0xA), *leaked, agent(0xA)))).values()) == [2, 2]


def test_a_history_that_starts_anew_inside_the_agent_is_a_compaction_of_the_same_run():
    anew = chat(
        **{
            "gen_ai.input.messages": said(("user", words("summary so far"))),
            "gen_ai.output.messages": said(("assistant", words("on"))),
        }
    )
    found = told(request(*loop(parent=0xA), span(3, anew, parent=0xA, at=300), agent(0xA)))
    assert [s["flags"] for s in found.of("turn_start")] == [[], [], ["compaction"]]
    assert [len(found.request(n)) for n in (1, 2, 3)] == [1, 3, 1]


def test_parallel_tools_without_ids_find_their_calls_by_arguments_and_then_in_order():
    calls = said(("assistant", asked("a", city="Rome"), asked("b", city="Oslo"), asked("c", "now"), asked("d", "now")))
    one = chat(**{"gen_ai.input.messages": said(("user", words("hi"))), "gen_ai.output.messages": calls})
    tools = [
        tool(11, at=20, **{"gen_ai.tool.call.arguments": '{"city":"Oslo"}', "gen_ai.tool.call.result": "cold"}),
        tool(12, at=21, **{"gen_ai.tool.call.arguments": '{"city":"Rome"}', "gen_ai.tool.call.result": "warm"}),
        tool(13, "now", at=22, **{"gen_ai.tool.call.result": "first"}),
        tool(14, "now", at=23, **{"gen_ai.tool.call.result": "second"}),
    ]
    found = told(request(span(1, one), *tools))
    assert {e["call"]: e["result"] for e in found.of("call_end")} == {
        "a": "warm",
        "b": "cold",
        "c": "first",
        "d": "second",
    }


def test_turns_without_content_are_one_run_only_where_something_ties_them():
    tied = told(request(span(1, chat(), parent=0xA), span(2, chat(), parent=0xA, at=50), agent(0xA)))
    talk = {"gen_ai.conversation.id": "t-1"}
    spoken = told(request(span(1, chat(**talk)), span(2, chat(**talk), at=50, trace=OTHER)))
    loose = told(request(span(1, chat()), span(2, chat(), at=50, trace=OTHER)))
    assert [list(runs(f).values()) for f in (tied, spoken, loose)] == [[2], [2], [1, 1]]
    assert "content not kept by the producer: 2 turns" in loose.notes.warnings


def test_two_calls_at_the_same_time_with_equal_tokens_from_one_instrumentation_are_two():
    counts = chat(**{"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 1})
    same = told(request(span(1, counts), span(2, counts, at=1, trace=OTHER)))
    other = told(request(span(1, counts, ms=30)), request(span(2, counts, at=1, trace=OTHER), scope="another"))
    assert (same.notes.turns, other.notes.turns) == (2, 1)


def test_an_answer_that_was_lost_is_taken_from_the_request_after_it():
    one, two = loop()
    one["attributes"] = [a for a in one["attributes"] if a["key"] != "gen_ai.output.messages"]
    found = told(request(one, two))
    assert [c["id"] for c in found.turns()[1]["calls"]] == ["c1"]
    assert found.of("turn_start")[0]["flags"] == ["answer_from_next_request"]
    assert found.of("call_seen")[0]["turn"] == 1


def test_requests_that_only_hold_what_is_new_follow_the_answer_they_name():
    one, two = loop()
    new = {
        "gen_ai.input.messages": said(("user", came("c1", "page"))),
        "gen_ai.output.messages": said(("assistant", words("done"))),
    }
    one["attributes"] += span(1, {"gen_ai.response.id": "resp_1"})["attributes"]
    two = span(2, chat(**new, **{"gen_ai.request.previous_response.id": "resp_1"}), at=100, trace=OTHER)
    found = told(request(one, two))
    assert list(runs(found).values()) == [2]
    assert found.of("turn_start")[1]["mode"] == "previous_response"
    assert found.of("call_seen")[0]["call"] == "c1"


def test_a_request_sent_again_after_a_failure_is_the_next_turn_of_the_run():
    one, two = loop()
    failed = {**one, "spanId": f"{9:016x}", "status": {"code": 2, "message": "overloaded"}}
    failed["attributes"] = [a for a in one["attributes"] if a["key"] != "gen_ai.output.messages"]
    again = span(1, {a["key"]: a["value"].get("stringValue") for a in one["attributes"]}, at=50)
    found = told(request(failed, again, two))
    assert list(runs(found).values()) == [3]
    assert [e["status"] for e in found.of("turn_end")] == ["error", "ok", "ok"]


def test_plain_calls_of_any_source_are_assembled_without_spans():
    hello = {"role": "user", "content": "hi"}
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    reply = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "t1", "content": "r"}
    calls = [
        ModelCall(key="b", api="openai.chat", messages=(hello, reply, result), response=_completion({"role": "assistant", "content": "ok"}, "stop")),
        ModelCall(key="a", api="openai.chat", messages=(hello,), response=_completion(reply, "tool_calls")),
    ]  # fmt: skip
    notes = Notes()
    records = list(assemble(calls, source="test", notes=notes))
    assert (len(notes.runs), notes.turns, notes.tool_calls) == (1, 2, 1)
    assert [r["stop_reason"] for r in records if r["kind"] == "turn_end"] == ["tool_calls", "stop"]
    assert [r["call"] for r in records if r["kind"] == "call_seen"] == ["t1"]


def test_no_calls_give_no_records():
    assert list(assemble([], source="test", notes=Notes())) == []


def _completion(message, finish):
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
