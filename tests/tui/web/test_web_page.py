"""The screen in a browser, without one: what the page is made of, who is let in, what the websocket brings, how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import aiohttp
import pytest

from commandline import looptape
from looptape.sample_traces import demo
from looptape.tracer.receiver.refusal import Refused
from looptape.tui.web import admission
from looptape.tui.web.session import sane
from sample_store import filled
from terminal_grid import Grid
from web_site import WebSite, web_site


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="module")
def site(home: Path) -> Iterator[WebSite]:
    with web_site(home) as made:
        yield made


class Addresses(HTMLParser):
    """Every address in a page, and every script that stands in it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.found += [v or "" for k, v in attrs if k in ("href", "src", "action") or k.endswith("-url")]
        self.inline += tag == "script" and "src" not in named
        self.inline += any(k.startswith("on") for k in named)


async def converse(site: WebSite, *keys: str, until: str, path: str = "/ws?width=100&height=30", **more: str) -> Grid:
    """Open a page's websocket, press keys once the list stands there, read until these words do."""
    grid, sent = Grid(100, 30), list(keys)
    address = f"http://127.0.0.1:{site.port}{path}"
    async with aiohttp.ClientSession() as session, session.ws_connect(address, headers=more) as line:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                async for message in line:
                    if message.type == aiohttp.WSMsgType.BINARY:
                        grid.feed(message.data)
                    if sent and "q quit" in grid.text and " runs" in grid.lines[0]:
                        await line.send_json(["stdin", sent.pop(0)])
                    if not sent and until in grid.text:
                        return grid
    raise AssertionError(f"{until!r} did not come:\n{grid.text}")


def test_the_page_and_all_it_loads_come_from_this_server_alone(site: WebSite) -> None:
    status, headers, body = site.get("/")
    page = Addresses()
    page.feed(body.decode())
    assert status == 200
    assert page.inline == 0
    local = [a for a in page.found if a.startswith("/static/")]
    assert set(page.found) - set(local) == {"data:,", f"ws://127.0.0.1:{site.port}/ws"}
    for address in local:
        status, got, content = site.get(address)
        assert (status, got["x-content-type-options"]) == (200, "nosniff"), address
        if address.endswith((".css", ".js")):
            text = content.decode()
            assert not re.search(r"""(?:url\(|@import|import\(|fetch\(|src=)\s*["']?(?:https?:)?//""", text), address
            for font in re.findall(r"url\(\"?([^)\"]+)\"?\)", text):
                assert site.get(font)[0] == 200, font
    assert "default-src 'none'; script-src 'self';" in headers["content-security-policy"]
    assert "allow-popups" not in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["/static/", "/static/js/", "/static/../site.py", "/static/..%2f..%2fsite.py", "/static/index.html", "/download/x", "/etc"],
)  # fmt: skip
def test_what_the_page_does_not_need_is_not_served(site: WebSite, path: str) -> None:
    assert site.get(path)[0] == 404


@pytest.mark.parametrize("path", ["/", "/ws", "/static/page.js", "/download/x"])
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("evil.example:{port}", None),
        ("127.0.0.1.evil.example:{port}", None),
        ("127.0.0.1:1", None),
        ("127.0.0.1", None),
        (None, "http://evil.example"),
        (None, "http://127.0.0.1:1"),
        (None, "http://localhost:{port}"),
        (None, "https://127.0.0.1:{port}"),
        (None, "null"),
    ],
)
def test_foreign_names_and_foreign_pages_are_refused(
    site: WebSite, path: str, host: str | None, origin: str | None
) -> None:
    given = {"Host": host, "Origin": origin}
    status, _, body = site.get(path, {k: v.format(port=site.port) for k, v in given.items() if v is not None})
    assert status == 403
    assert b"<" not in body
    assert b"--" not in body  # no option of another command


def test_a_foreign_page_opens_no_websocket(site: WebSite) -> None:
    before = site.children()  # an app whose page has gone may still be leaving
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        asyncio.run(converse(site, until="quit", Origin="http://evil.example"))
    assert refused.value.status == 403
    assert set(site.children()) <= set(before)


def test_the_page_of_localhost_is_ours_too(site: WebSite) -> None:
    status, headers, body = site.get("/", {"Host": f"localhost:{site.port}"})
    assert status == 200
    assert f"ws://localhost:{site.port}/ws".encode() in body
    assert f"ws://localhost:{site.port}" in headers["content-security-policy"]


def test_another_user_of_the_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "peer_user", lambda port, peer: os.getuid() + 1)
    with pytest.raises(Refused, match="another user"):
        admission.check_user(8017, ("127.0.0.1", 50000))


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells whose a connection is")
def test_whose_a_connection_is_can_be_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert admission.peer_user(port, client.getsockname()[1]) == os.getuid()
    assert admission.peer_user(port, 1) is None


def test_the_websocket_brings_the_runs_and_obeys_keys(site: WebSite) -> None:
    grid = asyncio.run(converse(site, "\r", until="GENERATE", Origin=f"http://127.0.0.1:{site.port}"))
    assert "reorder-mugs" in grid.text or "streaming" in grid.text or "mugs-in-store" in grid.text


def test_the_app_of_a_page_ends_when_the_page_is_closed(site: WebSite) -> None:
    asyncio.run(converse(site, until="quit"))
    end = time.monotonic() + 60
    while site.children() and time.monotonic() < end:
        time.sleep(0.1)
    assert site.children() == []


