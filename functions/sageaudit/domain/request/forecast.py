"""The cost of a request, and the recommendations of its family that it does not follow.

The maximum is what its limit allows. The usual cost is that of the family's earlier runs.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from math import prod
from statistics import median

from msgspec import Struct

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.family_runs import comparable_runs
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument, is_standing
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.settings import RUN_LIMIT, setting_path
from sageaudit.domain.prices.market import Market
from sageaudit.domain.request.request import Request, UnknownValue
from sageaudit.domain.resize.type_choice import cluster_usd_per_hour
from sageaudit.structs import replace

DEFAULT_LIMIT_S = 86_400
"""MaxRuntimeInSeconds if a training or processing request has none: one day (API reference)."""
HOUR_S = Decimal(3600)
_SEARCH = "HyperParameterTuningJobConfig"

_UNSET_VALUES = (None, False, "Off", 0, "")
"""Values that mean the same as a missing parameter."""


class DurationBasis(enum.StrEnum):
    """How long a request is assumed to run when its dollars are computed."""

    HISTORY = "history"
    LIMIT = "limit"
    HOUR = "hour"
    EARLIER = "earlier"

    @property
    def label(self) -> str:
        """The text after an amount of dollars."""
        return {
            DurationBasis.HISTORY: "a run, as its family's runs took",
            DurationBasis.LIMIT: "if it runs to its limit",
            DurationBasis.HOUR: "for each hour that it runs",
            DurationBasis.EARLIER: "in that run",
        }[self]


class MedianRange(Struct, frozen=True):
    """The median of figures, and their range."""

    median: Decimal
    low: Decimal
    high: Decimal


class FamilyForecast(Struct, frozen=True):
    """The cost and time of the family's completed runs on the same instances.

    `runs`: earlier runs that were read. `comparable_runs`: those that are compared. `failed_runs`:
    those that did not complete. None: unknown.
    """

    runs: int
    failed_runs: int
    comparable_runs: int
    usd: MedianRange | None
    seconds: MedianRange | None
    newest_run: str | None
    last_ended_at: datetime | None


def median_range(values: Iterable[Decimal | None]) -> MedianRange | None:
    """Returns the median and range of the known values; None without one."""
    numbers = sorted(value for value in values if value is not None)
    return MedianRange(median(numbers), numbers[0], numbers[-1]) if numbers else None


def forecast_family(job: Job, earlier: Sequence[AuditSummary]) -> FamilyForecast:
    """Summarises runs of the same type, count and purchase; nothing is scaled to others."""
    alike = comparable_runs(job, earlier)
    newest = max(earlier, key=lambda run: run.ended_at, default=None)
    return FamilyForecast(
        runs=len(earlier),
        failed_runs=sum(run.status == "Failed" for run in earlier),
        comparable_runs=len(alike),
        usd=median_range(run.total_usd for run in alike),
        seconds=median_range(run.elapsed_s for run in alike),
        newest_run=newest.job if newest else None,
        last_ended_at=newest.ended_at if newest else None,
    )


class RunLimit(Struct, frozen=True):
    """How long a job may run, in seconds; None with the reason if nothing limits it.

    `is_default`: the request sets no limit, so AWS's default applies.
    """

    seconds: Decimal | None
    is_default: bool = False
    no_limit_reason: str | None = None


def run_limit(request: Request) -> RunLimit:
    """Returns the limit of one job of a request."""
    row = request.kind.spec
    if row.rollup is not None:
        return RunLimit(None, no_limit_reason=f"its {row.rollup.children_label} have the limits")
    path = setting_path(request.kind, RUN_LIMIT)
    if path is None:
        return RunLimit(
            None, no_limit_reason=f"{row.label_with_article} has no limit on its run time"
        )
    value = request.value(path)
    if isinstance(value, UnknownValue):
        return RunLimit(
            None, no_limit_reason=f"its MaxRuntimeInSeconds is not known ({value.reason})"
        )
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return RunLimit(Decimal(value))
    return RunLimit(Decimal(DEFAULT_LIMIT_S), is_default=True)


class MaxCost(Struct, frozen=True):
    """The maximum cost of a request, and how it is known.

    `usd`: the total; None with the reason in `unknown_because`. `bill_at_limit`: the bill at the
    limit, None without a limit. `job_count`: how many such jobs it may start.
    """

    limit: RunLimit
    usd: Decimal | None = None
    unknown_because: str | None = None
    hourly_usd: Decimal | None = None
    bill_at_limit: Bill | None = None
    job_count: int = 1


def max_cost(request: Request, job_at_limit: Job | None, job: Job, market: Market) -> MaxCost:
    """Returns the maximum cost of one job; `job_at_limit` is the job as if it ran to its limit."""
    limit = run_limit(request)
    if job.purchase is Purchase.TRAINING_PLAN:
        return MaxCost(limit, unknown_because="its training plan is prepaid")
    if job.purchase is Purchase.SERVERLESS:
        return MaxCost(limit, unknown_because="a serverless job is priced by token")
    if not job.groups:
        reason = next(iter(job.groups_unknown), "the instance type or count is not known")
        return MaxCost(limit, unknown_because=request.unknown_reason(_INSTANCES) or reason)
    hourly = cluster_usd_per_hour(job, market)
    if job_at_limit is None:
        return MaxCost(limit, unknown_because=limit.no_limit_reason, hourly_usd=hourly)
    billed = bill(job_at_limit, market)
    missing = "; ".join(billed.missing) if billed.total_usd is None else None
    return MaxCost(limit, billed.total_usd, missing, hourly, billed)


_INSTANCES = (
    "ResourceConfig.InstanceType",
    "ResourceConfig.InstanceCount",
    "ResourceConfig.InstanceGroups[].InstanceType",
    "ResourceConfig.InstanceGroups[].InstanceCount",
    "ProcessingResources.ClusterConfig.InstanceType",
    "ProcessingResources.ClusterConfig.InstanceCount",
    "TransformResources.InstanceType",
    "TransformResources.InstanceCount",
)


def max_search_cost(request: Request, trials: Sequence[MaxCost]) -> MaxCost:
    """Returns the maximum cost of a tuning job: all its jobs at the most expensive limit.

    It is less if the search itself ends earlier. `trials`: the costs of its definitions.
    """
    limit = run_limit(request)
    limits = f"{_SEARCH}.ResourceLimits"
    count = request.value(f"{limits}.MaxNumberOfTrainingJobs")
    count = _grid_size(request) if count is None else count
    parallel = request.value(f"{limits}.MaxParallelTrainingJobs")
    search_s = request.value(f"{limits}.MaxRuntimeInSeconds")
    costs = [cost.usd for cost in trials if cost.usd is not None]
    if not trials or len(costs) < len(trials):
        reason = next(
            (cost.unknown_because for cost in trials if cost.unknown_because),
            "its training jobs are not known",
        )
        return MaxCost(limit, unknown_because=reason)
    times = count if isinstance(count, int) else 1
    bounds = [max(costs) * count] if isinstance(count, int) else []
    rates = [cost.hourly_usd for cost in trials if cost.hourly_usd is not None]
    if isinstance(search_s, int) and isinstance(parallel, int) and rates:
        bounds.append(max(rates) * parallel * search_s / HOUR_S)
    if bounds:
        return MaxCost(limit, min(bounds), job_count=times)
    unknown = next((value for value in (count, search_s) if isinstance(value, UnknownValue)), None)
    if unknown is None:
        return MaxCost(limit, unknown_because="nothing limits the number of its training jobs")
    return MaxCost(
        limit, unknown_because=f"the number of its training jobs is not known ({unknown.reason})"
    )


def _grid_size(request: Request) -> int | None:
    """Returns how many combinations a grid search has; None for others or an unknown range."""
    ranges = request.value(f"{_SEARCH}.ParameterRanges.CategoricalParameterRanges")
    if request.value(f"{_SEARCH}.Strategy") != "Grid" or not isinstance(ranges, list):
        return None
    sizes = [item.get("Values") if isinstance(item, dict) else None for item in ranges]
    counts = [len(values) for values in sizes if isinstance(values, list)]
    return prod(counts) if counts and len(counts) == len(sizes) else None


def on_most_expensive_type(job: Job, request: Request, market: Market) -> Job:
    """Returns the job on the most expensive of its preferred types: SageMaker may use any."""
    preferred = request.value("ResourceConfig.InstancePreferences")
    if not isinstance(preferred, list):
        return job
    jobs = []
    for item in preferred:
        name = item.get("InstanceType") if isinstance(item, dict) else None
        count = item.get("InstanceCount") if isinstance(item, dict) else None
        if isinstance(name, str):
            size = count if isinstance(count, int) and count > 0 else job.instance_count
            group = InstanceGroup(name, size or 1)
            jobs.append(replace(job, groups=(group,)))
    rates = [(cluster_usd_per_hour(variant, market), variant) for variant in jobs]
    priced = [(usd, variant) for usd, variant in rates if usd is not None]
    return max(priced, key=lambda pair: pair[0])[1] if priced and len(priced) == len(rates) else job


def recent_durations_s(job: Job, earlier: Sequence[AuditSummary], max_runs: int) -> list[Decimal]:
    """Returns how long the newest completed runs on the same instances took; at most `max_runs`."""
    newest = sorted(comparable_runs(job, earlier), key=lambda run: run.ended_at, reverse=True)
    known = (run.elapsed_s for run in newest)
    return [seconds for seconds in known if seconds is not None][:max_runs]


class UnfollowedFinding(Struct, frozen=True):
    """A finding of an earlier run, whose fix is not in the request. `runs`: how many of the audits
    that were read had the same finding.
    """

    finding: FindingDocument
    run: str
    runs: int = 1

    @property
    def usd(self) -> Decimal | None:
        """What the fix alone would have saved in that run; None without a figure."""
        return self.finding["saving_alone_usd"]


def find_unfollowed(
    request: Request, audits: Sequence[AuditDocument]
) -> tuple[UnfollowedFinding, ...]:
    """Returns each rule's finding in the first audit with it, if its old values are unchanged."""
    by_rule: dict[str, UnfollowedFinding | None] = {}
    for audit in audits:
        for finding in audit["findings"]:
            name = finding["rule"]
            if name not in by_rule:
                is_due = (
                    is_standing(finding) and finding["fix"] and _unchanged(request, finding["fix"])
                )
                by_rule[name] = UnfollowedFinding(finding, audit["job"]["name"]) if is_due else None
            elif (newest := by_rule[name]) is not None:
                by_rule[name] = replace(newest, runs=newest.runs + 1)
    return tuple(one for one in by_rule.values() if one is not None)


def _unchanged(request: Request, fix: Iterable[FixDocument]) -> bool:
    """Returns whether the request has the old value of each parameter; unknown ones have not."""
    for parameter in fix:
        value, old = request.value(parameter["parameter"]), parameter["old"]
        if isinstance(value, UnknownValue):
            return False
        is_same = value is not None and old is not None and str(value) == str(old)
        if not (is_same or value == old or (value in _UNSET_VALUES and old in _UNSET_VALUES)):
            return False
    return True
