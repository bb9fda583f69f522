"""In a heterogeneous cluster, the instances of one type do no work.

What it checks: A training job runs on GPU and CPU types together. After the first 6 minutes, hosts
    of one type do no work, while a host of the other type keeps a core or 5% of its GPUs busy. A
    host does no work in one of these cases:
    - It is idle (under 0.2 cores and 1% of the GPUs).
    - Its GPUs are idle and at most one core is busy.
Why it costs: All instances are billed for the whole run.
Saving: Derived: the run without these instances and their volumes, with the same run time.
When it is wrong: Hosts that only keep data in memory, or serve a little of it, may be needed. Only
    hosts with GPUs have points of GPUUtilization. So two groups with different GPU types, or
    different CPU types, cannot be distinguished.
What to do: Remove the idle group from ResourceConfig.InstanceGroups, or correct what should give it
    work:
    - The script's branch on `current_group_name` of resourceconfig.json.
    - The address of the data service.
    - The InstanceGroupNames of each channel.
Sources: SageMaker guide, heterogeneous clusters: all groups run the same script, which finds out
    its group; log streams are not grouped. Idle hosts use up to 0.19 cores in recorded jobs.
"""

from __future__ import annotations

from itertools import permutations

from sageaudit.domain.usage.edges import gpu_recording_gap, host_activities
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES
from sageaudit.domain.usage.series import COARSEST_PERIOD_S
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import (
    IDLE_HOSTS_UNNEEDED_CAUTION,
    hosts_without_work,
)

MIN_GPU_WORK = api.Threshold(
    "min_gpu_work_percent", 5, "percent of a host's GPUs", "real work, as for uneven-hosts"
)
_GROUP_COUNT = "ResourceConfig.InstanceGroups[{}].InstanceCount"


@api.rule(
    id="SA215",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_GPU_WORK,),
    finds_waste=True,
    not_applicable=(api.same_type_reason, api.never_started_reason, api.free_reason),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the hosts of each type separately."""
    uses = case.whole_run.by_type
    if not uses:
        missing = case.whole_run.missing.get(api.Metric.GPU) or case.whole_run.missing.get(
            api.Metric.CPU
        )
        return api.unknown_from_missing(missing) if missing else api.HOSTS_UNMAPPED
    if unknown := next(filter(None, map(_unknown_outcome, uses.values())), None):
        return unknown
    for name, other_name in permutations(uses):
        idle = hosts_without_work(uses[name], host_activities(uses[name]))
        if idle and _is_working(uses[other_name], case.threshold(MIN_GPU_WORK)):
            return _finding(case, name, other_name, len(idle))
    return api.Clear()


def _unknown_outcome(usage: api.Measurements) -> api.Unknown | None:
    if missing := gpu_recording_gap(usage) or usage.missing.get(api.Metric.CPU):
        return api.unknown_from_missing(missing)
    if (usage.period_s or 0) > COARSEST_PERIOD_S:
        return api.Unknown("period_too_coarse", f"one point every {usage.period_s} s")
    if usage.minutes < MIN_ACTIVE_MINUTES:
        reason = f"{usage.minutes:.0f} minutes, the rule needs {MIN_ACTIVE_MINUTES}"
        return api.Unknown("too_short", reason)
    metrics = (api.Metric.CPU, *([api.Metric.GPU] if usage.gpus else []))
    gap = next(filter(None, map(usage.find_gap, metrics)), None)
    return api.unknown_from_missing(gap) if gap else None


def _is_working(usage: api.Measurements, gpu_percent: float) -> bool:
    """True if the GPUs average `gpu_percent`, or without GPUs if the CPU averages one core."""
    gpus = usage.series.get(api.Metric.GPU, {}).values()
    cpus = usage.series[api.Metric.CPU].values()
    one_core = 100 / (usage.vcpu or 1)
    return any(line.mean >= gpu_percent for line in gpus) or (
        not gpus and any(line.mean >= one_core for line in cpus)
    )


def _finding(case: api.JobCase, name: str, other_name: str, idle_count: int) -> api.Outcome:
    usage, other_usage = case.whole_run.by_type[name], case.whole_run.by_type[other_name]
    groups = [group for group in case.job.groups if group.instance_type == name]
    names_text = ", ".join(group.name for group in groups if group.name)
    remaining_count = sum(group.count for group in groups) - idle_count
    if remaining_count and len(groups) > 1:
        reason = f"{idle_count} hosts of {name} did no work, but their group is not known"
        return api.Unknown(api.HOSTS_UNMAPPED.code, reason)
    metric = api.Metric.GPU if other_usage.gpus else api.Metric.CPU
    busy_percent = other_usage.mean(metric)
    count = api.Parameter(_GROUP_COUNT.format(names_text), groups[0].count, remaining_count)
    return api.derived_saving(
        f"{idle_count} x {name} did no work in {api.minutes_text(usage.minutes)}, while "
        f"the {metric.name} of the {other_name} averaged {busy_percent:.0f}%.",
        {
            "hosts_without_part": idle_count,
            "hosts_of_the_type": idle_count + remaining_count,
            "others_mean_percent": round(busy_percent, 1),
            "minutes": round(usage.minutes),
            "period_s": usage.period_s,
        },
        fix=(count,) if remaining_count and names_text else (),
        change=api.SetTypeCount(name, remaining_count),
        first_step=None if remaining_count else _removal_step(names_text),
        caution=IDLE_HOSTS_UNNEEDED_CAUTION,
    )


def _removal_step(names: str) -> str:
    group_text = f"the group {names}" if names else "the idle group"
    return (
        f"Remove {group_text} from ResourceConfig.InstanceGroups, or correct what should give it "
        "work"
    )
