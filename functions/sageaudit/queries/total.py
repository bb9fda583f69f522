"""A row of sums: what is known of the jobs of a family, an owner, a week, ..."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums, add_sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.reconcile.lines import usage_unit
from sageaudit.queries.columns import GROUPABLE, Column
from sageaudit.queries.question import SortOrder
from sageaudit.structs import replace

_ZERO = Decimal(0)


class SumsRow(Struct, frozen=True, kw_only=True):
    """The sums of the jobs with the same values of one or two columns, which come first.

    Counts are of jobs, without roll-ups. An amount is None where none of it is known; where a part
    is not, `avoidable_unknown`, ... say of how many jobs. What daily sums do not have (OF_RUNS) is
    known where each audit was read; medians are of bills above $0, and of all waits. The fields
    from `first_day` on are those of a day, a week or a month; an amount `before` is that of the
    period before, None where the history does not cover it.
    """

    family: str | None = None
    owner: str | None = None
    account: str | None = None
    region: str | None = None
    kind: str | None = None
    instance_type: str | None = None
    purchase: str | None = None
    status: str | None = None
    rule: str | None = None
    judged: str | None = None
    reason: str | None = None
    image: str | None = None
    usage_type: str | None = None
    instance_count: int | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    period: str | None = None
    sums: Sums
    has_rule_dollars: bool = False
    """Whether the dollars of findings, and their counts, are those of `sums.rules`."""
    is_usage_type: bool = False
    """Whether they are parts of bills, which no finding has."""
    nothing_judged: bool = False
    """Whether a rule could not look at all of the jobs, so that dollars that it did not find are
    not known."""
    before: SumsRow | None = None
    """The period before, as far as it is compared with."""
    share_percent: Decimal | None = None
    """Its part of the dollars of all rows (of its period), and that of all rows up to it."""
    cumulative_percent: Decimal | None = None
    instance_hours: Decimal | None = None
    gpu_hours: Decimal | None = None
    idle_gpu_hours: Decimal | None = None
    storage_usd: Decimal | None = None
    warm_pool_usd: Decimal | None = None
    spot_saved_usd: Decimal | None = None
    usage_quantity: Decimal | None = None
    """Of a usage type: hours, or GB-months of volumes (`usage_unit`)."""
    median_usd: Decimal | None = None
    median_waiting_s: int | None = None
    first_day: date | None = None
    last_day: date | None = None
    days: int | None = None
    """Its days, while it lasts those so far."""
    over: bool | None = None
    """False while the period lasts: it is then compared with as many days of the one before."""
    projected_usd: Decimal | None = None
    """The spend of a period that lasts, if each day left costs what the days that are over did."""

    @property
    def jobs(self) -> int:
        """How many jobs."""
        return self.sums.jobs

    @property
    def failed(self) -> int:
        """Without those that never started."""
        return self.sums.failed

    @property
    def unauditable(self) -> int:
        """Jobs without an audit that says anything."""
        return self.sums.unauditable

    @property
    def not_judged(self) -> int:
        """Jobs of which nothing could be judged."""
        return self.sums.not_judged

    @property
    def partly_judged(self) -> int:
        """Jobs of which a part could be judged."""
        return self.sums.partly_judged

    @property
    def unpriced(self) -> int:
        """Jobs whose total is not known."""
        return self.sums.unpriced

    @property
    def incomplete(self) -> int:
        """Jobs whose known total lacks a part."""
        return self.sums.incomplete

    @property
    def upper_bounds(self) -> int:
        """Jobs whose total is an upper bound."""
        return self.sums.upper_bounds

    @property
    def estimated(self) -> int:
        """Jobs whose dollars rest on an estimated rate."""
        return self.sums.estimated

    @property
    def idle_unknown(self) -> int:
        """Jobs whose idle capacity has no known value."""
        return self.sums.idle_unknown

    @property
    def avoidable_unknown(self) -> int:
        """Jobs whose avoidable dollars are not known; of rules findings, as all that follow."""
        return (
            self._rules.avoidable_unknown if self.has_rule_dollars else self.sums.avoidable_unknown
        )

    @property
    def lost_unknown(self) -> int:
        """The same of lost dollars."""
        return self._rules.lost_unknown if self.has_rule_dollars else self.sums.lost_unknown

    @property
    def possible_unknown(self) -> int:
        """The same of possible ones, of which a part may be known."""
        return self._rules.possible_unknown if self.has_rule_dollars else self.sums.possible_unknown

    @property
    def total_usd(self) -> Decimal | None:
        """The spend."""
        return self.sums.known_total_usd

    @property
    def spend_qualifier(self) -> SpendQualifier:
        """How exactly the total is known."""
        return self.sums.spend_qualifier

    @property
    def judged_usd(self) -> Decimal | None:
        """The spend on jobs that could be judged."""
        known = self.total_usd is not None and not self.is_usage_type
        return self.sums.judged_usd if known else None

    @property
    def idle_usd(self) -> Decimal | None:
        """The value of idle capacity."""
        return None if self.is_usage_type else self.sums.known_idle_usd

    @property
    def costliest_rule(self) -> str | None:
        """The rule with the most avoidable and lost dollars."""
        ranked = () if self.is_usage_type else ranked_rules(self.sums)
        return next((name for name, _ in ranked), None)

    @property
    def avoidable_usd(self) -> Decimal | None:
        """Of all jobs; of rules, what their findings count."""
        return self._rule_dollars(self._known_usd(Bucket.AVOIDABLE))

    @property
    def lost_usd(self) -> Decimal | None:
        """The same of lost dollars."""
        return self._rule_dollars(self._known_usd(Bucket.LOST))

    @property
    def possible_usd(self) -> Decimal | None:
        """The same of possible ones."""
        return self._rule_dollars(self._known_usd(Bucket.POSSIBLE))

    @property
    def avoidable_up_to_usd(self) -> Decimal | None:
        """The upper ends of what rules found; of all jobs' sums, only lost dollars have one."""
        return self._rule_dollars(self._upper_end(Bucket.AVOIDABLE, self.sums.known_avoidable_usd))

    @property
    def lost_up_to_usd(self) -> Decimal | None:
        """The same of lost dollars."""
        return self._rule_dollars(self._upper_end(Bucket.LOST, self.sums.known_lost_up_to_usd))

    @property
    def possible_up_to_usd(self) -> Decimal | None:
        """The same of possible ones."""
        return self._rule_dollars(self._upper_end(Bucket.POSSIBLE, self.sums.known_possible_usd))

    @property
    def waste_usd(self) -> Decimal | None:
        """The avoidable and lost dollars that are known; 0 only where both are."""
        parts = (self._known_usd(Bucket.AVOIDABLE), self._known_usd(Bucket.LOST))
        wasted = sum((usd for usd in parts if usd is not None), _ZERO)
        return self._rule_dollars(wasted if wasted or None not in parts else None)

    @property
    def _rules(self) -> RuleSums:
        return sum(self.sums.rules.values(), RuleSums())

    def _known_usd(self, bucket: Bucket) -> Decimal | None:
        if self.has_rule_dollars:
            return self._rules.known_usd(bucket)
        usd: Decimal | None = getattr(self.sums, f"known_{bucket}_usd")
        return usd

    def _upper_end(self, bucket: Bucket, of_jobs_usd: Decimal | None) -> Decimal | None:
        return self._rules.max_usd(bucket) if self.has_rule_dollars else of_jobs_usd

    def _rule_dollars(self, usd: Decimal | None) -> Decimal | None:
        """What is known of dollars that rules found."""
        return None if self.is_usage_type or (self.nothing_judged and not usd) else usd

    @property
    def total_before_usd(self) -> Decimal | None:
        """The spend of the period before."""
        return self.before.total_usd if self.before else None

    @property
    def spend_qualifier_before(self) -> SpendQualifier | None:
        """How exactly that is known."""
        return self.before.spend_qualifier if self.before else None

    @property
    def total_change_percent(self) -> Decimal | None:
        """How much more it is than before."""
        return percent_change(self.total_usd, self.total_before_usd)

    @property
    def waste_before_usd(self) -> Decimal | None:
        """The avoidable and lost dollars of the period before."""
        return self.before.waste_usd if self.before else None

    @property
    def waste_change_percent(self) -> Decimal | None:
        """How much more they are than before."""
        return percent_change(self.waste_usd, self.waste_before_usd)

    @property
    def waste_percent(self) -> Decimal | None:
        """Which part of the judged spend is avoidable or lost; None where more was lost, by jobs
        that could not be judged.
        """
        known = self.judged_usd and self.waste_usd is not None and self.waste_usd <= self.judged_usd
        return _share(self.waste_usd, self.judged_usd) if known else None

    @property
    def failed_percent(self) -> Decimal | None:
        """Which part of the jobs failed."""
        return _share(Decimal(self.failed), Decimal(self.jobs))

    @property
    def idle_percent(self) -> Decimal | None:
        """Which part of the GPU hours was not used."""
        return _share(self.idle_gpu_hours, self.gpu_hours)

    @property
    def usage_unit(self) -> str | None:
        """The unit of the quantity, as Cost Explorer writes it."""
        return None if self.usage_type is None else usage_unit(self.usage_type)

    @property
    def usd_per_hour(self) -> Decimal | None:
        """What an hour of an instance cost, with storage and warm pools."""
        hours, usd = self.instance_hours, self.total_usd
        return None if usd is None or not hours else usd / hours

    @property
    def weekday(self) -> str | None:
        """Of a day."""
        return (
            f"{self.first_day:%a}" if self.first_day and self.first_day == self.last_day else None
        )


