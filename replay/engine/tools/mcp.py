"""Tools of an MCP server that is started here and spoken to over its standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import IO, Any, TypeVar

from ....tracer.errors import LooptapeError, UsageError
from ....tracer.model import SideEffect
from ..toolbox import Definition, ToolAsked, ToolError, ToolMiss, ToolResult

T = TypeVar("T")
START_SECONDS = 30.0
END_SECONDS = 20.0
"""The MCP client gives a server 2 s to go, 2 s after SIGTERM, 2 s after SIGKILL: who leaves before that leaves it behind."""
_CLOSED = -32000
_GONE = "the MCP server has ended, its tools cannot run any more"
_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "NODE_PATH")


class McpTools:
    """One server process for the life of this toolbox. Use `connect` to make one."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._definitions: tuple[Definition, ...] = ()
        self._session: Any = None
        self._gone = self._over = False
        self._handing = threading.Lock()
        """Held while the loop is handed a call, and while it is said that it takes none any more (``_over``)."""
        self._stop = asyncio.Event()
        self._ready: Future[None] = Future()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="mcp")
        self._thread.start()

    def definitions(self) -> Sequence[Definition]:
        """What the server lists."""
        return self._definitions

    def served(self, asked: ToolAsked) -> ToolResult | None:
        """None: the server runs it."""
        return None

    def call(self, asked: ToolAsked) -> ToolResult:
        """Asks the server. Its error results are the tool's own words; its protocol errors are failures.

        Raises:
            ToolMiss: It has no such tool.
            ToolError: It refuses the call, or is gone.
            TimeoutError: It gave no answer in time.
        """
        if all(d.name != asked.name for d in self._definitions):
            raise ToolMiss(f"the MCP server {self._command!r} has no tool {asked.name}")
        if self._gone or not self._thread.is_alive():
            raise ToolError(_GONE)
        meta = {"idempotencyKey": asked.key} if asked.key else None
        with self._handing:
            if self._over:  # its loop ended between the question above and here
                raise ToolError(_GONE)
            work = self._session.call_tool(
                asked.name, dict(asked.arguments), read_timeout_seconds=asked.timeout, meta=meta
            )
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            found = future.result(asked.timeout + 1)
        except FutureTimeout:
            future.cancel()
            raise TimeoutError(f"no answer from the MCP server after {asked.timeout:g} s") from None
        except Exception as error:
            failure = _failure(error)
            self._gone = self._gone or str(failure) == _GONE
            raise failure from None
        content = [_block(part) for part in found.content]
        texts = [b["text"] for b in content if b.get("type") == "text"]
        plain = "\n".join(texts) if len(texts) == len(content) else content
        failed = bool(getattr(found, "is_error", None) or getattr(found, "isError", None))
        return ToolResult(plain, failed, "semantic" if failed else None)

    def spec(self) -> dict[str, Any]:
        """The command that starts it."""
        return {"kind": "mcp", "command": self._command}

    def close(self) -> None:
        """Ends the server."""
        with contextlib.suppress(RuntimeError):  # its loop is closed: the server has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(END_SECONDS)

    def wait(self) -> None:
        """Returns when the server has told its tools.

        Raises:
            LooptapeError: ``mcp-server``: it did not start, or does not speak MCP.
        """
        try:
            self._ready.result(START_SECONDS)
        except FutureTimeout:
            raise _no_server(self._command, f"it said nothing for {START_SECONDS:g} s") from None
        except Exception as error:
            raise _no_server(self._command, _said(error)) from None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # told to the one who waits; a thread's own traceback tells nobody
            if not self._ready.done():
                self._ready.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))
        finally:
            with self._handing:
                self._over = True
            self._loop.run_until_complete(_dropped())
            self._loop.close()

    async def _serve(self) -> None:
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        program, *arguments = shlex.split(self._command)
        environment = {n: v for n in _PASSED_ON if (v := os.environ.get(n))}
        parameters = StdioServerParameters(command=program, args=arguments, env=environment)
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told:
            try:
                async with (
                    stdio_client(parameters, errlog=told) as (read, write),
                    ClientSession(read, write) as session,
                ):
                    self._definitions = await _unless(self._stop, _offered(session))
                    self._session = session
                    self._ready.set_result(None)
                    await self._stop.wait()
            except Exception as error:
                if self._ready.done():
                    raise
                raise RuntimeError(_with_last_words(_said(error), told)) from None


