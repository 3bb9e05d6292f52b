"""Who may come in: only pages that this server gave out itself, only on this machine, only this user."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ...tracer.receiver.ports import peer_user
from ...tracer.receiver.refusal import Refused, check_host


def check(host: str | None, origin: str | None, port: int) -> str:
    """Only our own name and port, and only our own page. Gives the host as it is to be written.

    A page of the web that had its name point here (DNS rebinding) says its own name as host. A page from anywhere
    else, another port of this machine too, says where it is from: it would otherwise see and press everything.

    Raises:
        Refused: 403.
    """
    try:
        check_host(host)
    except Refused:  # its words name an option of the receiver, which is not here
        raise Refused(403, f"the host {(host or '')[:100]!r} is not this machine's loopback") from None
    name, called = _place(f"//{host or ''}")
    if name is None or called != port:
        raise Refused(403, f"the host {(host or '')[:100]!r} is not this server")
    if origin is not None and (not origin.startswith("http://") or _place(origin) != (name, called)):
        raise Refused(403, f"the origin {origin[:100]!r} is not this server's page")
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def check_user(port: int, peer: object) -> None:
    """The store is for its owner alone; another account of this machine reaches loopback too.

    Linux tells whose a connection is; where that cannot be found out, nothing is refused.

    Raises:
        Refused: 403.
    """
    if not isinstance(peer, tuple) or len(peer) < 2:
        return
    user = peer_user(port, int(peer[1]))
    if user not in (None, 0, os.getuid()):
        raise Refused(403, "these recordings belong to another user of this machine")


def _place(url: str) -> tuple[str | None, int | None]:
    """Host and port of an address; no port is 80. An address that is none is nowhere."""
    try:
        parts = urlsplit(url)
        return parts.hostname, 80 if parts.port is None else parts.port
    except ValueError:
        return None, None
