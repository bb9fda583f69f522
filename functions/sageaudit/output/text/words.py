"""Formats numbers, names and values for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.bill.bill import Basis
from sageaudit.domain.job.job import duration_text
from sageaudit.domain.prices.market import PriceKind
from sageaudit.output.text.money import format_rate, format_usd
from sageaudit.output.text.untrusted import cut_middle

PURCHASE_LABELS = {
    "on_demand": "on demand",
    "spot": "managed spot",
    "training_plan": "training plan",
    "serverless": "serverless",
}
PRICE_LABELS: dict[PriceKind, str] = {
    "list": "list price",
    "own": "own rate",
    "estimate": "estimated rate",
}
BASIS_NOTES: dict[Basis, str | None] = {
    "billable_seconds": None,
    "estimated_from_times": "billable seconds are unknown: the bill is estimated from its times",
    "upper_bound": "spot run without billable seconds: the bill is an upper bound",
    "prepaid": "prepaid by a training plan: not charged by the hour",
    "none": None,
}
_HOURLY = "usd_per_hour"
_UNITS = {
    "s": "{} s",
    "usd": "${}",
    "percent": "{}%",
    "gb": "{} GB",
    "gib": "{} GiB",
    "mb": "{} MB",
    "mib": "{} MiB",
    "bytes": "{} bytes",
    "h": "{} h",
    "hours": "{} h",
    "minutes": "{} min",
    "min": "{} min",
}
_SECONDS = {"s": 1, "min": 60, "minutes": 60, "h": 3600, "hours": 3600}
_NAMES = "GPU GPUs CPU CPUs vCPU vCPUs EBS S3 IO FSx EFS P95"
_SPELLING_BY_LOWER = {word.lower(): word for word in _NAMES.split()}

ACCOUNT = 12
_REGION = 20
"""Characters of an account and of a region."""
NO_OWNER_LABEL = "(no owner)"
NO_TYPE_LABEL = "several or unknown"
"""The owner and the instance type of jobs without one, in every view."""
GUIDES_TITLE = "Guides: advice without dollars"
NO_GUIDES_TEXT = "No guide applies to what is known of it."
"""The words around guides, in every view."""


def count_text(count: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def format_number(value: Decimal | float, places: int = 2) -> str:
    """A number with thousands separators and at most `places` decimals; more only below 0.1."""
    exact = Decimal(str(value))
    if not exact.is_finite():
        return "unknown"
    if exact and abs(exact) < Decimal("0.1"):
        places = min(3 - exact.adjusted(), 12)
    text = f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_time(iso: str | None) -> datetime | None:
    """The time in an ISO 8601 text; None for any other text."""
    if iso is None:
        return None
    try:
        return datetime.fromisoformat(iso)
    except ValueError:
        return None


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def place_words(account: str | None, region: str | None) -> str:
    """`111122223333, us-east-1`, each cut to its longest form."""
    known = cut_middle(account, ACCOUNT) if account else "account unknown"
    return f"{known}, {cut_middle(region, _REGION) if region else 'region unknown'}"


def key_label(key: str) -> str:
    """`gpu_mean_percent` -> `GPU mean`: the unit moves to the value."""
    words = [word for word in key.split("_") if word]
    if len(words) > 1 and _unit(key):
        words.pop()
    if not words:
        return key
    text = " ".join(_SPELLING_BY_LOWER.get(word, word) for word in words)
    return text if words[0] in _SPELLING_BY_LOWER else capitalised(text)


def value_text(key: str, fact: object) -> str:
    """A fact with the unit that its key ends in."""
    if fact is None:
        return "unknown"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, int | float | Decimal):
        if key.endswith(_HOURLY):
            return format_rate(Decimal(str(fact)))
        return _with_unit(_unit(key), Decimal(str(fact)))
    text = str(fact)
    unit = _unit(key) if text[:1].isdigit() else None
    return _UNITS[unit].format(text) if unit else text


def setting_text(fact: object) -> str:
    """A parameter's value as JSON, as in a request."""
    if isinstance(fact, Decimal):
        return f"{fact:f}"
    return json.dumps(fact, ensure_ascii=False, default=lambda exact: f"{exact:f}")


def assignment_line(fix: FixDocument) -> str:
    """`ResourceConfig.InstanceCount = 1`: the line to copy."""
    if fix["new"] is None:
        return f"remove {fix['parameter']}"
    return f"{fix['parameter']} = {setting_text(fix['new'])}"


def old_value_text(fix: FixDocument) -> str:
    """The parameter's old value: `was 4`, or `was not set`."""
    return "was not set" if fix["old"] is None else f"was {setting_text(fix['old'])}"


def group_by_reason(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The names of (name, reason), grouped by their reason."""
    grouped: dict[str, list[str]] = {}
    for name, reason in pairs:
        grouped.setdefault(reason, []).append(name)
    return grouped


def _unit(key: str) -> str | None:
    """The unit that a key ends in, or None."""
    last = key.rsplit("_", 1)[-1]
    return last if last in _UNITS else None


def _with_unit(unit: str | None, fact: Decimal) -> str:
    if not fact.is_finite():
        return "unknown"
    if unit == "usd":
        return format_usd(fact)
    if unit in _SECONDS:
        return duration_text(fact * _SECONDS[unit])
    return _UNITS[unit].format(format_number(fact)) if unit else format_number(fact)
