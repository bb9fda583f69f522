"""The job uses more instances than it needs.

What it checks: One of these is true. After the family has followed this recommendation, only the
    first is judged.
    - By the family: the median run on this number of instances costs at least 10% more than on a
      smaller number. Both numbers have at least 2 completed runs with the same fingerprint, type
      and purchase option.
    - By this run: every host uses under 25% of its GPUs on average, and all work fits on fewer
      hosts at 50% each. Without GPU the limits are 40% and 80% of the CPUs.
Why it costs: All instances are billed for the whole run, whether they work or wait for each other.
Saving: It depends on which case was found:
    - By the family: the run on fewer instances, as long as the slowest run there. The range goes to
      the median run. If the data may have changed between the runs, the saving is only possible:
      the difference of the medians.
    - By this run: 0 is counted, because the same work on m of n hosts may take n/m times as long.
When it is wrong: A deadline may justify the higher price. Data or a model that is split over all
    hosts may need the memory of all of them. Fewer hosts change the global batch size, and with it
    the training result.
What to do: Take fewer instances, first for one run. Or use them better: larger batches per host,
    overlapped communication, faster input.
Sources: Jobstats: GPU amber under 25%, target 50%. Flexera: underused below 40%. Compute Optimizer:
    20% headroom.
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
from sageaudit.domain.usage.series import ACTIVE
from sageaudit.rules import api

MIN_EXCESS = api.Threshold(
    "min_excess_percent", 10, "percent above the smaller count's median", "less may be noise"
)
MIN_RUNS = api.Threshold("min_runs", 2, "runs of each count", "one may be an exception")
GPU_BELOW = api.Threshold(
    "max_gpu_percent", 25, "percent of all GPUs", "amber", "Jobstats config.py"
)
CPU_BELOW = api.Threshold("max_cpu_percent", 40, "percent of all vCPUs", "underused", "Flexera")
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
    not_applicable=(api.one_instance_reason, api.mixed_types_reason),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Judges by the cost of the family's runs, else by the use of this run."""
    if finding := _finding_from_family(case):
        return finding
    count = case.job.groups[0].count
    # low use on fewer instances than a run with this finding has another cause
    has_followed = any(
        "poor-scaling" in run.rules_with_findings and (run.instance_count or 0) > count
        for run in case.earlier_runs
    )
    return api.Clear() if has_followed else _finding_from_use(case)


def _finding_from_family(case: api.FamilyCase) -> api.Detection | None:
    job, cheaper = case.job, _cheaper_count(case, case.threshold(MIN_RUNS))
    if cheaper is None or cheaper.excess_percent < Decimal(str(case.threshold(MIN_EXCESS))):
        return None
    current, fewer, elapsed_s = cheaper.current, cheaper.fewer, job.elapsed_s or Decimal(1)
    slowest_factor, usual_factor = fewer.slowest_s / elapsed_s, fewer.seconds / elapsed_s
    data_caution = "Only possible: the data may have changed between the runs. "
    time_text = f"{api.duration_text(fewer.seconds)} instead of {api.duration_text(elapsed_s)}"
    caution = (
        f"{'' if cheaper.has_same_data else data_caution}On {fewer.count} it takes {time_text}."
    )
    build_finding = api.derived_saving
    if not cheaper.has_same_data:
        slowest_factor = usual_factor = fewer.seconds / current.seconds
        build_finding = api.possible_saving_by_runs
    return build_finding(
        f"The same job costs {api.format_usd(current.usd)} on {current.count} x "
        f"{job.groups[0].instance_type} and {api.format_usd(fewer.usd)} on {fewer.count} (medians "
        f"of {current.run_count} and {fewer.run_count} runs).",
        {
            "median_usd": round(current.usd, 6),
            "median_usd_on_fewer": round(fewer.usd, 6),
            "excess_percent": round(cheaper.excess_percent, 1),
            "runs": current.run_count,
            "runs_on_fewer": fewer.run_count,
            "instances": current.count,
            "same_data": cheaper.has_same_data,
        },
        **_fewer_instances_fix(case, fewer.count, slowest_factor, usual_factor, caution),
    )


def _finding_from_use(case: api.FamilyCase) -> api.Outcome:
    current_count, minutes = case.job.groups[0].count, case.active_usage.minutes
    use = _use_of_hosts(case.active_usage, current_count)
    if isinstance(use, api.MissingMetrics):
        return api.unknown_from_missing(use)
    is_gpu = use.metric is api.Metric.GPU
    is_busy = use.busiest >= case.threshold(GPU_BELOW if is_gpu else CPU_BELOW)
    if is_busy or not _has_worked(case.active_usage, use.metric):
        return api.Clear()
    count = use.hosts_needed(
        case.threshold(GPU_TARGET if is_gpu else CPU_TARGET), case.active_usage
    )
    if count >= current_count:
        return api.Clear()
    worst_factor = (Decimal(current_count) / count).quantize(Decimal("0.0001"), ROUND_UP)
    hosts_text = "one host is" if count == 1 else f"{count} hosts are"
    time_text = (
        f"the run takes up to {current_count / count:.1f} times as long, and would then cost as "
        "much as now: nothing is counted"
    )
    return api.derived_saving(
        f"On each of the {current_count} hosts ({case.job.groups[0].instance_type}), the "
        f"{use.metric.name} averaged {use.busiest:.0f}% or less over {case.minutes_text(minutes)}: "
        f"{hosts_text} enough for the work.",
        {
            "busiest_mean_percent": round(use.busiest, 1),
            "hosts_mean_percent": round(api.mean(use.means), 1),
            "metric": use.metric.value,
            "instances": current_count,
            "active_minutes": round(minutes),
        },
        **_fewer_instances_fix(
            case, count, worst_factor, Decimal(1), f"On {count} of them {time_text}."
        ),
    )


