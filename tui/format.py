"""Numbers, money, times and durations as people read them: the same on every screen and in every print."""

from __future__ import annotations

from datetime import UTC, datetime

from ..tracer.model import Run, Turn, Usage

MISSING = "-"

SIGNS = {
    "running": "●",
    "completed": "✓",
    "limit": "✗",
    "halted": "■",
    "failed": "✗",
    "interrupted": "◌",
    "unknown": "?",
    "open": "●",
    "ok": "✓",
    "error": "✗",
    "abandoned": "◌",
    "cancelled": "◌",
}
STYLES = {"running": "accent", "completed": "good", "limit": "bad", "halted": "bad", "failed": "bad", "error": "bad"}


def count(number: float | None) -> str:
    """``1,904``; ``-`` when unknown."""
    return MISSING if number is None else f"{number:,.0f}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 turn``, ``3 turns``, ``2,000 entries``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def thousands(tokens: int | None) -> str:
    """Tokens in thousands, for columns whose head says k: ``0.4``, ``9.1``, ``412``, ``1,904``."""
    if tokens is None:
        return MISSING
    k = tokens / 1000
    return f"{k:.1f}" if k < 99.95 else f"{k:,.0f}"


def short_tokens(tokens: int | None) -> str:
    """Tokens with their unit: ``840``, ``1.2k``, ``41k``, ``1.9M``."""
    if tokens is None:
        return MISSING
    if tokens < 1000:
        return str(tokens)
    if tokens < 9950:
        return f"{tokens / 1000:.1f}k"
    return f"{tokens / 1000:.0f}k" if tokens < 999_500 else f"{tokens / 1e6:.1f}M"


def money(usd: float | None, *, sign: bool = True) -> str:
    """``$0.31``, ``$0.0042`` below a cent, ``$1,204.00``; ``unpriced`` when the price is not known."""
    if usd is None:
        return "unpriced"
    mark = "$" if sign else ""
    if usd and abs(usd) < 0.00005:
        return f"<{mark}0.0001"
    return f"{mark}{usd:.4f}" if usd and abs(usd) < 0.0095 else f"{mark}{usd:,.2f}"


def least_money(usd: float | None, unpriced: int, *, sign: bool = True) -> str:
    """A sum, marked where turns without a price are left out of it: ``≥$0.31``."""
    return ("≥" if unpriced and usd is not None else "") + money(usd, sign=sign)


def run_money(run: Run) -> str:
    """The cost of a run for a column without a sign: ``0.31``, ``0.31+`` where turns without a price are left out."""
    if run.cost_usd is None:
        return "unpriced" if run.unpriced_turns else MISSING
    return money(run.cost_usd, sign=False) + ("+" if run.unpriced_turns else "")


def run_cost(run: Run) -> str:
    """The same in words: ``$0.31 (list price)``, ``$0.0075 (partial: 1 of 2 turns not priced)``."""
    said = ["list price"] if run.list_price else []
    if run.unpriced_turns and run.cost_usd is not None:
        said.append(f"partial: {run.unpriced_turns:,} of {counted(run.turns, 'turn')} not priced")
    return money(run.cost_usd) + (f" ({', '.join(said)})" if said else "")


def cost_lines(run: Run) -> list[str]:
    """What else there is to say of a run's cost: its sub-agents', what its source says, what was assumed, whose prices."""
    lines = []
    if run.inclusive_cost_usd is not None and run.inclusive_cost_usd != run.cost_usd:
        partial = " (partial)" if run.inclusive_unpriced_turns else ""
        lines.append(f"with inherited turns and sub-agents {money(run.inclusive_cost_usd)}{partial}")
    if run.reported_cost_usd is not None:
        lines.append(f"reported {money(run.reported_cost_usd)}{_difference(run.cost_difference_usd)}")
    if run.price_sources:
        assumed = (
            f"; assumed for {counted(run.assumed_turns, 'turn')}, `show RUN:N` says what" if run.assumed_turns else ""
        )
        lines.append(f"prices of {', '.join(run.price_sources)}{assumed}")
    return lines


def price_lines(turn: Turn) -> list[str]:
    """Where the cost of a turn comes from."""
    price = turn.price
    lines = []
    if turn.cost_usd is None:
        lines.append(f"not priced: {price.why or 'never worked out; `looptape sync --reprice` does it'}")
    elif price.matched:
        model = turn.model or turn.request_model or ""
        other = "" if price.matched.lower().endswith(model.lower()) else f" (the model said {model})"
        lines.append(f"priced {usd(turn.cost_usd)} as {price.matched}{other} by {price.source}")
    served = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in price.served.items() if name in _SERVED)
    if served:
        lines.append(f"served with {served}")
    lines += [f"assumed: {text}" for text in price.assumed]
    if turn.reported_cost_usd is not None:
        found = None if turn.cost_usd is None else turn.cost_usd - turn.reported_cost_usd
        lines.append(f"reported {usd(turn.reported_cost_usd)}{_difference(found)}")
    return lines


