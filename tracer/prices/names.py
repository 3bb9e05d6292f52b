"""Which ids of a price list a model id may be: itself, itself less its date, itself less ``-latest``; nothing looser."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DATE = re.compile(r"[-@](20\d\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])$")
_LATEST = re.compile(r"[-@]latest$")
_BEDROCK_VERSION = re.compile(r"-v\d+(?::\d+)?$")


def plain(model: str) -> str:
    """An id as it is compared: lower case, its date written ``-2025-11-01`` however it came (``-20251101``, ``@20251101``)."""
    return _DATE.sub(r"-\1-\2-\3", model.strip().lower())


def candidates(model: str, *, bedrock: bool = False) -> Iterator[tuple[str, str]]:
    """Ids to look for in this order, each with what it is to the model: exact, dated or latest.

    ``bedrock``: ids end in the version of a deployment there (``-v1:0``), which is no part of the model's name.
    """
    names = [plain(model)]
    if bedrock:
        names.append(plain(_BEDROCK_VERSION.sub("", names[0])))
    for name in dict.fromkeys(names):
        yield name, "exact"
    for name in dict.fromkeys(names):
        if _DATE.search(name):
            yield _DATE.sub("", name), "dated"
        elif _LATEST.search(name):
            yield _LATEST.sub("", name), "latest"
