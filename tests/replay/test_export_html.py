"""A run as one HTML file: everything is there to read, and nothing in it can act, load or lead anywhere."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from looptape.replay.export_html import FOLD_CHARS, html
from looptape.replay.export_markdown import markdown
from looptape.replay.message_parts import MessagePart
from looptape.replay.recording import Incoming, Recording
from looptape.tracer.model import Event, Request, Run, ToolCall, Turn, Usage
from looptape.tui.safe_text import clean

ALLOWED = {
    "html": {"lang"}, "head": set(), "meta": {"charset", "http-equiv", "content", "name"}, "title": set(), "style": set(),
    "body": set(), "h1": set(), "h2": set(), "dl": set(), "dt": set(), "dd": set(), "section": {"class"}, "p": {"class"},
    "div": {"class"}, "pre": set(), "details": set(), "summary": set(), "span": set(), "footer": set(),
}  # fmt: skip
VOID = {"meta"}

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[l](javascript:alert(1))",
    '<a href="javascript:alert(1)">x</a>',
    "</details></pre></section></body><svg onload=alert(1)>",
    '"><b onclick=alert(1)>x',
    "</title></style><style>*{background:url(//evil.invalid)}</style>",
    "</textarea><script>1</script>&amp; \"quoted\" ' ${7*7} {{7*7}}",
    "<!--", "]]>", "<![CDATA[", "&#60;script&#62;", "<\x00script>", "<meta http-equiv=refresh content='0;url=//evil.invalid'>",
    "<iframe srcdoc='<script>1</script>'>", "\u202e<script>\u2066", "```\n<script>1</script>\n```", "\ud83e<b>",
]  # fmt: skip


class Seen(HTMLParser):
    """What a reader of the file finds: every tag with its attributes, the texts, and whether tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.style = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.style += data
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def recording(text: str = "plain", **call: Any) -> Recording:
    """A turn that has this text in every place where a text can stand."""
    run = Run("a" * 16, name=text, title=text, task=text, status="failed", reason=text, turns=1, models=(text,), source=text,
              tags={text: text}, outcome={"verdict": text}, warnings=(text,), cost_usd=0.31)  # fmt: skip
    one = ToolCall(
        **{"id": text, "name": text, "arguments_raw": text, "arguments": {text: text}, "result": text, **call}
    )
    bad = replace(one, valid=False, invalid_reason=text, is_error=True, result=[{"type": "text", "text": text}])
    turn = Turn(run.id, 1, model=text, stop_reason=text, status="error", text=text, thinking=text, error=text, error_type=text,
                usage=Usage(input=1200, output=5, origin="recorded"), cost_usd=0.31, tool_calls=(one, bad))  # fmt: skip
    incoming = {1: (Incoming("user", 1, MessagePart("text", text)), Incoming(text, 2, MessagePart("other", text)))}
    return Recording(run, (turn,), (Event(text, turn=1, detail={text: text}),), incoming)


def shown(text: str) -> str:
    return clean(text, multiline=True)


def page(text: str = "plain", **call: Any) -> str:
    request = Request(({"role": "user", "content": text},), text, [{"name": text}], {"model": text})
    return "".join(html(recording(text, **call), shown, request))


def assert_harmless(text: str) -> Seen:
    seen = Seen(text)
    assert seen.open == []
    for tag, attributes in seen.tags:
        assert tag in ALLOWED, f"<{tag}> came through"
        assert set(attributes) <= ALLOWED[tag], f"<{tag}> has {set(attributes)}"
        assert not any(name.startswith("on") or name in ("href", "src", "style") for name in attributes)
    assert not re.search(r"url\(|@import|expression|https?:", seen.style)
    return seen


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_survive_as_text_only(text: str) -> None:
    """sec-04: in every place where a text can stand; what shows of it is what was recorded."""
    seen = assert_harmless(page(text))
    assert " ".join(shown(text).split()) in " ".join(seen.text.split())


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from([*HOSTILE, "\n", " ", "'", '"', "<", ">", "&", "/", "=", "é"]), max_size=9).map("".join)
)
def test_no_mixture_of_hostile_texts_does_better(text: str) -> None:
    assert_harmless(page(text))


def test_a_strict_policy_stands_in_the_file_and_knows_the_style_by_its_hash() -> None:
    seen = Seen(page())
    (policy,) = [a["content"] for t, a in seen.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    digest = base64.b64encode(sha256(seen.style.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'", f"style-src 'sha256-{digest}'", "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip
    assert [t for t, _ in seen.tags].count("style") == 1
    assert "prefers-color-scheme:dark" in seen.style
    assert "@media print" in seen.style


def test_long_results_are_folded_with_their_size_and_short_ones_are_not() -> None:
    assert "<details>" not in "".join(html(recording("short")))
    text = "".join(html(recording(result="line of a result\n" * 400)))
    seen = Seen(text)
    assert [t for t, _ in seen.tags].count("details") == 1
    assert "(6,799 characters, 400 lines)" in seen.text
    assert text.count("line of a result") >= 400
    assert "<details>" in page(result="x" * (FOLD_CHARS + 1))


def test_everything_of_a_run_is_there_in_its_order() -> None:
    run = Run("a" * 16, name="revenue", status="completed", turns=1, models=("m-1",), cost_usd=0.31, unpriced_turns=2)
    call = ToolCall(
        "c1", "search", '{"q": 1}', {"q": 1}, result="42", started_at=0, ended_at=1_500_000, timing="inferred"
    )
    lost = ToolCall("c2", "write", "{}", {}, state="no_result")
    turn = Turn(run.id, 1, model="m-1", stop_reason="tool_use", status="ok", text="I look", thinking="hm",
                usage=Usage(input=1200, output=5), tool_calls=(call, lost))  # fmt: skip
    incoming = {1: (Incoming("user", 1, MessagePart("text", "What is 7%?")),)}
    whole = Recording(run, (turn,), (Event("compaction", turn=1, detail={"before": 9}),), incoming)
    text = Seen("".join(html(whole, request=Request((), system="Be brief.")))).text
    parts = ["revenue", "completed", "$0.3100, 2 turns unpriced", "Be brief.", "Turn 1", "in 1,200, out 5 tokens", "compaction",
             "What is 7%?", "hm", "I look", "call: search", '"q": 1', "1.5 s (inferred)", "42", "result: none (no result)"]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_what_is_not_known_is_not_shown_as_zero() -> None:
    turn = Turn("a" * 16, 1, usage=Usage(output=5))
    text = "".join(html(Recording(Run("a" * 16, turns=1, list_price=True), (turn,))))
    assert "in ?, out 5 tokens" in text
    assert "unpriced" in text
    assert "list price" not in text


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_keeps_hostile_texts_inside_fences_or_escaped(text: str) -> None:
    """sec-04: rendered with raw HTML allowed, as the worst reader does, no markup of a recording appears."""
    MarkdownIt = pytest.importorskip("markdown_it").MarkdownIt
    rendered = MarkdownIt("commonmark", {"html": True}).render(markdown(recording(text), shown))
    seen = Seen(rendered)
    assert {t for t, _ in seen.tags} <= {"h1", "h2", "p", "strong", "pre", "code", "ul", "li", "em"}
    assert not [a for _, a in seen.tags if set(a) - {"class"}]


def test_json_that_is_no_object_does_not_break_the_page() -> None:
    turn = Turn("a" * 16, 1, tool_calls=(ToolCall("c", "t", "[1]", json.loads("[1]"), result={"a": [1]}),))
    assert_harmless("".join(html(Recording(Run("a" * 16), (turn,)), request=Request((), tools="odd", params={}))))
