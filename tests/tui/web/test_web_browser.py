"""The screen in a real browser: clicks that lead through run, turn and compare, and what recorded text cannot do there.

Skipped where there is no Chromium (Debian and Ubuntu: ``apt-get install chromium``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser import Page, browser, program
from looptape.tracer.importers import import_path
from looptape.tracer.store import open_store
from looptape.tracer.tape import line
from sample_store import filled
from small_tape import records
from web_site import WebSite, web_site

pytestmark = pytest.mark.skipif(
    program() is None, reason="no chromium on this machine: nothing was looked at in a browser"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    with web_site(filled(tmp_path_factory.mktemp("web-browser"))) as made:
        yield made


def visit(site: WebSite, folder: Path, steps: Callable[[Page], Awaitable[None]]) -> None:
    """Open the site in a browser of its own and do the steps."""

    async def session() -> None:
        async with browser(folder) as page:
            await page.open(site.address)
            await page.until("q quit", "▌")
            await steps(page)

    asyncio.run(session())


def test_clicks_lead_through_run_turn_and_compare(site: WebSite, tmp_path: Path) -> None:
    async def steps(page: Page) -> None:
        await page.click("broken-returns", times=2)
        await page.until("GENERATE")
        assert "broken-returns" in page.grid.text
        await page.press("Enter")
        await page.until("conversation", "request")
        await page.click("request")
        await page.until("REQUEST", "tools")
        for _ in range(2):
            await page.press("q")
        await page.until("13 runs")
        await page.click("broken-returns")
        await page.press("m")
        await page.until("marked")
        await page.click("weather")
        await page.press("d")
        await page.until("swap", "broken-returns", "weather")

    visit(site, tmp_path, steps)


def test_a_copy_stands_in_the_browsers_clipboard_also_when_the_server_runs_in_tmux(tmp_path: Path) -> None:
    async def steps(page: Page) -> None:
        await page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        await page.click("weather")
        await page.press("y")
        await page.until("Enter copy")
        await page.press("y")
        await page.until("clipboard (OSC 52); it")
        await page.comes_to("navigator.clipboard.readText()", "55f782857383d0a3")

    around = {"TMUX": "/tmp/tmux-0/none,1,0", "STY": "1.none", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    with web_site(filled(tmp_path / "home"), **around) as site:
        visit(site, tmp_path / "profile", steps)


def test_nothing_is_fetched_from_elsewhere_and_nothing_goes_wrong_in_the_console(site: WebSite, tmp_path: Path) -> None:
    async def steps(page: Page) -> None:
        assert await page.value("document.fonts.check(\"15px 'Roboto Mono'\")")
        assert {urlsplit(a).netloc for a in page.asked} == {f"127.0.0.1:{site.port}"}
        assert [t for t in page.trouble if "Content Security" in t or "rror" in t] == []

    visit(site, tmp_path, steps)


def test_an_address_in_recorded_text_is_no_link(tmp_path: Path) -> None:
    address = "http://127.0.0.1:9/stolen"
    home = tmp_path / "home"
    with open_store(home) as store:
        tape = tmp_path / "link.jsonl"
        tape.write_bytes(b"".join(line(r) for r in records(name=address)))
        import_path(store, tape)

    async def steps(page: Page) -> None:
        await page.until("http://127")
        await page.click("http://127", times=2)
        await page.until("GENERATE")
        assert await page.value("window.open('http://127.0.0.1:9/stolen')") is None
        assert await page.pages() == [site.address]
        assert not [a for a in page.asked if "stolen" in a]

    with web_site(home) as site:
        visit(site, tmp_path / "profile", steps)
