"""Cost Explorer's answers."""

from collections.abc import Iterable, Sequence
from typing import Any


def cost_and_usage(rows: Iterable[tuple[Sequence[str], object, object]]) -> dict[str, Any]:
    """GetCostAndUsage's answer of one period: the keys of each group, its usage and its dollars."""
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
