"""Estimates what a request costs, and finds recommendations for its family that it does not follow.

The maximum cost is the bill of a run that lasts until the request's limit. The usual cost is the
cost of the family's earlier runs.
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
"""AWS's default for MaxRuntimeInSeconds of training and processing: one day (API reference)."""
HOUR_S = Decimal(3600)
_SEARCH = "HyperParameterTuningJobConfig"
_DEFINITIONS = ("TrainingJobDefinition", "TrainingJobDefinitions[]")

_UNLIMITED_ATTEMPTS = "its RetryPolicies have no MaxAttempts"
_UNSET_VALUES = (None, False, "Off", 0, "")
"""Values that mean the same as a missing parameter."""


class DurationBasis(enum.StrEnum):
    """The run time on which an amount of a request's cost is based."""

    HISTORY = "history"
    LIMIT = "limit"
    HOUR = "hour"
    EARLIER = "earlier"

    @property
    def label(self) -> str:
        """The text that follows an amount of dollars, for people."""
        return {
            DurationBasis.HISTORY: "a run, as its family's runs took",
            DurationBasis.LIMIT: "if it runs to its limit",
            DurationBasis.HOUR: "for each hour that it runs",
            DurationBasis.EARLIER: "in an earlier run",
        }[self]


class MedianRange(Struct, frozen=True):
    """The median of some figures, with the lowest and the highest figure."""

    median: Decimal
    low: Decimal
    high: Decimal


class FamilyForecast(Struct, frozen=True):
    """The cost and run time of a family's completed runs on the same instances. None means unknown.

    `runs` is the number of earlier runs that were read, and `failed_runs` the number that failed.
    `comparable_runs` is the number of runs on which `usd` and `seconds` are based.
    """

    runs: int
    failed_runs: int
    comparable_runs: int
    usd: MedianRange | None
    seconds: MedianRange | None
    newest_run: str | None
    last_ended_at: datetime | None


def median_range(values: Iterable[Decimal | None]) -> MedianRange | None:
    """Returns the median and range of the known values; None if no value is known."""
    numbers = sorted(value for value in values if value is not None)
    return MedianRange(median(numbers), numbers[0], numbers[-1]) if numbers else None


def forecast_family(job: Job, earlier_runs: Sequence[AuditSummary]) -> FamilyForecast:
    """Returns the cost and run time of the family's runs with the same type, count and purchase.

    No figure is scaled to other instances.
    """
    comparable = comparable_runs(job, earlier_runs)
    newest = max(earlier_runs, key=lambda run: run.ended_at, default=None)
    return FamilyForecast(
        runs=len(earlier_runs),
        failed_runs=sum(run.status == "Failed" for run in earlier_runs),
        comparable_runs=len(comparable),
        usd=median_range(run.total_usd for run in comparable),
        seconds=median_range(run.elapsed_s for run in comparable),
        newest_run=newest.job if newest else None,
        last_ended_at=newest.ended_at if newest else None,
    )


class RunLimit(Struct, frozen=True):
    """How long a job may run, in seconds.

    `seconds` is None if no limit is known; `no_limit_reason` then says why. `is_default` means that
    the request sets no limit, so AWS's default applies.
    """

    seconds: Decimal | None
    is_default: bool = False
    no_limit_reason: str | None = None


