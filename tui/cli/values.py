"""Values of the database as JSON values and as the text of a table's cell."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def cell(value: Any) -> str:
    """A value as text: lists as JSON, times in ISO form, decimals without idle zeros."""
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, (dict, list, tuple)):
        import json

        return json.dumps(plain(value), ensure_ascii=False)
    return value.isoformat() if isinstance(value, datetime) else str(value)
