"""What a request will cost: at most by its limit, and as a rule by its family's earlier runs."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from statistics import median

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.bill.type_rate import cluster_usd_per_hour
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.request.request import Request
from sageaudit.domain.request.values import NotKnown

DEFAULT_LIMIT_S = 86_400
"""MaxRuntimeInSeconds where a training or processing request has none: one day (API reference)."""
HOUR_S = Decimal(3600)


class Basis(enum.StrEnum):
    """How long a request is taken to run where its dollars are counted."""

    HISTORY = "history"
    LIMIT = "limit"
    HOUR = "hour"

    @property
    def said(self) -> str:
        """After an amount of dollars."""
        return {
            Basis.HISTORY: "a run, as its family's runs took",
            Basis.LIMIT: "if it runs to its limit",
            Basis.HOUR: "for each hour that it runs",
        }[self]


@dataclass(frozen=True, slots=True)
class Span:
    """The median of some figures, and their range."""

    median: Decimal
    low: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True)
class FamilyForecast:
    """What the family's completed runs on the same instances cost and took.

    `runs`: all earlier runs that were read. `alike`: those that are compared; `failed` of all did
    not complete. None: not known.
    """

    runs: int
    failed: int
    alike: int
    usd: Span | None
    seconds: Span | None
    last: str | None
    last_ended_at: datetime | None


def span_of(values: Iterable[Decimal | None]) -> Span | None:
    """The median and range of the known values; None without one."""
    known = sorted(value for value in values if value is not None)
    return Span(median(known), known[0], known[-1]) if known else None


def of_family(job: Job, earlier: Sequence[EarlierRun]) -> FamilyForecast:
    """Runs of the same type, count and purchase; nothing is scaled to others."""
    alike = [run for run in earlier if run.status == "Completed" and _alike(job, run)]
    newest = max(earlier, key=lambda run: run.ended_at, default=None)
    return FamilyForecast(
        runs=len(earlier),
        failed=sum(run.status == "Failed" for run in earlier),
        alike=len(alike),
        usd=span_of(run.total_usd for run in alike),
        seconds=span_of(run.facts.elapsed_s for run in alike),
        last=newest.name if newest else None,
        last_ended_at=newest.ended_at if newest else None,
    )


def _alike(job: Job, run: EarlierRun) -> bool:
    group = job.groups[0] if len(job.groups) == 1 else None
    if group is None or run.kind != job.kind.value:
        return False
    same = (run.facts.instance_type, run.facts.instance_count) == (group.instance_type, group.count)
    return same and run.facts.purchase is job.purchase


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a job may run, in seconds; None with the reason where nothing limits it.

    `default`: the request does not say, and AWS's default holds.
    """

    seconds: Decimal | None
    default: bool = False
    why: str | None = None


def limit_of(request: Request) -> Limit:
    """The limit of one job of a request."""
    if request.kind is JobKind.TRANSFORM:
        return Limit(None, why="a transform job has no limit on its run time")
    if request.kind is JobKind.TUNING:
        return Limit(None, why="its training jobs have the limits")
    given = request.value("StoppingCondition.MaxRuntimeInSeconds")
    if isinstance(given, NotKnown):
        return Limit(None, why=f"its MaxRuntimeInSeconds is not known ({given.why})")
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return Limit(Decimal(given))
    return Limit(Decimal(DEFAULT_LIMIT_S), default=True)


@dataclass(frozen=True, slots=True)
class Cost:
    """The most that a request can cost, and how that is known.

    `at_most`: the bill at the limit, None without one. `times`: how many such runs it may start.
    `usd`: the total; None with the reason in `why`.
    """

    hourly_usd: Decimal | None
    limit: Limit
    at_most: Bill | None
    times: int
    usd: Decimal | None
    why: str | None


def cost_of(request: Request, at_limit: Job | None, job: Job, market: Market) -> Cost:
    """The most that one job costs; `at_limit` is the job as if it ran to its limit."""
    limit = limit_of(request)
    hourly = cluster_usd_per_hour(job, market)
    if job.purchase in {Purchase.TRAINING_PLAN, Purchase.SERVERLESS}:
        why = (
            "its training plan is prepaid"
            if job.purchase is Purchase.TRAINING_PLAN
            else ("a serverless job is priced by token")
        )
        return Cost(None, limit, None, 1, None, why)
    if not job.groups:
        why = next(iter(job.groups_unknown), "the instance type or count is not known")
        return Cost(None, limit, None, 1, None, request.not_known(_INSTANCES) or why)
    if at_limit is None:
        return Cost(hourly, limit, None, 1, None, limit.why)
    billed = bill(at_limit, market)
    if billed.total_usd is None:
        return Cost(hourly, limit, billed, 1, None, "; ".join(billed.missing))
    return Cost(hourly, limit, billed, 1, billed.total_usd, None)


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


def dearest(job: Job, request: Request, market: Market) -> Job:
    """The job on the dearest of the types that it prefers: SageMaker may take any of them."""
    preferred = request.value("ResourceConfig.InstancePreferences")
    if not isinstance(preferred, list):
        return job
    jobs = []
    for item in preferred:
        name = item.get("InstanceType") if isinstance(item, dict) else None
        count = item.get("InstanceCount") if isinstance(item, dict) else None
        if isinstance(name, str):
            own = count if isinstance(count, int) and count > 0 else job.instance_count
            group = InstanceGroup(name, own or 1)
            jobs.append(replace(job, groups=(group,)))
    rates = [(cluster_usd_per_hour(one, market), one) for one in jobs]
    known = [(usd, one) for usd, one in rates if usd is not None]
    return max(known, key=lambda pair: pair[0])[1] if known and len(known) == len(rates) else job


def last_seconds(job: Job, earlier: Sequence[EarlierRun], most: int) -> list[Decimal]:
    """How long the newest completed runs on the same instances took, `most` of them at most."""
    alike = [run for run in earlier if run.status == "Completed" and _alike(job, run)]
    newest = sorted(alike, key=lambda run: run.ended_at, reverse=True)
    known = (run.facts.elapsed_s for run in newest)
    return [seconds for seconds in known if seconds is not None][:most]
