"""The GPUs stand still in the middle of the run.

What it checks: After the first GPU work no GPU of any host is above 1% for half an hour or more,
    and some host works again after that. The time is counted if no host keeps more than a core busy
    (1.2 cores with its system), because a waiting process sleeps or spins on one core. If a CPU or
    another host's GPU works more, the time is shown in GPU-hours only. Two and more waits of
    similar length with one core at work may be a phase of the program, such as an evaluation.
Why it costs: All GPUs are billed while nothing uses them.
Saving: The minutes in which every host stood still. Measured if all were idle (under 0.2 cores);
    else derived, because one core may have worked. None if more than a core worked. A phase of the
    program is possible at most: it may be needed where it is, and elsewhere it costs something too.
When it is wrong: A run that waits for a query, a file system or another job stands still too. GPU
    kernels that spin (a lost peer in NCCL) look like work: these metrics cannot show that wait.
    Waits that the same timeout ends look like a phase of the program.
What to do: Let waits fail: `timeout` of `init_process_group` (10 minutes by default for NCCL since
    PyTorch 2.2; TORCH_NCCL_ASYNC_ERROR_HANDLING set to 0 switches it off), `timeout` of the
    DataLoader, time limits on mounts and requests; a run with checkpoints then goes on from the
    last one. For the rest, a CloudWatch alarm on GPUUtilization of the job's hosts, and an
    EventBridge rule on that alarm with a Lambda function that calls StopTrainingJob. Long work of
    the CPU alone (evaluation, data for the next epoch) belongs in a processing job on a CPU type,
    or comes less often.
Sources: gpu-pruner: 30 minutes at zero GPU. PyTorch, ProcessGroupNCCL environment variables and
    pull request 110947. A busy core reads up to 100.8% in recorded jobs, an idle host up to 19% of
    a core.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from statistics import median

from msgspec import Struct

from sageaudit.domain.job.course import work_phase_name
from sageaudit.domain.usage.edges import busiest_mean_cores, idle_middle, recurring_standstills
from sageaudit.domain.usage.series import MIN_STANDSTILL_S, any_active, mean, true_ranges
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
    "If the core evaluates, do that in a separate job on a CPU type, which reads the checkpoints, "
    "or less often; if it saves, write checkpoints in the background"
)
PROGRAM_PHASE_CAUTION = (
    "The waits look like a phase of the program, such as an evaluation: they are not counted. What "
    "a separate job costs is not taken off."
)
OTHERS = (
    "No dollars are counted, because other hosts worked meanwhile. Spread that work over all "
    "hosts, or leave it to a job of its own on one host."
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
    """Looks at the whole run, between its first GPU work and its end."""
    whole, period_s = case.whole_run, case.whole_run.period_s or 0
    stretches, pauses = idle_middle(whole), _gpu_pauses(whole)
    phase = recurring_standstills(whole)
    still_s = sum(map(len, stretches)) * period_s
    if phase and not still_s:
        return _recurring_finding(case, phase)
    if not still_s:
        return _unpriced_fact(case, pauses) if pauses else api.Clear()
    evidence: dict[str, api.Scalar] = {
        "standstill_s": still_s,
        "stretches": len(stretches),
        "first_standstill_after_s": stretches[0].start * period_s,
        "cores_meanwhile": round(max(busiest_mean_cores(whole, still) for still in stretches), 2),
        "vcpu": whole.vcpu,
        "gpu_hours_not_counted": round(pauses.gpu_hours, 1) if pauses else 0,
        "minutes": round(whole.minutes),
        "period_s": period_s,
    }
    summary, name = _summary(case, stretches, still_s), work_phase_name(case.job)
    change = api.CutPhase(name, Decimal(still_s))
    caution = f"{WAITING_RUN_CAUTION} {TIMEOUT_STEP}"
    if not is_all_idle(whole, stretches):
        caution = f"{WAITING_RUN_CAUTION} {NO_GPU_NEEDED_CAUTION} {TIMEOUT_STEP}"
    if phase:
        phase_s = evidence["recurring_s"] = sum(map(len, phase)) * period_s
        return api.derived_saving(
            f"{summary} {len(phase)} waits beside it are of similar length.",
            evidence,
            change=change,
            best=api.CutPhase(name, Decimal(still_s + phase_s)),
            caution=f"{caution} The waits of similar length may be an evaluation: not counted.",
        )
    if is_all_idle(whole, stretches):
        return api.measured_saving(summary, evidence, change=change, caution=caution)
    return api.derived_saving(summary, evidence, change=change, caution=caution)


def _recurring_finding(case: api.JobCase, phase: tuple[range, ...]) -> api.Outcome:
    """Possible at most: the program does something in these minutes."""
    whole, period_s = case.whole_run, case.whole_run.period_s or 0
    phase_s = sum(map(len, phase)) * period_s
    first, second, *_ = phase
    middle_s = Decimal(median(map(len, phase)) * period_s)
    return api.possible_saving(
        f"No GPU worked for {api.duration_text(Decimal(phase_s))} of"
        f" {api.minutes_text(whole.minutes)} "
        f"on {case.job.instances}: {len(phase)} times for about {api.duration_text(middle_s)},"
        " while "
        "one core was busy.",
        {
            "recurring_s": phase_s,
            "recurrences": len(phase),
            "first_recurrence_after_s": first.start * period_s,
            "between_recurrences_s": (second.start - first.stop) * period_s,
            "cores_meanwhile": round(max(busiest_mean_cores(whole, still) for still in phase), 2),
            **run_evidence(whole),
        },
        first_step=SEPARATE_EVALUATION_STEP,
        caution=PROGRAM_PHASE_CAUTION,
        **api.phase_cut_range(work_phase_name(case.job), Decimal(phase_s)),
    )


def _summary(case: api.JobCase, stretches: tuple[range, ...], still_s: int) -> str:
    run = f"{api.minutes_text(case.whole_run.minutes)} on {case.job.instances}"
    long = api.duration_text(Decimal(still_s))
    times = f"{long} in {len(stretches)} stretches" if len(stretches) > 1 else long
    core = "" if is_all_idle(case.whole_run, stretches) else ", and no host used more than one core"
    after = api.duration_text(Decimal(stretches[0].start * (case.whole_run.period_s or 0)))
    began = f"the first began {after}" if len(stretches) > 1 else f"it began {after}"
    return f"No GPU worked for {times} in the middle of {run}{core}; {began} after the start."


def _unpriced_fact(case: api.JobCase, pauses: GpuPauses) -> api.Outcome:
    """Hours without dollars: something worked."""
    hosts = len(case.whole_run.series[api.Metric.GPU])
    whose = (
        "GPUs" if pauses.host_count == hosts else f"GPUs of {pauses.host_count} of {hosts} hosts"
    )
    cores = (
        ""
        if pauses.busiest_mean_cores is None
        else f"{pauses.busiest_mean_cores:.1f} of {case.whole_run.vcpu} cores worked"
    )
    meanwhile = "GPUs of other hosts worked" if pauses.has_other_work else cores or "a CPU worked"
    return api.measured_fact(
        f"The {whose} did nothing for {api.duration_text(Decimal(pauses.seconds))} in the middle"
        " of "
        f"{api.minutes_text(case.whole_run.minutes)} on {case.job.instances} "
        f"({pauses.gpu_hours:.1f} GPU-hours), while {meanwhile}.",
        {
            "gpu_hours_not_counted": round(pauses.gpu_hours, 1),
            "hosts_that_paused": pauses.host_count,
            "longest_pause_of_a_host_s": pauses.seconds,
            "cores_meanwhile": None
            if pauses.busiest_mean_cores is None
            else round(pauses.busiest_mean_cores, 2),
            **run_evidence(case.whole_run),
        },
        caution=OTHERS if pauses.has_other_work else CPU_WORKED_CAUTION,
    )


class GpuPauses(Struct, frozen=True):
    """`gpu_hours` of all hosts; `hosts` that paused, and the `seconds` of the one that paused most.

    `others_worked`: some GPU of another host worked meanwhile. `cores`: the mean of the host whose
    CPU was busiest in all these minutes; None without points.
    """

    gpu_hours: float
    host_count: int
    seconds: int
    has_other_work: bool
    busiest_mean_cores: float | None


def _gpu_pauses(usage: api.Measurements) -> GpuPauses | None:
    """None where there are none, without GPUs, and where the type of the hosts is not known."""
    states, period_s = list(usage.gpu_states.values()), usage.period_s or 0
    if not usage.gpus or not period_s or not states:
        return None
    still = {at for stretch in usage.standstills() for at in stretch}
    paused = [_paused(host, still, MIN_STANDSTILL_S // period_s) for host in states]
    most, union = max(map(len, paused)), sorted({at for host in paused for at in host})
    if not most:
        return None
    together = [any_active(at) for at in zip(*states, strict=True)]
    return GpuPauses(
        gpu_hours=sum(map(len, paused)) * period_s * usage.gpus / 3600,
        host_count=sum(map(bool, paused)),
        seconds=most * period_s,
        has_other_work=any(together[at] for at in union),
        busiest_mean_cores=_busiest_cores(usage, union),
    )


def _paused(states: Sequence[bool | None], still: Collection[int], least: int) -> list[int]:
    """The periods of one host's pauses, each of at least so many that are not a standstill."""
    worked = [at for at, works in enumerate(states) if works] if False in states else []
    if not worked:
        return []
    inside = range(worked[0], worked[-1])
    idle = [at in inside and works is False for at, works in enumerate(states)]
    pieces = true_ranges([one and at not in still for at, one in enumerate(idle)])
    return [at for piece in pieces if len(piece) >= least for at in piece]


def _busiest_cores(usage: api.Measurements, periods: Sequence[int]) -> float | None:
    known = [
        [value for at in periods if (value := line.values[at]) is not None]
        for line in usage.series.get(api.Metric.CPU, {}).values()
    ]
    means = [mean(points) for points in known if points]
    return max(means) * (usage.vcpu or 0) / 100 if means else None
