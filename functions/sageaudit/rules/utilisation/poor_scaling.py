"""Several instances where fewer would do.

What it checks: Either the family's own runs: at least 2 completed runs each, of the same
    fingerprint, type and purchase, on this count and on a smaller one, and the median run on this
    count costs at least 10% more. Or this run: on every one of several hosts the mean over the
    active minutes (GPU where there is one, else CPU) is under 25% of the GPUs or under 40% of the
    CPUs, and all of it together fits on fewer hosts at 50% (GPU) or 80% (CPU). A family that
    followed this advice, and so runs on fewer instances than before, is judged only by what its
    runs cost.
Why it costs: n instances are billed for the whole run, working or waiting for each other.
Saving: From the family: the same job on the smaller count, for as long as its slowest run there
    took; the range goes to its median. Where the data may have changed in between, 0 is counted.
    From one run: 0, since the same work may take n/m times as long on m of n hosts, up to as long
    as today.
When it is wrong: A deadline may be worth the dearer hours. Memory may need all hosts: data that is
    split over them, or a model that is sharded. Fewer hosts change the global batch, and with it
    what is learnt.
What to do: Take fewer instances, first for one run. Or feed them: larger batches a host, overlapped
    communication, faster input.
Sources: Jobstats: GPU amber under 25%, target 50%. Flexera: under-used below 40%. Compute
    Optimizer: 20% headroom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from sageaudit.domain.bill.resize import HEADROOM_PERCENT
from sageaudit.domain.job.kinds import COUNT_PATHS
from sageaudit.domain.usage.demand import PEAK_PERCENTILE
from sageaudit.domain.usage.edges import work_metric
from sageaudit.rules import api
from sageaudit.rules.utilisation.by_count import by_count, same_work

DEARER_FROM = api.Threshold(
    "dearer_from_percent", 10, "percent above the smaller count's median", "no noise", "our choice"
)
RUNS_FROM = api.Threshold("runs_from", 2, "runs of each count", "one is an accident", "our choice")
GPU_BELOW = api.Threshold("gpu_below", 25, "percent of all GPUs", "amber", "Jobstats config.py")
CPU_BELOW = api.Threshold("cpu_below", 40, "percent of all vCPUs", "under-used", "Flexera")
GPU_TARGET = api.Threshold(
    "gpu_target", 50, "percent of all GPUs", "busy enough", "Jobstats, target"
)
CPU_TARGET = api.Threshold(
    "cpu_target", 80, "percent of all vCPUs", "20% headroom", "Compute Optimizer"
)
_NEVER_WORKED_PERCENT = 1.0
_OWN = "poor-scaling"
_ONE, _PLACES = Decimal(1), Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class _Fewer:
    """A smaller count, how many times as long it takes at worst and at best, and the sentences."""

    count: int
    worst: Decimal
    best: Decimal
    summary: str
    evidence: dict[str, api.Evidence]
    caution: str


@api.rule(
    id="SA213",
    scope=api.FamilyCase,
    kinds=api.ON_INSTANCES,
    thresholds=(DEARER_FROM, RUNS_FROM, GPU_BELOW, CPU_BELOW, GPU_TARGET, CPU_TARGET),
    needs=(api.Metric.CPU,),
    not_applicable=(api.one_instance, api.mixed_types),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """What the family paid says more than what this run used."""
    fewer = _by_family(case) or (None if _was_followed(case) else _by_use(case))
    if isinstance(fewer, api.Missing):
        return api.unknown(fewer)
    if fewer is None:
        return api.Clear()
    group = case.job.groups[0]
    return api.derived(
        fewer.summary,
        fewer.evidence,
        fix=(api.Parameter(COUNT_PATHS[case.job.kind], group.count, fewer.count),),
        change=api.SetCount(fewer.count, fewer.worst),
        best=api.SetCount(fewer.count, fewer.best),
        caution=fewer.caution,
    )


def _by_family(case: api.FamilyCase) -> _Fewer | None:
    """The count with the lowest median, where today's is dearer by more than chance."""
    job, today = case.job, case.job.groups[0]
    like = [run for run in case.runs if same_work(job, run)]
    samples = [(run.facts.instance_count, run.total_usd, run.facts.elapsed_s) for run in like]
    samples.append((today.count, case.bill.total_usd, job.elapsed_s))
    known = [(count, usd, s) for count, usd, s in samples if count and usd and s]
    usual = {runs.count: runs for runs in by_count(known, case.limit(RUNS_FROM))}
    now = usual.get(today.count)
    fewer = next((runs for runs in usual.values() if runs.count < today.count), None)
    if job.status != "Completed" or not job.elapsed_s or now is None or fewer is None:
        return None
    dearer = 100 * (now.usd / fewer.usd - 1)
    if dearer < Decimal(str(case.limit(DEARER_FROM))):
        return None
    pinned = all([job.data_pinned is True, *(run.facts.data_pinned is True for run in like)])
    unpinned = "The data may have changed between the runs, so nothing is counted. "
    return _Fewer(
        count=fewer.count,
        worst=fewer.slowest_s / job.elapsed_s if pinned else _at_worst(now.count, fewer.count),
        best=fewer.seconds / job.elapsed_s,
        summary=(
            f"The same job costs ${now.usd:.2f} on {now.count} x {today.instance_type} and "
            f"${fewer.usd:.2f} on {fewer.count} (medians of {now.runs} and {fewer.runs} runs)."
        ),
        evidence={
            "median_usd": round(now.usd, 6),
            "median_usd_on_fewer": round(fewer.usd, 6),
            "dearer_percent": round(dearer, 1),
            "runs": now.runs,
            "runs_on_fewer": fewer.runs,
            "instances": now.count,
            "same_data": pinned,
        },
        caution=(
            f"{'' if pinned else unpinned}On {fewer.count} it takes {fewer.seconds / 60:.0f} "
            f"minutes instead of {job.elapsed_s / 60:.0f}."
        ),
    )


