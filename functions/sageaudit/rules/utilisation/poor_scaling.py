"""Several instances where fewer would do.

What it checks: One of two. By the family: the median run on this number of instances costs at least
    10% more than on a smaller number. Both have at least 2 completed runs with the same
    fingerprint, type and purchase option. By this run: the mean use of every host is under 25% of
    its GPUs (without GPU: 40% of its CPUs), and the work of all fits on fewer hosts at 50% each
    (CPU: 80%). If the family followed this advice before, only the cost of its runs is judged.
Why it costs: n instances are billed for the whole run, working or waiting for each other.
Saving: From the family: the run is billed as the slowest run on the smaller number of instances;
    the range goes to the median. If the data may have changed in between, the difference of the
    medians is possible, and in no total. From one run: 0 is counted, because the same work on m of
    n hosts may take n/m times as long.
When it is wrong: A deadline may be worth the higher price. Memory may need all hosts: data or a
    model that is split over them. Fewer hosts change the global batch, and with it what is learnt.
What to do: Take fewer instances, first for one run. Or feed them: larger batches a host, overlapped
    communication, faster input.
Sources: Jobstats: GPU amber under 25%, target 50%. Flexera: under-used below 40%. Compute
    Optimizer: 20% headroom.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from decimal import ROUND_UP, Decimal
from statistics import median

from msgspec import Struct

from sageaudit.domain.audit.family_runs import comparable_runs, runs_with_same_settings
from sageaudit.domain.resize.resize import HEADROOM_PERCENT
from sageaudit.domain.usage.demand import PEAK_PERCENTILE, is_gpu_idle
from sageaudit.domain.usage.edges import work_metric
from sageaudit.rules import api

MIN_EXCESS = api.Threshold(
    "min_excess_percent", 10, "percent above the smaller count's median", "no noise"
)
MIN_RUNS = api.Threshold("min_runs", 2, "runs of each count", "one is an accident")
GPU_BELOW = api.Threshold(
    "max_gpu_percent", 25, "percent of all GPUs", "amber", "Jobstats config.py"
)
CPU_BELOW = api.Threshold("max_cpu_percent", 40, "percent of all vCPUs", "under-used", "Flexera")
GPU_TARGET = api.Threshold(
    "gpu_target_percent", 50, "percent of all GPUs", "busy enough", "Jobstats, target"
)
CPU_TARGET = api.Threshold(
    "cpu_target_percent", 80, "percent of all vCPUs", "20% headroom", "Compute Optimizer"
)


@api.rule(
    id="SA213",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_EXCESS, MIN_RUNS, GPU_BELOW, CPU_BELOW, GPU_TARGET, CPU_TARGET),
    required_metrics=(api.Metric.CPU,),
    can_pool_runs=True,
    finds_waste=True,
    used_by_later_runs=True,
    not_applicable=(api.one_instance, api.mixed_types),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """What the family paid says more than what this run used."""
    if found := _finding_from_family(case):
        return found
    now = case.job.groups[0].count
    # low use on fewer instances than a run that got this advice has another cause
    followed = any(
        "poor-scaling" in run.rules_with_findings and (run.instance_count or 0) > now
        for run in case.earlier_runs
    )
    return api.Clear() if followed else _finding_from_use(case)


def _finding_from_family(case: api.FamilyCase) -> api.Detection | None:
    job, cheaper = case.job, _cheaper_count(case, case.threshold(MIN_RUNS))
    if cheaper is None or cheaper.excess_percent < Decimal(str(case.threshold(MIN_EXCESS))):
        return None
    now, fewer, took_s = cheaper.current, cheaper.fewer, job.elapsed_s or Decimal(1)
    slowest, usual = fewer.slowest_s / took_s, fewer.seconds / took_s
    unpinned = "Possible only: the data may have changed between the runs. "
    takes = f"{api.duration_text(fewer.seconds)} instead of {api.duration_text(took_s)}"
    caution = f"{'' if cheaper.has_same_data else unpinned}On {fewer.count} it takes {takes}."
    found = api.derived_saving
    if not cheaper.has_same_data:
        slowest = usual = fewer.seconds / now.seconds
        found = api.possible_saving_by_runs
    return found(
        f"The same job costs ${now.usd:.2f} on {now.count} x {job.groups[0].instance_type} and "
        f"${fewer.usd:.2f} on {fewer.count} (medians of {now.run_count} and {fewer.run_count}"
        " runs).",
        {
            "median_usd": round(now.usd, 6),
            "median_usd_on_fewer": round(fewer.usd, 6),
            "excess_percent": round(cheaper.excess_percent, 1),
            "runs": now.run_count,
            "runs_on_fewer": fewer.run_count,
            "instances": now.count,
            "same_data": cheaper.has_same_data,
        },
        **_fewer_instances_fix(case, fewer.count, slowest, usual, caution),
    )


def _finding_from_use(case: api.FamilyCase) -> api.Outcome:
    now, minutes = case.job.groups[0].count, case.active_usage.minutes
    use = _use_of_hosts(case.active_usage, now)
    if isinstance(use, api.Missing):
        return api.unknown_from_missing(use)
    gpu = use.metric is api.Metric.GPU
    much = use.busiest >= case.threshold(GPU_BELOW if gpu else CPU_BELOW)
    if much or not _did_work(case.active_usage, use.metric):
        return api.Clear()
    count = use.hosts_needed(case.threshold(GPU_TARGET if gpu else CPU_TARGET), case.active_usage)
    if count >= now:
        return api.Clear()
    at_worst = (Decimal(now) / count).quantize(Decimal("0.0001"), ROUND_UP)
    has = f"{count} {'has' if count == 1 else 'have'}"
    takes = (
        f"the run takes up to {now / count:.1f} times as long, which would "
        "cost as much as today: nothing is counted"
    )
    return api.derived_saving(
        f"The {use.metric.name} of each of {now} hosts averaged {use.busiest:.0f}% or less over "
        f"{case.minutes_text(minutes)} on {case.job.instances}: {has} room for it.",
        {
            "busiest_mean_percent": round(use.busiest, 1),
            "hosts_mean_percent": round(api.mean(use.means), 1),
            "metric": use.metric.value,
            "instances": now,
            "active_minutes": round(minutes),
        },
        **_fewer_instances_fix(case, count, at_worst, Decimal(1), f"On {count} of them {takes}."),
    )


def _fewer_instances_fix(
    case: api.FamilyCase, count: int, worst: Decimal, best: Decimal, caution: str
) -> api.DetectionDetails:
    """The fix, and how many times as long the run takes at worst and, if that differs, at best."""
    now = api.Parameter(api.COUNT_PATHS[case.job.kind], case.job.groups[0].count, count)
    return {
        "fix": (now,),
        "change": api.SetCount(count, worst),
        "best": None if best == worst else api.SetCount(count, best),
        "caution": caution,
    }


class HostUse(Struct, frozen=True):
    """Each host's mean over the active minutes, in percent of its GPUs, without GPU of its CPUs."""

    metric: api.Metric
    hosts: int
    means: list[float]

    @property
    def busiest(self) -> float:
        """The highest of the means."""
        return max(self.means)

    def hosts_needed(self, target_percent: float, usage: api.Measurements) -> int:
        """As few as hold all the work at the target, and all the memory where it is known."""
        together = sum(self.means) / target_percent
        return max(math.ceil(together), _hosts_by_memory(usage, self.hosts), 1)


