"""The instances are idle before the work begins.

What it checks: On CPU types, all hosts are idle (under 0.2 cores) before the first work, for at
    least 10 minutes and 2% of the run. On GPU types, each minute before the first GPU work is
    judged separately:
    - It is idle if all hosts are idle.
    - It is calm if each host keeps at most 1.25 cores busy, for example by a download.
    - It does not count if memory fills up, because weights are loaded.
    - If a GPU works later, the first 20 minutes do not count.
Why it costs: Every instance is billed from its first second.
Saving: Idle and calm minutes are counted.
    - Idle minutes, measured: they were billed and produced nothing.
    - Calm minutes, derived: the difference to the price of a small CPU type.
    - Other minutes, with more busy cores or unknown memory use, are only in the high end of the
      range.
When it is wrong: A start that waits for a queue, a licence or another job looks the same. The first
    points come 3 to 6 minutes late. A minute without a point counts as idle only between idle ones.
What to do: Look in the job's log for what it did in these minutes.
    - Prepare data in a processing job on a CPU type.
    - Fetch data through a channel (FastFile), or faster with s5cmd or as WebDataset shards.
    - Load models and data only when they are needed. First start what several hosts wait for.
Sources: SageMaker Debugger, MaxInitializationTime: 20 minutes, until 2023. Recorded jobs: first GPU
    work in minute 0 to 6. A busy core reads up to 100.8%, an idle host up to 19% of a core.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import partial
from itertools import pairwise

from msgspec import Struct

from sageaudit.domain.job.course import work_phase_name
from sageaudit.domain.resize.type_choice import seconds_saved_by_cpu_type
from sageaudit.domain.usage.edges import (
    busiest_mean_cores,
    gpu_recording_gap,
    idle_head,
    peak_cores,
    peak_memory_gib,
    periods_before_gpu,
)
from sageaudit.domain.usage.series import ACTIVE, IDLE, combine_states, states, states_above
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import run_evidence

MIN_IDLE = api.Threshold(
    "min_idle_s", 600, "seconds", "imports and late points take up to 6 min", "recorded jobs"
)
MIN_SHARE = api.Threshold(
    "min_share_percent", 2, "percent of the run", "less is small compared with the work"
)
CORES_AT_MOST = api.Threshold(
    "max_cores", 1.25, "cores of a host", "one busy process and its system", "recorded jobs"
)
START_ALLOWANCE = api.Threshold(
    "start_allowance_s",
    1200,
    "seconds",
    "a start may take this long",
    "Debugger MaxInitializationTime",
)
PREPARE_DATA_STEP = (
    "Prepare the data once in a processing job on a CPU type, whose output later runs read. The "
    "cost of that job is subtracted."
)
FIND_WAIT_STEP = (
    "Look in the job's log for what it waited for in these minutes: another job, a query, or a "
    "download by its own code. Start the job when that is done"
)
"""The first step if no GPU worked later. A CPU type would not help then."""
WAITING_START_CAUTION = "A start that waits for another job or for a queue looks the same."
_RISE_INTERVAL_S = 120
"""Memory points are compared at this interval. Our choice."""
_MIN_RISE_POINTS = 0.3
"""The smallest rise of memory, in percentage points. Idle hosts vary less."""
_MIN_RISES = 2
"""Memory fills up if it rises this many times in a row: a single rise does not mean that weights
are loaded."""


@api.rule(
    id="SA210",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_IDLE, MIN_SHARE, CORES_AT_MOST, START_ALLOWANCE),
    required_metrics=(api.Metric.CPU,),
    tolerates_gaps=True,
    finds_waste=True,
    max_period_s=300,
    uses_whole_run=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the minutes before the first work, including the idle ones."""
    usage = case.whole_run
    if missing := gpu_recording_gap(usage):
        return api.unknown_from_missing(missing)
    wait_periods = periods_before_gpu(usage)
    start = _idle_start(case, wait_periods)
    if start is None:
        return api.Clear()
    evidence: dict[str, api.Scalar] = {
        "idle_s": start.idle_s,
        "without_gpu_s": len(wait_periods) * (usage.period_s or 0),
        "one_core_busy_s": start.one_core_busy_s,
        "cores_before_gpu": round(busiest_mean_cores(usage, wait_periods), 2),
        **run_evidence(usage),
    }
    summary, phase = _summary(case, start, wait_periods), work_phase_name(case.job)
    change = api.CutPhase(phase, start.counted_s)
    fix = api.first_channel_fix(case.job)
    if not wait_periods:
        first_step = None if fix else FIND_WAIT_STEP
        return api.measured_saving(
            summary,
            evidence,
            fix=fix,
            first_step=first_step,
            change=change,
            caution=WAITING_START_CAUTION,
        )
    if not (start.one_core_busy_s or start.max_saving_s > start.counted_s):
        return api.measured_saving(
            summary, evidence, fix=fix, change=change, caution=WAITING_START_CAUTION
        )
    if start.max_saving_s == start.counted_s:
        return api.derived_saving(
            summary, evidence, fix=fix, change=change, caution=PREPARE_DATA_STEP
        )
    caution = f"{PREPARE_DATA_STEP} Minutes in which more cores worked are not counted."
    best = api.CutPhase(phase, start.max_saving_s)
    return api.derived_saving(summary, evidence, fix=fix, change=change, best=best, caution=caution)


