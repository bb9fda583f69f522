"""The filters of the commands that list audits, and the question that they ask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation

import click

from sageaudit.cli import options
from sageaudit.cli.support.history import asking
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage
from sageaudit.queries.lists import Lists
from sageaudit.queries.names import whole_family
from sageaudit.queries.question import Question, Sort
from sageaudit.queries.window import window


@dataclass(frozen=True, slots=True)
class Filters:
    """Which audits to show. `since` None: the command has its own default."""

    since: str | None
    until: str | None
    rule: str | None
    family: str | None
    owner: str | None
    account: str | None
    region: str | None
    kind: JobKind | None
    status: str | None
    severity: Severity | None
    min_usd: str | None
    min_bill: str | None
    no_owner: bool
    type: str | None
    count: int | None
    purchase: Purchase | None

    def question(self, now: datetime, sort: Sort = Sort.NEWEST, since: str = "30d") -> Question:
        """The question that they ask; `since`, where they have none. Raises BadUsage."""
        return Question(
            window=window(since if self.since is None else self.since, self.until, now),
            rule=None if self.rule is None else asking.rule_named(self.rule),
            family=self.family,
            owner=self.owner,
            account=self.account,
            region=self.region,
            kind=self.kind,
            status=None if self.status is None else self.status.replace("-", " "),
            severity=self.severity,
            min_usd=_dollars("--min-usd", self.min_usd),
            min_bill=_dollars("--min-bill", self.min_bill),
            no_owner=self.no_owner,
            instance_type=None if self.type is None else f"ml.{self.type.removeprefix('ml.')}",
            count=self.count,
            purchase=self.purchase,
            sort=sort,
        )


def filters(default_since: str | None = "30d", shown: str | None = None) -> options.Decorator:
    """The filters of a question about audits."""
    return options.together(
        "filters",
        Filters,
        asking.since(default_since, shown),
        asking.UNTIL,
        asking.RULE,
        asking.FAMILY,
        asking.OWNER,
        asking.ACCOUNT,
        asking.REGION,
        click.option("--kind", type=options.EnumChoice(JobKind), help="Kind of job."),
        click.option("--status", help='Completed, Failed, Stopped or "never started".'),
        click.option(
            "--severity",
            type=options.SEVERITIES,
            help="Jobs with a finding of this severity or a higher one.",
        ),
        click.option(
            "--min-usd", metavar="USD", help="Jobs with as many avoidable and lost dollars."
        ),
        click.option("--min-bill", metavar="USD", help="Jobs that cost as much."),
        click.option("--no-owner", is_flag=True, help="Jobs without an owner."),
        click.option("--type", help="Jobs on this instance type, as ml.g5.xlarge."),
        click.option("--count", type=options.ROWS, help="Jobs on so many instances."),
        click.option(
            "--purchase", type=options.EnumChoice(Purchase), help="How capacity was bought."
        ),
    )


def named(lists: Lists, question: Question) -> Question:
    """The question about the family that is meant. Raises BadUsage where it may be several."""
    if question.family is None:
        return question
    return replace(question, family=whole_family(lists, question.family))


def _dollars(option: str, text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise BadUsage(f"{option} {text} is not an amount in USD, such as 0.50")
    return amount