def _was_followed(case: api.FamilyCase) -> bool:
    """Found before on more instances: low use on fewer has another cause than their number."""
    now = case.job.groups[0].count
    return any(
        _OWN in run.facts.found and (run.facts.instance_count or 0) > now for run in case.runs
    )


def _by_use(case: api.FamilyCase) -> _Fewer | api.Missing | None:
    """As few hosts as hold all the work, and all the memory where it is known."""
    now, metric = case.job.groups[0].count, work_metric(case.usage)
    if isinstance(metric, api.Missing):
        return metric
    gpu = metric is api.Metric.GPU
    means = {host: api.mean(line.present) for host, line in case.usage.series[metric].items()}
    if len(means) < now:
        return api.Missing("hosts_missing", f"{len(means)} of {now} hosts have points")
    most, below = max(means.values()), case.limit(GPU_BELOW if gpu else CPU_BELOW)
    if most >= below or not _worked(case, metric):
        return None
    together = sum(means.values()) / case.limit(GPU_TARGET if gpu else CPU_TARGET)
    count = max(math.ceil(together), _by_memory(case), 1)
    if count >= now:
        return None
    what = "GPU" if gpu else "CPU"
    return _Fewer(
        count=count,
        worst=_at_worst(now, count),
        best=_ONE,
        summary=(
            f"Each of {now} hosts averaged {most:.0f}% {what} or less over "
            f"{case.usage.minutes:.0f} active minutes on {case.job.instances}: "
            f"{count} could do the work."
        ),
        evidence={
            "busiest_mean_percent": round(most, 1),
            "hosts_mean_percent": round(api.mean(list(means.values())), 1),
            "metric": metric.value,
            "instances": now,
            "active_minutes": round(case.usage.minutes),
        },
        caution=(
            f"On {count} it takes between as long and {now / count:.1f} times as long: nothing is "
            f"counted until a run shows it."
        ),
    )


def _worked(case: api.FamilyCase, metric: api.Metric) -> bool:
    """Idle GPUs and idle runs are left to other rules."""
    if metric is api.Metric.CPU:
        return any(case.usage.worked(minute) for minute in range(case.usage.points))
    lines = case.usage.series[metric].values()
    return max(value for line in lines for value in line.present) > _NEVER_WORKED_PERCENT


def _by_memory(case: api.FamilyCase) -> int:
    """How many hosts hold P99.5 of all the memory in use with 20% above it; 0: not known.

    A host whose memory is not known is taken to use as much as the others.
    """
    lines = case.usage.series.get(api.Metric.MEMORY, {}).values()
    peaks = [api.percentile(line.present, PEAK_PERCENTILE) for line in lines]
    used = case.job.groups[0].count * api.mean(peaks) / 100 if peaks else 0.0
    return math.ceil(used * (1 + float(HEADROOM_PERCENT) / 100))


def _at_worst(now: int, count: int) -> Decimal:
    """As many times as long as there are fewer hosts: then nothing is saved."""
    return (Decimal(now) / count).quantize(_PLACES, ROUND_UP)