class IdleStart(Struct, frozen=True):
    """An idle start, in seconds.

    `idle_s`: all hosts were idle. `one_core_busy_s`: each host kept at most one process's core
    busy. `counted_s`: the counted saving. `max_saving_s`: the most that may be saved.
    """

    idle_s: Decimal
    one_core_busy_s: Decimal
    counted_s: Decimal
    max_saving_s: Decimal


def _idle_start(case: api.JobCase, wait: range) -> IdleStart | None:
    """Returns the idle start; None if the saving is too small.

    `wait`: the periods before the first GPU work.
    """
    start = _start_before_gpu(case, wait) if wait else _start_without_gpu_work(case)
    is_small = 100 * float(start.max_saving_s) < case.threshold(MIN_SHARE) * case.whole_run.seconds
    return None if is_small or not start.max_saving_s else start


def _start_without_gpu_work(case: api.JobCase) -> IdleStart:
    """Returns the idle time before the first work, for a run that did not wait for its first GPU
    work.

    START_ALLOWANCE is subtracted only if a GPU works later.
    """
    has_gpu_work = any(ACTIVE in host for host in case.whole_run.gpu_states.values())
    seconds = len(idle_head(case.whole_run)) * (case.whole_run.period_s or 0)
    allowance_s = int(case.threshold(START_ALLOWANCE)) if has_gpu_work else 0
    idle_s = Decimal(0 if seconds < case.threshold(MIN_IDLE) else max(seconds - allowance_s, 0))
    return IdleStart(idle_s, Decimal(0), idle_s, idle_s)


