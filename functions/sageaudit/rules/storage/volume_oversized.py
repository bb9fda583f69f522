"""The storage volume is far larger than what was used of it.

What it checks: An EBS volume of more than 30 GB, of a job that streams all its channels. By
    DiskUtilization, at most 35% of it was used in every minute. The unused part cost $0.10 or more.
    Jobs that copy data to the volume (File mode) or fetch it themselves are not judged, because the
    size of that data is not recorded.
Why it costs: Each instance's volume is billed by GB and time, used or not. It is small beside the
    instance: 100 GB for an hour cost about $0.02.
Saving: Possible, never in a total: the same run with a volume of twice the peak, at least 30 GB.
When it is wrong: Code that writes much: the metric is near 0 in real data (0.01% to 1.3% of 30 GB
    in recorded jobs), and AWS does not say which folders it counts. A job whose volume is full
    fails.
What to do: Try the smaller volume in a run that may fail. FastFile mode needs no space for data.
Sources: botocore, VolumeSizeInGB. 30 GB: the default of the SageMaker Python SDK. Job Defense
    Shield: memory requested in excess means that at most 0.35 of it is used.
"""

from __future__ import annotations

from math import ceil

from sageaudit.rules import api

OVER = api.Threshold("over_gb", 30, "GB an instance", "the usual default", "SageMaker Python SDK")
PEAK_BELOW = api.Threshold(
    "peak_at_most_percent", 35, "percent of the volume", "asked in excess", "Job Defense Shield"
)
TIMES_THE_PEAK = api.Threshold("times_the_peak", 2, "new size / peak use", "headroom")
FROM_USD = api.Threshold("from_usd", 0.1, "USD", "nobody changes a job for less")
_STREAMED = frozenset({"Pipe", "FastFile"})
"""Any other data is on the volume: a processing input without a mode is copied (File)."""


def _not_recorded(case: api.JobCase) -> str | None:
    channels = case.job.channels
    streamed = all(
        channel.mode in _STREAMED or channel.source is not api.DataSource.S3 for channel in channels
    )
    return None if channels and streamed else "how much data is on its volume is not recorded"


def _cheap(case: api.JobCase, too_much_gb: int) -> bool:
    """Whether so much of each volume cost too little to speak of; an unknown price may be high."""
    paid = [line.usd for line in case.bill.lines if line.item == "storage"]
    size = case.job.volume_gb
    if not paid or not size or None in paid:
        return False
    usd = sum(filter(None, paid)) * too_much_gb / size
    return float(usd) < case.limit(FROM_USD)


def _small(case: api.JobCase) -> str | None:
    size = case.job.volume_gb
    small = size is not None and size <= case.limit(OVER)
    return f"its volume of {size} GB is not a large one" if small else None


@api.rule(
    id="SA501",
    scope=api.JobCase,
    kinds=set(api.VOLUME_PATHS),
    thresholds=(OVER, PEAK_BELOW, TIMES_THE_PEAK, FROM_USD),
    needs=(api.Metric.DISK,),
    coarsest_period_s=300,
    whole_run=True,
    not_applicable=(
        *(api.free, api.serverless, api.prepaid, api.has_local_storage, _small),
        _not_recorded,
    ),
    once_a_family=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the fullest host: every host has a volume of the same size."""
    job, size = case.job, case.job.volume_gb
    if size is None or api.on_ebs(case) is None:
        return api.Unknown(
            "storage_unknown", "whether there is a volume, or its size, is not known"
        )
    peak = max(max(line.present) for line in case.whole.series[api.Metric.DISK].values())
    used_gb = peak * size / 100
    new_size = max(int(case.limit(OVER)), ceil(used_gb * case.limit(TIMES_THE_PEAK)))
    if peak > case.limit(PEAK_BELOW) or new_size >= size or _cheap(case, size - new_size):
        return api.Clear()
    return api.possible(
        f"At most {peak:.1f}% of each {size} GB volume was used on {job.instances}.",
        {"volume_gb": size, "disk_max_percent": round(peak, 2), "used_gb": round(used_gb, 1)},
        fix=(api.Parameter(api.VOLUME_PATHS[job.kind], size, new_size),),
        change=api.SetVolume(new_size),
        caution="Its data is streamed. What the code writes must fit: DiskUtilization is often 0.",
    )
