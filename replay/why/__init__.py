"""Why a run cost more and took longer than usual: the difference split by cause, to the last digit (docs/why.md).

with open_store() as store:
    found = explain(store, store.run(ID))
    for part in found.parts:
        print(part.cause, part.amount, part.what)
"""

from __future__ import annotations

from .causes import CAUSES, Part
from .explain import Explanation, explain
from .usual import Usual

__all__ = ["CAUSES", "Explanation", "Part", "Usual", "explain"]
