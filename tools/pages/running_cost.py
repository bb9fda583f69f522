"""Writes the table of what a deployment costs in docs/before-you-deploy.md: `make docs`.

From counts on the local AWS (`tools/bench/deployed.py`) and list prices of us-east-1, without free
tiers. It is an estimate, to the first digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from infra.alarm_list import QUEUE_MAX_AGE_S
from tools.pages import DOCS, with_parts
from tools.pages.alarms import listed

PAGE = DOCS / "before-you-deploy.md"
PRICES_AS_OF = "2025"
USD: Mapping[str, Decimal] = {
    "alarms": Decimal("0.10"),
    "own metrics": Decimal("0.30"),
    "secrets": Decimal("0.40"),
    "SQS requests": Decimal("0.0000004"),
    "GB-seconds": Decimal("0.0000133334"),
    "metrics requested": Decimal("0.00001"),
    "write units": Decimal("0.000000625"),
    "read units": Decimal("0.000000125"),
    "GB-months": Decimal("0.45"),
    "log kB": Decimal("0.0000005"),
}
"""DynamoDB's units: airbyte.com, data-engineering-resources/dynamodb-pricing, 2025-07-21, which has
the prices on demand since AWS lowered them in November 2024."""
JOBS = (0, 100, 5_000, 200_000)
HOSTS = 4
SWEEPS = 4 * 24 * 30
CHANNELS = ("sns", "slack")
OF_JOBS = ("JobsEnded", "JobsAudited", "DueAudited")
"""Metrics with values where all is well; another one is NoticesSent, by channel."""
GB_SECONDS = 2
"""Of an audit with its message, and of a sweep: assumed, since this machine is not Lambda. It is
twice what `tools/bench/deployed.py` works out without the start of a function."""
POLLS = 5 * 3 * 60 * 24 * 30
"""Requests a month of a mapping that waits: five pollers, each of which waits for 20 s."""


@dataclass(frozen=True, slots=True)
class Item:
    """What is used in a month: always, in one with any job, and for each job of 4 hosts."""

    name: str
    unit: str
    always: float = 0
    per_job: float = 0
    with_jobs: float = 0

    def month(self, jobs: int) -> Decimal:
        """USD of a month."""
        number = self.always + (self.with_jobs if jobs else 0) + self.per_job * jobs
        return USD[self.unit] * Decimal(str(number))


def items(audit: Mapping[str, float], sweep: Mapping[str, float]) -> tuple[Item, ...]:
    """By what an audit with its message uses, on one host, and a sweep that finds nothing."""
    return (
        Item("CloudWatch alarms, by the metrics that they watch", "alarms",
             sum(len(watch.sources) for watch in listed(CHANNELS))),
        Item("CloudWatch metrics of its own, while jobs end", "own metrics",
             with_jobs=len(OF_JOBS) + len(CHANNELS)),
        Item("Secrets Manager: the key of fingerprints, a webhook", "secrets", 2),
        Item("SQS, most of it by waiting functions", "SQS requests",
             POLLS * len((*QUEUE_MAX_AGE_S, *CHANNELS)), _up(audit["SQS requests"])),
        Item("Lambda (Arm)", "GB-seconds",
             SWEEPS * GB_SECONDS, GB_SECONDS),
        Item("CloudWatch GetMetricData", "metrics requested",
             per_job=HOSTS * audit["metrics requested"]),
        Item("the same for expensive running jobs, an hour each", "metrics requested",
             per_job=4 * HOSTS * 2),
        Item("DynamoDB writes, in transactions", "write units",
             SWEEPS * _up(sweep["write units"]), _up(audit["write units"])),
        Item("DynamoDB reads", "read units",
             SWEEPS * _up(sweep["read units"]), _up(audit["read units"])),
        Item("DynamoDB storage and recovery, a year of jobs", "GB-months", 0, 12 * 15e-6),
        Item("CloudWatch Logs", "log kB", SWEEPS * _up(sweep["log kB"]), _up(audit["log kB"])),
    )  # fmt: skip


def _up(number: float) -> int:
    """To the next ten, so that a word more in a document changes nothing here."""
    return math.ceil(number / 10) * 10


def _plain(number: float) -> str:
    return f"{number:,.6f}".rstrip("0").rstrip(".")


def page(text: str, used: tuple[Item, ...]) -> str:
    """The page with its table made afresh."""
    rows = [
        "| service | " + " | ".join(f"{jobs:,} jobs" for jobs in JOBS) + " | counted |",
        "|---|" + "--:|" * len(JOBS) + "---|",
    ]
    for item in used:
        cells = " | ".join(f"${item.month(jobs):,.2f}" for jobs in JOBS)
        counted = f"{item.unit}: {', '.join(_counted(item))}; ${USD[item.unit]:f} each"
        rows.append(f"| {item.name} | {cells} | {counted} |")
    sums = (sum((item.month(jobs) for item in used), Decimal(0)) for jobs in JOBS)
    rows.append("| **together** | " + " | ".join(f"**${usd:,.2f}**" for usd in sums) + " | |")
    return with_parts(text, {"cost": "\n".join(rows)})


def _counted(item: Item) -> Iterator[str]:
    if item.always:
        yield f"{_plain(item.always)} a month"
    if item.with_jobs:
        yield f"at most {_plain(item.with_jobs)} in a month with jobs"
    if item.per_job:
        yield f"{_plain(item.per_job)} a job"


if __name__ == "__main__":
    from tools.bench.deployed import month_items

    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), month_items()), encoding="utf-8")
