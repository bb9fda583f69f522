"""Writes the table of what a deployment costs in docs/before-you-deploy.md: `make docs`.

The counts are from the local AWS (`tools/bench/deployed.py`), the prices are list prices of
us-east-1 without free tiers. The result is an estimate with one significant digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from infra.alarm_list import QUEUE_MAX_AGE_S
from tools.pages import DOCS, replace_parts
from tools.pages.alarms import all_alarm_specs

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
"""The source of DynamoDB's units is airbyte.com, data-engineering-resources/dynamodb-pricing,
2025-07-21, with the on-demand prices since November 2024."""
JOBS = (0, 100, 5_000, 200_000)
HOSTS = 4
SWEEPS = 4 * 24 * 30
CHANNELS = ("sns", "slack")
JOB_METRICS = ("JobsEnded", "JobsAudited", "DueAudited")
"""Metrics that have values if nothing fails; NoticesSent, by channel, is another one."""
GB_SECONDS = 2
"""An assumption, for an audit with its message and for a sweep, since this machine is not Lambda:
twice what `tools/bench/deployed.py` computes without the start of a function."""
POLLS = 5 * 3 * 60 * 24 * 30
"""Requests a month of a waiting event source mapping: five pollers that wait for 20 s each."""


@dataclass(frozen=True, slots=True)
class Item:
    """How much of a billed unit is used: always, in a month with jobs, and for each job of 4
    hosts.
    """

    name: str
    unit: str
    always: float = 0
    per_job: float = 0
    with_jobs: float = 0

    def month(self, jobs: int) -> Decimal:
        """Returns the cost of a month with this many jobs, in USD."""
        number = self.always + (self.with_jobs if jobs else 0) + self.per_job * jobs
        return USD[self.unit] * Decimal(str(number))


def items(audit: Mapping[str, float], sweep: Mapping[str, float]) -> tuple[Item, ...]:
    """Returns the items of a month.

    `audit` is what an audit with its message uses, on one host; `sweep` what a sweep uses that
    finds nothing.
    """
    return (
        Item("CloudWatch alarms, by the metrics that they watch", "alarms",
             sum(len(watch.sources) for watch in all_alarm_specs(CHANNELS))),
        Item("CloudWatch metrics of its own, while jobs end", "own metrics",
             with_jobs=len(JOB_METRICS) + len(CHANNELS)),
        Item("Secrets Manager: the key of fingerprints, a webhook", "secrets", 2),
        Item("SQS, most of it for polling empty queues", "SQS requests",
             POLLS * len((*QUEUE_MAX_AGE_S, *CHANNELS)), _round_up(audit["SQS requests"])),
        Item("Lambda (Arm)", "GB-seconds",
             SWEEPS * GB_SECONDS, GB_SECONDS),
        Item("CloudWatch GetMetricData", "metrics requested",
             per_job=HOSTS * audit["metrics requested"]),
        Item("the same for expensive running jobs, an hour each", "metrics requested",
             per_job=4 * HOSTS * 2),
        Item("DynamoDB writes, in transactions", "write units",
             SWEEPS * _round_up(sweep["write units"]), _round_up(audit["write units"])),
        Item("DynamoDB reads", "read units",
             SWEEPS * _round_up(sweep["read units"]), _round_up(audit["read units"])),
        Item("DynamoDB storage and recovery, a year of jobs", "GB-months", 0, 12 * 15e-6),
        Item("CloudWatch Logs", "log kB",
             SWEEPS * _round_up(sweep["log kB"]), _round_up(audit["log kB"])),
    )  # fmt: skip


def _round_up(number: float) -> int:
    """Returns the next multiple of ten, so that a longer document changes nothing here."""
    return math.ceil(number / 10) * 10


def _number_text(number: float) -> str:
    return f"{number:,.6f}".rstrip("0").rstrip(".")


def page(text: str, used: tuple[Item, ...]) -> str:
    """Returns the page with a new table of costs."""
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
    return replace_parts(text, {"cost": "\n".join(rows)})


def _counted(item: Item) -> Iterator[str]:
    if item.always:
        yield f"{_number_text(item.always)} a month"
    if item.with_jobs:
        yield f"at most {_number_text(item.with_jobs)} in a month with jobs"
    if item.per_job:
        yield f"{_number_text(item.per_job)} a job"


if __name__ == "__main__":
    from tools.bench.deployed import month_items

    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), month_items()), encoding="utf-8")
