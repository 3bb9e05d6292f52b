"""What the screen remembers from one time to the next: orders, views, folds, filters. One small JSON file."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

FILE = "screen.json"
MOST = 500
"""Keys kept; the ones that were not used longest go first."""


class Memory:
    """Named values of JSON. A file that cannot be read or written costs nothing but what was remembered.

    Args:
        home: The folder of the store; None remembers only while the app runs.
    """

    def __init__(self, home: Path | None) -> None:
        self._path = None if home is None else home / FILE
        self._values: dict[str, Any] = {}
        self._changed = False
        if self._path is not None:
            with contextlib.suppress(OSError, ValueError):
                found = json.loads(self._path.read_text("utf-8"))
                self._values = found if isinstance(found, dict) else {}

    def get(self, name: str, fallback: Any = None) -> Any:
        """The value of a name, or the fallback; also the fallback where the value is of another type than it."""
        value = self._values.get(name, fallback)
        return fallback if fallback is not None and type(value) is not type(fallback) else value

    def put(self, name: str, value: Any) -> None:
        """Remember a value."""
        if name in self._values and self._values[name] == value:
            return
        self._values.pop(name, None)
        self._values[name] = value
        self._changed = True
        while len(self._values) > MOST:
            del self._values[next(iter(self._values))]

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self._path is None or not self._changed:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, made = tempfile.mkstemp(dir=self._path.parent, prefix=FILE)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(self._values, file)
                os.replace(made, self._path)
            except OSError:
                os.unlink(made)
            self._changed = False
