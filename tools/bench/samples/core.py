"""The core: audits of jobs of one host and one hour by the shipped rules, in a warm process.

Prices are known from earlier jobs, and the job's own measurements are new each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache, partial

from sageaudit.adapters.files import recording
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.series import Series
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import MeasuredJob, measure_recording
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import Plot, training

HOUR = 60
PLOTS: Mapping[str, Plot] = {
    "busy GPU": Plot(
        "ml.g5.xlarge",
        one_host(Doing(HOUR, cores=2, gpus=(0.9,), gib=9, gpu_gib=(10,))),
    ),
    "low-use GPU": Plot(
        "ml.g5.xlarge",
        one_host(Doing(HOUR, cores=2, gpus=(0.1,), gib=9, gpu_gib=(10,))),
    ),
    "low-use CPU": Plot("ml.m5.4xlarge", one_host(Doing(HOUR, cores=3, gib=9))),
}
AUDITS = 20
"""Audits of one job in one sample."""


def audits_a_second(name: str) -> float:
    """Returns how many audits of this job are made in a second of CPU. No audit reuses series."""
    run = _run(name)
    policy, rules = Policy(), catalogue.ruleset()
    usages = [
        replace(
            run.usage,
            series={
                metric: {host: Series(line.values) for host, line in hosts.items()}
                for metric, hosts in run.usage.series.items()
            },
        )
        for _ in range(AUDITS)
    ]
    begin = time.process_time()
    for usage in usages:
        audit_job(run.job, usage, run.market, policy, rules, now=run.now)
    return AUDITS / (time.process_time() - begin)


@cache
def _run(name: str) -> MeasuredJob:
    """Returns the job with its market, for which an audit has already read the rates."""
    run = measure_recording(recording.parse_job(training(PLOTS[name], 1)))
    audit_job(run.job, run.usage, run.market, Policy(), catalogue.ruleset(), now=run.now)
    return run


MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    f"{name}, 1 host x 1 h": ("audits/s", partial(audits_a_second, name)) for name in PLOTS
}
