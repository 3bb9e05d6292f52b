"""What a result says of itself: an error, or that there is nothing."""

from __future__ import annotations

import json
import re
from typing import Any

_EMPTY = re.compile(
    r"\W*(?:|none|null|no (?:results?|match(?:es)?|files?|output|data|items|hits|records?|rows|entries)(?: were)?(?: found)?[^\n]{0,60}"
    r"|(?:found )?0 (?:results?|match(?:es)?|files|items|hits|rows|records)[^\n]{0,40}|nothing (?:was )?found[^\n]{0,40}|empty)\W*",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\W{0,3}(?:(?:error|fatal|exception|traceback|failed|failure|invalid|usage:|fehler|erreur|errore|erro|fallo|ошибка)\b|错误|錯誤|エラー|오류)"
    r"|[\w.]*(?:Error|Exception|\berrors?\.\w+): ",
    re.IGNORECASE,
)
_FAILED_JSON = re.compile(
    r"\"(?:ok|success|succeeded)\"\s*:\s*false\b|\"status\"\s*:\s*\"error\"|\"is_?error\"\s*:\s*true"
    r"|\{\s*\"error(?:_message)?\"\s*:\s*(?:\"[^\"]|\{\s*\")",
    re.IGNORECASE,
)
"""Results that say themselves that they are errors. That a job failed is what a look at it found, no error of the look."""
_MESSAGES = ("error", "error_message", "message", "msg", "reason", "detail", "details", "code", "error_code")
COMPLAINT = 4 << 10
"""Characters up to which an error is decoded for its message."""
_BESIDE = frozenset(
    {"page", "took", "took_ms", "limit", "offset", "per_page", "page_size", "status", "code", "version"}
)
"""Numbers that say nothing about what was found."""
_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|return ?code)\W{1,3}([1-9]\d*)\b|command not found", re.IGNORECASE
)
EMPTY_SIZE = 200
"""Characters beyond which a result holds something."""
ECHO = 60
"""Characters up to which a text in an empty result is the question again."""
_WRAPPED = re.compile(
    r"</?(?:returncode|output|stdout|stderr)>(?:\s*\d+\s*</returncode>)?|^\s*exit (?:code|status):? \d+\s*",
    re.IGNORECASE,
)


def looks_failed(is_error: bool | None, text: str | None) -> bool:
    """An error by the flag, or by what a person would call one at first sight."""
    if is_error:
        return True
    if not text:
        return False
    if _FAILED.match(text) or (text[0] == "{" and _FAILED_JSON.search(text[:300])):
        return True
    return len(text) < 64 << 10 and _EXIT.search(text[:300] + "\n" + text[-300:]) is not None


def complaint(error: str) -> str:
    """What an error says: without its wrapping, of a JSON object the message, where it has one."""
    error = _WRAPPED.sub("", error)
    if not error.startswith("{") or len(error) > COMPLAINT:
        return error
    try:
        found = json.loads(error)
    except (ValueError, RecursionError):
        return error
    said = [v for k, v in found.items() if str(k).lower() in _MESSAGES and v]
    return "\n".join(v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in said) or error


def is_empty(result: str) -> bool:
    """True for a result that says that nothing was found."""
    text = result.strip()
    if len(text) > EMPTY_SIZE:
        return False
    if _EMPTY.fullmatch(text) is not None:
        return True
    if text[:1] not in ("{", "["):
        return False
    try:
        return _holds(json.loads(text)) is False
    except (ValueError, RecursionError):
        return False


def _holds(value: Any, name: str = "") -> bool | None:
    """True when decoded JSON holds something, False when it says that there is nothing, None when it says neither."""
    if isinstance(value, dict) and value:
        said = [_holds(inner, str(key).lower()) for key, inner in value.items()]
        return True if True in said else False if False in said else None
    if value is None or value == "" or isinstance(value, (dict, list)):
        return bool(value)
    if isinstance(value, bool) or name in _BESIDE:
        return None
    if isinstance(value, str):
        return True if len(value) > ECHO else None
    return bool(value)
