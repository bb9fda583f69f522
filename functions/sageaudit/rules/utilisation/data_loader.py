"""Workers of the data loader that fit the instance: advice for a GPU that waits for its data."""

from __future__ import annotations

from sageaudit.rules import api

CPU_FROM = api.Threshold(
    "cpu_from", 90, "percent of all vCPUs", "at its limit", "Debugger CPUBottleneck"
)
_WORKERS_FROM, _WORKERS_TO = 0.7, 2.0
"""Of the cores: min_threshold 70 and max_threshold 200 of Debugger's Dataloader rule."""


def cpu_at_limit(usage: api.Measurements, cpu_from: float, gpu_to: float = 100) -> float:
    """The percent of a run's minutes, of all hosts, in which the CPU is that busy and the GPU is
    no busier than that. 0 without points of both.
    """
    cpus, gpus = (usage.series.get(metric, {}) for metric in (api.Metric.CPU, api.Metric.GPU))
    waits = [cpu >= cpu_from and gpu <= gpu_to for cpu, gpu in api.pairs(cpus, gpus)]
    return 100 * sum(waits) / len(waits) if waits else 0.0


def loader_fix(case: api.JobCase) -> tuple[api.Parameter, ...]:
    """A worker for each vCPU, where the job sets a count far from that."""
    workers, job = case.job.hints.loader_workers, case.job
    if workers is None or not case.usage.vcpu or job.kind is not api.JobKind.TRAINING:
        return ()
    processes = _processes(job, case.usage)
    share = workers * processes / case.usage.vcpu
    if _WORKERS_FROM <= share <= _WORKERS_TO:
        return ()
    each = max(case.usage.vcpu // processes, 1)
    workers_each = api.Parameter("HyperParameters.num_workers", str(workers), str(each))
    if share < _WORKERS_FROM:
        return (workers_each,)
    return (workers_each, api.Parameter("Environment.OMP_NUM_THREADS", None, "1"))


def _processes(job: api.Job, usage: api.Measurements) -> int:
    """A distributed run has one process, with workers of its own, for each GPU."""
    return max(usage.gpus or 1, 1) if job.hints.distribution else 1
