"""No network while a replay runs: what would leave this machine is refused and told; loopback and files pass."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Told = Callable[[str], None]

_guards: list[Told] = []
_hooked = False
_TO_ADDRESS = ("socket.connect", "socket.sendto", "socket.sendmsg")
_TO_NAME = ("socket.getaddrinfo", "socket.gethostbyname")
_INTERNET = (socket.AF_INET, socket.AF_INET6)


class NetworkClosed(ConnectionError):
    """A connection that a replay does not allow. Libraries pass it on as the connection error they know."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"looptape: this replay is closed to the network, {address} was refused. "
            "Loopback passes; replay with --network open (network='open' in Python) if the program needs it"
        )


def close(told: Told) -> None:
    """Refuses connections that leave this machine, in every thread, until `reopen`.

    Args:
        told: Gets the address of each refused connection, as ``host:port``.
    """
    global _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # stays for ever, so it looks at a switch
        _hooked = True
    _guards.append(told)


def reopen(told: Told) -> None:
    """Takes a guard away again."""
    if told in _guards:
        _guards.remove(told)


@contextmanager
def closed(told: Told) -> Iterator[None]:
    """The network is closed while the block runs."""
    close(told)
    try:
        yield
    finally:
        reopen(told)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _guards or not event.startswith("socket."):
        return
    address = _leaving(event, args)
    if address is None:
        return
    for told in tuple(_guards):
        told(address)
    raise NetworkClosed(address)


def _leaving(event: str, args: tuple[Any, ...]) -> str | None:
    """Where a connection goes if that is not this machine."""
    if event in _TO_NAME:
        host, port = args[0], args[1] if len(args) > 1 else None
    elif event in _TO_ADDRESS and len(args) > 1 and isinstance(args[1], tuple) and args[0].family in _INTERNET:
        host, port = args[1][0], args[1][1]
    else:
        return None
    name = host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else host
    if not isinstance(name, str) or is_here(name):
        return None
    return f"{name}:{port}" if port not in (None, 0, "") else name


def is_here(host: str) -> bool:
    """True for this machine: loopback addresses, localhost, its own name, and no name at all."""
    name = host.strip("[]").partition("%")[0].lower()
    if name in ("", "localhost") or name.endswith(".localhost") or name == socket.gethostname().lower():
        return True
    try:
        number = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(number, "ipv4_mapped", None)
    return number.is_loopback or number.is_unspecified or (mapped is not None and mapped.is_loopback)
