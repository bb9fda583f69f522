"""The GPUs are idle in the middle of the run.

What it checks: After the first GPU work, no GPU of any host is above 1% for half an hour or more,
    and some host works again later.
    - The time is counted if no host keeps more than one core busy (1.2 with the system). A waiting
      process sleeps, or busy-waits on one core.
    - If a CPU works more, or another host's GPU works, the time is shown in GPU-hours only.
    - Two or more waits of similar length with one busy core may be a phase of the program, such as
      an evaluation.
Why it costs: All GPUs are billed while nothing uses them.
Saving: The minutes in which the GPUs of every host were idle.
    - Measured, if all hosts were idle (under 0.2 cores).
    - Derived, if one core was busy, because it may have worked.
    - Possible, for a phase of the program: it may be needed, and costs something elsewhere too.
    - None, if more than one core worked.
When it is wrong: A run that waits for a query, a file system or another job looks the same.
    - GPU kernels that busy-wait (for a lost peer in NCCL) look like work, so the rule does not find
      that wait.
    - Waits that always end by the same timeout look like a phase of the program.
What to do: Set timeouts, so that waits fail. A run with checkpoints then continues from the last
    one.
    - Set `timeout` of `init_process_group`, `timeout` of the DataLoader, and time limits on mounts
      and requests. For NCCL, the first is 10 minutes by default since PyTorch 2.2;
      TORCH_NCCL_ASYNC_ERROR_HANDLING=0 disables it.
    - For other waits, set a CloudWatch alarm on GPUUtilization of the job's hosts. An EventBridge
      rule on that alarm can start a Lambda function that calls StopTrainingJob.
    - Move long CPU-only work (evaluation, data for the next epoch) to a processing job on a CPU
      type, or do it less often.
Sources: gpu-pruner: 30 minutes at zero GPU. PyTorch, ProcessGroupNCCL environment variables and
    pull request 110947. In recorded jobs a busy core reads up to 100.8%, an idle host up to 19% of
    a core.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from statistics import median

from msgspec import Struct

from sageaudit.domain.job.course import work_phase_name
from sageaudit.domain.usage.edges import busiest_mean_cores, idle_middle, recurring_standstills
from sageaudit.domain.usage.series import (
    ACTIVE,
    IDLE,
    MIN_STANDSTILL_S,
    UNKNOWN,
    States,
    combine_states,
    mean,
    state_ranges,
)
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import (
    CPU_WORKED_CAUTION,
    NO_GPU_NEEDED_CAUTION,
    WAITING_RUN_CAUTION,
    is_all_idle,
    run_evidence,
)

TIMEOUT_STEP = (
    "A timeout in the code, or an alarm on GPUUtilization that stops the job, ends such a wait."
)
SEPARATE_EVALUATION_STEP = (
    "If the core runs an evaluation, do that less often, or in a separate job on a CPU type that "
    "reads the checkpoints; if it saves checkpoints, write them in the background"
)
PROGRAM_PHASE_CAUTION = (
    "The waits look like a phase of the program, such as an evaluation, so they are not counted. "
    "The cost of a separate job is not subtracted."
)
OTHER_HOSTS_WORKED_CAUTION = (
    "No dollars are counted, because other hosts worked meanwhile. Spread that work over all "
    "hosts, or run it in a separate job on one host."
)


@api.rule(
    id="SA214",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    required_metrics=(api.Metric.GPU, api.Metric.CPU),
    tolerates_gaps=True,
    finds_waste=True,
    max_period_s=300,
    uses_whole_run=True,
    compares_hosts=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the whole run from its first GPU work to its end."""
    usage, period_s = case.whole_run, case.whole_run.period_s or 0
    stretches, pauses = idle_middle(usage), _gpu_pauses(usage)
    recurring = recurring_standstills(usage)
    standstill_s = sum(map(len, stretches)) * period_s
    if recurring and not standstill_s:
        return _recurring_finding(case, recurring)
    if not standstill_s:
        return _unpriced_fact(case, pauses) if pauses else api.Clear()
    evidence: dict[str, api.Scalar] = {
        "standstill_s": standstill_s,
        "stretches": len(stretches),
        "first_standstill_after_s": stretches[0].start * period_s,
        "cores_meanwhile": round(
            max(busiest_mean_cores(usage, stretch) for stretch in stretches), 2
        ),
        "vcpu": usage.vcpu,
        "gpu_hours_not_counted": round(pauses.gpu_hours, 1) if pauses else 0,
        "minutes": round(usage.minutes),
        "period_s": period_s,
    }
    summary, name = _summary(case, stretches, standstill_s), work_phase_name(case.job)
    change = api.CutPhase(name, Decimal(standstill_s))
    caution = f"{WAITING_RUN_CAUTION} {TIMEOUT_STEP}"
    if not is_all_idle(usage, stretches):
        caution = f"{WAITING_RUN_CAUTION} {NO_GPU_NEEDED_CAUTION} {TIMEOUT_STEP}"
    if recurring:
        recurring_s = evidence["recurring_s"] = sum(map(len, recurring)) * period_s
        return api.derived_saving(
            f"{summary} {len(recurring)} other waits are of similar length.",
            evidence,
            change=change,
            best=api.CutPhase(name, Decimal(standstill_s + recurring_s)),
            caution=(
                f"{caution} The waits of similar length may be an evaluation, so they are not "
                "counted."
            ),
        )
    if is_all_idle(usage, stretches):
        return api.measured_saving(summary, evidence, change=change, caution=caution)
    return api.derived_saving(summary, evidence, change=change, caution=caution)