_SERVED = ("service_tier", "speed", "region", "searches")
_SAME = 0.0000005  # differences that come of adding floating numbers
_TELLING = 0.005  # differences that a list shows


def usd(amount: float) -> str:
    """An amount to its last digit: ``$0.07483375``."""
    return "$" + (f"{amount:.12f}".rstrip("0").rstrip(".") or "0")


def _difference(found: float | None) -> str:
    if found is None:
        return ""
    if abs(found) < _SAME:
        return ", the same as ours"
    return f", ours is {money(abs(found))} {'more' if found > 0 else 'less'}"


def percent(part: int | None, whole: int | None) -> str:
    """``91 %``; ``-`` when there is nothing to divide."""
    if part is None or not whole:
        return MISSING
    return f"{100 * part / whole:.0f} %"


def cache_share(usage: Usage) -> str:
    """How much of what the model read came from the cache: ``91 %``."""
    return percent(usage.cache_read, usage.context)


def duration(ms: float | None) -> str:
    """``12 ms``, ``0.8 s``, ``42 s``, ``9:20``, ``1:02:05``; from a hundred hours on in days: ``12 d``."""
    if ms is None:
        return MISSING
    if ms < 0.95:
        return "<1 ms" if ms > 0 else "0 ms"
    if ms < 99.5:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 100:
        return f"{hours / 24:,.0f} d"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def run_ms(run: Run, now: int | None = None) -> float | None:
    """Milliseconds a run took; of a running one until ``now`` (µs)."""
    end = run.ended_at if run.ended_at is not None else (now if run.status == "running" else None)
    return None if end is None or run.started_at is None else max(0, end - run.started_at) / 1000


def ago(at: int | None, now: int) -> str:
    """Relative under a day (``now``, ``2m``, ``18h``), then days, then the local date."""
    if at is None:
        return MISSING
    seconds = (now - at) / 1e6
    if seconds < 0:
        return clock(at)
    if seconds < 60:
        return "now" if seconds < 5 else f"{seconds:.0f}s"
    if seconds < 3600:
        return f"{seconds // 60:.0f}m"
    if seconds < 86400:
        return f"{seconds // 3600:.0f}h"
    return f"{seconds // 86400:.0f}d" if seconds < 14 * 86400 else f"{local(at):%Y-%m-%d}"


def clock(at: int | None) -> str:
    """Local time with its zone: ``2026-11-29 14:02:03 CET``."""
    return MISSING if at is None else f"{local(at):%Y-%m-%d %H:%M:%S %Z}"


def local(at: int) -> datetime:
    """The moment in the zone of this machine (``TZ``)."""
    return datetime.fromtimestamp(at / 1e6).astimezone()


def iso(at: int | None) -> str | None:
    """ISO 8601 in UTC for JSON: ``2026-11-29T13:02:03.000250+00:00``."""
    if at is None:
        return None
    seconds, micros = divmod(at, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat(timespec="microseconds")


def octets(text: str) -> int:
    """How many bytes a text has; at once for the plain text that huge results mostly are."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def size(octets: int) -> str:
    """``640 B``, ``12 kB``, ``1.9 GB`` (decimal units)."""
    if octets < 1000:
        return f"{octets} B"
    value, units = octets / 1000, ["kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.1f} {units[0]}" if value < 9.95 else f"{value:.0f} {units[0]}"


def sign(status: str) -> str:
    """The sign of a run's or turn's status; states never differ by colour alone."""
    return SIGNS.get(status, "?")


def kinship(run: Run) -> str:
    """What a run is to its parent: ``fork``, ``replay``, ``resume`` or ``sub-agent``; empty for one without a parent."""
    if run.parent is None:
        return ""
    return "replay" if run.source == "replay" and run.parent.kind == "fork" else run.parent.kind


def run_signs(run: Run) -> str:
    """What a list says of a run beside its figures: why it ended, whose child it is, its outcome."""
    said = []
    if run.status == "running":
        said.append("▶ running")
    elif run.status not in ("completed", "unknown"):
        said.append(_short(run.reason) or run.status)
    elif run.status == "unknown" and run.reason:
        said.append(_short(run.reason))
    if run.parent:
        where = f" @{run.parent.turn}" if run.parent.turn else ""
        said.append(f"{'⎇' if run.parent.kind == 'fork' else '↳'} {kinship(run)}{where}")
    if run.outcome and run.outcome.get("verdict"):
        said.append(f"outcome {run.outcome['verdict']}")
    if run.unpriced_turns:
        said.append(f"{run.unpriced_turns:,} unpriced")
    if run.cost_difference_usd is not None and abs(run.cost_difference_usd) >= _TELLING:
        said.append(f"reported {money(run.reported_cost_usd)}")
    if run.warnings:
        said.append(f"⚠ {len(run.warnings)}")
    return " · ".join(said)


def _short(reason: str | None, limit: int = 60) -> str:
    """A reason on one line, as long as a list can bear; `show` has all of it."""
    line = " ".join((reason or "").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def run_title(run: Run) -> str:
    """What a person calls a run: its name, else its title, else its agent, else its id."""
    return run.name or run.title or run.agent or run.id
