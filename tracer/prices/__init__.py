"""What tokens cost: how an id is matched, rates and tiers, the built-in list, a person's own price file."""

from __future__ import annotations

from .rates import Rates, Sheet, Unpriced
from .served import STANDARD, Served

__all__ = ["STANDARD", "Rates", "Served", "Sheet", "Unpriced"]