SUMMED_RUN_FIELDS = (
    "instance_hours",
    "gpu_hours",
    "idle_gpu_hours",
    "storage_usd",
    "warm_pool_usd",
    "spot_saved_usd",
    "usage_quantity",
)
"""What is added up of the jobs."""
RUN_FIELDS = (*SUMMED_RUN_FIELDS, "idle_percent", "usd_per_hour", "median_usd", "median_waiting_s")
"""What daily sums do not know."""


class JobPart(Struct, frozen=True):
    """A job as it is added up: all of it, what a rule found in it, or a usage type of its bill."""

    summary: AuditSummary
    sums: Sums
    rule: str | None = None
    usage_type: str | None = None

    def column_value(self, column: Column) -> Any:
        """What it is counted under."""
        own = {"rule": self.rule, "usage_type": self.usage_type}
        return own[column.name] if column.name in own else column.value_of(self.summary)

    def field_value(self, name: str) -> Any:
        """What it adds to a field of OF_RUNS, or its bill, or how long it waited; of a usage type
        the quantity, the dollars and the wait alone.
        """
        job = self.summary
        if self.usage_type is None:
            return None if name == "usage_quantity" else getattr(job, name)
        of_usage = {"usage_quantity": job.usage_quantities, "total_usd": job.usage_costs}
        if name in of_usage:
            return (of_usage[name] or {}).get(self.usage_type)
        return None if name in SUMMED_RUN_FIELDS else getattr(job, name)


