"""A headless Chromium, driven over its DevTools protocol: open a page, click a cell, press keys, read the terminal."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from terminal_grid import Grid

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_KEYS = {"Enter": ("\r", 13), "Escape": ("", 27), "Tab": ("", 9)}


def program() -> str | None:
    """The browser of this machine, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page of the browser, and what its terminal was sent."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.asked: list[str] = []
        """Addresses that the page asked for."""
        self.trouble: list[str] = []
        """What the browser's console complains of."""
        self.grid = Grid(80, 24)
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await asyncio.wait_for(self._answers[number], 60)

    async def open(self, address: str) -> None:
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=address)

    async def pages(self) -> list[str]:
        """The addresses of all pages that are open in this browser."""
        targets = (await self.call("Target.getTargets"))["targetInfos"]
        return [t["url"] for t in targets if t["type"] == "page"]

    async def value(self, script: str) -> Any:
        """What a script in the page gives."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, *words: str, seconds: float = 60) -> None:
        """Wait until all these words stand on the terminal."""
        try:
            async with asyncio.timeout(seconds):
                while not all(w in self.grid.text for w in words):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{words} did not come; the screen:\n{self.grid.text}\n{self.trouble}") from None

    async def comes_to(self, script: str, value: Any, seconds: float = 60) -> None:
        """Wait until a script in the page gives this: the page does its own work after what came stands here."""
        end = time.monotonic() + seconds
        while (found := await self.value(script)) != value:
            assert time.monotonic() < end, found
            await asyncio.sleep(0.05)

    async def click(self, words: str, times: int = 1) -> None:
        """A real click of the mouse on the first letter of these words, or a double click."""
        await self.until(words)
        x, y = self.grid.find(words)
        box = await self.value(
            "(() => { const b = document.querySelector('.xterm-screen').getBoundingClientRect();"
            " return [b.left, b.top, b.width, b.height] })()"
        )
        at = {
            "x": box[0] + (x + 0.5) * box[2] / self.grid.columns,
            "y": box[1] + (y + 0.5) * box[3] / self.grid.rows,
        }
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
        kinds = ("mousePressed", "mouseReleased") * times
        events = [{"type": kind, "button": "left", "clickCount": n // 2 + 1, **at} for n, kind in enumerate(kinds)]
        await asyncio.gather(*(self.call("Input.dispatchMouseEvent", **event) for event in events))

    async def press(self, key: str) -> None:
        text, code = _KEYS.get(key, (key, ord(key.upper()) if len(key) == 1 else 0))
        named = {"key": key, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **named, **({"text": text} if text else {}))
        await self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    async def picture(self) -> bytes:
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type == aiohttp.WSMsgType.TEXT:
                self._take(json.loads(message.data))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            answer = self._answers.pop(message["id"])
            if "error" in message:
                answer.set_exception(AssertionError(str(message["error"])))
            else:
                answer.set_result(message.get("result"))
            return
        given = message.get("params", {})
        match message["method"]:
            case "Network.webSocketFrameSent" if '"resize"' in given["response"]["payloadData"]:
                size = json.loads(given["response"]["payloadData"])[1]
                self.grid.resize(size["width"], size["height"])
            case "Network.webSocketFrameReceived" if given["response"]["opcode"] == 2:
                self.grid.feed(base64.b64decode(given["response"]["payloadData"]))
                self._news.set()
            case "Network.requestWillBeSent":
                self.asked.append(given["request"]["url"])
            case "Log.entryAdded":
                self.trouble.append(given["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.trouble.append(str(given["exceptionDetails"]))


@contextlib.asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A browser with one empty page; its profile lies in ``folder``. It is gone afterwards."""
    found = program()
    assert found is not None
    flags = ("--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--disable-gpu",
             "--no-first-run", "--window-size=1200,800", *(("--no-sandbox",) if os.getuid() == 0 else ()))  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        found, *flags, "about:blank", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE, env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    try:
        place = await asyncio.wait_for(_devtools(process), 60)
        drain = asyncio.create_task(process.stderr.read())  # type: ignore[union-attr]
        async with aiohttp.ClientSession() as session:
            pages = await _pages(session, place)
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                try:
                    yield page
                finally:
                    page._reader.cancel()
        drain.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _pages(session: aiohttp.ClientSession, place: str) -> list[dict[str, Any]]:
    """The browser's pages; it listens before it has made the first."""
    async with asyncio.timeout(60):
        while True:
            async with session.get(f"http://{place}/json/list") as answer:
                if pages := [p for p in await answer.json() if p["type"] == "page"]:
                    return pages
            await asyncio.sleep(0.05)


async def _devtools(process: asyncio.subprocess.Process) -> str:
    """Host and port where it listens, as it says on stderr."""
    said = ""
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode("utf-8", "replace"):
        said += line
        if found := re.search(r"DevTools listening on ws://([^/]+)/", line):
            return found[1]
    raise AssertionError(f"the browser did not start:\n{said}")
