"""The instances wait before work begins.

What it checks: On CPU types: before the first work, all hosts are known to be idle (under 0.2
    cores) for at least 10 minutes and 2% of the run. On GPU types each minute before the first GPU
    work is judged alone: it is idle, or it is calm if each host keeps at most 1.25 cores busy, such
    as by a download. Minutes in which a memory fills up (weights are loaded) do not count, nor the
    first 20 minutes if a GPU works later.
Why it costs: Every instance is billed from its first second, with all its GPUs.
Saving: Measured: the idle minutes, which were billed and produced nothing. Derived: for the calm
    minutes, the difference to the price of a small CPU type. If more cores work, or host memory is
    not known, the range begins at 0, and 0 is counted.
When it is wrong: A start that waits for something else (a queue, a licence, another job) looks idle
    too. The first points come 3 to 6 minutes late: minutes without a point are idle only between
    idle ones.
What to do: Look in the job's log for what it did in these minutes: data is prepared in a processing
    job on a CPU type, and fetched by a channel (FastFile), or faster with s5cmd or as WebDataset
    shards. Load models and data lazily, and start what several hosts wait for first.
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
from sageaudit.domain.usage.series import any_active, states, states_above
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import run_evidence

MIN_IDLE = api.Threshold(
    "min_idle_s", 600, "seconds", "imports, late points: up to 6 min", "recorded jobs"
)
MIN_SHARE = api.Threshold(
    "min_share_percent", 2, "percent of the run", "less is small beside the work"
)
CORES_AT_MOST = api.Threshold(
    "max_cores", 1.25, "cores of a host", "one busy process and its system", "recorded jobs"
)
START_ALLOWANCE = api.Threshold(
    "start_allowance_s",
    1200,
    "seconds",
    "a start may take so long",
    "Debugger MaxInitializationTime",
)
PREPARE_DATA_STEP = (
    "Prepare the data once in a processing job on a CPU type, whose output later runs read; "
    "what that costs is taken off."
)
FIND_THE_WAIT = (
    "Look in the job's log for what it waited for in these minutes: another job, a query, a "
    "download by its own code. Start the job when that is done"
)
"""The first step where the job had no GPU work to prepare, so that no other type helps."""
WAITING_START_CAUTION = "A start that waits for another job or for a queue looks the same."
_FILLS_OVER_S = 120
"""A memory fills up if it becomes fuller within this time, several times in a row. Our choice."""
_FILLS_BY = 0.3
"""Points (of 100) by which it then becomes fuller: the noise of idle hosts is smaller."""
_RISES = 2
"""How often in a row: a single step is no loading."""


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
    """Looks at the first minutes of the whole run."""
    whole = case.whole_run
    if missing := gpu_recording_gap(whole):
        return api.unknown_from_missing(missing)
    wait = periods_before_gpu(whole)
    start = _start(case, wait)
    if start is None:
        return api.Clear()
    evidence: dict[str, api.Scalar] = {
        "idle_s": start.idle_s,
        "without_gpu_s": len(wait) * (whole.period_s or 0),
        "calm_s": start.one_core_busy_s,
        "cores_before_gpu": round(busiest_mean_cores(whole, wait), 2),
        **run_evidence(whole),
    }
    summary, phase = _summary(case, start, wait), work_phase_name(case.job)
    change = api.CutPhase(phase, start.counted_s)
    fix = api.first_channel_fix(case.job)
    if not wait:
        step = None if fix else FIND_THE_WAIT
        return api.measured_saving(
            summary,
            evidence,
            fix=fix,
            first_step=step,
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
    """How long the start was too long; what of that is counted, at least and at best.

    `idle_s`: all hosts were idle. `calm_s`: none kept more than one process's core busy.
    """

    idle_s: Decimal
    one_core_busy_s: Decimal
    counted_s: Decimal
    max_saving_s: Decimal


def _start(case: api.JobCase, wait: range) -> IdleStart | None:
    """None where too little could be saved; `wait`: the periods before the first GPU work."""
    start = _start_before_gpu(case, wait) if wait else _start_without_gpu_work(case)
    little = 100 * float(start.max_saving_s) < case.threshold(MIN_SHARE) * case.whole_run.seconds
    return None if little or not start.max_saving_s else start


def _start_without_gpu_work(case: api.JobCase) -> IdleStart:
    """Where no GPU worked no initialisation of one is granted."""
    worked = any(True in host for host in case.whole_run.gpu_states.values())
    seconds = len(idle_head(case.whole_run)) * (case.whole_run.period_s or 0)
    granted_s = int(case.threshold(START_ALLOWANCE)) if worked else 0
    idle_s = Decimal(0 if seconds < case.threshold(MIN_IDLE) else max(seconds - granted_s, 0))
    return IdleStart(idle_s, Decimal(0), idle_s, idle_s)


def _start_before_gpu(case: api.JobCase, wait: range) -> IdleStart:
    """Of the periods after those that are granted to every start."""
    whole, period_s = case.whole_run, case.whole_run.period_s or 0
    beyond = wait[int(case.threshold(START_ALLOWANCE)) // period_s :]
    at_most = case.threshold(CORES_AT_MOST)
    came = what_came_before_gpu(whole, beyond, at_most)
    idle_s, calm_s = Decimal(came.all_idle * period_s), Decimal(came.one_core_busy * period_s)
    gib = peak_memory_gib(whole, beyond, float(case.current_type.memory_gib))
    counted_s = idle_s + seconds_saved_by_cpu_type(case.job, case.market, calm_s, at_most, gib)
    busy_s = Decimal(came.more_busy * period_s)
    if busy_s < case.threshold(MIN_IDLE):
        return IdleStart(idle_s, calm_s, counted_s, counted_s)
    peak = peak_cores(whole, beyond)
    best_s = counted_s + seconds_saved_by_cpu_type(case.job, case.market, busy_s, peak, gib)
    return IdleStart(idle_s, calm_s, counted_s, best_s)


class GpuWaitPeriods(Struct, frozen=True):
    """How many periods before the first GPU work were what; each is one of these at most.

    `asleep`: every host is known to be idle. `calm`: none keeps more than one process's core busy,
    and no memory fills up, as with weights. `busy`: any other whose CPU is known.
    """

    all_idle: int
    one_core_busy: int
    more_busy: int


_WHERE_MEMORY_FILLS = {False: "calm", True: "loading", None: "busy"}


def what_came_before_gpu(usage: api.Measurements, wait: range, calm_cores: float) -> GpuWaitPeriods:
    """Judges each of these periods by itself."""
    limit = calm_cores * 100 / (usage.vcpu or 1)
    lines = usage.series.get(api.Metric.CPU, {}).values()
    hosts = [states(line, partial(states_above, limit=limit), usage.period_s) for line in lines]
    counts = Counter[str]()
    for at in wait:
        over = any_active([host[at] for host in hosts])
        if usage.idle(at):
            counts["asleep"] += 1
        elif over:
            counts["busy"] += 1
        elif over is False:
            counts[_WHERE_MEMORY_FILLS[_memory_fills(usage, at)]] += 1
    return GpuWaitPeriods(counts["asleep"], counts["calm"], counts["busy"])


def _memory_fills(usage: api.Measurements, at: int) -> bool | None:
    """Whether a memory, of a host or of its GPUs, becomes fuller before and after a period."""
    apart = max(_FILLS_OVER_S // (usage.period_s or _FILLS_OVER_S), 1)
    lines = [usage.series.get(metric, {}) for metric in (api.Metric.MEMORY, api.Metric.GPU_MEMORY)]
    hosts = len(usage.series.get(api.Metric.CPU, {}))
    fills: list[bool | None] = [None] if any(len(line) < hosts for line in lines) else []
    for line in (line for of_hosts in lines for line in of_hosts.values()):
        around = line.values[max(at - apart, 0) : at + apart + 1 : apart]
        known = [value for value in around if value is not None]
        rises = [after - before >= _FILLS_BY for before, after in pairwise(known)]
        fills.append(all(rises) if len(rises) == _RISES else None)
    return any_active(fills)


def _summary(case: api.JobCase, start: IdleStart, wait: range) -> str:
    run = f"of {api.minutes_text(case.whole_run.minutes)} on {case.job.instances}"
    if not wait:
        return (
            f"All hosts were idle for {api.duration_text(start.idle_s)} {run}, before work began."
        )
    first = api.duration_text(Decimal(len(wait) * (case.whole_run.period_s or 0)))
    granted = api.duration_text(Decimal(str(case.threshold(START_ALLOWANCE))))
    gpus = f"No GPU worked in the first {first} {run}"
    if start.counted_s:
        calm = api.duration_text(start.idle_s + start.one_core_busy_s)
        little = f"at most {case.threshold(CORES_AT_MOST):g} of {case.whole_run.vcpu} cores"
        return f"{gpus}; after {granted}, {little} were busy for {calm}."
    cores = f"{busiest_mean_cores(case.whole_run, wait):.1f} of {case.whole_run.vcpu} cores"
    busy = f"{cores} were busy on average"
    return f"{gpus}, while {busy}."
