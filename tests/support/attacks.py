"""Texts that try something, by name, and a store in which every text is one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conversation_tape import START, Said, assistant, call, records, result, user
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store
from looptape.tracer.tape import Record, header, line

ESC = "\x1b"
ATTACKS: dict[str, str] = {
    "controls": "ctl" + "".join(map(chr, range(1, 32))) + "\x7fend",
    "c1-controls": "c1" + "".join(map(chr, range(0x80, 0xA0))) + "end",
    "nul": "nul\0end",
    "csi-clear": f"{ESC}[2J{ESC}[Hcleared",
    "csi-colour": f"{ESC}[31;5mred{ESC}[0m",
    "csi-modes": f"{ESC}[?1049l{ESC}[?25l{ESC}[?1000h{ESC}[5;10r{ESC}[!pmodes",
    "csi-reports": f"{ESC}[6n{ESC}[c{ESC}[>q{ESC}[21t\x05reports",
    "csi-8-bit": "\x9b2J\x9b31mwide",
    "osc-title": f"{ESC}]0;stolen title\x07{ESC}]2;stolen{ESC}\\title",
    "osc-clipboard": f"{ESC}]52;c;c3RvbGVu\x07clip",
    "osc-link": f"{ESC}]8;;https://stolen.invalid\x07link{ESC}]8;;\x07",
    "osc-palette": f"{ESC}]4;1;red\x07{ESC}]10;#000\x07{ESC}]11;#fff\x07palette",
    "osc-notice": f"{ESC}]9;stolen\x07{ESC}]777;notify;a;b\x07{ESC}]1337;File=name=eA==:eA==\x07{ESC}]133;A\x07notice",
    "osc-8-bit": "\x9d0;stolen\x9ctitle",
    "osc-open": f"open{ESC}]0;never ended",
    "dcs": f"{ESC}P+q544e{ESC}\\{ESC}Pq#0;2;0;0;0~-{ESC}\\{ESC}Ptmux;{ESC}{ESC}]0;x\x07{ESC}\\dcs",
    "apc-pm-sos": f"{ESC}_Ga=T;AAAA{ESC}\\{ESC}^pm{ESC}\\{ESC}Xsos{ESC}\\apc",
    "escapes": f"{ESC}c{ESC}(0{ESC}N{ESC}O{ESC}#8{ESC}7{ESC}8{ESC}=plain",
    "markup-open": "[/ unclosed",
    "markup-odd": "[b + bold [not [[ ]] [/] [/b] \\[b] [bold",
    "markup-action": "[@click=app.quit]go[/] [link=https://stolen.invalid]x[/link]",
    "markup-lost": "[stage] items [1] [ ] todo [red]r[/red] [$error]e :smile: {curly} $x",
    "bidi": "bidi\u202egnp.exe\u2066iso\u2069\u200frtl\u061c",
    "invisible": "zero\u200b\ufeff\u2060\u00ad\u180e\u3164width",
    "separators": "sep\u2028line\u2029par\u0085nel\x0bvt\x0cff",
    "tags": "tag\U000e0069\U000e0067\U000e006eore",
    "surrogate": "lone\ud83esurrogate\udc00",
    "marks": "zalgo" + "\u0300" * 60 + " \u0301first",
    "wide": "漢字テスト🚚👩‍👩‍👧🇩🇪é́ｗｉｄｅ",
    "right-to-left": "שלום עולם مرحبا",
    "lines": "one\ntwo\r\nthree\rfour\ttab",
    "noncharacters": "non\ufffe\uffff\U0001fffe\ufff9anno\ufffbend",
    "path": "../../etc/passwd; $(touch stolen) `id` ~ | %s %n\\",
}
RUNS = {name: f"{number:016x}" for number, name in enumerate(ATTACKS, 1)}
CIRCLE = "c1c1c1c1c1c1c1c1"
EVERYTHING = " ".join(ATTACKS.values())


def attacked(home: Path) -> Path:
    """A store under a folder: a run for each attack, and one that goes in circles with all of them."""
    file = home.parent / f"{home.name}.jsonl"
    with file.open("wb") as out:
        out.write(line(header(writer="test", started_at=START)))
        for number, (name, text) in enumerate(ATTACKS.items()):
            out.writelines(map(line, _with(text, _one(text), RUNS[name], at=number)))
        out.writelines(map(line, _with(EVERYTHING, _circle(EVERYTHING), CIRCLE, at=len(ATTACKS))))
    with open_store(home) as store:
        import_path(store, file)
    file.unlink()
    return home


def _one(text: str) -> list[Said]:
    """A question, a call with this as name, argument and result, a call that fails, a last word."""
    asked, first = user(text), call(text, f"id1{text}", **{text: text, "deep": [{text: [text]}]})
    second = call("bash", "id2", command=text)
    blocks = [{"type": "thinking", "thinking": text, "signature": text}, {"type": "text", "text": text}, first, second]
    answered = {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": f"id1{text}", "content": text},
        {"type": "tool_result", "tool_use_id": "id2", "is_error": True, "content": [{"type": "text", "text": text}]},
    ]}  # fmt: skip
    tools = [{"name": text, "description": text, "input_schema": {"type": "object", "properties": {text: {}}}}]
    usage = {"input": 100, "cache_read": 10, "cache_write_5m": 0, "output": 20}
    shared: dict[str, Any] = {"system": text, "tools": tools, "model": text or "m", "usage": usage}
    last = [{"type": "text", "text": text}, {"type": text, text: text}]
    return [
        Said([asked], blocks, params={"max_tokens": 100, "stop_sequences": [text]}, **shared),
        Said([asked, assistant(*blocks), answered], last, params={"max_tokens": 100, "metadata": {text: text}}, **shared),
    ]  # fmt: skip


def _circle(text: str) -> list[Said]:
    """The same call again and again, with the same result."""
    messages: list[Any] = [user(text)]
    turns = []
    for number in range(8):
        asked = call(f"look {text}", f"c{number}", path=text)
        turns.append(
            Said(list(messages), [asked], usage={"input": 500, "cache_read": 0, "cache_write_5m": 0, "output": 9})
        )
        messages = [*messages, assistant(asked), result(f"c{number}", f"nothing {text}")]
    return turns


def _with(text: str, turns: list[Said], run: str, *, at: int) -> Iterator[Record]:
    """The records of these turns, each of their other texts the attack, later by so many minutes."""
    for record in records(turns, run, name=text):
        moved = {**record, "at": record["at"] + at * 60_000_000} if "at" in record else record
        match record["kind"]:
            case "run_start":
                named = dict.fromkeys(("agent", "project", "session", "task", "source"), text)
                yield {**moved, **named, "tags": {text: text}, "outcome": {"verdict": text}, "warnings": [text]}
            case "turn_start":
                named = dict.fromkeys(("agent", "caller", "step", "url"), text)
                yield {**moved, **named, "flags": [text]}
            case "turn_end":
                tried = {
                    "status": 529,
                    "error": text,
                    "error_type": text,
                    "wait_ms": 5,
                    "headers": {text: text},
                    "body": text,
                }
                yield {**moved, "request_id": text, "attempts": [tried, *record["attempts"]], "usage_raw": {text: text}}
            case "run_end":
                yield {**moved, "status": "failed", "reason": text}
            case _:
                yield moved
