"""A source in memory for the app: a small shop's agents, many synthetic runs, or hostile data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import run_rows
from looptape.replay.listing import Facts
from looptape.tracer.errors import LooptapeError, UsageError
from looptape.tracer.model import Attempt, Parent, Request, Run, ToolCall, Turn, Usage
from looptape.tui.data import runs_reading
from looptape.tui.data.views import Found, RunsView, RunsWanted, RunView, TurnView, WireView, row_of

NOW = 1_796_000_000_000_000
SECOND = 1_000_000
MODEL = "claude-sonnet-4-5"


class FakeSource:
    """Model objects as a source. ``fail`` is raised by every reading while it is set."""

    def __init__(
        self,
        runs: Sequence[Run] = (),
        turns: Mapping[str, Sequence[Turn]] | None = None,
        *,
        requests: Callable[[Turn], Request | None] | None = None,
        wires: Callable[[str, int], WireView] | None = None,
        notices: Sequence[str] = (),
        found: Sequence[Found] = (),
        place: str = "~/shop-agent",
        store: Any = None,
    ) -> None:
        self.place = place
        self.home = None
        self.store = store
        self.facts: dict[str, Facts] = {}
        self.listed: tuple[tuple[Run, ...], Any] | None = None
        self.lock = threading.Lock()
        self.all_runs = tuple(runs)
        self.turns = dict(turns or {})
        self.requests = requests
        self.wires = wires
        self.notices = tuple(notices)
        self.found = tuple(found)
        self.fail: Exception | None = None
        self.reads = 0
        self.threads: set[str] = set()
        self.mark = 0

    def now(self) -> int:
        return NOW

    def version(self) -> tuple[object, object]:
        return self.mark, 0

    def _read(self) -> None:
        self.reads += 1
        self.threads.add(threading.current_thread().name)
        if self.fail is not None:
            raise self.fail

    def runs(self, wanted: RunsWanted) -> RunsView:
        """Through a store in memory with the rows of these runs: orders, filters and sums are the real ones."""
        self._read()
        with self.lock:
            view = runs_reading.read(self._list(), wanted)
        return replace(view, notices=self.notices, found=() if self.all_runs else self.found)

    def _list(self) -> Any:
        if self.listed is None or self.listed[0] is not self.all_runs:
            self.listed = (self.all_runs, run_rows.store_of(self.all_runs, self.facts))
        return self.listed[1]

    def find(self, reference: str) -> str:
        for run in self.all_runs:
            if run.id.startswith(reference) or run.name == reference:
                return run.id
        raise UsageError("no-run", f"There is no run {reference!r}")

    def run(self, run: str, known: RunView | None = None, around: int | None = None) -> RunView:
        self._read()
        found = next(r for r in self.all_runs if r.id == run)
        return RunView(found, tuple(row_of(t) for t in self.turns.get(run, ())), (), self.notices)

    def turn(self, run: str, number: int, *, fresh: bool = False) -> TurnView:
        self._read()
        found = next(r for r in self.all_runs if r.id == run)
        turns = {t.number: t for t in self.turns[run]}
        request = self.requests(turns[number]) if self.requests else None
        if fresh and request is not None:
            request = Request(request.messages[request.kept :])
        return TurnView(found, turns[number], request, turns.get(number - 1), len(turns), fresh=fresh)

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """The answer of ``store`` (a real one in memory, or what stands in for it), else of one with the runs' rows."""
        self._read()
        with self.lock:
            return question(self._list() if self.store is None else self.store)

    change = ask

    def wire(self, run: str, number: int) -> WireView:
        self._read()
        if self.wires is None:
            return WireView(run, number)
        return self.wires(run, number)


def held() -> LooptapeError:
    return LooptapeError("store-held", "python (PID 4711) has the store open", "close it, or wait: nothing is lost")


