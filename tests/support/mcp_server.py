"""A small MCP server over standard input and output, for the tests of tool sources."""

import os
import sys
import time

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("small")
calls = {"flaky": 0}


@server.tool(description="Adds two numbers.", annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool(description="Always fails.")
def broken(q: str) -> str:
    raise ValueError(f"nothing is known of {q}")


@server.tool(description="Takes its time.")
def slow() -> str:
    time.sleep(30)
    return "late"


@server.tool(description="Ends the server.")
def leave() -> str:
    os._exit(3)


@server.tool(description="Tells an environment variable.")
def environment(name: str) -> str:
    return os.environ.get(name, "(not set)")


if __name__ == "__main__":
    print("a server may write to stderr", file=sys.stderr)
    server.run("stdio")