def run_limit(request: Request) -> RunLimit:
    """Returns the run-time limit of the requested job."""
    spec = request.kind.spec
    if spec.rollup is not None:
        return RunLimit(None, no_limit_reason=f"its {spec.rollup.children_label} have the limits")
    path = setting_path(request.kind, RUN_LIMIT)
    if path is None:
        return RunLimit(
            None, no_limit_reason=f"{spec.label_with_article} has no limit on its run time"
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
    """The maximum cost of a request, and how it was computed.

    `usd` is the total; if it is None, `unknown_because` says why. `bill_at_limit` is the bill of a
    run to the limit; None without a limit. `job_count` is the number of jobs that the request may
    start. A search has a `limit` if that ends it before all its jobs have run to theirs. `attempts`
    is how often a step of a pipeline may run.
    """

    limit: RunLimit
    usd: Decimal | None = None
    unknown_because: str | None = None
    hourly_usd: Decimal | None = None
    bill_at_limit: Bill | None = None
    job_count: int = 1
    attempts: int = 1


def max_cost(request: Request, job_at_limit: Job | None, job: Job, market: Market) -> MaxCost:
    """Returns the maximum cost of one requested job.

    `job_at_limit` is `job` as if it ran until its limit; None if it has no limit.
    """
    limit = run_limit(request)
    if job.purchase is Purchase.TRAINING_PLAN:
        return MaxCost(limit, unknown_because="its training plan is prepaid")
    if job.purchase is Purchase.SERVERLESS:
        return MaxCost(limit, unknown_because="a serverless job is priced by token")
    if not job.groups:
        reason = next(iter(job.groups_unknown), "the instance type or count is not known")
        return MaxCost(limit, unknown_because=request.unknown_reason(_INSTANCES) or reason)
    if (unknown_because := _unknown_alternative(request)) is not None:
        return MaxCost(limit, unknown_because=unknown_because)
    hourly_usd = cluster_usd_per_hour(job, market)
    if job_at_limit is None:
        return MaxCost(limit, unknown_because=limit.no_limit_reason, hourly_usd=hourly_usd)
    bill_at_limit = bill(job_at_limit, market)
    if bill_at_limit.total_usd is None:
        return MaxCost(limit, None, "; ".join(bill_at_limit.missing), hourly_usd, bill_at_limit)
    if request.attempts is None:
        return MaxCost(limit, None, _UNLIMITED_ATTEMPTS, hourly_usd, bill_at_limit)
    usd = bill_at_limit.total_usd * request.attempts
    return MaxCost(limit, usd, None, hourly_usd, bill_at_limit, attempts=request.attempts)


_PREFERRED_TYPES = (
    "ResourceConfig.InstancePreferences",
    "HyperParameterTuningResourceConfig.InstanceConfigs",
)
"""The lists of types of which SageMaker uses the first that has capacity."""
_LISTED_INSTANCES = tuple(
    f"{instances}[].{key}"
    for instances in ("ResourceConfig.InstanceGroups", *_PREFERRED_TYPES)
    for key in ("InstanceType", "InstanceCount")
)
_INSTANCES = (
    "ResourceConfig.InstanceType",
    "ResourceConfig.InstanceCount",
    "HyperParameterTuningResourceConfig.InstanceType",
    "HyperParameterTuningResourceConfig.InstanceCount",
    *_LISTED_INSTANCES,
    "ProcessingResources.ClusterConfig.InstanceType",
    "ProcessingResources.ClusterConfig.InstanceCount",
    "TransformResources.InstanceType",
    "TransformResources.InstanceCount",
)
"""The paths of instance types and counts. If one of them is unknown, so is the request's cost."""


def _unknown_alternative(request: Request) -> str | None:
    """Returns why the type or count of an instance group or a preferred type is unknown.

    None if all are known, or if the request does not have these lists.
    """
    patterns = (
        pattern
        for pattern in _LISTED_INSTANCES
        if isinstance(request.value(pattern.partition("[")[0]), list)
    )
    return request.unknown_reason(tuple(patterns))


def max_search_cost(request: Request, trials: Sequence[MaxCost]) -> MaxCost:
    """Returns the maximum cost of a tuning job.

    This is the number of training jobs times the highest cost of one, or less if the search has a
    time limit. `trials` has the maximum cost of one training job for each definition.
    """
    limit = run_limit(request)
    limits = f"{_SEARCH}.ResourceLimits"
    count = request.value(f"{limits}.MaxNumberOfTrainingJobs")
    count = _grid_size(request) if count is None else count
    parallel = request.value(f"{limits}.MaxParallelTrainingJobs")
    search_s = request.value(f"{limits}.MaxRuntimeInSeconds")
    costs = [cost.usd for cost in trials if cost.usd is not None]
    if reason := request.unknown_reason(_DEFINITIONS):
        return MaxCost(limit, unknown_because=reason)
    if not trials or len(costs) < len(trials):
        reason = next(
            (cost.unknown_because for cost in trials if cost.unknown_because),
            "its training jobs are not known",
        )
        return MaxCost(limit, unknown_because=reason)
    unknown = next(
        (value for value in (count, parallel, search_s) if isinstance(value, UnknownValue)), None
    )
    if unknown is not None:
        return MaxCost(
            limit, unknown_because=f"a limit on its training jobs is not known ({unknown.reason})"
        )
    job_count = count if isinstance(count, int) else 1
    bounds = [MaxCost(limit, max(costs) * count, job_count=count)] if isinstance(count, int) else []
    if isinstance(search_s, int) and isinstance(parallel, int):
        amounts = [
            cost.usd * parallel * search_s / seconds
            for cost in trials
            if cost.usd is not None and (seconds := cost.limit.seconds)
        ]
        bounds.append(MaxCost(RunLimit(Decimal(search_s)), max(amounts), job_count=job_count))
    if bounds:
        return min(bounds, key=lambda cost: cost.usd or 0)
    return MaxCost(limit, unknown_because="nothing limits the number of its training jobs")


def _grid_size(request: Request) -> int | None:
    """Returns None for searches that are not a grid, and for unknown ranges."""
    ranges = request.value(f"{_SEARCH}.ParameterRanges.CategoricalParameterRanges")
    if request.value(f"{_SEARCH}.Strategy") != "Grid" or not isinstance(ranges, list):
        return None
    sizes = [item.get("Values") if isinstance(item, dict) else None for item in ranges]
    counts = [len(values) for values in sizes if isinstance(values, list)]
    return prod(counts) if counts and len(counts) == len(sizes) else None


def on_most_expensive_type(job: Job, request: Request, market: Market) -> Job:
    """Returns the job on its most expensive preferred type, since SageMaker may use any of them.

    The job is unchanged if it has no preferred types, or if a price is unknown.
    """
    preferred = next(filter(None, map(request.value, _PREFERRED_TYPES)), None)
    if not isinstance(preferred, list):
        return job
    variants = []
    for item in filter(lambda item: isinstance(item, dict), preferred):
        name, count, volume_gb = map(item.get, ("InstanceType", "InstanceCount", "VolumeSizeInGB"))
        if isinstance(name, str):
            instance_count = count if isinstance(count, int) and count > 0 else job.instance_count
            group = InstanceGroup(name, instance_count or 1)
            volume_gb = volume_gb if isinstance(volume_gb, int) else job.volume_gb
            variants.append(replace(job, groups=(group,), volume_gb=volume_gb))
    variant_rates = [(cluster_usd_per_hour(variant, market), variant) for variant in variants]
    priced_variants = [(usd, variant) for usd, variant in variant_rates if usd is not None]
    return (
        max(priced_variants, key=lambda pair: pair[0])[1]
        if priced_variants and len(priced_variants) == len(variant_rates)
        else job
    )


def recent_durations_s(
    job: Job, earlier_runs: Sequence[AuditSummary], max_runs: int
) -> list[Decimal]:
    """Returns the seconds that the last completed runs on the same instances took, newest first."""
    newest = sorted(comparable_runs(job, earlier_runs), key=lambda run: run.ended_at, reverse=True)
    durations = (run.elapsed_s for run in newest)
    return [seconds for seconds in durations if seconds is not None][:max_runs]


class UnfollowedFinding(Struct, frozen=True):
    """A finding of an earlier run whose fix is not in the request.

    `run` is the name of the earlier run. `runs` is the number of findings of the same rule.
    """

    finding: FindingDocument
    run: str
    runs: int = 1

    @property
    def usd(self) -> Decimal | None:
        """The USD that the fix alone would have saved in the earlier run; None if unknown."""
        return self.finding["saving_alone_usd"]


def find_unfollowed(
    request: Request, audits: Sequence[AuditDocument]
) -> tuple[UnfollowedFinding, ...]:
    """Returns the findings whose fixes the request does not follow, at most one for each rule.

    Only the first finding of each rule, in the order of `audits`, is compared.
    """
    by_rule: dict[str, UnfollowedFinding | None] = {}
    for audit in audits:
        for finding in audit["findings"]:
            name = finding["rule"]
            if name not in by_rule:
                is_unfollowed = (
                    is_standing(finding)
                    and finding["fix"]
                    and _has_old_values(request, finding["fix"])
                )
                by_rule[name] = (
                    UnfollowedFinding(finding, audit["job"]["name"]) if is_unfollowed else None
                )
            elif (newest := by_rule[name]) is not None:
                by_rule[name] = replace(newest, runs=newest.runs + 1)
    return tuple(finding for finding in by_rule.values() if finding is not None)


def _has_old_values(request: Request, fix: Iterable[FixDocument]) -> bool:
    """Returns whether the request has the old value of each parameter of the fix.

    A parameter whose value is unknown counts as changed.
    """
    for parameter in fix:
        value, old = request.value(parameter["parameter"]), parameter["old"]
        if isinstance(value, UnknownValue):
            return False
        is_same = value is not None and old is not None and str(value) == str(old)
        if not (is_same or value == old or (value in _UNSET_VALUES and old in _UNSET_VALUES)):
            return False
    return True
