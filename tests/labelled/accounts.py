"""Accounts with known truth, for rules that judge all runs of an account."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Outcome
from sageaudit.domain.policy.policy import Policy
from tests.fakes.accounts import account_outcome
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START

_PLAN = Policy(commitment_usd_per_hour=Decimal(2))
DAYS = 30


class LabelledAccount(Struct, frozen=True):
    """What happened in an account in 30 days, and by rule whether it should be reported."""

    name: str
    happened: str
    runs: tuple[AuditSummary, ...]
    truths: Mapping[str, bool]
    policy: Policy = field(default_factory=Policy)

    def outcome(self, rule: str) -> Outcome:
        """Returns the rule's outcome for the account."""
        return account_outcome(rule, self.runs, days=DAYS, policy=self.policy)

    @property
    def total_usd(self) -> Decimal:
        """The total cost of its runs."""
        return sum((run.total_usd or Decimal(0) for run in self.runs), Decimal(0))


def _every_day(hours: int, usd_per_hour: int, days: int = DAYS) -> tuple[AuditSummary, ...]:
    """Returns one run of this many hours per day, newest first; 24-hour runs have no gaps."""
    seconds = Decimal(hours * 3600)
    return tuple(
        earlier_run(
            ended_at=START - timedelta(days=number),
            owner="ann",
            total_usd=Decimal(hours * usd_per_hour),
            elapsed_s=seconds,
            billable_s=seconds,
        )
        for number in range(days)
    )


def _plan(name: str, happened: str, runs: tuple[AuditSummary, ...], *, true: bool) -> Any:
    return LabelledAccount(name, happened, runs, {"commitment-candidate": true}, _PLAN)


ACCOUNTS: tuple[LabelledAccount, ...] = (
    _plan(
        "training-day-and-night",
        "One run follows the other, all month, for $3 an hour",
        _every_day(24, 3),
        true=True,
    ),
    _plan(
        "office-hours",
        "Runs fill eight hours of each day, for $40 an hour; the nights are empty",
        _every_day(8, 40),
        true=False,
    ),
    _plan(
        "one-busy-week",
        "One week of the month is full, the others are empty",
        _every_day(24, 20, days=7),
        true=False,
    ),
)
