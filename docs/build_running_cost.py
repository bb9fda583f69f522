"""Writes the table of what a deployment costs in docs/before-you-deploy.md: `make docs`.

From counts of this code and list prices of us-east-1, without free tiers. It is an estimate, to the
first digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from docs.build_alarms import listed
from docs.marked_parts import with_parts

PAGE = Path(__file__).parent / "before-you-deploy.md"
PRICES_AS_OF = "2025"
JOBS = (0, 100, 5_000, 200_000)


@dataclass(frozen=True, slots=True)
class Item:
    """What is used in a month: always, and for each job of 4 hosts, at a price in USD a unit."""

    name: str
    unit: str
    usd: str
    always: float
    per_job: float

    def month(self, jobs: int) -> Decimal:
        """USD of a month."""
        return Decimal(self.usd) * (Decimal(str(self.always)) + Decimal(str(self.per_job)) * jobs)


SWEEPS = 4 * 24 * 30
ITEMS = (
    Item("CloudWatch alarms", "alarm, of one metric each", "0.10",
         sum(len(watch.sources) for watch in listed()), 0),
    Item("CloudWatch metrics of its own", "metric", "0.30", 10, 0),
    Item("Secrets Manager", "secret", "0.40", 2, 0),
    Item("SQS, most of it by waiting functions", "request", "0.0000004", 4_500_000, 30),
    Item("Lambda", "GB-second (Arm)", "0.0000133334", SWEEPS * 5, 12),
    Item("CloudWatch GetMetricData", "metric", "0.00001", 0, 20),
    Item("the same of dear jobs that run, an hour each", "metric", "0.00001", 0, 4 * 4 * 2),
    Item("DynamoDB writes, in transactions", "write unit", "0.000000625", SWEEPS * 10, 60),
    Item("DynamoDB storage and recovery, a year of jobs", "GB-month", "0.45", 0, 12 * 15e-6),
    Item("CloudWatch Logs", "GB", "0.50", SWEEPS * 1e-5, 1e-5),
)  # fmt: skip


def _plain(number: float) -> str:
    return f"{number:,.6f}".rstrip("0").rstrip(".")


def page(text: str) -> str:
    """The page with its table made afresh."""
    rows = [
        "| service | " + " | ".join(f"{jobs:,} jobs" for jobs in JOBS) + " | counted |",
        "|---|" + "--:|" * len(JOBS) + "---|",
    ]
    for item in ITEMS:
        cells = " | ".join(f"${item.month(jobs):,.2f}" for jobs in JOBS)
        counts = f"{item.unit}: {_plain(item.always)} a month and {_plain(item.per_job)} a job"
        counts += f", ${item.usd} each"
        rows.append(f"| {item.name} | {cells} | {counts} |")
    sums = (sum((item.month(jobs) for item in ITEMS), Decimal(0)) for jobs in JOBS)
    rows.append("| **together** | " + " | ".join(f"**${usd:,.0f}**" for usd in sums) + " | |")
    return with_parts(text, {"cost": "\n".join(rows)})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