def _recurring_finding(case: api.JobCase, recurring: tuple[range, ...]) -> api.Outcome:
    """Returns a finding of possible dollars: the program may need these recurring waits."""
    usage, period_s = case.whole_run, case.whole_run.period_s or 0
    recurring_s = sum(map(len, recurring)) * period_s
    first, second, *_ = recurring
    median_s = Decimal(median(map(len, recurring)) * period_s)
    return api.possible_saving(
        f"No GPU worked for {api.duration_text(Decimal(recurring_s))} of "
        f"{api.minutes_text(usage.minutes)} on {case.job.instances}: {len(recurring)} times for "
        f"about {api.duration_text(median_s)}, while one core was busy.",
        {
            "recurring_s": recurring_s,
            "recurrences": len(recurring),
            "first_recurrence_after_s": first.start * period_s,
            "between_recurrences_s": (second.start - first.stop) * period_s,
            "cores_meanwhile": round(
                max(busiest_mean_cores(usage, stretch) for stretch in recurring), 2
            ),
            **run_evidence(usage),
        },
        first_step=SEPARATE_EVALUATION_STEP,
        caution=PROGRAM_PHASE_CAUTION,
        **api.phase_cut_range(work_phase_name(case.job), Decimal(recurring_s)),
    )


def _summary(case: api.JobCase, stretches: tuple[range, ...], standstill_s: int) -> str:
    run_text = f"{api.minutes_text(case.whole_run.minutes)} on {case.job.instances}"
    duration_text = api.duration_text(Decimal(standstill_s))
    idle_text = (
        f"{duration_text} in {len(stretches)} stretches" if len(stretches) > 1 else duration_text
    )
    core_text = (
        "" if is_all_idle(case.whole_run, stretches) else ", and no host used more than one core"
    )
    start_text = api.duration_text(Decimal(stretches[0].start * (case.whole_run.period_s or 0)))
    began_text = f"the first began {start_text}" if len(stretches) > 1 else f"it began {start_text}"
    return (
        f"No GPU worked for {idle_text} in the middle of {run_text}{core_text}; {began_text} "
        "after the start."
    )