def _start_before_gpu(case: api.JobCase, wait: range) -> IdleStart:
    usage, period_s = case.whole_run, case.whole_run.period_s or 0
    judged_periods = wait[int(case.threshold(START_ALLOWANCE)) // period_s :]
    max_cores = case.threshold(CORES_AT_MOST)
    periods = count_wait_periods(usage, judged_periods, max_cores)
    idle_s, one_core_busy_s = (
        Decimal(periods.all_idle * period_s),
        Decimal(periods.one_core_busy * period_s),
    )
    gib = peak_memory_gib(usage, judged_periods, float(case.current_type.memory_gib))
    counted_s = idle_s + seconds_saved_by_cpu_type(
        case.job, case.market, one_core_busy_s, max_cores, gib
    )
    busy_s = Decimal(periods.more_busy * period_s)
    if busy_s < case.threshold(MIN_IDLE):
        return IdleStart(idle_s, one_core_busy_s, counted_s, counted_s)
    peak_core_count = peak_cores(usage, judged_periods)
    best_s = counted_s + seconds_saved_by_cpu_type(
        case.job, case.market, busy_s, peak_core_count, gib
    )
    return IdleStart(idle_s, one_core_busy_s, counted_s, best_s)


class GpuWaitPeriods(Struct, frozen=True):
    """Counts of periods before the first GPU work, without those in which memory fills up.

    `all_idle`: every host is idle. `one_core_busy`: each host keeps at most one process's core
    busy. `more_busy`: more cores work, or it is not known if memory fills up.
    """

    all_idle: int
    one_core_busy: int
    more_busy: int


_PERIOD_KIND_BY_FILLING = {False: "calm", True: "loading", None: "busy"}
"""The kind of a period with few busy cores, by whether memory fills up. None: not known."""


def count_wait_periods(usage: api.Measurements, wait: range, calm_cores: float) -> GpuWaitPeriods:
    """Returns the number of periods in `wait`, by kind.

    `calm_cores`: the most cores that one process keeps busy.
    """
    limit = calm_cores * 100 / (usage.vcpu or 1)
    lines = usage.series.get(api.Metric.CPU, {}).values()
    busy = combine_states(
        [states(line, partial(states_above, limit=limit), usage.period_s) for line in lines]
    )
    counts = Counter[str]()
    for period in wait:
        if usage.is_idle(period):
            counts["idle"] += 1
        elif busy[period] == ACTIVE:
            counts["busy"] += 1
        elif busy[period] == IDLE:
            counts[_PERIOD_KIND_BY_FILLING[_is_memory_filling(usage, period)]] += 1
    return GpuWaitPeriods(counts["idle"], counts["calm"], counts["busy"])


def _is_memory_filling(usage: api.Measurements, period: int) -> bool | None:
    """Returns whether the memory of a host or GPU gets fuller; None if that is not known."""
    interval = max(_RISE_INTERVAL_S // (usage.period_s or _RISE_INTERVAL_S), 1)
    lines = [usage.series.get(metric, {}) for metric in (api.Metric.MEMORY, api.Metric.GPU_MEMORY)]
    hosts = len(usage.series.get(api.Metric.CPU, {}))
    is_filling: list[bool | None] = [None] if any(len(line) < hosts for line in lines) else []
    for line in (line for of_hosts in lines for line in of_hosts.values()):
        neighbours = line.values[max(period - interval, 0) : period + interval + 1 : interval]
        points = [value for value in neighbours if value is not None]
        rises = [after - before >= _MIN_RISE_POINTS for before, after in pairwise(points)]
        is_filling.append(all(rises) if len(rises) == _MIN_RISES else None)
    if True in is_filling:
        return True
    return False if is_filling and None not in is_filling else None


def _summary(case: api.JobCase, start: IdleStart, wait_periods: range) -> str:
    run_text = f"of {api.minutes_text(case.whole_run.minutes)} on {case.job.instances}"
    if not wait_periods:
        return (
            f"All hosts were idle for {api.duration_text(start.idle_s)} {run_text}, before work "
            "began."
        )
    wait_text = api.duration_text(Decimal(len(wait_periods) * (case.whole_run.period_s or 0)))
    allowance_text = api.duration_text(Decimal(str(case.threshold(START_ALLOWANCE))))
    gpu_text = f"No GPU worked in the first {wait_text} {run_text}"
    if start.counted_s:
        calm_text = api.duration_text(start.idle_s + start.one_core_busy_s)
        cores_text = f"at most {case.threshold(CORES_AT_MOST):g} of {case.whole_run.vcpu} cores"
        return f"{gpu_text}; after {allowance_text}, {cores_text} were busy for {calm_text}."
    mean_cores_text = (
        f"{busiest_mean_cores(case.whole_run, wait_periods):.1f} of {case.whole_run.vcpu} cores"
    )
    busy_text = f"{mean_cores_text} were busy on average"
    return f"{gpu_text}, while {busy_text}."
