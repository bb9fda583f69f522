"""Writes the tables of what a deployment costs in docs/before-you-deploy.md: `make docs`.

The counts are from the local AWS (`tools/bench/deployed.py`), the seconds of sweeps from the
simulation of docs/organization.md (`tests/fakes/large_organization.py`), the prices are list prices
of us-east-1 without free tiers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from infra.alarm_list import QUEUE_MAX_AGE_S
from tools.pages import DOCS, replace_parts
from tools.pages.alarms import all_alarm_specs

PAGE = DOCS / "before-you-deploy.md"
USD: Mapping[str, Decimal] = {
    "alarms": Decimal("0.10"),
    "dashboards": Decimal(3),
    "own metrics": Decimal("0.30"),
    "secrets": Decimal("0.40"),
    "Secrets Manager requests": Decimal("0.000005"),
    "SQS requests": Decimal("0.0000004"),
    "GB-seconds": Decimal("0.0000133334"),
    "invocations": Decimal("0.0000002"),
    "metrics requested": Decimal("0.00001"),
    "write units": Decimal("0.000000625"),
    "read units": Decimal("0.000000125"),
    "GB-months": Decimal("0.45"),
    "log kB": Decimal("0.0000005"),
    "e-mails": Decimal("0.00002"),
    "events": Decimal("0.000001"),
}
"""Sources: for CloudWatch factualminds.com, "Amazon CloudWatch Pricing" (2026-06); for DynamoDB
airbyte.com, data-engineering-resources/dynamodb-pricing (2025-07), storage with point-in-time
recovery; for SNS factualminds.com, "Amazon SNS Pricing" (2026-06); for events and schedules
cloudburn.io, amazon-eventbridge-pricing (2026-03). Those of Lambda on Arm, SQS and Secrets Manager
are in many public tables."""
JOBS = (0, 100, 5_000, 200_000)
ACCOUNTS = (1, 30, 300, 1_000)
HOSTS = 4
MONTH_DAYS = 30
SWEEPS = 4 * 24 * MONTH_DAYS
"""Sweeps a month, and as many watches."""
CHANNELS = ("sns", "slack")
JOB_METRICS = ("JobsEnded", "JobsAudited", "DueAudited")
"""Metrics that have values if nothing fails; NoticesSent, by channel, is another one."""
REPEATED_SHARE = 0.1
"""The assumed share of events that wait once for late metrics, and of those that come twice. AWS
publishes neither."""
AUDIT_GB_S, MESSAGE_GB_S, WATCHED_GB_S = 2, 1, 4
"""Upper bounds, in GB-seconds: an audit; two invocations of `notify` at 512 MiB and one of
`deliver` at 256 MiB; four checks of a running job. `tools/bench/deployed.py` computes 0.5 for an
audit with its message, and 1.6 for four checks."""
SWEEP_S, WATCH_S = 2, 1
"""Upper bounds for one account, in seconds at 1 GiB, which the functions have if the policy has
other accounts."""
MEMBER_SWEEP_S, MEMBER_WATCH_S = 0.12, 0.002
"""The same for each further account and region. A sweep creates a client for it
(`tests/fakes/large_organization.py`), a watch reads the state of its lists."""
HEARTBEAT_S = 1
"""Upper bound of an invocation of `audit` that stores a heartbeat."""
START_S = 2
"""Upper bound of a start: `make bench PART=starts` measures 0.4 to 0.6 CPU seconds, and Lambda
gives a start more than a function's share of a core. Lambda bills starts since 2025-08-01 (AWS
compute blog, aws-lambda-standardizes-billing-for-init-phase)."""
START_GB_S = START_S * (1 + 0.5 + 0.25)
"""The starts for one job: `audit`, `notify` and `deliver`."""
MAX_STARTS = MONTH_DAYS * 24 * 60 // 5 * 5
"""The most starts for jobs a month: an idle function is kept for at least five minutes
(mikhail.io, aws-lambda-cold-starts-after-10-minutes measured ten), and five audits run at once."""
POLLS = 5 * 3 * 60 * 24 * MONTH_DAYS
"""Requests a month of a waiting event source mapping: five pollers that wait for 20 s each."""


@dataclass(frozen=True, slots=True)
class Item:
    """How much of a billed unit is used: always, in a month with jobs, for each job of 4 hosts, and
    for each account and region besides the deployment's own.

    `max_for_jobs`: the most that all jobs of a month use; None if there is no limit.
    """

    name: str
    unit: str
    always: float = 0
    per_job: float = 0
    with_jobs: float = 0
    per_member: float = 0
    max_for_jobs: float | None = None

    def month(self, jobs: int, members: int = 0) -> Decimal:
        """Returns the cost of a month with this many jobs and members, in USD."""
        for_jobs = self.per_job * jobs
        if self.max_for_jobs is not None:
            for_jobs = min(for_jobs, self.max_for_jobs)
        number = self.always + (self.with_jobs if jobs else 0) + for_jobs
        return USD[self.unit] * Decimal(str(number + self.per_member * members))


@dataclass(frozen=True, slots=True)
class Usage:
    """What was counted, by billed unit.

    `audit`: an audit with its message, on one host, for which all functions start. `price_list`:
    what the day's first audit uses besides. `sweep`: a sweep and a watch that find nothing.
    `duplicate`, `waiting`: an event that comes again or waits once.
    `watched`: the checks of an expensive job of HOSTS hosts in its first hour. `heartbeat`: a
    member's daily event. `member`: what a member adds to a sweep and its watch.
    """

    audit: Mapping[str, float]
    price_list: Mapping[str, float]
    sweep: Mapping[str, float]
    duplicate: Mapping[str, float]
    waiting: Mapping[str, float]
    watched: Mapping[str, float]
    heartbeat: Mapping[str, float]
    member: Mapping[str, float]

    def per_job(self, unit: str) -> int:
        """Returns what a job uses of a unit, rounded up."""
        repeated = self.duplicate.get(unit, 0) + self.waiting.get(unit, 0)
        return _round_up(self.audit[unit]) + math.ceil(REPEATED_SHARE * repeated)

    def per_member(self, unit: str) -> float:
        """Returns what a member uses of a unit in a month."""
        each_sweep = self.member.get(unit, 0)
        return SWEEPS * each_sweep + MONTH_DAYS * self.heartbeat.get(unit, 0)


def items(used: Usage) -> tuple[Item, ...]:
    """Returns the items of a month."""
    metrics = used.audit["metrics requested"] + REPEATED_SHARE * used.waiting["metrics requested"]
    return (
        Item("CloudWatch alarms, by the metrics that they watch", "alarms",
             sum(len(watch.sources) for watch in all_alarm_specs(CHANNELS, has_budgets=False))),
        Item("CloudWatch dashboard", "dashboards", 1),
        Item("CloudWatch metrics of its own, while jobs end", "own metrics",
             with_jobs=len(JOB_METRICS) + len(CHANNELS)),
        Item("Secrets Manager: the key of fingerprints, a webhook", "secrets", 2),
        Item("SQS, most of it for polling empty queues", "SQS requests",
             POLLS * len((*QUEUE_MAX_AGE_S, *CHANNELS)), used.per_job("SQS requests"),
             per_member=used.per_member("SQS requests")),
        Item("Lambda (Arm): time, at most", "GB-seconds",
             SWEEPS * (SWEEP_S + WATCH_S),
             AUDIT_GB_S * (1 + 2 * REPEATED_SHARE) + MESSAGE_GB_S,
             per_member=SWEEPS * (MEMBER_SWEEP_S + MEMBER_WATCH_S) + MONTH_DAYS * HEARTBEAT_S),
        Item("Lambda: starts, at most", "GB-seconds",
             2 * SWEEPS * START_S, START_GB_S,
             per_member=MONTH_DAYS * START_S, max_for_jobs=MAX_STARTS * START_GB_S),
        Item("Lambda: invocations", "invocations",
             2 * SWEEPS, used.audit["invocations"] + 2 * REPEATED_SHARE, per_member=MONTH_DAYS),
        Item("CloudWatch GetMetricData", "metrics requested", per_job=HOSTS * metrics),
        Item("the same for expensive running jobs, an hour each", "metrics requested",
             per_job=used.watched["metrics requested"]),
        Item("Lambda for expensive running jobs, an hour each", "GB-seconds",
             per_job=WATCHED_GB_S),
        Item("DynamoDB writes, in transactions", "write units",
             SWEEPS * _round_up(used.sweep["write units"]), used.per_job("write units"),
             with_jobs=MONTH_DAYS * _round_up(used.price_list["write units"]),
             per_member=used.per_member("write units")),
        Item("DynamoDB reads", "read units",
             SWEEPS * _round_up(used.sweep["read units"]),
             used.per_job("read units") + _round_up(used.watched["read units"]),
             per_member=round(used.per_member("read units"), -1)),
        Item("DynamoDB storage and recovery, a year of jobs", "GB-months", 0, 12 * 15e-6),
        Item("CloudWatch Logs", "log kB",
             SWEEPS * _round_up(used.sweep["log kB"]), used.per_job("log kB"),
             per_member=_round_up(used.per_member("log kB"))),
        Item("SNS: one e-mail for each message", "e-mails", per_job=1),
        # A heartbeat: an invocation by a schedule, a custom event, a delivery to another account.
        Item("EventBridge: schedules and heartbeats", "events",
             2 * SWEEPS, per_member=3 * MONTH_DAYS),
    )  # fmt: skip


def _round_up(number: float) -> int:
    """Returns the next multiple of ten, so that a longer document changes nothing here."""
    return math.ceil(number / 10) * 10


def _number_text(number: float) -> str:
    return f"{number:,.6f}".rstrip("0").rstrip(".")


def page(text: str, used: tuple[Item, ...]) -> str:
    """Returns the page with new tables of costs."""
    by_jobs = _table(
        [f"{jobs:,} jobs" for jobs in JOBS],
        {item.name: [item.month(jobs) for jobs in JOBS] for item in used},
        {item.name: _counted_text(item, [*_counted(item)]) for item in used},
    )
    members = [accounts - 1 for accounts in ACCOUNTS]
    growing = [item for item in used if item.per_member]
    fixed = sum((item.month(0) for item in used if not item.per_member), Decimal(0))
    by_accounts = _table(
        ["1 account", *(f"{accounts:,} accounts" for accounts in ACCOUNTS[1:])],
        {item.name: [item.month(0, count) for count in members] for item in growing}
        | {"the other services": [fixed for _ in members]},
        {
            item.name: _counted_text(item, [f"{_number_text(item.per_member)} for each account"])
            for item in growing
        },
    )
    return replace_parts(text, {"cost": by_jobs, "accounts": by_accounts})


def _table(
    columns: Sequence[str], rows: Mapping[str, Sequence[Decimal]], counted: Mapping[str, str]
) -> str:
    """Returns a Markdown table with the sum of each column. `rows` are in USD, by service."""
    lines = [
        "| service | " + " | ".join(columns) + " | counted |",
        "|---|" + "--:|" * len(columns) + "---|",
    ]
    for name, amounts in rows.items():
        cells = " | ".join(f"${usd:,.2f}" for usd in amounts)
        lines.append(f"| {name} | {cells} | {counted.get(name, '')} |")
    sums = (sum(amounts, Decimal(0)) for amounts in zip(*rows.values(), strict=True))
    lines.append("| **together** | " + " | ".join(f"**${usd:,.2f}**" for usd in sums) + " | |")
    return "\n".join(lines)


def _counted_text(item: Item, numbers: Sequence[str]) -> str:
    return f"{item.unit}: {', '.join(numbers)}; ${USD[item.unit]:f} each"


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