def _unpriced_fact(case: api.JobCase, pauses: GpuPauses) -> api.Outcome:
    """Returns a finding without dollars, because a CPU or another host's GPU worked."""
    hosts = len(case.whole_run.series[api.Metric.GPU])
    gpus_text = (
        "GPUs" if pauses.host_count == hosts else f"GPUs of {pauses.host_count} of {hosts} hosts"
    )
    cores_text = (
        ""
        if pauses.busiest_mean_cores is None
        else f"{pauses.busiest_mean_cores:.1f} of {case.whole_run.vcpu} cores worked"
    )
    meanwhile_text = (
        "GPUs of other hosts worked" if pauses.has_other_work else cores_text or "a CPU worked"
    )
    return api.measured_fact(
        f"The {gpus_text} did nothing for {api.duration_text(Decimal(pauses.seconds))} in the "
        f"middle of {api.minutes_text(case.whole_run.minutes)} on {case.job.instances} "
        f"({pauses.gpu_hours:.1f} GPU-hours), while {meanwhile_text}.",
        {
            "gpu_hours_not_counted": round(pauses.gpu_hours, 1),
            "hosts_that_paused": pauses.host_count,
            "longest_pause_of_a_host_s": pauses.seconds,
            "cores_meanwhile": None
            if pauses.busiest_mean_cores is None
            else round(pauses.busiest_mean_cores, 2),
            **run_evidence(case.whole_run),
        },
        caution=OTHER_HOSTS_WORKED_CAUTION if pauses.has_other_work else CPU_WORKED_CAUTION,
    )


class GpuPauses(Struct, frozen=True):
    """The pauses of all hosts. `seconds` is the pause of the host that paused longest.

    `has_other_work`: a GPU of another host worked meanwhile. `busiest_mean_cores`: the mean cores
    of the busiest host in these minutes; None without points.
    """

    gpu_hours: float
    host_count: int
    seconds: int
    has_other_work: bool
    busiest_mean_cores: float | None


def _gpu_pauses(usage: api.Measurements) -> GpuPauses | None:
    """Returns the pauses of GPUs, except when the GPUs of all hosts stood still.

    None without pauses or GPUs, or if the type of the hosts is not known.
    """
    states, period_s = list(usage.gpu_states.values()), usage.period_s or 0
    if not usage.gpus or not period_s or not states:
        return None
    min_periods = MIN_STANDSTILL_S // period_s
    pauses_by_host = [_pauses(host, usage.standstills(), min_periods) for host in states]
    paused_periods = [sum(map(len, pauses)) for pauses in pauses_by_host]
    if not any(paused_periods):
        return None
    is_paused = bytearray(usage.points)
    for pause in chain.from_iterable(pauses_by_host):
        is_paused[pause.start : pause.stop] = b"\1" * len(pause)
    periods = list(state_ranges(is_paused, 1, range(usage.points)))
    joined = combine_states(states)
    return GpuPauses(
        gpu_hours=sum(paused_periods) * period_s * usage.gpus / 3600,
        host_count=sum(map(bool, paused_periods)),
        seconds=max(paused_periods) * period_s,
        has_other_work=any(ACTIVE in joined[pause.start : pause.stop] for pause in periods),
        busiest_mean_cores=_busiest_cores(usage, periods),
    )


def _pauses(states: States, standstills: Iterable[range], min_periods: int) -> list[range]:
    """Returns the stretches in which one host's GPUs paused between its first and its last work.

    `states`: of its GPUs. `standstills`: left out, because all hosts stood still. `min_periods`:
    the length of the shortest pause.
    """
    own = bytearray(states)
    for standstill in standstills:
        own[standstill.start : standstill.stop] = bytes([UNKNOWN]) * len(standstill)
    work = range(max(states.find(ACTIVE), 0), max(states.rfind(ACTIVE), 0))
    return [pause for pause in state_ranges(own, IDLE, work) if len(pause) >= min_periods]


def _busiest_cores(usage: api.Measurements, periods: Sequence[range]) -> float | None:
    hosts = usage.series.get(api.Metric.CPU, {}).values()
    points_by_host = [line.select(periods).present for line in hosts]
    means = [mean(points) for points in points_by_host if points]
    return max(means) * (usage.vcpu or 0) / 100 if means else None
