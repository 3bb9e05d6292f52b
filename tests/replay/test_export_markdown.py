"""A run as markdown: whole, and nothing recorded can leave its fence."""

from __future__ import annotations

from typing import Any

from looptape.replay.export_markdown import markdown
from looptape.replay.message_parts import MessagePart
from looptape.replay.recording import Incoming, Recording
from looptape.tracer.model import Event, Run, ToolCall, Turn, Usage


def recording(**call: Any) -> Recording:
    run = Run("a" * 16, name="revenue", status="completed", turns=1, tool_calls=1, models=("m-1",), cost_usd=0.31)
    one = ToolCall(
        **{"id": "c1", "name": "search", "arguments_raw": '{"q": 1}', "arguments": {"q": 1}, "result": "42", **call}
    )
    turn = Turn(run.id, 1, model="m-1", stop_reason="tool_use", status="ok", text="I look", thinking="hm",
                usage=Usage(input=1200, output=5, origin="recorded"), cost_usd=0.31, tool_calls=(one,))  # fmt: skip
    incoming = {1: (Incoming("user", 1, MessagePart("text", "What is 7%?")),)}
    return Recording(run, (turn,), (Event("compaction", turn=1, detail={"before": 9}),), incoming)


def test_everything_of_a_turn_is_there_in_its_order() -> None:
    text = markdown(recording())
    places = [
        text.index(part)
        for part in ("# revenue", "- status: completed", "- cost: $0.3100", "## Turn 1", "in 1,200, out 5 tokens", "compaction", "What is 7%?", "hm", "I look", "**call: search**", '"q": 1', "42")
    ]  # fmt: skip
    assert places == sorted(places)


def test_no_text_leaves_its_fence_and_no_name_becomes_markup() -> None:
    evil = "````\n# not a heading\n<script>alert(1)</script>\n`````"
    rows = markdown(recording(result=evil, name="<img src=x>[a](b)")).splitlines()
    inside, fence, outside = False, "", []
    for row in rows:
        if not inside and row.startswith("```"):
            inside, fence = True, row.removesuffix("text")
        elif inside and row == fence:
            inside = False
        elif not inside:
            outside.append(row)
    assert not inside
    assert not [r for r in outside if "not a heading" in r or "<script" in r]
    assert r"**call: \<img src=x\>\[a\](b)**" in outside


def test_a_call_without_result_says_why() -> None:
    assert "**result**: none (no result)" in markdown(recording(result=None, state="no_result"))


def test_recorded_text_goes_through_the_cleaner() -> None:
    text = markdown(recording(result="\x1b[2J"), lambda t: t.replace("\x1b", "ESC"))
    assert "\x1b" not in text
    assert "ESC[2J" in text
