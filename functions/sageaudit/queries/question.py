"""A question about the audits of a history, and the list that answers it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.audit.record import RunIndex
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.queries.window import Window


class SortOrder(enum.StrEnum):
    """The order of rows: by end, newest first, or by an amount, largest first."""

    NEWEST = "newest"
    DURATION = "duration"
    """The time from start to end. Only audits have this order."""
    WAITING = "waiting"
    WASTE = "waste"
    """Avoidable plus lost dollars."""
    TOTAL = "total"
    AVOIDABLE = "avoidable"
    LOST = "lost"
    POSSIBLE = "possible"
    IDLE = "idle"
    JOBS = "jobs"
    """The number of jobs. This order and the following ones are only for sums."""
    FAILED = "failed"
    WASTE_PERCENT = "waste_percent"
    FAILED_PERCENT = "failed_percent"
    IDLE_GPU_HOURS = "idle_gpu_hours"

    @property
    def field(self) -> str:
        """The field of rows to order by. NEWEST has none."""
        unit = "" if self in COUNT_SORTS else "_s" if self in TIME_SORTS else "_usd"
        return f"{self.value}{unit}"

    def amount_of(self, sums: Sums) -> Decimal:
        """Returns the amount of these sums in USD. Raises KeyError for an order without one."""
        return {
            SortOrder.WASTE: sums.waste_usd,
            SortOrder.TOTAL: sums.total_usd,
            SortOrder.AVOIDABLE: sums.avoidable_usd,
            SortOrder.LOST: sums.lost_usd,
            SortOrder.POSSIBLE: sums.possible_usd,
            SortOrder.IDLE: sums.idle_usd,
        }[self]


COUNT_SORTS = (
    SortOrder.JOBS,
    SortOrder.FAILED,
    SortOrder.WASTE_PERCENT,
    SortOrder.FAILED_PERCENT,
    SortOrder.IDLE_GPU_HOURS,
)
TIME_SORTS = (SortOrder.DURATION, SortOrder.WAITING)
AMOUNT_SORTS = tuple(
    sort for sort in SortOrder if sort not in {SortOrder.NEWEST, *TIME_SORTS, *COUNT_SORTS}
)


class Question(Struct, frozen=True):
    """Which audits to show: those of a window that pass all filters, in an order.

    `filters` has the wanted values, by the names in `queries/columns.py`. With the filter `rule`,
    rows are the findings of that rule, and `severity` and `min_usd` apply to the finding.
    """

    window: Window
    filters: Mapping[str, Any] = field(default_factory=dict)
    sort: SortOrder = SortOrder.NEWEST

    @classmethod
    def with_filters(
        cls, window: Window, *, sort: SortOrder = SortOrder.NEWEST, **filters: Any
    ) -> Question:
        """Returns a question with these filters. None, False or an empty map is no filter."""
        return cls(
            window, {name: value for name, value in filters.items() if _is_filter(value)}, sort
        )

    def with_changed_filters(self, **filters: Any) -> Question:
        """Returns the same question with other values of some filters."""
        return Question.with_filters(self.window, sort=self.sort, **{**self.filters, **filters})

    @property
    def rule(self) -> str | None:
        """The rule whose findings are asked for."""
        return self.filters.get("rule")

    @property
    def family(self) -> str | None:
        """The family of the jobs."""
        return self.filters.get("family")

    @property
    def owner(self) -> str | None:
        """The owner of the jobs."""
        return self.filters.get("owner")

    @property
    def account(self) -> str | None:
        """The account of the jobs."""
        return self.filters.get("account")

    @property
    def region(self) -> str | None:
        """The AWS region of the jobs."""
        return self.filters.get("region")

    @property
    def severity(self) -> Severity | None:
        """The lowest severity to show."""
        return self.filters.get("severity")

    @property
    def min_usd(self) -> Decimal | None:
        """The minimum of avoidable plus lost dollars, or of a finding's saving."""
        return self.filters.get("min_usd")

    @property
    def index(self) -> RunIndex:
        """The list with the fewest rows to read: of a rule, family, owner, account or day."""
        indexes = (RunIndex.RULE, RunIndex.FAMILY, RunIndex.OWNER, RunIndex.ACCOUNT)
        return next(
            (index for index in indexes if index.name.lower() in self.filters), RunIndex.DAY
        )


def _is_filter(value: object) -> bool:
    return value is not None and value is not False and value != {}