def connect(command: str) -> McpTools:
    """Starts an MCP server and asks it for its tools.

    Raises:
        UsageError: ``no-mcp``: the package is not installed.
        LooptapeError: ``mcp-server``: it did not start, or does not speak MCP.
    """
    try:
        import mcp  # noqa: F401 - looked for here, so that its absence is told before anything runs
    except ImportError:
        raise UsageError(
            "no-mcp", "tools of an MCP server need the package mcp", "pip install 'looptape[mcp]'"
        ) from None
    cure = 'Say it as you would type it: --mcp "npx server"'
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError("no-mcp-command", f"--mcp {command}: {str(error).lower()}", cure) from None
    if not words:
        raise UsageError("no-mcp-command", "--mcp names no command", cure)
    made = McpTools(command)
    try:
        made.wait()
    except BaseException:  # an interrupt too: its server has a session of its own and would stay
        made.close()
        raise
    return made


async def _offered(session: Any) -> tuple[Definition, ...]:
    await session.initialize()
    return tuple(await _listed(session))


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """What some work gives; RuntimeError where it is told to stop before that."""
    doing, told = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((doing, told), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise RuntimeError("stopped before it was ready")
        return await doing
    finally:
        doing.cancel()
        told.cancel()


async def _dropped() -> None:
    """Ends what still runs in this loop: who waits for a call is told now, not after the call's whole time."""
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=1.0)
        if not any(task.done() for task in left):
            return  # it does not let itself be cancelled


async def _listed(session: Any) -> list[Definition]:
    found: list[Definition] = []
    cursor: str | None = None
    while True:
        from mcp.types import PaginatedRequestParams

        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        found += [_definition(tool) for tool in page.tools]
        cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
        if not cursor:
            return found


def _definition(tool: Any) -> Definition:
    told = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    hints = told.get("annotations") or {}
    effect: SideEffect = "read" if hints.get("readOnlyHint") is True else "unknown"
    if hints.get("readOnlyHint") is False or hints.get("destructiveHint") is True:
        effect = "mutate"
    keyed = hints.get("idempotentHint") is True
    return Definition(told["name"], told.get("description") or "", told.get("inputSchema"), effect, keyed)


def _block(part: Any) -> dict[str, Any]:
    """A content block of MCP in the words of the Messages API: text and images; the rest as text."""
    told = part.model_dump(mode="json", by_alias=True, exclude_none=True)
    if told.get("type") == "text":
        return {"type": "text", "text": told.get("text", "")}
    if told.get("type") == "image":
        source = {"type": "base64", "media_type": told.get("mimeType"), "data": told.get("data")}
        return {"type": "image", "source": source}
    resource = told.get("resource") or {}
    return {
        "type": "text",
        "text": resource.get("text") or f"[{told.get('type')} {told.get('uri') or resource.get('uri') or ''}]",
    }


def _failure(error: Exception) -> Exception:
    """A protocol error as a tool's failure: invalid parameters and unknown methods never get better."""
    code = getattr(getattr(error, "error", None), "code", None) or getattr(error, "code", None)
    if isinstance(error, TimeoutError) or code in (408, -32001):
        return TimeoutError(str(error) or "no answer from the MCP server in time")
    if code == _CLOSED or not isinstance(code, int):
        return ToolError(_GONE)
    return ToolError(_said(error))


def _with_last_words(why: str, told: IO[str]) -> str:
    """Why a server did not start, with the last line that it wrote to its stderr."""
    told.seek(0)
    lines = [line.strip() for line in told.read()[-4000:].splitlines() if line.strip()]
    return f"{why}: {lines[-1][:200]}" if lines else why


def _said(error: BaseException) -> str:
    inner = getattr(error, "exceptions", None)
    while inner:
        error = inner[0]
        inner = getattr(error, "exceptions", None)
    return str(error) or type(error).__name__


def _no_server(command: str, why: str) -> LooptapeError:
    return LooptapeError(
        "mcp-server",
        f"the MCP server {command!r} did not start ({why})",
        "Does the command run in a shell?",
        exit_code=2,
    )