def _use_of_hosts(usage: api.Measurements, count: int) -> HostUse | api.Missing:
    """Of `count` hosts of one type."""
    metric = work_metric(usage)
    if isinstance(metric, api.Missing):
        return metric
    if missing := usage.missing_hosts(metric):
        return missing
    means = [api.mean(line.present) for line in usage.series[metric].values()]
    return HostUse(metric, count, means)


def _did_work(usage: api.Measurements, metric: api.Metric) -> bool:
    """False for idle GPUs and idle runs, which other rules find."""
    if metric is api.Metric.CPU:
        return any(usage.worked(minute) for minute in range(usage.points))
    return not is_gpu_idle(usage)


def _hosts_by_memory(usage: api.Measurements, count: int) -> int:
    """How many hosts hold P99.5 of all the memory in use with headroom; 0: not known.

    A host whose memory is not known is taken to use as much as the others.
    """
    lines = usage.series.get(api.Metric.MEMORY, {}).values()
    peaks = [api.percentile(line.present, PEAK_PERCENTILE) for line in lines]
    used = count * api.mean(peaks) / 100 if peaks else 0.0
    return math.ceil(used * (1 + float(HEADROOM_PERCENT) / 100))


class RunsOnCount(Struct, frozen=True):
    """The runs on one number of instances: medians, and the slowest of them."""

    count: int
    run_count: int
    usd: Decimal
    seconds: Decimal
    slowest_s: Decimal


class CheaperInstanceCount(Struct, frozen=True):
    """The runs on today's number of instances, and on the cheapest smaller one.

    `same_data`: all of them are known to have read the same data.
    """

    current: RunsOnCount
    fewer: RunsOnCount
    has_same_data: bool

    @property
    def excess_percent(self) -> Decimal:
        """How much more the median run costs today."""
        return 100 * (self.current.usd / self.fewer.usd - 1)


def _cheaper_count(case: api.FamilyCase, least_runs: float) -> CheaperInstanceCount | None:
    """Among the family's runs of the same work; None without `least_runs` on both counts."""
    job, count = case.job, case.job.groups[0].count
    if job.status != "Completed" or not job.elapsed_s:
        return None
    like = runs_with_same_settings(
        job, comparable_runs(job, case.earlier_runs, except_field="instance_count")
    )
    samples = [(run.instance_count, run.total_usd, run.elapsed_s) for run in like]
    samples.append((count, case.bill.total_usd, job.elapsed_s))
    counts = _by_count([(n, usd, s) for n, usd, s in samples if n and usd and s], least_runs)
    today = next((runs for runs in counts if runs.count == count), None)
    fewer = next((runs for runs in counts if runs.count < count), None)
    if today is None or fewer is None:
        return None
    same_data = all([job.is_data_pinned is True, *(run.is_data_pinned is True for run in like)])
    return CheaperInstanceCount(today, fewer, same_data)


def _by_count(
    samples: Iterable[tuple[int, Decimal, Decimal]], least_runs: float
) -> list[RunsOnCount]:
    """Groups runs (count, dollars, seconds); only counts with enough runs, the cheapest first."""
    runs = defaultdict[int, list[tuple[Decimal, Decimal]]](list)
    for count, usd, seconds in samples:
        runs[count].append((usd, seconds))
    counts = []
    for count, sample in runs.items():
        if len(sample) >= least_runs:
            dollars, took = [usd for usd, _ in sample], [seconds for _, seconds in sample]
            counts.append(RunsOnCount(count, len(sample), median(dollars), median(took), max(took)))
    return sorted(counts, key=lambda on_count: (on_count.usd, on_count.count))
