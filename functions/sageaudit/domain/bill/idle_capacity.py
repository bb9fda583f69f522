"""Idle capacity: device hours that were paid for and not worked. It is not a saving, and in no sum.

The user's program runs in the work phase only. The other billed phases, such as downloads, count as
idle. Within the work phase a device works by its recorded share.

Unknown time counts as worked, so that later data can only add idle time. It is unknown what happens
in missing points, in the partial periods at both ends of the work, and in phases such as Stopping.

"Worked" is GPUUtilization, the share of time in which any kernel ran, or CPUUtilization over all
vCPUs: an upper bound of useful work. A vCPU is half a core, so at 50% every core may be busy.

paid = devices of a host x hosts x billed seconds, without a warm pool's retained time
list = idle hours x the bill's hourly rate of an instance / its devices; on demand for a training
plan
counted = the part of the list value that is already in avoidable or lost. A run that is dropped, or
bought another way, takes its idle share of the compute dollars. Any other fix takes idle hours
only, as the work stays.

Example: 1 x ml.g4dn.12xlarge (4 GPUs, $4.80 an hour) for 10 hours: 1 Downloading, 9 with the GPUs
at 40%. 40 GPU-hours are paid, 4 x 9 x 0.4 = 14.4 worked, 25.6 idle. At $1.20 a GPU-hour these are
$30.72 of the bill's $48.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from typing import Literal

from msgspec import Struct

from sageaudit.domain.bill.bill import Bill, billed_seconds
from sageaudit.domain.bill.billed_job import BilledJob
from sageaudit.domain.bill.change import Change, DropRun, SetPurchase
from sageaudit.domain.bill.counterfactual import Savings
from sageaudit.domain.job.course import DOWNLOADS, is_work_phase
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.demand import is_gpu_idle
from sageaudit.domain.usage.measurements import (
    MIN_COVERAGE,
    MIN_POINTS,
    Measurements,
    Metric,
    MissingMetrics,
)
from sageaudit.domain.usage.series import mean, pairs

Unit = Literal["gpu_hours", "vcpu_hours"]
"""The unit of idle capacity. Trainium and Inferentia have no metric, and so no figure."""
_NON_WORK_PHASES = DOWNLOADS | {"Uploading"}
_ZERO = Decimal(0)
IdleCause = Literal[
    "standstill", "gpu_use", "data_loader", "communication", "batch_size", "parallel_work",
    "profile",
]  # fmt: skip
"""Why devices may have waited. . - `standstill`: no GPU worked for half an hour or more, in a tenth
of the run or more. - `gpu_use`: no GPU worked at all. - `data_loader`: the GPUs waited for data
while vCPUs were busy. - `communication`: the GPUs of all hosts had about the same use. -
`batch_size`: GPUs, vCPUs and GPU memory all had reserves. - `parallel_work`: the hosts have no
GPUs, and vCPUs were free. - `profile`: always the last cause, because one-minute metrics cannot
show what a profile can."""

_GPU_WAITS_BELOW = 50.0
"""The mean use of all GPUs in percent below which they wait: Jobstats' target for a job."""
_STANDSTILL_FROM = 0.1
"""The share of the run from which standstills are named as a cause. Our choice."""
_CPU_BUSY_ABOVE = 60.0
"""The percentage of all vCPUs above which they are busy: the lower limit of cpu-bottleneck
(cloud-finops-skills)."""
_EVEN_WITHIN = 20.0
"""Hosts have the same use if their means differ by at most this many percentage points. The rule
uneven-hosts reports larger differences."""
_REQUIRED_METRICS = (Metric.GPU, Metric.CPU, Metric.GPU_MEMORY)
_LOW_P95_PERCENT = 70.0
"""The limit in percent of Debugger's BatchSize rule, for GPU, GPU memory and CPU."""

_HOUR_S = Decimal(3600)


def devices(usage: Measurements) -> tuple[Unit, int] | MissingMetrics:
    """Returns the unit and number of devices of each host: GPUs, or vCPUs without GPUs.

    If these are unknown, returns the reason.
    """
    metric = _metric(usage)
    count = usage.gpus if metric is Metric.GPU else usage.vcpu
    if not count:
        return usage.missing.get(metric) or MissingMetrics(
            "type_unknown", "its devices are not known"
        )
    return "gpu_hours" if metric is Metric.GPU else "vcpu_hours", count


