"""The instances are idle after their work is done.

What it checks: One of these is true:
    - For at least 10 minutes at the end of the work phase, all hosts are idle (under 0.2 cores and
      1% of the GPUs). If no GPU works for half an hour or more, one busy core per host (1.2 with
      the system) also counts as idle: a hung process may busy-wait.
    - One of several hosts is idle for at least 10 minutes before the last one ends.
    - No host ever worked: the whole run is idle.
    - A CPU works for half an hour or more after the last GPU work. This time is shown without
      dollars.
Why it costs: A job is billed on all its instances until its last process ends. Usual causes are a
    hung exit, a thread that is never joined, a process group that waits for a peer, and hosts that
    finish early.
Saving: Measured: the minutes in which every host was idle. They were billed and produced nothing.
    - If one core was busy, the saving is derived, because that core needed no GPU.
    - For hosts that finished early, 0 is counted: only equal shares of the work would end the run
      earlier.
    - The exception is a failed job with a process for each GPU, in which hosts waited for one that
      was gone. The waiting after the first 30 minutes counts.
When it is wrong: A run that waits for a query, another job or an upload by its own code looks the
    same. One core may write the model or run an evaluation. Up to 3 minutes in a row without a
    point count as idle, between idle minutes or at the end. A host without any point does not.
What to do: Exit when the work is done: join threads, close data loaders, destroy the process group,
    and set timeouts on barriers and on the run.
    - Run evaluations that need no GPU in a processing job on a CPU type.
    - If hosts finish early, spread the data evenly.
Sources: Recorded jobs: up to 3 minutes of zeros at the end. Hung exits: sagemaker-python-sdk issue
    1353. Hosts that finish early are billed to the end: issue 1067. PyTorch, init_process_group:
    `timeout` of 10 minutes for NCCL and 30 for other backends.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.job.course import work_phase_name
from sageaudit.domain.usage.edges import gpu_recording_gap
from sageaudit.rules import api
from sageaudit.rules.utilisation.standing_still import (
    CPU_WORKED_CAUTION,
    NO_GPU_NEEDED_CAUTION,
    WAITING_RUN_CAUTION,
    IdleEnds,
    idle_ends,
    run_evidence,
)

HOST_DIED_CAUTION = (
    "The job failed, and all hosts share each step: when one was gone, the others waited. Set "
    "`timeout` of init_process_group to 10 minutes, and MaxRuntimeInSeconds near the longest run. "
    "30 minutes of waiting are not counted."
)
_TIMEOUT_S = 1800
"""PyTorch's default `timeout` for process groups other than NCCL, the longest in common use."""
MIN_IDLE = api.Threshold(
    "min_idle_s", 600, "seconds", "3 minutes of zeros are usual", "recorded jobs"
)


