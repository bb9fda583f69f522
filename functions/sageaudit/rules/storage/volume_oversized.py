"""The storage volume is far larger than what was used of it.

## What it checks
A volume of more than 30 GB on instances that get an EBS volume, of which at most 35% was used at
any minute of the run, by DiskUtilization.

## Why it costs
Each instance's volume is billed by GB and time, used or not. It is little beside the instance: 100
GB for an hour are about $0.02.

## Saving
Possible, never in a sum with others: the same run with a volume of twice the peak, and of 30 GB at
least. Where channels are copied in File mode the low end is 0, since their data may need the room.

## When it is wrong
Often: the metric reads near 0 in real data (0.01% to 1.3% of 30 GB in recorded jobs), and AWS does
not say which folders it counts. Data of File-mode channels lie on the volume and their size is not
recorded. A job whose volume is full fails.

## What to do
Take the smaller volume once, with a run that may fail. FastFile mode needs no room for the data.

## Sources
botocore, VolumeSizeInGB. 30 GB: the default of the SageMaker Python SDK. Job Defense Shield: memory
of which at most 0.35 is used is asked for in excess.
"""

from __future__ import annotations

from math import ceil

from sageaudit.domain.bill.change import SetVolume
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import DataSource, Job, Purchase
from sageaudit.domain.job.request_paths import VOLUME_PATHS
from sageaudit.domain.usage.measurements import Metric
from sageaudit.rules.card import JobCase, Threshold, rule

OVER = Threshold("over_gb", 30, "GB an instance", "the usual default", "SageMaker Python SDK")
PEAK_BELOW = Threshold(
    "peak_at_most_percent", 35, "percent of the volume", "asked in excess", "Job Defense Shield"
)
TIMES_THE_PEAK = Threshold("times_the_peak", 2, "new size / peak use", "headroom", "our choice")
_STREAMED = frozenset({"Pipe", "FastFile"})


def on_ebs(case: JobCase) -> bool | None:
    """Do all instances get an EBS volume, or none of them? None: unknown, or some do."""
    types = [case.market.types.get(group.instance_type) for group in case.job.groups]
    answers = {None if kind is None else kind.ebs_billed for kind in types}
    known = answers.pop() if len(answers) == 1 else None
    return None if case.job.groups_unknown else known


def _not_applicable(case: JobCase) -> str | None:
    job = case.job
    if job.free or job.purchase in {Purchase.SERVERLESS, Purchase.TRAINING_PLAN}:
        return "its storage is not billed by size and time"
    if on_ebs(case) is False:
        return "local NVMe: no volume is provisioned"
    small = job.volume_gb is not None and job.volume_gb <= case.limit(OVER)
    return f"a volume of {job.volume_gb} GB is no large one" if small else None


@rule(
    id="SA501",
    scope=JobCase,
    kinds=set(VOLUME_PATHS),
    thresholds=(OVER, PEAK_BELOW, TIMES_THE_PEAK),
    needs=(Metric.DISK,),
    coarsest_period_s=300,
    whole_run=True,
    not_applicable=(_not_applicable,),
)
def check(case: JobCase) -> Outcome:
    """Looks at the fullest host: every host has a volume of the same size."""
    job, size = case.job, case.job.volume_gb
    if size is None or on_ebs(case) is None:
        return Unknown("storage_unknown", "the volume's size, or whether there is one, is unknown")
    peak = max(max(line.present) for line in case.whole.series[Metric.DISK].values())
    used_gb = peak * size / 100
    new = max(int(case.limit(OVER)), ceil(used_gb * case.limit(TIMES_THE_PEAK)))
    if peak > case.limit(PEAK_BELOW) or new >= size:
        return Clear()
    copies = _copies(job)
    smaller = f"<{new} + GB of the input>" if copies else new
    data = " Data of File-mode channels must fit too: their size is not recorded." if copies else ""
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=f"At most {peak:.1f}% of each {size} GB volume was used on {job.instances}.",
        evidence={
            "volume_gb": size,
            "disk_max_percent": round(peak, 2),
            "used_gb": round(used_gb, 1),
            "file_mode_channels": copies,
        },
        fix=(Parameter(VOLUME_PATHS[job.kind], size, smaller),),
        change=SetVolume(size if copies else new),
        best=SetVolume(new) if copies else None,
        caution=f"Low confidence: DiskUtilization reads near 0 in recorded jobs.{data}",
    )


def _copies(job: Job) -> int:
    """How many channels may lie on the volume: a mode that nobody says is File for processing."""
    return sum(c.source is DataSource.S3 and c.mode not in _STREAMED for c in job.channels)
