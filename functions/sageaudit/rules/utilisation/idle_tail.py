"""The instances stay after their work is done.

What it checks: From some minute to the end of the work phase all hosts are known to be idle (under
    0.2 cores and 1% of the GPUs), for at least 10 minutes. On GPU jobs also: for half an hour or
    more after the last GPU work no host keeps more than one core busy (1.2 with the system), for
    example because a hung process waits in a loop. Or, on several hosts, one is idle for 10 minutes
    at the end while others still work. A run in which no host ever worked is all idle. If a CPU
    works for half an hour or more after the last GPU work, that is shown without dollars.
Why it costs: A job is billed until its last process ends, on all its instances: a hung exit, a
    thread that is never joined, a distributed group that waits for a peer, hosts that end early.
Saving: Measured: the minutes in which every host was idle, which were billed and produced nothing.
    If one core was busy, derived: that core needed no GPU. For hosts that ended early 0 is counted,
    because they save only if they take over work of the others, or, where the code spreads it
    already, if the parts become equal. One case is counted: a job with a
    process for each GPU failed, so the other hosts waited for the one that was gone. The time after
    the first 30 minutes counts.
When it is wrong: A run that waits (for a query, another job, an upload by its own code) is idle
    too. One core may write the model or evaluate. Up to 3 minutes in a row without a point, between
    idle ones or at the end, count as idle; a host without any point does not.
What to do: Exit when done: join threads, close data loaders, destroy the process group, set
    timeouts on barriers and on the run. Evaluate on the CPU in a processing job on a CPU type.
    Hosts that end early: spread their data evenly.
Sources: Recorded jobs: zeros trail the end for up to 3 minutes. Reported hung exits:
    sagemaker-python-sdk issue 1353; early hosts are billed to the end: issue 1067. PyTorch,
    init_process_group: `timeout` of 10 minutes for NCCL and 30 for other backends.
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
    "The job failed, and a step that all hosts share ends with the first of them that is gone: the "
    "others waited. Set `timeout` of init_process_group to 10 minutes, and MaxRuntimeInSeconds "
    "near the longest run. 30 minutes of waiting are not counted."
)
_TIMEOUT_S = 1800
"""PyTorch's default `timeout` of a process group other than NCCL's, the longest in common use."""
CLEAN_EXIT_STEP = (
    "Close data loaders, join threads and destroy the process group when the work is done."
)
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
    """Looks back from the end of the whole run."""
    whole = case.whole_run
    if missing := gpu_recording_gap(whole):
        return api.unknown_from_missing(missing)
    tail = idle_ends(case, case.threshold(MIN_IDLE))
    counted_s = tail.idle_s if tail.idle_s >= case.threshold(MIN_IDLE) else 0
    if not counted_s and not tail.early_hosts:
        if tail.without_gpu_s:
            return _unpriced_fact(case, tail)
        return api.HOSTS_UNMAPPED if len(case.job.groups) > 1 else api.Clear()
    if counted_s and len(whole.hosts) < (whole.hosts_expected or 0):
        have = f"{len(whole.hosts)} of {whole.hosts_expected} hosts have points"
        return api.Unknown("hosts_missing", f"{have}: one may have worked")
    evidence: dict[str, api.Scalar] = {
        "idle_s": tail.idle_s,
        "minutes": round(whole.minutes),
        "hosts": tail.host_count,
        "hosts_ended_early": len(tail.early_hosts),
        "period_s": whole.period_s,
    }
    for host, seconds in tail.early_hosts[:4]:
        evidence[f"{host.rpartition('/')[2]} idle_before_s"] = seconds
    summary, phase = _summary(case, tail, counted_s), work_phase_name(case.job)
    change, best = (
        api.CutPhase(phase, Decimal(counted_s)),
        api.CutPhase(phase, tail.saving_if_shared_s),
    )
    if not tail.early_hosts and tail.is_all_idle:
        before = _cpu_work_sentence(tail)
        return api.measured_saving(
            summary, evidence, change=change, caution=f"{WAITING_RUN_CAUTION}{before}"
        )
    if not tail.early_hosts:
        work = _cpu_work_sentence(tail)
        caution = f"{WAITING_RUN_CAUTION} {NO_GPU_NEEDED_CAUTION}{work} {CLEAN_EXIT_STEP}"
        return api.derived_saving(summary, evidence, change=change, caution=caution)
    if died_s := _waited_for_dead_host_s(case, tail):
        best = api.CutPhase(phase, Decimal(tail.idle_s + tail.early_hosts[0][1]))
        change = api.CutPhase(phase, max(died_s, Decimal(counted_s)))
        return api.derived_saving(
            summary, evidence, change=change, best=best, caution=HOST_DIED_CAUTION
        )
    return api.derived_saving(
        summary, evidence, change=change, best=best, caution=_uncounted_caution(case.job)
    )


def _uncounted_caution(job: api.Job) -> str:
    """Why minutes of hosts that ended early are not counted."""
    if job.hints.distribution is None:
        return "Unused hosts save only if they take over work of the others: none of it is counted."
    return (
        "Its code spreads the work over all hosts already: those that ended early had a smaller "
        "part, or waited for work that one host does alone, such as an evaluation or the saving of "
        "the model. None of it is counted."
    )


def _waited_for_dead_host_s(case: api.JobCase, tail: IdleEnds) -> Decimal:
    """How long the hosts of a run that failed waited for one that was gone; 0 where none waited."""
    if case.job.status != "Failed" or not case.job.hints.has_gpu_ranks:
        return Decimal(0)
    return Decimal(max(tail.idle_s + tail.early_hosts[0][1] - _TIMEOUT_S, 0))


def _summary(case: api.JobCase, tail: IdleEnds, counted_s: int) -> str:
    minutes, what = f"{api.minutes_text(case.whole_run.minutes)}", case.job.instances
    if tail.is_idle_throughout:
        return f"No host worked in {minutes} on {what}."
    last = api.duration_text(Decimal(counted_s))
    idle = f"All hosts were idle for the last {last} of {minutes} on {what}"
    if not tail.is_all_idle:
        still = f"No GPU worked in the last {last} of {minutes} on {what}"
        idle = f"{still}, and no host used more than one core"
    if not tail.early_hosts:
        return f"{idle}."
    longest = f"up to {api.duration_text(Decimal(tail.early_hosts[0][1]))}"
    early = f"{len(tail.early_hosts)} of {tail.host_count} hosts did nothing for {longest} before"
    if counted_s:
        return f"{idle}; {early} that."
    return f"{early} the last one ended, in {minutes} on {what}."


def _cpu_work_sentence(tail: IdleEnds) -> str:
    """A sentence on half an hour and more of CPU work between the last GPU work and the tail."""
    if not tail.without_gpu_s:
        return ""
    last = api.duration_text(Decimal(tail.without_gpu_s))
    return f" No GPU worked in the last {last}: of those, minutes of CPU work are not counted."


def _unpriced_fact(case: api.JobCase, tail: IdleEnds) -> api.Outcome:
    """Hours without dollars: the CPU worked."""
    whole = case.whole_run
    hours = tail.without_gpu_s * len(whole.series[api.Metric.GPU]) * (whole.gpus or 0) / 3600
    return api.measured_fact(
        f"No GPU worked in the last {api.duration_text(Decimal(tail.without_gpu_s))} of "
        f"{api.minutes_text(whole.minutes)} on {case.job.instances} ({hours:.1f} GPU-hours), "
        f"while {tail.cores_after_gpu:.1f} of {whole.vcpu} cores worked.",
        {
            "without_gpu_at_end_s": tail.without_gpu_s,
            "gpu_hours_not_counted": round(hours, 1),
            "cores_meanwhile": round(tail.cores_after_gpu, 2),
            **run_evidence(whole),
        },
        caution=CPU_WORKED_CAUTION,
    )
