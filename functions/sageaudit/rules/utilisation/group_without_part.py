"""Instances of one type of a heterogeneous cluster take no part in the work.

What it checks: A training job on GPU and CPU types together. Only hosts with GPUs have points of
    GPUUtilization, which tells the hosts of one GPU type and of one CPU type apart. After the first
    6 minutes, hosts of one type are idle (under 0.2 cores and 1% of the GPUs), or have idle GPUs
    and at most one core busy; hosts of the other type keep a core or 5% of their GPUs busy.
Why it costs: All instances are billed for the whole run.
Saving: Derived: the run without these instances and their volumes, in the same time.
When it is wrong: Hosts that only hold data in memory, or serve little of it, may be needed. If two
    groups have different GPU types, or different CPU types, it is not known which host is which.
What to do: Leave the idle group out of ResourceConfig.InstanceGroups, or repair what should give
    it work: the script's branch by `current_group_name` of resourceconfig.json, the address of the
    data service, the InstanceGroupNames of each channel.
Sources: SageMaker guide, heterogeneous clusters: all groups run the same script, which finds out
    its group; log streams are not grouped. Idle hosts use up to 0.19 cores in recorded jobs.
"""

from __future__ import annotations

from itertools import permutations

from sageaudit.domain.usage.edges import gpu_recording_gap, host_activities
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES
from sageaudit.domain.usage.series import COARSEST_PERIOD_S
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import NEED_NOTHING, hosts_without_part

MIN_GPU_WORK = api.Threshold(
    "min_gpu_work_percent", 5, "percent of a host's GPUs", "real work, as of uneven-hosts"
)
_GROUP_COUNT = "ResourceConfig.InstanceGroups[{}].InstanceCount"


@api.rule(
    id="SA215",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_GPU_WORK,),
    finds_waste=True,
    not_applicable=(api.same_type, api.never_started, api.free),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the hosts of each type by themselves."""
    uses = case.whole_run.by_type
    if not uses:
        missing = case.whole_run.missing.get(api.Metric.GPU) or case.whole_run.missing.get(
            api.Metric.CPU
        )
        return api.unknown_from_missing(missing) if missing else api.HOSTS_UNMAPPED
    if why := next(filter(None, map(_unknown_outcome, uses.values())), None):
        return why
    for name, other in permutations(uses):
        idle = hosts_without_part(uses[name], host_activities(uses[name]))
        if idle and _is_working(uses[other], case.threshold(MIN_GPU_WORK)):
            return _finding(case, name, other, len(idle))
    return api.Clear()


def _unknown_outcome(usage: api.Measurements) -> api.Unknown | None:
    """Why it is not known what the hosts of one type did, or None."""
    if missing := gpu_recording_gap(usage) or usage.missing.get(api.Metric.CPU):
        return api.unknown_from_missing(missing)
    if (usage.period_s or 0) > COARSEST_PERIOD_S:
        return api.Unknown("period_too_coarse", f"one point every {usage.period_s} s")
    if usage.minutes < MIN_ACTIVE_MINUTES:
        why = f"{usage.minutes:.0f} minutes, the rule needs {MIN_ACTIVE_MINUTES}"
        return api.Unknown("too_short", why)
    metrics = (api.Metric.CPU, *([api.Metric.GPU] if usage.gpus else []))
    gap = next(filter(None, map(usage.find_gap, metrics)), None)
    return api.unknown_from_missing(gap) if gap else None


def _is_working(usage: api.Measurements, gpu_percent: float) -> bool:
    """Whether a host keeps this much of its GPUs busy on average; without GPUs, a core."""
    gpus = usage.series.get(api.Metric.GPU, {}).values()
    cpus = usage.series[api.Metric.CPU].values()
    one_core = 100 / (usage.vcpu or 1)
    return any(line.mean >= gpu_percent for line in gpus) or (
        not gpus and any(line.mean >= one_core for line in cpus)
    )


def _finding(case: api.JobCase, name: str, other: str, idle: int) -> api.Outcome:
    """Hosts of the type of this name did nothing, while those of the other one worked."""
    usage, others = case.whole_run.by_type[name], case.whole_run.by_type[other]
    groups = [group for group in case.job.groups if group.instance_type == name]
    names = ", ".join(group.name for group in groups if group.name)
    left = sum(group.count for group in groups) - idle
    if left and len(groups) > 1:
        why = f"{idle} hosts of {name} took no part, in an unknown one of its groups"
        return api.Unknown(api.HOSTS_UNMAPPED.code, why)
    metric = api.Metric.GPU if others.gpus else api.Metric.CPU
    busy = others.mean(metric)
    count = api.Parameter(_GROUP_COUNT.format(names), groups[0].count, left)
    return api.derived_saving(
        f"{idle} x {name} did no work in {api.minutes_text(usage.minutes)}, while "
        f"the {metric.name} of the {other} averaged {busy:.0f}%.",
        {
            "hosts_without_part": idle,
            "hosts_of_the_type": idle + left,
            "others_mean_percent": round(busy, 1),
            "minutes": round(usage.minutes),
            "period_s": usage.period_s,
        },
        fix=(count,) if left and names else (),
        change=api.SetTypeCount(name, left),
        first_step=None if left else _removal_step(names),
        caution=NEED_NOTHING,
    )


def _removal_step(names: str) -> str:
    what = f"the group {names}" if names else "the idle group"
    return f"Leave {what} out of ResourceConfig.InstanceGroups, or repair what should give it work"
