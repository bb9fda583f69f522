"""Computes the read capacity of calls from item sizes, as DynamoDB does.

moto reports a figure that does not depend on the size. Sources: "DynamoDB item sizes and formats"
and "DynamoDB read and write operations" in the developer guide. A Query is charged for the total
bytes of its page, rounded up to 4 KB; half of that if it is eventually consistent.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_UNIT_BYTES = 4 * 1024


@dataclass
class Consumed:
    """Read capacity units, requests and items so far."""

    units: float = 0
    requests: int = 0
    items: int = 0


@contextmanager
def measure_capacity(client: Any) -> Iterator[Consumed]:
    """Measures the Query and GetItem calls of a client in this block."""
    counted = Consumed()
    consistent: list[bool] = []

    def before_call(params: dict[str, Any], **_: Any) -> None:
        consistent.append(bool(params.get("ConsistentRead")))

    def after_call(parsed: dict[str, Any], **_: Any) -> None:
        items = parsed.get("Items", [parsed["Item"]] if "Item" in parsed else [])
        counted.units += read_units(items, consistent=consistent.pop())
        counted.requests += 1
        counted.items += len(items)

    events: list[tuple[str, Callable[..., None]]] = [
        ("provide-client-params.dynamodb", before_call),
        ("after-call.dynamodb", after_call),
    ]
    for event, handler in events:
        for call in ("Query", "GetItem"):
            client.meta.events.register(f"{event}.{call}", handler)
    try:
        yield counted
    finally:
        for event, handler in events:
            for call in ("Query", "GetItem"):
                client.meta.events.unregister(f"{event}.{call}", handler)


def read_units(page: Iterable[Mapping[str, Any]], *, consistent: bool) -> float:
    """Returns the capacity units of one page of a Query, at least 1; half if not consistent."""
    units = max(math.ceil(sum(map(item_bytes, page)) / _UNIT_BYTES), 1)
    return units if consistent else units / 2


def item_bytes(item: Mapping[str, Any]) -> int:
    """Returns the size in bytes of an item in DynamoDB's JSON."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: dict[str, Any]) -> int:
    [(kind, inner)] = value.items()
    if kind == "S":
        return len(inner.encode())
    if kind == "N":
        digits = len(inner.strip("-0.").replace(".", ""))
        return 1 + math.ceil(digits / 2) + int(inner.startswith("-"))
    if kind == "B":
        return len(inner)
    if kind == "L":
        return 3 + sum(1 + _value_bytes(each) for each in inner)
    if kind == "M":
        return 3 + item_bytes(inner) + len(inner)
    return 1  # BOOL and NULL
