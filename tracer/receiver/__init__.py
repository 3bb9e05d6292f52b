"""The OTLP receiver: takes what any OpenTelemetry exporter sends, on loopback only, into this process's journal.

Nothing is assembled here. A request is acknowledged when it is in the journal; runs are put together when the
store is read, so a receiver that is killed loses nothing that it had acknowledged.
"""

from __future__ import annotations

from .environment import lines as environment_lines
from .intake import Totals
from .server import Addresses, Options, serve

__all__ = ["Addresses", "Options", "Totals", "environment_lines", "serve"]
