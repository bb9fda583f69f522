"""A row of sums: the jobs and amounts of a family, an owner, a week and so on."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from statistics import median, median_high, median_low
from typing import Any

from msgspec import Struct, field
from msgspec.structs import astuple

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.ranking import ranked_rules
from sageaudit.domain.audit.sum_parts import MicroSums, RunFigures, from_micro_usd
from sageaudit.domain.audit.sums import RuleSums, Sums, add_sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.reconcile.lines import usage_unit
from sageaudit.queries.columns import GROUPABLE
from sageaudit.queries.question import SortOrder
from sageaudit.structs import replace

_ZERO = Decimal(0)
_HOUR_S = 3600


class SumsRow(Struct, frozen=True, kw_only=True):
    """The sums of the jobs with the same values of one or two columns.

    The first fields are the columns' values. Counts do not include roll-ups. An amount is None if
    no job's amount is known. Fields such as `avoidable_unknown` count the jobs whose amount is
    missing.

    RUN_FIELDS are known only if each audit was read. Medians are of bills above $0 and of all
    waiting times. The fields from `first_day` on describe a day, week or month.
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
    """Whether the dollars and counts of findings come from `sums.rules`."""
    is_usage_type: bool = False
    """Whether the sums are of a usage type, a part of bills. No finding belongs to a usage type."""
    nothing_judged: bool = False
    """Whether a rule could judge none of the jobs. Its dollars are then unknown, not 0."""
    before: SumsRow | None = None
    """The sums of the previous period. For the current period, they are of the same number of the
    previous period's first days. None if the history does not cover these days.
    """
    share_percent: Decimal | None = None
    """The row's percentage of its period's dollars. `cumulative_percent` adds all rows above."""
    cumulative_percent: Decimal | None = None
    instance_hours: Decimal | None = None
    gpu_hours: Decimal | None = None
    idle_gpu_hours: Decimal | None = None
    storage_usd: Decimal | None = None
    warm_pool_usd: Decimal | None = None
    spot_saved_usd: Decimal | None = None
    usage_quantity: Decimal | None = None
    """The quantity of a usage type: hours, or GB-months of volumes."""
    median_usd: Decimal | None = None
    median_waiting_s: int | None = None
    first_day: date | None = None
    last_day: date | None = None
    days: int | None = None
    """The number of days; for the current period, of days so far."""
    over: bool | None = None
    """False for the current period, which is compared with the first days of the previous one."""
    projected_usd: Decimal | None = None
    """The projected spend of the current period. Each remaining day costs the average of finished
    days."""

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return self.sums.jobs

    @property
    def failed(self) -> int:
        """The number of jobs that failed, without those that never started."""
        return self.sums.failed

    @property
    def unauditable(self) -> int:
        """The number of jobs whose audit could not be made."""
        return self.sums.unauditable

    @property
    def not_judged(self) -> int:
        """The number of jobs that could not be judged at all."""
        return self.sums.not_judged

    @property
    def partly_judged(self) -> int:
        """The number of jobs that could be judged only in part."""
        return self.sums.partly_judged

    @property
    def unpriced(self) -> int:
        """The number of jobs whose total is unknown."""
        return self.sums.unpriced

    @property
    def incomplete(self) -> int:
        """The number of jobs whose known total lacks a part."""
        return self.sums.incomplete

    @property
    def upper_bounds(self) -> int:
        """The number of jobs whose total is an upper bound."""
        return self.sums.upper_bounds

    @property
    def estimated(self) -> int:
        """The number of jobs whose dollars are based on an estimated rate."""
        return self.sums.estimated

    @property
    def idle_unknown(self) -> int:
        """The number of jobs whose idle capacity has no known value."""
        return self.sums.idle_unknown

    @property
    def avoidable_unknown(self) -> int:
        """The number of jobs, or of a rule's findings, without known avoidable dollars."""
        return (
            self._rule_sums.avoidable_unknown
            if self.has_rule_dollars
            else self.sums.avoidable_unknown
        )

    @property
    def lost_unknown(self) -> int:
        """The number of jobs, or of a rule's findings, without known lost dollars."""
        return self._rule_sums.lost_unknown if self.has_rule_dollars else self.sums.lost_unknown

    @property
    def possible_unknown(self) -> int:
        """The number of jobs whose possible dollars are not all known.

        If the row has the dollars of one rule, the number of that rule's findings instead.
        """
        return (
            self._rule_sums.possible_unknown
            if self.has_rule_dollars
            else self.sums.possible_unknown
        )

    @property
    def total_usd(self) -> Decimal | None:
        """The spend in USD."""
        return self.sums.known_total_usd

    @property
    def spend_qualifier(self) -> SpendQualifier:
        """How exactly the total is known: about, at least or at most."""
        return self.sums.spend_qualifier

    @property
    def judged_usd(self) -> Decimal | None:
        """The spend on jobs that could be judged."""
        is_known = self.total_usd is not None and not self.is_usage_type
        return self.sums.judged_usd if is_known else None

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
        """The avoidable dollars; in a row of a rule, those of its findings."""
        return self._rule_dollars(self._known_usd(Bucket.AVOIDABLE))

    @property
    def lost_usd(self) -> Decimal | None:
        """The lost dollars; in a row of a rule, those of its findings."""
        return self._rule_dollars(self._known_usd(Bucket.LOST))

    @property
    def possible_usd(self) -> Decimal | None:
        """The possible dollars; in a row of a rule, those of its findings."""
        return self._rule_dollars(self._known_usd(Bucket.POSSIBLE))

    @property
    def avoidable_up_to_usd(self) -> Decimal | None:
        """The upper end of a rule's avoidable dollars; in other rows, the known dollars."""
        return self._rule_dollars(self._upper_end(Bucket.AVOIDABLE, self.sums.known_avoidable_usd))

    @property
    def lost_up_to_usd(self) -> Decimal | None:
        """The upper end of the lost dollars; in a row of a rule, of those of its findings."""
        return self._rule_dollars(self._upper_end(Bucket.LOST, self.sums.known_lost_up_to_usd))

    @property
    def possible_up_to_usd(self) -> Decimal | None:
        """The upper end of a rule's possible dollars; in other rows, the known dollars."""
        return self._rule_dollars(self._upper_end(Bucket.POSSIBLE, self.sums.known_possible_usd))

    @property
    def waste_usd(self) -> Decimal | None:
        """The sum of the known avoidable and lost dollars.

        None if the sum is 0 and one of the two amounts is unknown.
        """
        parts = (self._known_usd(Bucket.AVOIDABLE), self._known_usd(Bucket.LOST))
        known_waste_usd = sum((usd for usd in parts if usd is not None), _ZERO)
        return self._rule_dollars(known_waste_usd if known_waste_usd or None not in parts else None)

    @property
    def _rule_sums(self) -> RuleSums:
        return sum(self.sums.rules.values(), RuleSums())

    def _known_usd(self, bucket: Bucket) -> Decimal | None:
        if self.has_rule_dollars:
            return self._rule_sums.known_usd(bucket)
        usd: Decimal | None = getattr(self.sums, f"known_{bucket}_usd")
        return usd

    def _upper_end(self, bucket: Bucket, jobs_usd: Decimal | None) -> Decimal | None:
        return self._rule_sums.max_usd(bucket) if self.has_rule_dollars else jobs_usd

    def _rule_dollars(self, usd: Decimal | None) -> Decimal | None:
        """Returns `usd`, or None if no rule could judge the jobs or the row is a usage type."""
        return None if self.is_usage_type or (self.nothing_judged and not usd) else usd

    @property
    def total_before_usd(self) -> Decimal | None:
        """The spend of the period before."""
        return self.before.total_usd if self.before else None

    @property
    def spend_qualifier_before(self) -> SpendQualifier | None:
        """How exactly the spend of the period before is known."""
        return self.before.spend_qualifier if self.before else None

    @property
    def total_change_percent(self) -> Decimal | None:
        """The increase of the spend in percent."""
        return percent_change(self.total_usd, self.total_before_usd)

    @property
    def waste_before_usd(self) -> Decimal | None:
        """The avoidable and lost dollars of the period before."""
        return self.before.waste_usd if self.before else None

    @property
    def waste_change_percent(self) -> Decimal | None:
        """The increase of the waste in percent."""
        return percent_change(self.waste_usd, self.waste_before_usd)

    @property
    def waste_percent(self) -> Decimal | None:
        """The waste in percent of the judged spend.

        None if the waste is larger, since jobs that could not be judged may have losses.
        """
        if self.waste_usd is None or not self.judged_usd or self.waste_usd > self.judged_usd:
            return None
        return _share(self.waste_usd, self.judged_usd)

    @property
    def failed_percent(self) -> Decimal | None:
        """The percentage of the jobs that failed."""
        return _share(Decimal(self.failed), Decimal(self.jobs))

    @property
    def idle_percent(self) -> Decimal | None:
        """The percentage of the GPU hours that were not used."""
        return _share(self.idle_gpu_hours, self.gpu_hours)

    @property
    def usage_unit(self) -> str | None:
        """The unit of the quantity, as Cost Explorer writes it."""
        return None if self.usage_type is None else usage_unit(self.usage_type)

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The cost of an instance hour, with storage and warm pools."""
        hours, usd = self.instance_hours, self.total_usd
        return None if usd is None or not hours else usd / hours

    @property
    def weekday(self) -> str | None:
        """The weekday of a period of one day, such as Mon; None for other periods."""
        return (
            f"{self.first_day:%a}" if self.first_day and self.first_day == self.last_day else None
        )


class RunTotals(Struct):
    """The figures of runs, added up; and each bill above $0 and each waiting time, for medians."""

    numbers: dict[str, int] = field(default_factory=partial(defaultdict, int))
    bills_micro_usd: array[int] = field(default_factory=partial(array, "q"))
    waits_s: array[int] = field(default_factory=partial(array, "q"))

    def add_run(self, figures: RunFigures, *, is_rollup: bool) -> None:
        """Adds the figures of a run, or of one of its usage types. A roll-up has no own bill."""
        numbers = self.numbers
        for name, number in zip(_FIGURES, astuple(figures), strict=True):
            if number is not None:
                numbers[name] += number
        if figures.total_micro_usd and not is_rollup:
            self.bills_micro_usd.append(figures.total_micro_usd)
        if figures.waiting_s is not None:
            self.waits_s.append(figures.waiting_s)

    def add(self, other: RunTotals) -> None:
        """Adds the totals of other runs."""
        _add_numbers(self.numbers, other.numbers)
        self.bills_micro_usd.extend(other.bills_micro_usd)
        self.waits_s.extend(other.waits_s)

    def fields(self) -> dict[str, Any]:
        """Returns the fields in RUN_FIELDS that a row of sums stores."""
        return {
            name: to_figure(self.numbers.get(number_name))
            for name, (number_name, to_figure) in _FIGURE_OF_FIELD.items()
        } | {
            "median_usd": _median_usd(self.bills_micro_usd),
            "median_waiting_s": round(median(self.waits_s)) if self.waits_s else None,
        }


def _hours(seconds: int | None) -> Decimal | None:
    return None if seconds is None else Decimal(seconds) / _HOUR_S


def _from_millionths(number: int | None) -> Decimal | None:
    return None if number is None else from_micro_usd(number)


def _median_usd(bills_micro_usd: Sequence[int]) -> Decimal | None:
    # `median` would return a float for an even number of integers.
    if not bills_micro_usd:
        return None
    return from_micro_usd(median_low(bills_micro_usd) + median_high(bills_micro_usd)) / 2


_FIGURE_OF_FIELD: Mapping[str, tuple[str, Callable[[int | None], Decimal | None]]] = {
    "instance_hours": ("instance_s", _hours),
    "gpu_hours": ("gpu_s", _hours),
    "idle_gpu_hours": ("idle_gpu_s", _hours),
    "storage_usd": ("storage_micro_usd", _from_millionths),
    "warm_pool_usd": ("warm_pool_micro_usd", _from_millionths),
    "spot_saved_usd": ("spot_saved_micro_usd", _from_millionths),
    "usage_quantity": ("usage_micro_quantity", _from_millionths),
}
"""The fields that are added up over the jobs: the number of a run, and how to convert its sum."""
_FIGURES = RunFigures.__struct_fields__
RUN_FIELDS = (*_FIGURE_OF_FIELD, "idle_percent", "usd_per_hour", "median_usd", "median_waiting_s")
"""Fields that daily sums do not have."""


class RunningSums(Struct):
    """Sums to which one audit after the other is added. No audit is kept."""

    numbers: dict[str, int] = field(default_factory=partial(defaultdict, int))
    rules: dict[str, dict[str, int]] = field(
        default_factory=lambda: defaultdict(partial(defaultdict, int))
    )
    totals: RunTotals = field(default_factory=RunTotals)

    def add(self, sums: MicroSums, figures: RunFigures) -> None:
        """Adds an audit, or a part of one."""
        _add_numbers(self.numbers, sums.numbers)
        for rule, numbers in sums.rules.items():
            _add_numbers(self.rules[rule], numbers)
        # A roll-up counts no job.
        self.totals.add_run(figures, is_rollup="jobs" not in sums.numbers)

    @property
    def sums(self) -> Sums:
        """The sums so far."""
        return MicroSums(self.numbers, self.rules).sums


def _add_numbers(total: dict[str, int], numbers: Mapping[str, int]) -> None:
    for name, number in numbers.items():
        total[name] += number


def combine(rows: Iterable[SumsRow]) -> SumsRow:
    """Returns the sum of all rows as one row."""
    rows_list = [*rows]
    sums = add_sums([row.sums for row in rows_list])
    has_rule_dollars = any(row.has_rule_dollars for row in rows_list)
    return SumsRow(
        sums=sums,
        has_rule_dollars=has_rule_dollars,
        is_usage_type=any(row.is_usage_type for row in rows_list),
    )


def _share(part: Decimal | None, total: Decimal | None) -> Decimal | None:
    return None if part is None or not total else 100 * part / total


def add_shares(rows: Iterable[SumsRow], name: str) -> Iterator[SumsRow]:
    """Yields the rows with their share of an amount in their period, and the cumulative share.

    `name` is the amount's field.
    """
    rows_list = [*rows]
    period_totals: dict[date | None, Decimal] = defaultdict(Decimal)
    cumulative_totals = period_totals.copy()
    for row in rows_list:
        period_totals[row.first_day] += getattr(row, name) or _ZERO
    for row in rows_list:
        amount = getattr(row, name)
        cumulative_totals[row.first_day] += amount or _ZERO
        yield replace(
            row,
            share_percent=_share(amount, period_totals[row.first_day]),
            cumulative_percent=_share(
                cumulative_totals[row.first_day], period_totals[row.first_day]
            ),
        )


def percent_change(now_usd: Decimal | None, before_usd: Decimal | None) -> Decimal | None:
    """Returns the increase in percent; None if an amount is unknown, or the earlier one is 0."""
    return None if now_usd is None or not before_usd else 100 * (now_usd - before_usd) / before_usd


def sort_rows(totals: Iterable[SumsRow], sort: SortOrder) -> list[SumsRow]:
    """Returns the rows sorted by the amount of `sort`, the largest first.

    For NEWEST, they are sorted by period, then by waste.
    """
    by_period = sort is SortOrder.NEWEST
    amount = (SortOrder.WASTE if by_period else sort).field

    def sort_key(row: SumsRow) -> tuple[object, ...]:
        day = (by_period and row.first_day) or date.min
        names = (*(column.value_of(row) for column in GROUPABLE.values()), *row.tags.values())
        first: Decimal = getattr(row, amount) or _ZERO
        return day, -first, -(row.total_usd or _ZERO), *(str(name or "") for name in names)

    return sorted(totals, key=sort_key)