def _metric(usage: Measurements) -> Metric:
    return Metric.CPU if usage.gpus == 0 else Metric.GPU


def worked_share(job: Job, usage: Measurements) -> Decimal | MissingMetrics:
    """Returns the share (0..1) of the billed device time that was worked, or why it is unknown.

    `usage`: of the whole run, with its idle start and end.
    """
    if 0 < usage.points < MIN_POINTS:
        reason = f"{usage.points} points of a host, {MIN_POINTS} needed"
        return MissingMetrics("too_few_points", reason)
    program_share = _program_share(usage)
    if isinstance(program_share, MissingMetrics):
        return program_share
    billed = [phase for phase in job.phases if phase.billed]
    if any(phase.seconds is None for phase in billed):
        return MissingMetrics("phases_unknown", "how long each phase took is not known")
    billed_s = work_s = idle_s = _ZERO
    for phase in billed:
        seconds = phase.seconds or _ZERO
        billed_s += seconds
        work_s += seconds if is_work_phase(phase) else _ZERO
        idle_s += seconds if phase.name in _NON_WORK_PHASES else _ZERO
    if not billed_s:
        return MissingMetrics("phases_unknown", "no billed phase is known")
    recorded_s = min(work_s, Decimal(usage.seconds))
    return (billed_s - idle_s - recorded_s * (1 - program_share)) / billed_s


def _program_share(usage: Measurements) -> Decimal | MissingMetrics:
    """Returns the share (0..1) of device time that all hosts worked while the program ran."""
    metric = _metric(usage)
    hosts = usage.series.get(metric, {})
    if not hosts:
        return usage.missing.get(metric) or MissingMetrics("metric_missing", "no points")
    if missing := usage.missing_hosts(metric):
        return missing
    lowest_coverage = min(line.share for line in hosts.values())
    if lowest_coverage < MIN_COVERAGE:
        reason = f"only {lowest_coverage:.0%} of the points of a host"
        return MissingMetrics("coverage_low", f"{reason}, {MIN_COVERAGE:.0%} needed")
    lines = hosts.values()
    points = sum(len(line.values) for line in lines)
    missing_points = points - sum(len(line.present) for line in lines)
    # fsum is exact, so that a lower point never gives a higher sum.
    worked_points = math.fsum(
        chain.from_iterable([[100.0] * missing_points, *(line.present for line in lines)])
    )
    return min(Decimal(repr(worked_points)) / (100 * points), Decimal(1))


def idle_causes(job: Job, whole_run: Measurements) -> tuple[IdleCause, ...]:
    """Returns why devices may have waited: the likeliest cause first, a profile last.

    Hosts of a transform job never wait for each other.
    """
    are_hosts_independent = not job.kind.spec.can_hosts_communicate
    if not whole_run.gpus:
        return ("parallel_work", "profile")
    usage = whole_run.active_part()
    standstill_periods = sum(map(len, whole_run.standstills()))
    if standstill_periods < _STANDSTILL_FROM * whole_run.points:
        return (*_gpu_causes(usage, is_single_host=are_hosts_independent), "profile")
    mean_gpu_percent = usage.mean(Metric.GPU) if Metric.GPU in usage.series else 0
    wait_causes = (
        ()
        if mean_gpu_percent >= _GPU_WAITS_BELOW
        else tuple(_gpu_causes(usage, is_single_host=are_hosts_independent))
    )
    return ("standstill", *wait_causes, "profile")


def _gpu_causes(usage: Measurements, *, is_single_host: bool) -> Iterator[IdleCause]:
    gpu, cpu = usage.series.get(Metric.GPU, {}), usage.series.get(Metric.CPU, {})
    if not gpu:
        return
    if is_gpu_idle(usage):
        yield "gpu_use"
        return
    means = [line.mean for line in gpu.values()]
    cpu_percents = []
    if any(line.highest > _CPU_BUSY_ABOVE for line in cpu.values()):
        cpu_gpu_pairs = zip(*pairs(cpu, gpu), strict=True)
        cpu_percents = [busy for busy, work in cpu_gpu_pairs if work < _GPU_WAITS_BELOW]
    if cpu_percents and mean(cpu_percents) > _CPU_BUSY_ABOVE:
        yield "data_loader"
    elif not is_single_host and len(means) > 1 and max(means) - min(means) <= _EVEN_WITHIN:
        yield "communication"
    memory = usage.series.get(Metric.GPU_MEMORY, {})
    metrics = [metric for metric in _REQUIRED_METRICS if usage.series.get(metric)]
    busiest = [usage.busiest_percentile(metric, 95) for metric in metrics]
    if cpu and memory and max(busiest) < _LOW_P95_PERCENT:
        yield "batch_size"


