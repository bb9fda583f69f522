"""The lines that are compared: SageMaker's spend as AWS reports it, and the bill lines of audits.

A usage type such as `USE1-Train:ml.m5.large` is a region prefix, a role and a type. The prefix is
never converted to a region or back, because prefixes are irregular (APS3 is ap-south-1). The roles
are those of price lists and bills. The roles of Canvas, Feature Store, Data Wrangler and Ground
Truth are assumed to be the products' names. An unlisted role counts as "other".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from sageaudit.domain.audit.bill_document import LineDocument
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.job.kinds import BILLED_KINDS
from sageaudit.domain.prices.price_list import ROLES, SPOT_ROLE, STORAGE, spot_usage_types
from sageaudit.structs import replace

USAGE_TYPES = ("Usage", "DiscountedUsage", "SavingsPlanCoveredUsage")
"""The line item types (record types in Cost Explorer) that are usage.

Usage covered by a Savings Plan is included at its on-demand price. The plan's negations, credits,
refunds, taxes and fees are not usage."""

JOBS = "jobs"
"""The area that audits cover. Spend in other areas is not audited."""
MANAGED_SPOT = "managed spot (TrSpt), compared with no job"
OTHER = "other"

_PREFIX = re.compile(r"[A-Z]{2,4}\d?-")
_AREAS = (
    ("traindebug", "free Debugger and Monitor rules"),
    ("monitorfreetier", "free Debugger and Monitor rules"),
    ("trainingplan", "training plans"),
    ("serverlessinf", "endpoints"),
    ("asyncinf", "endpoints"),
    ("host", "endpoints"),
    ("notebk", "notebooks"),
    ("notebook", "notebooks"),
    ("studio", "Studio"),
    ("rstudio", "Studio"),
    ("cluster", "HyperPod"),
    ("canvas", "Canvas"),
    ("featurestore", "Feature Store"),
    ("datawrangler", "Data Wrangler"),
    ("groundtruth", "Ground Truth"),
    (SPOT_ROLE.lower(), MANAGED_SPOT),
)
"""The beginning of a role in lower case, and the role's area."""
_ROLE_OF_KIND = {kind.value: ROLES[kind.spec.component] for kind in BILLED_KINDS}
_JOB_ROLES = frozenset(role.lower() for role in ROLES.values())

_TYPE = re.compile(r"\bml\.[a-z0-9-]+\.[a-z0-9-]+")
HOURS = "Hrs"
"""The unit of instance hours in bills and price lists."""
_MONTH = re.compile(r"\b\d{4}-\d{2}\b(?!-)")
"""A month that is not part of a date, since notes also contain the dates of prices."""


class AwsLine(NamedTuple):
    """One line of usage and cost as AWS metered it.

    `resource` is set if the source lists resources. The class is a tuple, because a bill has
    hundreds of thousands of lines.
    """

    usage_type: str
    region: str | None
    unit: str
    quantity: Decimal
    usd: Decimal
    resource: str | None = None


class ExcludedLines(Struct, frozen=True):
    """The lines of one kind that is not usage: credits, refunds, taxes or fees."""

    kind: str
    line_count: int
    usd: Decimal


class UnlistedJobs(Struct, frozen=True):
    """Sums of jobs without an audit whose lines are not listed.

    `rows`: the pairs of a job and a usage type.
    """

    jobs: int = 0
    rows: int = 0
    usd: Decimal = Decimal(0)


class AwsSpend(Struct, frozen=True):
    """The usage that AWS reports, and the lines that are not usage.

    `unlisted`: the usage of jobs that is in no line.
    """

    lines: tuple[AwsLine, ...]
    excluded: tuple[ExcludedLines, ...] = ()
    unlisted: UnlistedJobs = UnlistedJobs()

    @property
    def managed_spot(self) -> tuple[str, ...]:
        """The usage types with managed-Spot rates, sorted. No figure uses them."""
        return spot_usage_types(line.usage_type for line in self.lines)


class PaidUsage(Struct, frozen=True):
    """Usage of one account and usage type from `first_day` to `last_day` (UTC, both included).

    `line_count`, `quantity` (instance-hours or GB-months) and `usd` (after discounts) are sums over
    the lines with a cost. `covered_quantity` is the quantity that a Savings Plan paid for.
    `cost_decimals` is the most decimals of a cost. `list_rate` is AWS's public price per unit.
    `largest_line` says where the line with the highest cost is.
    """

    account: str
    usage_type: str
    region: str | None
    unit: str
    first_day: date
    last_day: date
    cost_decimals: int
    line_count: int
    quantity: Decimal
    usd: Decimal
    covered_quantity: Decimal
    list_rate: Decimal | None
    largest_usd: Decimal
    largest_line: str = ""

    @property
    def price(self) -> Decimal:
        """USD per unit, for usage with a cost."""
        return self.usd / self.quantity

    def combined_with(self, later_usage: PaidUsage) -> PaidUsage:
        """Returns the sum of two usages, which must be of the same product."""
        largest = max(self, later_usage, key=lambda usage: usage.largest_usd)
        return replace(
            largest,
            first_day=min(self.first_day, later_usage.first_day),
            last_day=max(self.last_day, later_usage.last_day),
            line_count=self.line_count + later_usage.line_count,
            quantity=self.quantity + later_usage.quantity,
            usd=self.usd + later_usage.usd,
            covered_quantity=self.covered_quantity + later_usage.covered_quantity,
            list_rate=later_usage.list_rate or self.list_rate,
        )


class PaidReport(Struct, frozen=True):
    """The SageMaker usage in a cost report.

    `excluded` are the lines that are not usage with a price. `duplicate_lines` is the number of
    lines that are in several files; each is counted once.
    """

    usage: tuple[PaidUsage, ...]
    excluded: tuple[ExcludedLines, ...] = ()
    duplicate_lines: int = 0


