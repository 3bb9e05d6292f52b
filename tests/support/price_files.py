"""A person's price file as tests write it: dollars per million tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ACME = {"input": "5", "output": "25", "cache_read": "0.5", "cache_write_5m": "6.25", "cache_write_1h": "10"}
MODELS: dict[str, Any] = {
    "acme-large-1": ACME,
    "acme-large-1-2": {**ACME, "cache_read": "0.125"},
    "acme-opus-4": {"input": "15", "output": "75"},
    "acme-long-1": {
        "input": "2", "output": "12", "cache_read": "0.2",
        "tiers": [{"above_input_tokens": 200000, "input": "4", "output": "18", "cache_read": "0.4"}],
    },
    "gpt-demo-6": {"input": "10", "output": "50", "cache_read": "1"},
    "gem-demo-3": {"input": "2", "output": "12", "cache_read": "0.2"},
}  # fmt: skip


def write(path: Path, models: dict[str, Any] | None = None, **more: Any) -> Path:
    """Writes a price file."""
    told = {"unit": "USD per 1,000,000 tokens", **more, "models": MODELS if models is None else models}
    path.write_text(json.dumps(told))
    return path
