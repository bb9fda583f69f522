"""A question about the audits of a history, and the list that answers it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct, field
from msgspec.structs import fields

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.record import RunIndex
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.queries.window import Window


class Sort(enum.StrEnum):
    """The order of rows: by end, newest first, or by an amount, largest first."""

    NEWEST = "newest"
    DURATION = "duration"
    """Of audits alone, from start to end, and so is WAITING, from creation to start."""
    WAITING = "waiting"
    WASTE = "waste"
    """Avoidable plus lost dollars."""
    TOTAL = "total"
    AVOIDABLE = "avoidable"
    LOST = "lost"
    POSSIBLE = "possible"
    IDLE = "idle"
    JOBS = "jobs"
    """Of sums alone, as all that follow."""
    FAILED = "failed"
    WASTE_PERCENT = "waste_percent"
    FAILED_PERCENT = "failed_percent"
    IDLE_GPU_HOURS = "idle_gpu_hours"

    @property
    def field(self) -> str:
        """The field of rows that it orders by; of NEWEST none."""
        unit = "" if self in COUNTS else "_s" if self in TIMES else "_usd"
        return f"{self.value}{unit}"

    def of(self, sums: Sums) -> Decimal:
        """The amount in USD of these sums. Raises KeyError for what is none of AMOUNTS."""
        return {
            Sort.WASTE: sums.waste_usd,
            Sort.TOTAL: sums.total_usd,
            Sort.AVOIDABLE: sums.avoidable_usd,
            Sort.LOST: sums.lost_usd,
            Sort.POSSIBLE: sums.possible_usd,
            Sort.IDLE: sums.idle_usd,
        }[self]


COUNTS = (
    *(Sort.JOBS, Sort.FAILED, Sort.WASTE_PERCENT, Sort.FAILED_PERCENT),
    Sort.IDLE_GPU_HOURS,
)
TIMES = (Sort.DURATION, Sort.WAITING)
AMOUNTS = tuple(sort for sort in Sort if sort not in {Sort.NEWEST, *TIMES, *COUNTS})


def _leaves_out(value: object) -> bool:
    return value is not None and value is not False and value != {}


class Question(Struct, frozen=True):
    """Which audits to show; None leaves out none. `severity`: this one or a higher one.

    With `rule`, rows are the findings of that rule, and `severity` and `min_usd` are about the
    finding. `min_usd` is of avoidable plus lost dollars otherwise, `min_percent` their part of the
    bill, `min_bill` of the bill, `min_hours` from start to end. `image`: a part of its name.
    `no_owner`: only jobs without one. `tag`: values of cost tags, "" for a job that lacks it.
    """

    window: Window
    rule: str | None = None
    family: str | None = None
    owner: str | None = None
    account: str | None = None
    region: str | None = None
    kind: JobKind | None = None
    status: str | None = None
    severity: Severity | None = None
    min_usd: Decimal | None = None
    min_bill: Decimal | None = None
    min_percent: Decimal | None = None
    min_hours: Decimal | None = None
    no_owner: bool = False
    no_price: bool = False
    interrupted: bool = False
    judged: Judged | None = None
    reason: str | None = None
    image: str | None = None
    type: str | None = None
    count: int | None = None
    purchase: Purchase | None = None
    tag: Mapping[str, str] = field(default_factory=dict)
    sort: Sort = Sort.NEWEST

    @property
    def filters(self) -> dict[str, Any]:
        """The filters that leave something out, by name."""
        asked = {of.name: getattr(self, of.name) for of in fields(self)[1:-1]}
        return {name: value for name, value in asked.items() if _leaves_out(value)}

    @property
    def index(self) -> RunIndex:
        """The list with the fewest rows to read: findings of a rule, a family, an owner, ..."""
        indexes = (RunIndex.RULE, RunIndex.FAMILY, RunIndex.OWNER, RunIndex.ACCOUNT)
        asked = self.filters
        return next((of for of in indexes if of.name.lower() in asked), RunIndex.DAY)