def run_field_sums(parts: Sequence[JobPart]) -> dict[str, Any]:
    """The fields of OF_RUNS that a row of sums stores, of its jobs."""
    known: dict[str, list[Any]] = {
        name: [value for part in parts if (value := part.field_value(name)) is not None]
        for name in (*SUMMED_RUN_FIELDS, "total_usd", "waiting_s")
    }
    bills, waits = filter(None, known.pop("total_usd")), known.pop("waiting_s")
    found: dict[str, Any] = {name: sum(of) if of else None for name, of in known.items()}
    found["median_usd"] = median(of) if (of := [*bills]) else None
    return found | {"median_waiting_s": round(median(waits)) if waits else None}


def combine(rows: Iterable[SumsRow]) -> SumsRow:
    """All rows as one."""
    each = [*rows]
    sums = add_sums([row.sums for row in each])
    of_rules = any(row.has_rule_dollars for row in each)
    return SumsRow(
        sums=sums, has_rule_dollars=of_rules, is_usage_type=any(row.is_usage_type for row in each)
    )


def _share(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    return None if part is None or not whole else 100 * part / whole


def add_shares(rows: Iterable[SumsRow], name: str) -> Iterator[SumsRow]:
    """The rows with their parts of the sum of this amount in their period, and so far in it."""
    each = [*rows]
    whole: dict[date | None, Decimal] = defaultdict(Decimal)
    so_far = whole.copy()
    for row in each:
        whole[row.first_day] += getattr(row, name) or _ZERO
    for row in each:
        amount = getattr(row, name)
        so_far[row.first_day] += amount or _ZERO
        yield replace(
            row,
            share_percent=_share(amount, whole[row.first_day]),
            cumulative_percent=_share(so_far[row.first_day], whole[row.first_day]),
        )


def percent_change(now_usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    """How much more it is than before; None where either is not known, or there was nothing."""
    return None if now_usd is None or not before_usd else 100 * (now_usd - before_usd) / before_usd


def sort_rows(totals: Iterable[SumsRow], sort: SortOrder) -> list[SumsRow]:
    """In the order of their periods, the largest waste first in each; else by the amount asked."""
    in_time = sort is SortOrder.NEWEST
    amount = (SortOrder.WASTE if in_time else sort).field

    def order(of: SumsRow) -> tuple[object, ...]:
        day = (in_time and of.first_day) or date.min
        names = (*(column.value_of(of) for column in GROUPABLE.values()), *of.tags.values())
        first: Decimal = getattr(of, amount) or _ZERO
        return day, -first, -(of.total_usd or _ZERO), *(str(name or "") for name in names)

    return sorted(totals, key=order)