def _fewer_instances_fix(
    case: api.FamilyCase, count: int, worst_factor: Decimal, best_factor: Decimal, caution: str
) -> api.DetectionDetails:
    fix = api.Parameter(api.COUNT_PATHS[case.job.kind], case.job.groups[0].count, count)
    return {
        "fix": (fix,),
        "change": api.SetCount(count, worst_factor),
        "best": None if best_factor == worst_factor else api.SetCount(count, best_factor),
        "caution": caution,
    }


class HostUse(Struct, frozen=True):
    """Each host's mean over the active minutes, in percent.

    The mean is of its GPUs, or of its CPUs if it has no GPU.
    """

    metric: api.Metric
    hosts: int
    means: list[float]

    @property
    def busiest(self) -> float:
        """The highest of the hosts' means, in percent."""
        return max(self.means)

    def hosts_needed(self, target_percent: float, usage: api.Measurements) -> int:
        """Returns how many hosts have room for all work at `target_percent` each.

        They must also have room for the memory in use, if that is known.
        """
        by_work = sum(self.means) / target_percent
        return max(math.ceil(by_work), _hosts_by_memory(usage, self.hosts), 1)


def _use_of_hosts(usage: api.Measurements, count: int) -> HostUse | api.MissingMetrics:
    metric = work_metric(usage)
    if isinstance(metric, api.MissingMetrics):
        return metric
    if missing := usage.missing_hosts(metric):
        return missing
    means = [api.mean(line.present) for line in usage.series[metric].values()]
    return HostUse(metric, count, means)


def _has_worked(usage: api.Measurements, metric: api.Metric) -> bool:
    """True if the run has used its GPUs, or its CPUs. Other rules judge idle GPUs and idle runs."""
    if metric is api.Metric.CPU:
        return ACTIVE in usage.states
    return not is_gpu_idle(usage)


def _hosts_by_memory(usage: api.Measurements, count: int) -> int:
    """Returns the fewest hosts with room for the P99.5 of all memory plus headroom.

    A host whose memory is not known counts as the mean of the others. Returns 0 if no memory is
    known.
    """
    lines = usage.series.get(api.Metric.MEMORY, {}).values()
    peaks = [api.percentile(line.present, PEAK_PERCENTILE) for line in lines]
    hosts_filled = count * api.mean(peaks) / 100 if peaks else 0.0
    return math.ceil(hosts_filled * (1 + float(HEADROOM_PERCENT) / 100))


class RunsOnCount(Struct, frozen=True):
    """The runs on one number of instances. `usd` and `seconds` are medians."""

    count: int
    run_count: int
    usd: Decimal
    seconds: Decimal
    slowest_s: Decimal


class CheaperInstanceCount(Struct, frozen=True):
    """The runs on the current number of instances, and on the cheapest smaller number.

    `has_same_data`: all runs are known to have read the same data.
    """

    current: RunsOnCount
    fewer: RunsOnCount
    has_same_data: bool

    @property
    def excess_percent(self) -> Decimal:
        """How much more the median run costs on the current number of instances, in percent."""
        return 100 * (self.current.usd / self.fewer.usd - 1)


def _cheaper_count(case: api.FamilyCase, min_runs: float) -> CheaperInstanceCount | None:
    """Returns the runs on the current number of instances, and on the cheapest smaller number.

    None if this run did not complete. Also None if fewer than `min_runs` runs are known for the
    current number, or for every smaller number.
    """
    job, count = case.job, case.job.groups[0].count
    if job.status != "Completed" or not job.elapsed_s:
        return None
    comparable = runs_with_same_settings(
        job, comparable_runs(job, case.earlier_runs, except_field="instance_count")
    )
    samples = [(run.instance_count, run.total_usd, run.elapsed_s) for run in comparable]
    samples.append((count, case.bill.total_usd, job.elapsed_s))
    counts = _by_count(
        [
            (instance_count, usd, seconds)
            for instance_count, usd, seconds in samples
            if instance_count and usd and seconds
        ],
        min_runs,
    )
    current = next((runs for runs in counts if runs.count == count), None)
    fewer = next((runs for runs in counts if runs.count < count), None)
    if current is None or fewer is None:
        return None
    has_same_data = all(
        [job.is_data_pinned is True, *(run.is_data_pinned is True for run in comparable)]
    )
    return CheaperInstanceCount(current, fewer, has_same_data)


def _by_count(
    samples: Iterable[tuple[int, Decimal, Decimal]], min_runs: float
) -> list[RunsOnCount]:
    """Returns the medians for each number of instances, the cheapest first.

    `samples`: the number of instances, USD and seconds of each run. Numbers with fewer than
    `min_runs` runs are left out.
    """
    runs = defaultdict[int, list[tuple[Decimal, Decimal]]](list)
    for count, usd, seconds in samples:
        runs[count].append((usd, seconds))
    counts = []
    for count, sample in runs.items():
        if len(sample) >= min_runs:
            costs_usd, durations_s = [usd for usd, _ in sample], [seconds for _, seconds in sample]
            counts.append(
                RunsOnCount(
                    count, len(sample), median(costs_usd), median(durations_s), max(durations_s)
                )
            )
    return sorted(counts, key=lambda on_count: (on_count.usd, on_count.count))