def test_a_browser_that_stays_until_it_is_closed_gets_the_page(home: Path, tmp_path: Path) -> None:
    got, closed, browser = tmp_path / "got", tmp_path / "closed", tmp_path / "browser.py"
    browser.write_text(
        "import os, sys, time, urllib.request\n"
        "page = urllib.request.urlopen(sys.argv[1], timeout=60).read()\n"
        f"open({str(got)!r}, 'wb').write(page)\n"
        f"while not os.path.exists({str(closed)!r}): time.sleep(0.02)\n"
    )
    with web_site(home, "--open", BROWSER=f"{sys.executable} {browser} %s"):
        end = time.monotonic() + 60
        while not got.exists() and time.monotonic() < end:
            time.sleep(0.02)
        there = got.exists()
        closed.touch()
        assert there, "the page did not come while the browser was waited for"


def test_where_no_browser_opens_the_address_is_there_to_be_pasted(home: Path) -> None:
    with web_site(home, "--open", BROWSER="false %s", PATH="/nowhere") as site:
        assert site.process.stderr is not None
        said = [site.process.stderr.readline(), site.process.stderr.readline()]
        assert any("paste the address" in line for line in said)


def test_a_run_that_is_named_is_what_the_page_opens(home: Path) -> None:
    with web_site(home, "mugs-in-store:1") as site:
        grid = asyncio.run(converse(site, until="GENERATE"))
        assert "mugs-in-store" in grid.text


def test_a_tape_with_an_odd_name_passes_through_the_shell_unharmed(tmp_path: Path) -> None:
    tape = tmp_path / "it's $(touch stolen) `x` ;.jsonl"
    tape.write_bytes(next(iter(demo.tapes())).read_bytes())
    with web_site(tmp_path / "home", str(tape)) as site:
        grid = asyncio.run(converse(site, until="GENERATE"))
    assert "it's $(touch stolen)" in grid.lines[0] or "GENERATE" in grid.text
    assert not (Path.cwd() / "stolen").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_server_and_every_app(home: Path, number: int) -> None:
    with web_site(home) as site:

        async def stopped_while_open() -> None:
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"http://127.0.0.1:{site.port}/ws") as line,
            ):
                await line.receive(timeout=60)
                children = site.children()
                assert len(children) == 1
                code, said = await asyncio.to_thread(site.stop, number)
                assert code == 0, said
                assert "Traceback" not in said
                for pid in children:
                    with pytest.raises(ProcessLookupError):
                        os.kill(pid, 0)

        asyncio.run(stopped_while_open())


def runs(pid: int) -> bool:
    """False when a process has ended, also when whoever took it over has not looked yet."""
    try:
        os.kill(pid, 0)
        return not Path("/proc/self/stat").exists() or " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):  # the latter: it ended between the two looks
        return False


def test_an_app_does_not_outlive_a_server_that_was_killed(home: Path) -> None:
    with web_site(home) as site:

        async def killed_while_open() -> list[int]:
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"http://127.0.0.1:{site.port}/ws") as line,
            ):
                await line.receive(timeout=60)
                children = site.children()
                site.process.kill()
                return children

        (child,) = asyncio.run(killed_while_open())
        end = time.monotonic() + 60
        while time.monotonic() < end and runs(child):
            time.sleep(0.1)
        assert not runs(child), "the app is still there"


def test_an_app_that_cannot_open_closes_its_page_and_says_why(home: Path, tmp_path: Path) -> None:
    tape = tmp_path / "gone.jsonl"
    tape.write_bytes(next(iter(demo.tapes())).read_bytes())
    with web_site(home, str(tape)) as site:
        tape.unlink()

        async def closed() -> bool:
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"http://127.0.0.1:{site.port}/ws") as line,
            ):
                async with asyncio.timeout(60):
                    async for _ in line:
                        pass
                return line.closed

        assert asyncio.run(closed())
        code, said = site.stop()
        assert code == 0
        assert "gone.jsonl" in said
        assert "Traceback" not in said


def test_a_port_that_is_taken_says_by_whom(home: Path) -> None:
    with web_site(home) as first, pytest.raises(RuntimeError) as caught:
        WebSite(home, "--port", str(first.port))
    assert f"port {first.port} is taken by another looptape tui --web (PID {first.process.pid})" in str(caught.value)


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    monkeypatch.setattr("looptape.tui.web.server.find_spec", lambda name: None)
    ran = looptape("tui", "--web")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "pip install 'looptape[web]'" in ran.err


@pytest.mark.parametrize("arguments", [("--port", "9000"), ("--open",)], ids=" ".join)
def test_options_of_the_browser_alone_are_refused_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(tmp_path))
    ran = looptape("tui", *arguments)
    assert ran.code == 2
    assert "--web" in ran.err


def test_a_wrong_run_is_said_before_anything_is_served(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("LOOPTAPE_HOME", str(home))
    ran = looptape("tui", "nobody-has-this", "--web", "--port", "0")
    assert ran.code == 2
    assert "nobody-has-this" in ran.err


@pytest.mark.parametrize(("given", "side"), [(0, 2), (80, 80), (10**9, 1000), (-5, 2)])
def test_a_size_that_no_screen_has_is_brought_back_to_one(given: int, side: int) -> None:
    assert sane(given) == side