def shop() -> FakeSource:
    """What a small team sees after a day: good runs, a cycle, a limit, a running one, a fork, a sub-agent."""
    refund = refund_turns()
    running = checkout_turns("a1b2c3d4e5f60718", open_last=True)
    checkout = checkout_turns("0badcafe12345678")
    runs = [
        _run("a1b2c3d4e5f60718", "checkout-flow", 2, "running", None, running, models=(MODEL,)),
        _run("0badcafe12345678", "checkout-flow", 18, "completed", "end_turn", checkout),
        _run("5eed5eed00000001", "refund-agent", 52, "completed", "end_turn", refund[:6], parent=Parent("3f9a1c2072d94b10", 31)),
        _run("3f9a1c2072d94b10", "refund-agent", 66, "limit", "at the turn limit (40)", refund),
        _run("7a7a7a7a00000002", "price-lookup", 67, "completed", "end_turn", checkout[:2], parent=Parent("3f9a1c2072d94b10", 12, "c12", "sub-agent")),
        _run("1234567890abcdef", "invoice-parse", 190, "interrupted", "the process ended without a word (killed?) at turn 7", refund[:7]),
        _run("c0ffee0000000003", None, 300, "completed", "end_turn", refund, title="fix the flaky test in tests/test_cart.py", source="claude-code", warnings=("output tokens are unreliable",)),
        _run("deadbeef00000004", "nightly-report", 1500, "failed", "APIStatusError: 529 overloaded", refund[:3], models=("claude-opus-4-5",)),
        _run("abad1dea00000005", "データ取込み 🚚", 2900, "completed", "end_turn", checkout, models=("gpt-5.2",), project="/home/kim/etl"),
        _run("5ca1ab1e00000006", "translate-catalog", 5100, "halted", "same call three times", refund[:12], outcome={"verdict": "fail"}),
        _run("facade0000000007", "checkout-flow", 30_000, "completed", "end_turn", checkout, cost=None),
    ]  # fmt: skip
    turns = {runs[0].id: running, runs[1].id: checkout, runs[3].id: refund}
    for run in runs:
        turns.setdefault(run.id, tuple(replace(t, run=run.id) for t in (*refund, *refund)[: run.turns]))
    source = FakeSource(runs, turns, requests=request_of, wires=wire_of)
    source.facts = {run.id: _facts(run, turns[run.id]) for run in runs}
    return source


