"""Keys, tokens and passwords of a session that was brought in: on no screen, in no part; what stood there is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from claude_session import SessionLines, call
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store
from looptape.tui.data.source import StoreSource
from tui_driver import Seat, drive

# Put together here, so that no scanner of secrets takes this file for a leak.
SECRETS = {
    "jwt": ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxIn0", "c2lnbmF0dXJl" * 2)),
    "password": "pa55" + "w0rd",
    "anthropic": "sk-" + "ant-api03-" + "x7" * 22,
    "aws": "AK" + "IA" + "ABCDEFGHIJKLMNOP",
    "private-key": "MIIB" + "fakefakefake",
    "github": "gh" + "p_" + "a1B2" * 9,
}
SHA = "0123456789abcdef0123456789abcdef01234567"


def session(path: Path) -> Path:
    """A command with secrets in it, and their like in its result."""
    s = SECRETS
    lines = SessionLines()
    lines.user("print env")
    command = (
        f'curl -H "Authorization: Bearer {s["jwt"]}" https://user:{s["password"]}@h.invalid/?api_key={s["anthropic"]}'
    )
    lines.answer("m1", f"I use {s['github']}", call("t1", command=command), stop="tool_use")
    key = f"-----BEGIN PRIVATE KEY-----\n{s['private-key']}\n-----END PRIVATE KEY-----"
    lines.result(
        "t1",
        f"AWS_ACCESS_KEY_ID={s['aws']}\nANTHROPIC_API_KEY={s['anthropic']}\nGITHUB={s['github']}\n{key}\nGIT_SHA={SHA}",
    )
    lines.answer("m2", f"The key is {s['anthropic']}.", stop="end_turn")
    return lines.write(path)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    with open_store(folder / "home") as store:
        import_path(store, session(folder / "session.jsonl"))
    return folder / "home"


WAYS = {
    "runs": (),
    "run": ("enter",),
    "raw run": ("enter", "R"),
    "waterfall": ("enter", "w"),
    "transcript": ("enter", "t"),
    **{f"tab {n}": ("enter", "enter", str(n)) for n in range(1, 9)},
    **{f"raw tab {n}": ("enter", "enter", str(n), "R") for n in range(1, 9)},
    "findings": ("exclamation_mark",),
    "costs": ("dollar_sign",),
    "fork": ("enter", "r"),
    "compare": ("enter", "m", "j", "d"),
}


@pytest.mark.parametrize("name", WAYS)
def test_no_secret_stands_on_any_screen(home: Path, name: str) -> None:
    seen: list[str] = []

    async def steps(seat: Seat) -> None:
        for key in WAYS[name]:
            await seat.press(key)
            seen.append(seat.text)
        for key in ("G", "g"):
            await seat.press(key)
            seen.append(seat.text)

    drive(StoreSource(home), steps, size=(200, 100))
    said = "".join("".join(seen).split())
    assert [kind for kind, secret in SECRETS.items() if secret in said or secret[-8:] in said] == []


def test_what_stood_there_is_named_and_what_is_no_secret_stays(home: Path) -> None:
    async def steps(seat: Seat) -> None:
        await seat.press("enter", "g", "enter", "4")  # where a person stood last is remembered
        assert SHA in seat.text
        assert seat.text.count("[redacted:") >= 6
        assert len({p.partition("]")[0] for p in seat.text.split("[redacted:")[1:]}) >= 5

    drive(StoreSource(home), steps, size=(200, 100))


def test_the_files_of_the_store_hold_none_either(home: Path) -> None:
    for file in (f for f in home.rglob("*") if f.is_file()):
        held = file.read_bytes()
        assert [kind for kind, secret in SECRETS.items() if secret.encode() in held] == [], file
