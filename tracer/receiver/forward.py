"""Passes requests on as they came, octet for octet; trouble there is counted and said, and holds nobody up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..redaction import redact
from .intake import Totals
from .refusal import hostname

QUEUED_BYTES = 64 << 20
TRIES = 3
_WORKERS = 4
_PATIENCE = 10.0  # seconds for one try
_LAST_WORDS = 3.0  # seconds for what is still waiting at the end
_SAY_AGAIN = 30.0
_WORTH_A_TRY = frozenset({429, 502, 503, 504})
_HOP_BY_HOP = frozenset(
    [
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Parcel:
    url: str
    body: bytes
    headers: tuple[tuple[str, str], ...]


class Forwarder:
    """Sends to another OTLP/HTTP endpoint what it is given.

    Args:
        url: The endpoint's base: ``/v1/traces`` and the like are added.
        say: Takes a line for people.
    """

    def __init__(self, url: str, totals: Totals, say: Callable[[str], None]) -> None:
        self.url = url.rstrip("/")
        self._totals = totals
        self._say = say
        self._queue: asyncio.Queue[_Parcel] = asyncio.Queue()
        self._size = 0
        self._said_at = 0.0
        self._workers: list[asyncio.Task[None]] = []
        self._session: Any = None

    async def start(self) -> None:
        """Begins to send."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=_PATIENCE)
        self._session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False, trust_env=True)
        self._workers = [asyncio.create_task(self._work()) for _ in range(_WORKERS)]

    def pass_on(self, signal: str, body: bytes, headers: Iterable[tuple[str, str]]) -> None:
        """Queues a request; one that finds no room is counted as lost."""
        if self._size + len(body) > QUEUED_BYTES:
            self._lost(f"more than {QUEUED_BYTES >> 20} MB wait")
            return
        kept = tuple((k, v) for k, v in headers if k.lower() not in _HOP_BY_HOP)
        self._size += len(body)
        self._queue.put_nowait(_Parcel(f"{self.url}/v1/{signal}", body, kept))

    async def stop(self) -> None:
        """Gives what waits a last moment; the rest is counted as lost."""
        try:
            await asyncio.wait_for(self._queue.join(), _LAST_WORDS)
        except TimeoutError:
            pass
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        while not self._queue.empty():
            self._queue.get_nowait()
            self._lost("looptape receive was stopped")
        await self._session.close()

    async def _work(self) -> None:
        while True:
            parcel = await self._queue.get()
            try:
                await self._send(parcel)
            except asyncio.CancelledError:
                self._lost("looptape receive was stopped")
                raise
            except Exception as error:  # whatever it is, the next one has its try
                self._lost(f"{type(error).__name__}: {error}")
            finally:
                self._size -= len(parcel.body)
                self._queue.task_done()

    async def _send(self, parcel: _Parcel) -> None:
        import aiohttp

        reason = ""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(0.2 * 2**attempt)
            try:
                async with self._session.post(
                    parcel.url,
                    data=parcel.body,
                    headers=parcel.headers,
                    allow_redirects=False,
                    skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
                ) as response:
                    await response.read()
                    if response.status < 300:
                        self._totals.forwarded += 1
                        return
                    reason = f"it answered {response.status}"
                    if response.status not in _WORTH_A_TRY:
                        break
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
        self._lost(reason)

    def _lost(self, reason: str) -> None:
        self._totals.not_forwarded += 1
        if time.monotonic() - self._said_at < _SAY_AGAIN and self._said_at:
            return
        self._said_at = time.monotonic()
        count = self._totals.not_forwarded
        what = f"{count} request{'' if count == 1 else 's'} could not be passed on to {hostname(self.url)}"
        self._say(f"{what} ({redact(reason[:200])}); they are recorded here all the same")