def _facts(run: Run, turns: Sequence[Turn]) -> Facts:
    """What would be found in them: the loop of refund-agent, and how full the windows were."""
    sizes = [t.usage.context or 0 for t in turns] or [0]
    circles = int(run.turns > 30)
    return Facts(
        cycles=circles, wasted_usd=0.61 * circles, findings=3 * circles, worst="error" if circles else None,
        context=max(sizes), window=None if run.models == ("gpt-5.2",) else 60_000, bars=tuple(sizes[:: max(1, len(sizes) // 8)][:8]),
    )  # fmt: skip


def _run(
    run_id: str, name: str | None, minutes: int, status: Any, reason: str | None, turns: Sequence[Turn], **more: Any
) -> Run:
    own = {"cost_usd": round(sum(t.cost_usd or 0 for t in turns), 4)}
    if "cost" in more:
        own = {"cost_usd": more.pop("cost"), "unpriced_turns": len(turns)}
    took = sum((t.generate_ms or 0) + (t.execute_ms or 0) for t in turns)
    started = NOW - minutes * 60 * SECOND
    read = sum(t.usage.cache_read or 0 for t in turns)
    usage = Usage(
        input=sum(t.usage.input or 0 for t in turns),
        cache_read=read,
        output=sum(t.usage.output or 0 for t in turns),
        origin="recorded",
    )
    facts: dict[str, Any] = {"models": (MODEL,), "project": "/home/kim/shop-agent", "tags": {}, **own, **more}
    return Run(
        id=run_id, name=name, status=status, reason=reason, started_at=started,
        ended_at=None if status == "running" else started + int(took * 1000), turns=len(turns),
        tool_calls=sum(len(t.tool_calls) for t in turns), errors=sum(1 for t in turns for c in t.tool_calls if c.is_error),
        usage=usage, **facts,
    )  # fmt: skip


PLAN = ("get_order", "get_customer", "get_policy", "think", "get_order")


def refund_turns() -> tuple[Turn, ...]:
    """40 turns: from 29 on the same refund fails the same way again and again."""
    made = []
    for n in range(1, 41):
        looping = n >= 29 and n % 2 == 1
        name = "book_refund" if looping else "think" if n >= 29 else PLAN[n % 5]
        error = "Error: the payment method does not match the order"
        result: Any = (
            error
            if looping
            else ""
            if name == "think"
            else '{"order": "A-7731", "total": 129.90, "paid_with": "card", "items": [{"sku": "K-12", "n": 1}, {"sku": "K-44", "n": 2}]}'
        )
        arguments = '{"order": "A-7731", "method": "gift_card_55"}' if looping else '{"id": "A-7731"}'
        at = NOW - (70 * 60 - n * 14) * SECOND
        took = 1400 + (n * 377) % 1900
        tool = 0 if name == "think" else 250 + (n * 131) % 2400
        call = ToolCall(
            id=f"toolu_{n:04}", name=name, arguments_raw=arguments, result=result, is_error=looping,
            error_class="permanent" if looping else None, state="done", timing="measured",
            started_at=at + took * 1000, ended_at=at + (took + tool) * 1000, result_length=len(str(result)),
        )  # fmt: skip
        size = 3000 + n * 1050 if n < 17 else 4000 + n * 1180
        made.append(
            Turn(
                run="3f9a1c2072d94b10",
                number=n,
                provider="anthropic",
                api="anthropic.messages",
                user_turn=n == 1,
                model=MODEL,
                request_model=MODEL,
                stop_reason="tool_use",
                status="ok",
                caller="agent.py:88",
                started_at=at,
                first_chunk_at=at + 600_000,
                ended_at=at + took * 1000,
                generate_ms=took,
                parse_ms=0.2,
                execute_ms=tool or None,
                resume_ms=14.0,
                parse_status="ok",
                stream=True,
                cost_usd=0.004 + size * 0.0000019,
                usage=Usage(
                    input=1200,
                    cache_read=size - 1200,
                    output=240 + n * 3,
                    origin="recorded",
                    raw={"input_tokens": 1200, "output_tokens": 240 + n * 3},
                ),
                text="I will verify the payment method and try again."
                if looping
                else "Let me look at the order first."
                if n % 3 == 0
                else None,
                thinking="The refund failed because the method differs. Maybe a second try helps." if looping else None,
                response={
                    "id": f"msg_{n:04}",
                    "type": "message",
                    "role": "assistant",
                    "model": MODEL,
                    "stop_reason": "tool_use",
                    "content": [
                        {"type": "text", "text": "I will verify the payment method and try again."},
                        {"type": "tool_use", "id": f"toolu_{n:04}", "name": name, "input": {"order": "A-7731"}},
                    ],
                    "usage": {"input_tokens": 1200, "output_tokens": 240},
                },
                response_id=f"msg_{n:04}",
                request_id=f"req_{n:04}",
                span_id="00f067aa0ba902b7",
                message_count=2 * n - 1,
                attempts=(Attempt(status=529, error="overloaded_error", wait_ms=0), Attempt(status=200, wait_ms=800))
                if n == 12
                else (Attempt(status=200),),
                tool_calls=(call,),
            )
        )
    return tuple(made)


def checkout_turns(run: str, *, open_last: bool = False) -> tuple[Turn, ...]:
    """Four good turns, one with parallel calls; the last one may still be open."""
    made = [
        replace(t, run=run, tool_calls=tuple(replace(c, is_error=False) for c in t.tool_calls))
        for t in refund_turns()[:4]
    ]
    call = made[1].tool_calls[0]
    made[1] = replace(
        made[1], tool_calls=(call, replace(call, id="b", name="get_stock"), replace(call, id="c", name="get_stock"))
    )
    if open_last:
        made.append(
            replace(
                made[3],
                number=5,
                status="open",
                tool_calls=(),
                generate_ms=None,
                execute_ms=None,
                usage=Usage(),
                cost_usd=None,
                stop_reason=None,
                response=None,
                text=None,
            )
        )
    else:
        made.append(
            replace(
                made[3],
                number=5,
                tool_calls=(),
                execute_ms=None,
                stop_reason="end_turn",
                text="Your order A-7731 is on its way: **two parcels**, Tuesday.",
            )
        )
    return tuple(made)


def request_of(turn: Turn) -> Request:
    """A conversation that fits the turns above."""
    messages: list[Any] = [{"role": "user", "content": "Please refund order A-7731 to my gift card."}]
    turns = {t.number: t for t in refund_turns()}
    for n in range(1, turn.number):
        before = turns.get(n, turn)
        call = before.tool_calls[0] if before.tool_calls else None
        if call is None:
            continue
        messages.append(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": before.text or "…"},
                    {"type": "tool_use", "id": call.id, "name": call.name, "input": {"id": "A-7731"}},
                ],
            }
        )
        messages.append(
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "content": call.result,
                        "is_error": bool(call.is_error),
                    }
                ],
            }
        )
    tools = [
        {
            "name": "get_order",
            "description": "One order with its items.",
            "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        },
        {
            "name": "book_refund",
            "description": "Books a refund. Cannot be undone.",
            "input_schema": {
                "type": "object",
                "properties": {"order": {"type": "string"}, "method": {"type": "string"}},
            },
        },
    ]
    return Request(
        messages=tuple(messages), system="You help customers of a small shop.\nBe brief. Never promise what a tool did not confirm.",
        tools=tools, params={"model": MODEL, "max_tokens": 4096}, kept=max(0, len(messages) - 2) if turn.number > 1 else 0,
    )  # fmt: skip


def wire_of(run: str, number: int) -> WireView:
    """A streamed answer."""
    chunks = tuple(
        (
            600_000 + i * 90_000,
            f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":0,"delta":{{"text":"part {i} "}}}}\n\n',
        )
        for i in range(6)
    )
    return WireView(
        run,
        number,
        '{"model":"claude-sonnet-4-5","stream":true,"messages":[{"role":"user","content":"Please refund order A-7731"}]}',
        None,
        chunks,
    )


def many(count: int) -> FakeSource:
    """So many synthetic runs."""
    status: Sequence[Any] = ("completed", "failed", "limit", "interrupted", "running")
    runs = [
        Run(
            id=f"{i:016x}", name=f"agent-{i % 97}", status=status[i % 5], started_at=NOW - i * 60 * SECOND, ended_at=NOW - i * 59 * SECOND,
            turns=i % 40 + 1, tool_calls=i % 60, errors=i % 7 == 0, models=(MODEL,), usage=Usage(input=i, cache_read=i * 3, output=i % 900), cost_usd=i / 1000,
        )
        for i in range(count)
    ]  # fmt: skip
    return FakeSource(runs)


def long_run(count: int) -> FakeSource:
    """One run of so many turns."""
    base = refund_turns()
    run = Run(
        id="00000000000000ff", name="long", status="completed", turns=count, started_at=NOW - SECOND, ended_at=NOW
    )
    turns = [replace(base[i % 40], run=run.id, number=i + 1) for i in range(count)]
    return FakeSource([run], {run.id: turns})


HOSTILE = (
    "[/ unclosed",
    "[b + bold",
    "[@click=app.quit]click me[/]",
    "\x1b]52;c;ZXZpbA==\x07clipboard",
    "\x1b]0;evil title\x07",
    "\x1b]8;;http://evil.invalid\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[Hcleared",
    "\x9b2Jc1\x9d0;t\x9c",
    "nul\x00bel\x07bs\x08del\x7f",
    "lone\ud83esurrogate",
    "bidi\u202egnp.exe\u2066iso",
    "漢字テスト🚚👩‍👩‍👧é́́wide",
    "zalgo" + "\u0300" * 60,
    "tab\there\r\nnew\rline",
    "\u2028\u2029\ufeff\u200bzero",
)
EVIL = " ".join(HOSTILE)


def hostile() -> FakeSource:
    """Every text of every object tries something."""
    huge = "x" * 5_000_000
    calls = tuple(
        ToolCall(
            id=f"id{text}", name=text, arguments_raw='{"a": ' + text, valid=False, invalid_reason=text, result=result, is_error=True,
            error_class=text, state="done", timing=text, child_run=text, started_at=NOW, ended_at=NOW + SECOND, result_length=5,
        )
        for text, result in zip(HOSTILE, (*HOSTILE[:5], huge, [{"type": "text", "text": EVIL}], [{"type": EVIL, "x": EVIL}], EVIL * 2000, *HOSTILE[9:]), strict=True)
    )  # fmt: skip
    runs, turns = [], {}
    for i, text in enumerate((*HOSTILE, EVIL)):
        run = Run(
            id=f"{i:04}{text}", name=text, title=text, agent=text, project=text, session=text, task=text, source=text, status="failed",
            reason=text, models=(text, text), started_at=NOW - SECOND * i, ended_at=NOW, turns=3, errors=2, warnings=(text,),
            parent=Parent(text, 3, text, "fork"), outcome={"verdict": text}, tags={text: text},
        )  # fmt: skip
        runs.append(run)
        turns[run.id] = tuple(
            Turn(
                run=run.id, number=n, agent=text, step=text, caller=text, provider=text, api="anthropic.messages", model=text, request_model=text,
                stop_reason=text, status="error" if n == 2 else "ok", error=EVIL, error_type=text, response_id=text, request_id=text, span_id=text,
                flags=(text, "compaction"), text=EVIL, thinking=EVIL, response={"content": [{"type": "text", "text": EVIL}, {"type": text}], text: EVIL},
                tool_calls=calls if n == 1 else calls[:2], generate_ms=5.0, started_at=NOW, usage=Usage(input=5, origin=text, raw={text: text}),
                attempts=(Attempt(status=500, error=text), Attempt(status=200, wait_ms=5)),
            )
            for n in (1, 2, 3)
        )  # fmt: skip

    def request(turn: Turn) -> Request:
        messages = (
            {"role": EVIL, "content": EVIL},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": EVIL, "content": EVIL, "is_error": True},
                    {"type": EVIL},
                ],
            },
        )
        return Request(
            messages=messages,
            system=EVIL,
            tools=[{"name": EVIL, "description": EVIL, "input_schema": {EVIL: EVIL}}, EVIL],
            params={EVIL: EVIL},
        )

    def wire(run: str, number: int) -> WireView:
        return WireView(run, number, EVIL, EVIL, ((5, EVIL), (6, EVIL)), EVIL)

    return FakeSource(runs, turns, requests=request, wires=wire, notices=(EVIL,), place=EVIL)
