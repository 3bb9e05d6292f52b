"""Loops and healthy look-alikes of flavours that the rules were not made from: bots, browsers, lists, other languages."""

import json

import pytest

from loop_turns import call, findings, turn

SOURCE = "\n".join(f"{n}: def handler_{n}(request): return render('{n * 31}.html')" for n in range(20))


def bash(command, result="", *, error=False):
    return call("Bash", {"command": command, "description": f"step {len(command)}"}, result, error=error)


def said(**fields):
    return json.dumps(fields)


def talk(laps, *lines):
    return [turn(text=text, agent=agent) for _ in range(laps) for agent, text in lines]


LOOPS = {
    "json with its own clock": (
        "exact",
        [turn(call("board", {"id": 1}, said(alerts=["disk"], uptime=900 + n * 7, latency_ms=20 + n))) for n in range(5)],
    ),
    "a report with the time of day": (
        "exact",
        [turn(bash("./report", f"Generated at {n + 1}:4{n} PM\nrows: 12\nincomplete")) for n in range(5)],
    ),
    "a page whose elements are numbered anew": (
        "exact",
        [
            turn(call("mcp__playwright__browser_snapshot", {}, f"- textbox Email [ref=e{n}5]\n- button Next [ref=e{n}6]"))
            for n in range(5)
        ],
    ),
    "edits whose text is not there": (
        "error",
        [
            turn(call("Edit", {"file_path": "a.ts", "old_string": f"x{n}"}, f"String to replace not found: x{n}", error=True))
            for n in range(4)
        ],
    ),
    "one missing program, called in other ways": (
        "error",
        [
            turn(bash(c, "bash: foo: command not found", error=True))
            for c in ("foo --version", "cd /x && foo -v", "/bin/sh -c foo", "sudo foo")
        ],
    ),
    "one error through other programs": (
        "error",
        [
            turn(bash(f"{c} /etc/shadow", f"{c}: cannot open '/etc/shadow': Permission denied", error=True))
            for c in ("cat", "head", "less", "tail")
        ],
    ),
    "a refusal as json, with no flag": (
        "error",
        [
            turn(call("refund", {"order": "W1", "amount": n}, said(ok=False, error="W1 is not eligible for refund")))
            for n in range(4)
        ],
    ),
    "an error status as json": (
        "error",
        [
            turn(call("move", {"zip": str(n)}, said(status="error", message="zip code invalid for country")))
            for n in range(4)
        ],
    ),
    "an exception as text": (
        "error",
        [turn(call("ask", {"q": f"a{n}"}, f'db.errors.UndefinedTable: relation "t" is missing: a{n}')) for n in range(4)],
    ),
    "an error in German": (
        "error",
        [turn(call("abfrage", {"text": w}, "Fehler: Pflichtfeld 'Kundennummer' fehlt")) for w in ("rot", "grün", "blau")],
    ),
    "searches with empty json": (
        "empty",
        [turn(call("web_search", {"query": q}, said(web={"results": []}, query=q))) for q in "abcdefg"],
    ),
    "a failing image build after every edit": (
        "check",
        [
            t
            for n in range(9)
            for t in (
                turn(call("Write", {"file_path": "Dockerfile", "content": f"RUN y{n}"}, "File updated")),
                turn(bash("docker build .", f"#{n} ERROR: failed to solve: exit code: 127", error=True)),
            )
        ],
    ),
    "the same in other words, in Chinese": (
        "text",
        [
            turn(text=t)
            for t in (
                "我将继续检查这个文件并修复其中的错误。",
                "我会继续检查这个文件并修复其中的错误。",
                "我现在继续检查这个文件并修复其中错误。",
                "我将接着检查这个文件并修复其中的错误。",
            )
        ],
    ),
    "thanks for thanks": (
        "text",
        talk(5, ("user", "Thank you so much, have a great day!"), ("bot", "You are welcome, have a great day too!")),
    ),
    "a review that never ends": (
        "text",
        talk(
            5,
            ("coder", "Here is the function with better names, please review it."),
            ("critic", "The names do not follow the guideline; fix them and submit it again."),
        ),
    ),
    "agents that give each other the word by name": (
        "ping_pong",
        [
            turn(call(f"transfer_to_{to}_agent", {}, said(assistant=to)), agent=of)
            for _ in range(4)
            for of, to in (("sales", "help"), ("help", "sales"))
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_seen_and_told_once(name):
    kind, turns = LOOPS[name]
    assert [f.kind for f in findings(turns)] == [kind]


HEALTHY = {
    "sub-agents over files": [
        turn(call("Task", {"prompt": f"Review src/{w}.py for bugs in error handling and report them."}, "fine"))
        for w in ("auth", "cart", "db", "mail", "pay", "user")
    ],
    "sub-agents over tickets": [
        turn(call("run_agent", {"task": f"Process ticket number {4000 + n}: read it and write its class"}, "done"))
        for n in range(7)
    ],
    "sub-agents over countries": [
        turn(call("spawn_agent", {"task": f"Find the capital, the people and the area of {w} and return them"}, f"{w}: {w}a"))
        for w in ("France", "Spain", "Italy", "Greece", "Norway")
    ],
    "work pushed piece by piece": [
        t
        for n in range(6)
        for t in (
            turn(call("Edit", {"file_path": f"f{n}"}, "ok")),
            turn(bash("git add -A")),
            turn(bash(f"git commit -m 'part {n}'", f"[main abc12{n}f] part {n}")),
            turn(bash("git push", "Everything pushed")),
        )
    ],
    "handing over and back with work between": [
        t
        for n in range(6)
        for t in (
            turn(call("transfer_to_billing", {}, "ok"), agent="triage"),
            turn(call("get_invoice", {"id": n}, f"invoice {n} total {n * 17}"), agent="billing"),
            turn(call("transfer_to_triage", {}, "ok"), agent="billing"),
        )
    ],
    "classifying one by one": [
        turn(call("classify", {"text": f"review {n} {w}"}, "positive")) for n, w in enumerate("abcdefghijkl")
    ],
    "moderating one by one": [turn(call("check_content", {"text": f"text {w}"}, said(flagged=False))) for w in "abcdefghijkl"],
    "linting clean files": [turn(bash(f"ruff check src/f{n}.py", "All checks passed!")) for n in range(12)],
    "rows put in": [turn(call("run_sql", {"query": f"INSERT INTO t VALUES ({n})"}, "INSERT 0 1")) for n in range(12)],
    "retries that back off": [
        turn(call("http", {"u": 1}, "503 Service Unavailable", error=True), started_at=3**n * 1_000_000)
        for n in range(7)
    ],
    "asked in German to repeat": [turn(user="Führe den Befehl 10 mal aus"), *[turn(bash("./würfel", "6"))] * 8],
    "asked in Chinese to repeat": [turn(user="把这个命令运行10次"), *[turn(bash("./dice", "6"))] * 8],
    "git bisect": [
        t
        for n in range(8)
        for t in (
            turn(bash("git bisect " + ("good" if n % 3 else "bad"), f"Bisecting: {100 >> n} revisions left\n[abcdef{n}]")),
            turn(bash("pytest -q t.py", "1 failed" if n % 2 else "1 passed", error=bool(n % 2))),
        )
    ],
    "different missing pages": [
        turn(call("fetch", {"url": f"https://x.org/{p}"}, "404 Not Found", error=True)) for p in "abcde"
    ],
    "cursor paging": [
        turn(call("list", {"cursor": f"c{n}"}, said(items=[f"{n}.{k}" for k in range(4)], next=f"c{n + 1}")))
        for n in range(12)
    ],
    "edits in a row of one file": [
        turn(call("Edit", {"file_path": "m.py", "old": f"v{n}"}, "Updated:\n" + "\n".join(SOURCE.splitlines()[n : n + 6])))
        for n in range(13)
    ],
    "errors that become fewer": [
        t
        for n in range(8)
        for t in (
            turn(call("Edit", {"file_path": f"f{n}.ts", "new_string": f"fix {n}"}, "ok")),
            turn(bash("npx tsc", "\n".join(f"src/f{k}.ts({k},3): error TS2322" for k in range(n, 9)), error=True)),
        )
    ],
    "agents that bring something new": talk(
        1, *((("coder", "critic")[n % 2], f"Point {n}: the {w} has to be looked at again by you.") for n, w in enumerate(SOURCE.split()[:12]))
    ),
    "a job that goes on": [turn(call("get_job", {"id": 1}, said(state="running", percent=n * 10))) for n in range(11)],
    "a person is greeted each time": [turn(text="How can I help you with your order?", user=f"hello {n}") for n in range(6)],
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_a_look_alike_is_left_alone(name):
    assert not findings(HEALTHY[name]), [f.sentence for f in findings(HEALTHY[name])]
