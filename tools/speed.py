"""How long an audit takes: `python -m tools.speed`, in ms of CPU.

Each job is audited with the shipped rules as a warm Lambda does it: prices are known from the jobs
before, and the job's own measurements are new each time. Medians of 60 audits. Machines differ, and
so do minutes of a shared one: compare two versions by running them in turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sageaudit.adapters.files import recording
from sageaudit.cli.support.recordings.recorded_jobs import run_of
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job
from tests.labelled.machine import Doing, Plot, alike, training

AUDITS = 60
HOUR = 60
JOBS: Mapping[str, Plot] = {
    "busy GPU, 1 host x 1 h": Plot(
        "ml.g5.xlarge",
        alike(1, Doing(HOUR, cores=2, gpus=(0.9,), gib=9, gpu_gib=(10,))),
    ),
    "low-use GPU, 1 host x 1 h": Plot(
        "ml.g5.xlarge",
        alike(1, Doing(HOUR, cores=2, gpus=(0.1,), gib=9, gpu_gib=(10,))),
    ),
    "low-use CPU, 1 host x 1 h": Plot("ml.m5.4xlarge", alike(1, Doing(HOUR, cores=3, gib=9))),
    "low-use GPUs, 8 hosts x 10 h": Plot(
        "ml.g5.12xlarge",
        alike(8, Doing(10 * HOUR, cores=6, gpus=(0.3,) * 4, gib=40, gpu_gib=(8,) * 4)),
    ),
}


def cpu_ms(plot: Plot) -> float:
    """The median CPU time of one audit of the job, in milliseconds."""
    run = run_of(recording.of_document(training(plot, 1)))
    policy, rules = Policy(), catalogue.ruleset()
    taken = []
    for _ in range(AUDITS):
        new = replace(run.usage)
        begin = time.process_time()
        audit_job(run.job, new, run.market, policy, rules, now=run.now)
        taken.append(time.process_time() - begin)
    return statistics.median(taken) * 1000


def lines() -> Iterator[str]:
    """One line for each job."""
    for name, plot in JOBS.items():
        yield f"{cpu_ms(plot):7.2f} ms  {name}"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
