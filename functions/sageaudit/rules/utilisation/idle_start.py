"""The instances wait before work begins.

What it checks: Before the first work, all hosts are known to be idle (under 0.2 cores and 1% of the
    GPUs) for at least 10 minutes and 2% of the run. On GPU jobs each minute before the first GPU
    work is judged by itself: it is calm where each host keeps at most 1.25 cores busy, as one
    process that downloads does. 20 calm minutes are granted to the start. Minutes in which a memory
    fills up (weights are loaded) do not count.
Why it costs: Every instance is billed from its first second, with all its GPUs.
Saving: Measured: the idle minutes, which were billed and produced nothing. Derived: of the calm
    minutes beyond those granted, what a small CPU type does not cost for the same. Where more cores
    work, or host memory is not known: between 0 and that; 0 is counted.
When it is wrong: A start that waits for something else (a queue, a licence, another job) looks idle
    too. The first points come 3 to 6 minutes late: minutes without a point are idle only between
    idle ones.
What to do: Data fetched by the code belongs in a channel (FastFile), or comes faster with s5cmd or
    as WebDataset shards. Load models and data lazily, prepare data in a processing job on a CPU
    type, and start what several hosts wait for first.
Sources: SageMaker Debugger, MaxInitializationTime: 20 minutes, until 2023. Recorded jobs: first GPU
    work in minute 0 to 6. A busy core reads up to 100.8%, an idle host up to 19% of a core.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from sageaudit.domain.bill.type_rate import share_beside_cpu_type
from sageaudit.domain.job.phases import work_phase
from sageaudit.domain.usage.edges import (
    before_gpu,
    cores_busy,
    gpu_unrecorded,
    idle_head,
    what_came_before_gpu,
)
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import run_evidence

FROM = api.Threshold("from_s", 600, "seconds", "imports, late points: up to 6 min", "recorded jobs")
SHARE_FROM = api.Threshold(
    "share_from_percent", 2, "percent of the run", "less is small beside the work"
)
CORES_AT_MOST = api.Threshold(
    "cores_at_most", 1.25, "cores of a host", "one busy process and its system", "recorded jobs"
)
GRANTED = api.Threshold(
    "granted_s", 1200, "seconds", "a start may take so long", "Debugger MaxInitializationTime"
)
PREPARES = (
    "Prepare the data once in a processing job on a CPU type, whose output later runs read; "
    "what that costs is taken off."
)
WAITS = "A start that waits for another job or for a queue looks the same."


@api.rule(
    id="SA210",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(FROM, SHARE_FROM, CORES_AT_MOST, GRANTED),
    needs=(api.Metric.CPU,),
    sees_gaps=True,
    finds_waste=True,
    coarsest_period_s=300,
    whole_run=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Looks at the first minutes of the whole run."""
    whole = case.whole
    if missing := gpu_unrecorded(whole):
        return api.unknown(missing)
    wait = before_gpu(whole)
    start = _start(case, wait)
    if start is None:
        return api.Clear()
    evidence: dict[str, api.Evidence] = {
        "idle_s": start.idle_s,
        "without_gpu_s": len(wait) * (whole.period_s or 0),
        "calm_s": start.calm_s,
        "cores_before_gpu": round(cores_busy(whole, wait), 2),
        **run_evidence(whole),
    }
    summary, phase = _summary(case, start, wait), work_phase(case.job)
    change = api.CutPhase(phase, start.counted_s)
    fix = api.first_channel(case.job)
    if start.best_s == start.idle_s:
        return api.measured(summary, evidence, fix=fix, change=change, caution=WAITS)
    if start.best_s == start.counted_s:
        return api.derived(summary, evidence, fix=fix, change=change, caution=PREPARES)
    caution = f"{PREPARES} Minutes in which more cores worked are not counted."
    best = api.CutPhase(phase, start.best_s)
    return api.derived(summary, evidence, fix=fix, change=change, best=best, caution=caution)


@dataclass(frozen=True, slots=True)
class Start:
    """What of the run's time is counted, at least and at best. `idle_s`: of that, all hosts idle.

    `calm_s`: no host kept more than one process's core busy, without those idle seconds.
    """

    idle_s: Decimal
    calm_s: Decimal
    counted_s: Decimal
    best_s: Decimal


def _start(case: api.JobCase, wait: range) -> Start | None:
    """None where less than the thresholds could be saved; `wait`: the periods before GPU work."""
    whole, from_s = case.whole, Decimal(str(case.limit(FROM)))
    period_s, granted_s = whole.period_s or 0, Decimal(str(case.limit(GRANTED)))
    came = what_came_before_gpu(whole, wait, case.limit(CORES_AT_MOST))
    asleep = came.asleep if wait else len(idle_head(whole))
    idle_s = Decimal(asleep * period_s)
    calm_s = Decimal(came.calm * period_s)
    if idle_s < from_s:
        idle_s, calm_s = Decimal(0), (calm_s + idle_s if wait else calm_s)
    beyond_s = max(calm_s - granted_s, Decimal(0))
    at_best_s = max(calm_s + came.busy * period_s - granted_s, Decimal(0))
    if at_best_s - beyond_s < from_s:
        at_best_s = beyond_s
    counted_s = idle_s + _less_a_cpu_type(case, beyond_s, case.limit(CORES_AT_MOST))
    more_s = _less_a_cpu_type(case, at_best_s - beyond_s, cores_busy(whole, wait))
    best_s = counted_s + more_s
    little = 100 * best_s < Decimal(str(case.limit(SHARE_FROM))) * whole.seconds
    return None if little or not best_s else Start(idle_s, calm_s, counted_s, best_s)


def _less_a_cpu_type(case: api.JobCase, seconds: Decimal, cores: float) -> Decimal:
    """The seconds whose bill is left after a CPU type did the same; 0 without a known price."""
    if not seconds:
        return seconds
    share = share_beside_cpu_type(case.job, case.market, cores)
    return (seconds * (share or Decimal(0))).quantize(Decimal(1), ROUND_DOWN)


def _summary(case: api.JobCase, start: Start, wait: range) -> str:
    run = f"of {api.duration_min(case.whole.minutes)} on {case.job.instances}"
    if start.best_s == start.idle_s:
        return f"All hosts were idle for {api.duration(start.idle_s)} {run}, before work began."
    first = api.duration(Decimal(len(wait) * (case.whole.period_s or 0)))
    calm = api.duration(start.idle_s + start.calm_s)
    cores = f"at most {case.limit(CORES_AT_MOST):g} of {case.whole.vcpu} cores"
    if start.counted_s:
        return f"No GPU worked in the first {first} {run}; in {calm} of them {cores} were busy."
    busy = f"{cores_busy(case.whole, wait):.1f} of {case.whole.vcpu} cores were busy on average"
    return f"No GPU worked in the first {first} {run}, while {busy}."
