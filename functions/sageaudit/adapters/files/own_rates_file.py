"""The file of own rates: JSON with one rate per line, so that a diff shows each new rate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.prices.known_prices import (
    HIGHEST_USD,
    TYPE,
    OwnRate,
    OwnRates,
    RateBasis,
    own_rates,
)
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.errors import UNREADABLE, BadUsage

SCHEMA = 1
_KEYS = ("region", "type", "component", "usd", "first", "last", "quantity", "source", "note")


def read(path: Path) -> OwnRates:
    """The rates of a file that `sageaudit prices learn` wrote. Raises BadUsage, naming the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadUsage(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise BadUsage(f"{path}: is no file of own rates: it is not text in UTF-8") from error
    try:
        document = from_json(text)
        if document["schema"] != SCHEMA:
            raise BadUsage(f"{path}: is of a newer version of sageaudit (schema)")
        account = document["account"]
        rates = [_rate(row) for row in document["rates"]]
        found = own_rates(RateBasis(document["basis"]), account and str(account), rates)
    except UNREADABLE as error:
        raise BadUsage(
            f"{path}: is no file of own rates as `sageaudit prices learn` writes it"
        ) from error
    for rate in found.rows:
        if not _possible(rate):
            raise BadUsage(f"{path}: has an impossible rate of {rate.what} in {rate.region}")
    return found


def text_of(rates: OwnRates) -> str:
    """What `read` reads."""
    rows = ",\n".join(f"  {to_json(_row(rate))}" for rate in rates.rows)
    head = {
        "schema": SCHEMA,
        "what": "USD per instance-hour, or GB-month of storage, that was paid on these days",
        "basis": rates.basis.value,
        "account": rates.account,
    }
    lines = [f" {to_json(key)}: {to_json(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join([*lines, f' "rates": [\n{rows}\n ]']) + "\n}\n"


def _rate(row: Mapping[str, Any]) -> OwnRate:
    if strange := set(row) - set(_KEYS):
        raise ValueError(strange)
    return OwnRate(
        region=str(row["region"]),
        component=Component(row["component"]),
        what=str(row["type"]),
        usd=Decimal(row["usd"]),
        first=date.fromisoformat(row["first"]),
        last=date.fromisoformat(row["last"]),
        quantity=Decimal(row["quantity"]),
        source=str(row["source"]),
        note=None if row.get("note") is None else str(row["note"]),
    )


def _row(rate: OwnRate) -> dict[str, object]:
    row: dict[str, object] = {
        "region": rate.region,
        "type": rate.what,
        "component": rate.component.value,
        "usd": rate.usd,
        "first": rate.first,
        "last": rate.last,
        "quantity": rate.quantity,
        "source": rate.source,
    }
    return row if rate.note is None else row | {"note": rate.note}


def _possible(rate: OwnRate) -> bool:
    named = TYPE.fullmatch(rate.what) is not None or rate.what == STORAGE
    return (
        named
        and REGION.fullmatch(rate.region) is not None
        and rate.usd.is_finite()
        and 0 < rate.usd <= HIGHEST_USD
        and rate.first <= rate.last
    )
