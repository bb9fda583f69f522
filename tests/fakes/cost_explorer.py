"""Builds Cost Explorer's answers."""

from collections.abc import Iterable, Sequence
from typing import Any


def cost_and_usage(rows: Iterable[tuple[Sequence[str], object, object]]) -> dict[str, Any]:
    """Returns GetCostAndUsage's answer for one period.

    Each row has the keys of a group, its usage and its cost in USD.
    """
    groups = [
        {
            "Keys": [*keys],
            "Metrics": {
                "UsageQuantity": {
                    "Amount": str(quantity),
                    "Unit": "GB-Mo" if "VolumeUsage" in keys[0] else "Hrs",
                },
                "UnblendedCost": {"Amount": str(usd), "Unit": "USD"},
            },
        }
        for keys, quantity, usd in rows
    ]
    return {"ResultsByTime": [{"Groups": groups}]}
