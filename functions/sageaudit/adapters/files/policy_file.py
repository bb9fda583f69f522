"""Loads the policy's TOML file, and the file of own rates that it names.

The rates file is JSON with one rate per line, so that a diff shows each new rate.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from sageaudit.adapters.aws.clients import known_regions
from sageaudit.adapters.files import text_file
from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.files.local_files import wrong_format_reason_of_bytes
from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.moments import parse_day
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.domain.policy.table_reader import full_key
from sageaudit.domain.prices.known_prices import (
    MAX_RATE_USD,
    TYPE,
    OwnRate,
    OwnRates,
    RateBasis,
    group_own_rates,
)
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.errors import PARSE_ERRORS, BadPolicy, BadUsage, KeyPath
from sageaudit.rules.catalogue import threshold_units

_HINT = "a policy is a TOML file, such as policy.toml of the repository"
_OWN_RATES_HINT = "`sageaudit prices learn` writes a file of own rates"
SCHEMA = 1
_KEYS = ("region", "type", "component", "usd", "first", "last", "quantity", "source", "note")


def load_policy(path: Path) -> Policy:
    """Reads and validates a policy.

    Raises BadPolicy with one sentence that names the file, line and key.
    """
    try:
        text = text_file.read_text(str(path), _HINT, may_be_empty=True)
        table = tomllib.loads(text)
    except BadUsage as error:
        raise BadPolicy(str(error)) from error
    except tomllib.TOMLDecodeError as error:
        reason = wrong_format_reason_of_bytes(str(path), text.encode(), _HINT)
        raise BadPolicy(f"{path}: {reason or f'is not TOML: {error}'}") from error
    except (ValueError, RecursionError) as error:
        # numbers of thousands of digits, or too deep nesting
        raise BadPolicy(f"{path}: is too long or too deeply nested to be read") from error
    try:
        policy = parse(table, threshold_units(), _load_own_rates(table, path))
        _check_names(policy.discounts)
    except BadPolicy as error:
        line = line_number(text, error.key)
        where = path if line is None else f"{path}:{line}"
        raise BadPolicy(f"{where}: {error}", error.key) from error
    return policy


def _load_own_rates(table: Mapping[str, Any], path: Path) -> OwnRates | None:
    # The file's path is relative to the policy's folder. Raises BadPolicy.
    discounts = table.get("discounts")
    name = discounts.get("own_rates") if isinstance(discounts, dict) else None
    if not isinstance(name, str) or not name:
        return None
    try:
        return read_own_rates(path.parent / name)
    except BadUsage as error:
        key = ("discounts", "own_rates")
        raise BadPolicy(f"{full_key(key)}: {error}", key) from error


def line_number(text: str, key: KeyPath) -> int | None:
    """Returns the line that sets the last name of `key`. None if no line does, or several do."""
    name = next((re.escape(part) for part in reversed(key) if isinstance(part, str)), None)
    setting = re.compile(rf"""[\s\[]*(?:[\w."'-]+\.)?["']?{name}["']?\s*[.=\]]""")
    numbers = [number for number, line in enumerate(text.split("\n"), 1) if setting.match(line)]
    return numbers[0] if name and len(numbers) == 1 else None


def _check_names(discounts: Discounts) -> None:
    """Raises BadPolicy for unknown families, regions and types, which may be typos."""
    types = packaged.instance_types()
    known_names = {row.family for row in types.values()} | {part.value for part in Component}
    if unknown_names := sorted(set(discounts.percent) - known_names):
        raise _bad_policy("is neither a component nor a family", "percent", unknown_names[0])
    regions = known_regions() if discounts.rates else set()
    for region, rates in discounts.rates.items():
        if region not in regions:
            raise _bad_policy("is not a known AWS region", "rates", region)
        if unknown_names := sorted(set(rates) - set(types)):
            suggestion = did_you_mean(unknown_names[0], types)
            raise _bad_policy(
                f"is not a known instance type{suggestion}", "rates", region, unknown_names[0]
            )


def _bad_policy(reason: str, *parts: str) -> BadPolicy:
    path = ("discounts", *parts)
    return BadPolicy(f"{full_key(path)} {reason}", path)


def read_own_rates(path: Path) -> OwnRates:
    """Reads the rates that `sageaudit prices learn` wrote. Raises BadUsage that names the file."""
    text = text_file.read_text(str(path), _OWN_RATES_HINT, may_be_empty=True)
    try:
        document = from_json(text)
        if document["schema"] != SCHEMA:
            raise BadUsage(f"{path}: was written by a newer version of sageaudit (schema)")
        account = document["account"]
        rates = [_rate(row) for row in document["rates"]]
        own_rates = group_own_rates(RateBasis(document["basis"]), account and str(account), rates)
    except PARSE_ERRORS as error:
        raise BadUsage(
            f"{path}: is not a file of own rates that `sageaudit prices learn` wrote"
        ) from error
    for rate in own_rates.rows:
        if not _is_possible(rate):
            raise BadUsage(f"{path}: has an impossible rate of {rate.product} in {rate.region}")
    return own_rates


def own_rates_text(rates: OwnRates) -> str:
    """Returns the text of the file that `read_own_rates` reads."""
    rows = ",\n".join(f"  {to_json(_row(rate))}" for rate in rates.rows)
    header = {
        "schema": SCHEMA,
        "what": "USD per instance-hour, or GB-month of storage, that was paid on these days",
        "basis": rates.basis.value,
        "account": rates.account,
    }
    lines = [f" {to_json(key)}: {to_json(value)}" for key, value in header.items()]
    return "{\n" + ",\n".join([*lines, f' "rates": [\n{rows}\n ]']) + "\n}\n"


def _rate(row: Mapping[str, Any]) -> OwnRate:
    if unknown_keys := set(row) - set(_KEYS):
        raise ValueError(unknown_keys)
    return OwnRate(
        region=str(row["region"]),
        component=Component(row["component"]),
        product=str(row["type"]),
        usd=Decimal(row["usd"]),
        first=parse_day(row["first"]),
        last=parse_day(row["last"]),
        quantity=Decimal(row["quantity"]),
        source=str(row["source"]),
        note=None if row.get("note") is None else str(row["note"]),
    )


def _row(rate: OwnRate) -> dict[str, object]:
    row: dict[str, object] = {
        "region": rate.region,
        "type": rate.product,
        "component": rate.component.value,
        "usd": rate.usd,
        "first": rate.first,
        "last": rate.last,
        "quantity": rate.quantity,
        "source": rate.source,
    }
    return row if rate.note is None else row | {"note": rate.note}


def _is_possible(rate: OwnRate) -> bool:
    is_known_product = TYPE.fullmatch(rate.product) is not None or rate.product == STORAGE
    return (
        is_known_product
        and REGION.fullmatch(rate.region) is not None
        and rate.usd.is_finite()
        and 0 < rate.usd <= MAX_RATE_USD
        and rate.first <= rate.last
    )