class UsageType(Struct, frozen=True):
    """A usage type without its region prefix. Compare by `key`, since newer SKUs differ in case."""

    role: str
    resource: str

    @property
    def key(self) -> str:
        """A key that is equal for usage types that differ only in prefix or case."""
        return f"{self.role}:{self.resource}".lower()

    @property
    def text(self) -> str:
        """The usage type, such as `Train:ml.m5.large`."""
        return f"{self.role}:{self.resource}" if self.resource else self.role

    @property
    def area(self) -> str:
        """The part of SageMaker that the usage belongs to."""
        role = self.role.lower()
        if role in _JOB_ROLES:
            return JOBS
        return next((area for start, area in _AREAS if role.startswith(start)), OTHER)


@lru_cache(maxsize=4_096)  # a bill of a million lines has a few hundred usage types
def parse_usage_type(usage_type: str) -> UsageType:
    """Returns a usage type's parts. A text without a colon is a role with an empty `resource`."""
    prefix = _PREFIX.match(usage_type)
    role, _, resource = usage_type[prefix.end() if prefix else 0 :].partition(":")
    return UsageType(role, resource)


def job_usage_type(kind: str, resource: str) -> UsageType | None:
    """Returns the usage type of a line of a job's bill; None for kinds of job without a bill.

    `kind`: the value of a JobKind. `resource`: an instance type, or STORAGE for a volume.
    """
    role = _ROLE_OF_KIND.get(kind)
    return None if role is None else UsageType(role, resource)


class AuditedLine(Struct, frozen=True):
    """One line of one job's bill. `usage` is None if no usage type is known, as for warm pools."""

    job: str
    name: str
    region: str | None
    item: str
    usage_type: str | None
    usage: UsageType | None
    unit: str
    quantity: Decimal | None
    usd: Decimal | None
    is_metered: bool
    """False for training plan capacity and free Debugger rules, which AWS meters elsewhere."""
    crosses_month: bool
    """Whether the job ran past the end of a month. AWS may have metered a part in another month."""
    is_estimated: bool = False
    """Whether the line's rate is an estimate. Its quantity is comparable with AWS's, its dollars
    only roughly."""


class AuditedMonth(Struct, frozen=True):
    """The audited lines of a month, and numbers of jobs and lines.

    `jobs`: the jobs with lines. `rollups`, `unauditable_jobs` and `running_jobs`: the jobs without
    lines. `unpaid_lines`: the lines that are left out because AWS meters them elsewhere.
    """

    lines: tuple[AuditedLine, ...]
    jobs: int = 0
    rollups: int = 0
    unauditable_jobs: int = 0
    running_jobs: int = 0
    unpaid_lines: int = 0

    @property
    def estimated_lines(self) -> int:
        """The number of lines at an estimated rate. The history's sums include these lines."""
        return sum(line.is_estimated for line in self.lines)

    @property
    def estimated_usd(self) -> Decimal:
        """The dollars of the lines at an estimated rate."""
        amounts = (line.usd for line in self.lines if line.is_estimated and line.usd is not None)
        return sum(amounts, Decimal(0))


def lines_from_audit(document: AuditDocument, month: str | None) -> Iterator[AuditedLine]:
    """Yields the bill lines of an audit that belong to `month` (YYYY-MM, UTC); all lines for None.

    A storage line belongs to the month in its note, any other line to the month of the job's end.
    Lines of quantity 0 are left out: AWS does not bill them.
    """
    job = document["job"]
    end_month = (job["ended_at"] or job["created_at"] or "")[:7]
    start_month = (job["started_at"] or end_month)[:7]
    for line in document["bill"]["lines"]:
        if line["quantity"] == 0 or month not in {None, _billing_month(line, end_month)}:
            continue
        yield AuditedLine(
            job=job["arn"] or job["name"],
            name=job["name"],
            region=job["region"],
            item=line["item"],
            usage_type=line["usage_type"],
            usage=_usage(document, line),
            unit=line["unit"],
            quantity=line["quantity"],
            usd=line["usd"],
            is_metered=line["rate_usd"] is None or line["rate_usd"] != 0,
            crosses_month=start_month != end_month,
            is_estimated=line["price_kind"] == "estimate",
        )


def full_usage_type(line: AuditedLine) -> str:
    """Returns the usage type as Cost Explorer lists it, such as USE1-Train:ml.m5.large.

    It has no prefix if its region's prefix is unknown. AWS documents no usage type for warm pools.
    """
    if line.usage_type is not None:
        return line.usage_type
    return line.usage.text if line.usage else f"{line.item.replace('_', ' ')}, usage type unknown"


def usage_unit(usage_type: str) -> str:
    """Returns the unit of a usage type's quantity, as Cost Explorer writes it."""
    return "GB-Mo" if "VolumeUsage" in usage_type or "storage" in usage_type else HOURS


def _billing_month(line: LineDocument, end_month: str) -> str:
    if not line["item"].endswith("storage"):
        return end_month
    match = _MONTH.search(line["note"] or "")
    return match[0] if match else end_month


def _usage(document: AuditDocument, line: LineDocument) -> UsageType | None:
    if line["usage_type"]:
        return parse_usage_type(line["usage_type"])
    kind = document["job"]["kind"]
    if line["item"] == "storage":
        return job_usage_type(kind, STORAGE)
    if line["item"] != "compute":
        return None
    noted_types = _TYPE.findall(line["note"] or "")
    types = noted_types[:1] or list(
        dict.fromkeys(_TYPE.findall(document["job"]["instances"] or ""))
    )
    return job_usage_type(kind, types[0]) if len(types) == 1 else None