@api.rule(
    id="SA211",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_IDLE,),
    required_metrics=(api.Metric.CPU,),
    tolerates_gaps=True,
    finds_waste=True,
    max_period_s=300,
    uses_whole_run=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the end of the whole run, including idle minutes."""
    usage = case.whole_run
    if missing := gpu_recording_gap(usage):
        return api.unknown_from_missing(missing)
    tail = idle_ends(case, case.threshold(MIN_IDLE))
    counted_s = tail.idle_s if tail.idle_s >= case.threshold(MIN_IDLE) else 0
    if not counted_s and not tail.early_hosts:
        if tail.without_gpu_s:
            return _unpriced_fact(case, tail)
        return api.HOSTS_UNMAPPED if len(case.job.groups) > 1 else api.Clear()
    if counted_s and len(usage.hosts) < (usage.hosts_expected or 0):
        points_text = f"{len(usage.hosts)} of {usage.hosts_expected} hosts have points"
        return api.Unknown("hosts_missing", f"{points_text}: one may have worked")
    evidence: dict[str, api.Scalar] = {
        "idle_s": tail.idle_s,
        "minutes": round(usage.minutes),
        "hosts": tail.host_count,
        "hosts_ended_early": len(tail.early_hosts),
        "period_s": usage.period_s,
    }
    for host, seconds in tail.early_hosts[:4]:
        evidence[f"{host.rpartition('/')[2]} idle_before_s"] = seconds
    summary, phase = _summary(case, tail, counted_s), work_phase_name(case.job)
    change, best = (
        api.CutPhase(phase, Decimal(counted_s)),
        api.CutPhase(phase, tail.saving_if_shared_s),
    )
    if not tail.early_hosts and tail.is_all_idle:
        work_sentence = _cpu_work_sentence(tail)
        return api.measured_saving(
            summary, evidence, change=change, caution=f"{WAITING_RUN_CAUTION}{work_sentence}"
        )
    if not tail.early_hosts:
        work_sentence = _cpu_work_sentence(tail)
        caution = f"{WAITING_RUN_CAUTION} {NO_GPU_NEEDED_CAUTION}{work_sentence}"
        return api.derived_saving(summary, evidence, change=change, caution=caution)
    if waited_s := _waited_for_dead_host_s(case, tail):
        best = api.CutPhase(phase, Decimal(tail.idle_s + tail.early_hosts[0][1]))
        change = api.CutPhase(phase, max(waited_s, Decimal(counted_s)))
        return api.derived_saving(
            summary, evidence, change=change, best=best, caution=HOST_DIED_CAUTION
        )
    return api.derived_saving(
        summary, evidence, change=change, best=best, caution=_uncounted_caution(case.job)
    )


def _uncounted_caution(job: api.Job) -> str:
    if job.hints.distribution is None:
        return (
            "Hosts that finish early save only if they take over work from the others: nothing is "
            "counted."
        )
    return (
        "Its code already spreads the work over all hosts. Those that finished early had less of "
        "it, or waited for work that one host does alone, such as an evaluation or saving the "
        "model. Nothing is counted."
    )


def _waited_for_dead_host_s(case: api.JobCase, tail: IdleEnds) -> Decimal:
    if case.job.status != "Failed" or not case.job.hints.has_gpu_ranks:
        return Decimal(0)
    return Decimal(max(tail.idle_s + tail.early_hosts[0][1] - _TIMEOUT_S, 0))


def _summary(case: api.JobCase, tail: IdleEnds, counted_s: int) -> str:
    minutes_text, instances = f"{api.minutes_text(case.whole_run.minutes)}", case.job.instances
    if tail.is_idle_throughout:
        return f"No host worked in {minutes_text} on {instances}."
    idle_time_text = api.duration_text(Decimal(counted_s))
    idle_text = (
        f"All hosts were idle for the last {idle_time_text} of {minutes_text} on {instances}"
    )
    if not tail.is_all_idle:
        gpu_text = f"No GPU worked in the last {idle_time_text} of {minutes_text} on {instances}"
        idle_text = f"{gpu_text}, and no host used more than one core"
    if not tail.early_hosts:
        return f"{idle_text}."
    longest_text = f"up to {api.duration_text(Decimal(tail.early_hosts[0][1]))}"
    early_text = (
        f"{len(tail.early_hosts)} of {tail.host_count} hosts did nothing for {longest_text} before"
    )
    if counted_s:
        return f"{idle_text}; {early_text} that."
    return f"{early_text} the last one ended, in {minutes_text} on {instances}."


def _cpu_work_sentence(tail: IdleEnds) -> str:
    if not tail.without_gpu_s:
        return ""
    time_text = api.duration_text(Decimal(tail.without_gpu_s))
    return f" No GPU worked in the last {time_text}; the minutes of CPU work in it are not counted."


def _unpriced_fact(case: api.JobCase, tail: IdleEnds) -> api.Outcome:
    """Returns a finding without dollars, because the CPU worked."""
    usage = case.whole_run
    hours = tail.without_gpu_s * len(usage.series[api.Metric.GPU]) * (usage.gpus or 0) / 3600
    return api.measured_fact(
        f"No GPU worked in the last {api.duration_text(Decimal(tail.without_gpu_s))} of "
        f"{api.minutes_text(usage.minutes)} on {case.job.instances} ({hours:.1f} GPU-hours), "
        f"while {tail.cores_after_gpu:.1f} of {usage.vcpu} cores worked.",
        {
            "without_gpu_at_end_s": tail.without_gpu_s,
            "gpu_hours_not_counted": round(hours, 1),
            "cores_meanwhile": round(tail.cores_after_gpu, 2),
            **run_evidence(usage),
        },
        caution=CPU_WORKED_CAUTION,
    )
