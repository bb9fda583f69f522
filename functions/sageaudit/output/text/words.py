"""Formats numbers, names and values for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from msgspec import Struct

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.bill.bill import Basis
from sageaudit.domain.job.job import duration_text
from sageaudit.domain.moments import parse_moment
from sageaudit.domain.money import format_rate, format_usd
from sageaudit.domain.prices.market import PriceKind
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
    "estimated_from_times": (
        "billable seconds are unknown: the bill is estimated from the job's start and end"
    ),
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

MAX_ACCOUNT_LENGTH = 12
_MAX_REGION_LENGTH = 20
_MAX_SHOWN = 32
"""The maximum length of a parameter's name, and of a value, in the words of a change."""
NO_OWNER_LABEL = "(no owner)"
"""The display name of jobs without an owner."""
NO_TYPE_LABEL = "several or unknown"
"""The display name of jobs without a single known instance type."""
GUIDES_TITLE = "Guides: advice without dollars"
NO_GUIDES_TEXT = "No guide applies to this job."

_MAX_WRITTEN_EXPONENT = 15
"""Larger numbers are written as `1.234e+30`."""


def count_text(count: int, word: str) -> str:
    """Returns `1 run`, `2 runs`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def format_number(value: Decimal | float, places: int = 2) -> str:
    """Returns a number with thousands separators and at most `places` decimals.

    A number under 0.1 keeps three significant digits.
    """
    number = Decimal(str(value))
    if not number.is_finite():
        return "unknown"
    if number.adjusted() > _MAX_WRITTEN_EXPONENT:  # such as a loss that has diverged
        return f"{number:.3e}"
    if number and abs(number) < Decimal("0.1"):
        places = min(3 - number.adjusted(), 12)
    text = f"{number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_time(iso: str | None) -> datetime | None:
    """Parses an ISO 8601 time. Returns None for any other text."""
    if iso is None:
        return None
    try:
        return parse_moment(iso)
    except ValueError:
        return None


def capitalised(text: str) -> str:
    """Returns the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def place_words(account: str | None, region: str | None) -> str:
    """Returns `111122223333, us-east-1`. A part that is too long is cut."""
    account_text = cut_middle(account, MAX_ACCOUNT_LENGTH) if account else "account unknown"
    region_text = cut_middle(region, _MAX_REGION_LENGTH) if region else "region unknown"
    return f"{account_text}, {region_text}"


def key_label(key: str) -> str:
    """Returns the label of a key, without its unit: `GPU mean` for `gpu_mean_percent`."""
    words = [word for word in key.split("_") if word]
    if len(words) > 1 and _unit(key):
        words.pop()
    if not words:
        return key
    text = " ".join(_SPELLING_BY_LOWER.get(word, word) for word in words)
    return text if words[0] in _SPELLING_BY_LOWER else capitalised(text)


def value_text(key: str, value: object) -> str:
    """Returns a value as text, with the unit that ends its key: `42%` for `gpu_mean_percent`."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float | Decimal):
        if key.endswith(_HOURLY):
            return format_rate(Decimal(str(value)))
        return _with_unit(_unit(key), Decimal(str(value)))
    text = str(value)
    unit = _unit(key) if text[:1].isdigit() else None
    return _UNITS[unit].format(text) if unit else text


def setting_text(value: object) -> str:
    """Returns a parameter's value as JSON, as it stands in a request."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value, ensure_ascii=False, default=lambda decimal: f"{decimal:f}")


def assignment_line(fix: FixDocument) -> str:
    """Returns the line to copy: `ResourceConfig.InstanceCount = 1`."""
    if fix["new"] is None:
        return f"remove {fix['parameter']}"
    return f"{fix['parameter']} = {setting_text(fix['new'])}"


def old_value_text(fix: FixDocument) -> str:
    """Returns the parameter's old value: `was 4`, or `was not set`."""
    return "was not set" if fix["old"] is None else f"was {setting_text(fix['old'])}"


class ChangedValue(Struct, frozen=True):
    """What a fix changes first, in words: `InputMode`, `File`, `FastFile`.

    `name`: the parameter; "" for instances, whose values are known by sight. `others`: the number
    of parameters that change too.
    """

    name: str
    old: str
    new: str
    others: int


def changed_value(fix: Sequence[FixDocument]) -> ChangedValue:
    """Returns what a fix changes first: its instances, else the first value that was set before.

    Raises ValueError for an empty fix.
    """
    by_name = {_last_word(parameter["parameter"]): parameter for parameter in fix}
    count, instance_type = by_name.get("InstanceCount"), by_name.get("InstanceType")
    if instance_type and count:
        old, new = (
            f"{_short_value(count[key])} x {_short_value(instance_type[key])}"
            for key in ("old", "new")
        )
        return ChangedValue("", old, new, len(fix) - 2)
    set_before = (parameter for parameter in fix if parameter["old"] is not None)
    main = instance_type or next(set_before, None) or next(iter(fix), None)
    if main is None:
        raise ValueError("the fix has no parameter")
    old = "not set" if main["old"] is None else _short_value(main["old"])
    new = "removed" if main["new"] is None else _short_value(main["new"])
    name = "" if main is instance_type else cut_middle(_last_word(main["parameter"]), _MAX_SHOWN)
    return ChangedValue(name, old, new, len(fix) - 1)


def _last_word(path: str) -> str:
    return path.rpartition(".")[2]


def _short_value(value: object) -> str:
    return cut_middle(setting_text(value).strip('"'), _MAX_SHOWN)


def group_by_reason(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Returns the names by reason. `pairs`: tuples of name and reason."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in pairs:
        names_by_reason.setdefault(reason, []).append(name)
    return names_by_reason


def _unit(key: str) -> str | None:
    suffix = key.rsplit("_", 1)[-1]
    return suffix if suffix in _UNITS else None


def _with_unit(unit: str | None, value: Decimal) -> str:
    if not value.is_finite():
        return "unknown"
    if unit == "usd":
        return format_usd(value)
    if unit in _SECONDS:
        return duration_text(value * _SECONDS[unit])
    return _UNITS[unit].format(format_number(value)) if unit else format_number(value)