class IdleCapacity(Struct, frozen=True):
    """Exact device hours, and the value of the idle hours in USD.

    `list_usd`: the idle hours at list price. `counted_usd`: its part in avoidable or lost dollars.
    Both are None if the type has no rate. `likely_causes`: why the devices may have waited.
    """

    unit: Unit
    paid: Decimal
    worked: Decimal
    list_usd: Decimal | None
    counted_usd: Decimal | None
    likely_causes: tuple[IdleCause, ...] = ()

    @property
    def idle(self) -> Decimal:
        """The hours that were paid for and not worked; at least 0."""
        return self.paid - self.worked


def idle_capacity(
    job: Job, usage: Measurements, job_bill: Bill, market: Market, savings: Savings
) -> IdleCapacity | MissingMetrics:
    """Returns the idle capacity of one job, or why it is unknown. `usage`: of the whole run."""
    if job.free:
        return MissingMetrics("free", f"AWS does not bill it ({job.free})")
    if not job.finished:
        reason = f"the job has not ended (status {job.status}): its cost is not final"
        return MissingMetrics("job_not_finished", reason)
    unit_and_count = devices(usage)
    if isinstance(unit_and_count, MissingMetrics):
        return unit_and_count
    unit, count = unit_and_count
    seconds = _ZERO if job.has_never_started else billed_seconds(job)[0]
    if seconds is None:
        return MissingMetrics(
            "no_billed_time", "; ".join(job_bill.missing) or "its billed time is unknown"
        )
    share = worked_share(job, usage) if seconds else _ZERO
    if isinstance(share, MissingMetrics):
        return share
    paid = seconds * (job.instance_count or 0) * count / _HOUR_S
    worked = paid * share
    rate = _hourly_usd(job, market)
    list_usd = None if rate is None else (paid - worked) * rate / count
    counted_usd = None
    if list_usd is not None:
        counted_total_usd = (savings.avoidable_usd or _ZERO) + (savings.lost_usd or _ZERO)
        counted_usd = min(
            _counted_idle_usd(job, job_bill, market, savings, 1 - share),
            list_usd,
            counted_total_usd,
        )
    causes = idle_causes(job, usage) if seconds else ()
    return IdleCapacity(unit, paid, worked, list_usd, counted_usd, causes)


def _hourly_usd(job: Job, market: Market) -> Decimal | None:
    """Returns the USD per hour of one instance; None if unknown.

    None too if the groups' rates differ, because any group may be idle.
    """
    rates = {market.hourly(job.region, job.kind, group.instance_type) for group in job.groups}
    usd = {None if rate is None else rate.usd for rate in rates}
    return usd.pop() if len(usd) == 1 else None


def _counted_idle_usd(
    job: Job, job_bill: Bill, market: Market, savings: Savings, idle_share: Decimal
) -> Decimal:
    idle_usd, remaining_usd = _ZERO, job_bill.compute_usd
    billed_job, applied = BilledJob(job, job_bill, market), None
    for change in _counted_changes(savings):
        billed_job = billed_job.with_change(applied) if applied else billed_job
        changed_usd, applied = billed_job.compute_usd(change), change
        if remaining_usd is None or changed_usd is None:
            break
        cut_usd = max(remaining_usd - changed_usd, _ZERO)
        idle_usd += cut_usd * idle_share if isinstance(change, DropRun | SetPurchase) else cut_usd
        remaining_usd = changed_usd
    return idle_usd


def _counted_changes(savings: Savings) -> list[Change]:
    counted = [
        (finding.detection.change.stage, finding.rule.id, finding.detection.change)
        for finding in savings.findings
        if finding.is_standing
        and finding.detection.bucket.is_counted
        and finding.detection.change is not None
        and finding.saving_usd
    ]
    return [change for _, _, change in sorted(counted, key=lambda row: row[:2])]
