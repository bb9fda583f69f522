"""The code uses one core of many, throughout the run or for a long step.

What it checks: One of these is true:
    - A CPU type has at least 4 vCPUs, and each host uses 0.85 to 1.2 cores on average, with a P95
      under 1.5 cores.
    - One core is enough for a long step: some host works, and none uses more than 1.2 cores. Such
      steps last at least half an hour each, and a fifth of the active minutes together.
Why it costs: All vCPUs are billed, but only one works.
Saving: Derived: the run on the type that saves most. Without such a type there is no figure.
    - The type has room for the P99.5 of memory plus 20%. If memory was not recorded, it has at
      least as much.
    - A minute counts as longer if more cores were busy than the new type has.
    - For a long step, the range also includes the saving of a small CPU type for that step alone.
When it is wrong: The algorithm may be unable to use more than one core. A mean of one core can hide
    several cores that take turns, and one-minute means hide bursts.
What to do: Do one of these:
    - Use all cores (n_jobs, num_workers, OMP_NUM_THREADS, a process pool, vectorised code). The run
      is then shorter on the same type.
    - Take a type with fewer cores, on which the code runs as fast.
    - Run a long step in a separate job on a small type.
Sources: Jobstats and Job Defense Shield, serial code: utilisation / (100 / cores) between 0.85 and
    1.01. They measure the job alone; CloudWatch measures the host, whose system takes up to 0.19
    cores.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.billed_job import BilledJob
from sageaudit.domain.job.course import work_phase_name
from sageaudit.domain.resize.type_choice import seconds_saved_by_cpu_type
from sageaudit.domain.usage.edges import peak_memory_gib
from sageaudit.domain.usage.series import (
    IDLE_BELOW_CORES,
    MIN_STANDSTILL_S,
    ONE_PROCESS_MAX_CORES,
    true_ranges,
)
from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type

MIN_CORES = api.Threshold("min_cores", 0.85, "cores", "one core, with pauses", "Jobstats")
MAX_CORES = api.Threshold(
    "max_cores",
    ONE_PROCESS_MAX_CORES,
    "cores",
    "one core (1.01) and the host's system (0.19)",
    "Jobstats, recordings",
)
P95_BELOW = api.Threshold("max_p95_cores", 1.5, "cores", "one core at nearly all times")
PARALLELIZE_STEP = "Or use all cores: threads and workers shorten the run on the same type."
MIN_STEP_SHARE = api.Threshold("min_step_percent", 20, "percent of the active time", "a fifth")
SEPARATE_JOB_STEP = (
    "Or run the step in a separate job on a small CPU type, if the rest can read what it writes."
)
_NEARLY_ALL_PERCENT = 90
"""From this percent of minutes on, a step counts as the whole run, which other rules judge."""
MIN_VCPU = api.Threshold("min_vcpus", 4, "vCPUs", "the smallest types have 2", "SageMaker's types")


@api.rule(
    id="SA207",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_CORES, MAX_CORES, P95_BELOW, MIN_STEP_SHARE, MIN_VCPU, api.HEADROOM),
    required_metrics=(api.Metric.CPU,),
    can_pool_runs=True,
    finds_waste=True,
    not_applicable=(api.accelerated_reason, api.mixed_types_reason),
    subsumes={"cheaper-type", "cpu-underused", "memory-oversized", "poor-scaling"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges if every host used one core, throughout or for a long step."""
    current_type = case.current_type
    if current_type.vcpu < case.threshold(MIN_VCPU):
        return api.Clear()
    hosts = [
        [value * current_type.vcpu / 100 for value in line.present]
        for line in case.active_usage.series[api.Metric.CPU].values()
    ]
    if not all(_is_serial(case, cores) for cores in hosts):
        return _check_long_step(case)
    mean, p95 = max(map(api.mean, hosts)), max(api.percentile(cores, 95) for cores in hosts)
    hosts_text = " on each host" if len(hosts) > 1 else ""
    return api.derived_saving(
        f"The code used {mean:.1f} of {current_type.vcpu} vCPUs{hosts_text} over "
        f"{case.minutes_text(case.active_usage.minutes)} on {case.job.instances}.",
        {
            "cpu_mean_cores": round(mean, 2),
            "cpu_p95_cores": round(p95, 2),
            "vcpu": current_type.vcpu,
            "active_minutes": round(case.active_usage.minutes),
        },
        **best_type(case).details(case, PARALLELIZE_STEP),
    )


def _is_serial(case: api.JobCase, cores: list[float]) -> bool:
    low, high = case.threshold(MIN_CORES), case.threshold(MAX_CORES)
    return low <= api.mean(cores) <= high and api.percentile(cores, 95) < case.threshold(P95_BELOW)


def _check_long_step(case: api.JobCase) -> api.Outcome:
    """Returns a finding if one core was enough for long steps.

    The range is from a smaller type for the whole run to a small type for these steps alone.
    """
    usage, current_type = case.active_usage, case.current_type
    step_s = Decimal(sum(map(len, _serial_steps(case))) * (usage.period_s or 0))
    if not case.threshold(MIN_STEP_SHARE) <= 100 * step_s / usage.seconds < _NEARLY_ALL_PERCENT:
        return api.Clear()
    gib = peak_memory_gib(usage, range(usage.points), float(current_type.memory_gib))
    separate_s = seconds_saved_by_cpu_type(
        case.job, case.market, step_s, case.threshold(MAX_CORES), gib
    )
    details, phase = best_type(case).details(case, SEPARATE_JOB_STEP), work_phase_name(case.job)
    separate_change = api.CutPhase(phase, separate_s)
    counted_change = details["change"] = details.get("change") or api.CutPhase(phase, Decimal(0))
    billed_job = BilledJob(case.job, case.bill, case.market)
    low, high = (billed_job.saving_usd(change) for change in (counted_change, separate_change))
    if low is None or high is None or low < high:
        details["best"] = separate_change
    return api.derived_saving(
        f"For {api.duration_text(step_s)} of {case.minutes_text(usage.minutes)} on "
        f"{case.job.instances} no host used more than {case.threshold(MAX_CORES):g} of "
        f"{current_type.vcpu} vCPUs.",
        {
            "serial_step_s": step_s,
            "vcpu": current_type.vcpu,
            "active_minutes": round(usage.minutes),
        },
        **details,
    )


def _serial_steps(case: api.JobCase) -> list[range]:
    """Returns the periods of each long step in which one core was enough.

    Each step lasts at least half an hour. In each of its minutes a host worked, and none used more
    than one core.
    """
    usage, period_s = case.active_usage, case.active_usage.period_s or 0
    hosts, cores_per_percent = usage.series[api.Metric.CPU].values(), case.current_type.vcpu / 100
    if any(line.lowest * cores_per_percent > case.threshold(MAX_CORES) for line in hosts):
        return []
    values_by_host = [line.values for line in hosts]
    is_serial = []
    for percents in zip(*values_by_host, strict=True):
        busiest = max(
            -1.0 if percent is None else percent * cores_per_percent for percent in percents
        )
        is_serial.append(
            None not in percents and IDLE_BELOW_CORES <= busiest <= case.threshold(MAX_CORES)
        )
    return [
        stretch for stretch in true_ranges(is_serial) if len(stretch) * period_s >= MIN_STANDSTILL_S
    ]
