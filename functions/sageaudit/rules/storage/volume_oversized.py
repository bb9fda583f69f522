"""The storage volume is far larger than the run needed.

What it checks: An EBS volume has more than 30 GB. DiskUtilization was at most 35% in every minute,
    and the unused part cost $0.10 or more.
    - If a training job copies its data to the volume (File mode), two more things must be true. The
      volumes are at least a fifth of the bill. The download was too short to fill them at the
      instances' network speed.
    - Jobs that fetch data themselves, and processing jobs that copy it, are not judged, because the
      amount of data is not known.
Why it costs: Each instance's volume is billed by GB and time, used or not. It costs little: 100 GB
    for an hour cost about $0.02.
Saving: Possible: the same run with a volume of twice the peak, at least 30 GB. In File mode the
    volume also has space for all data that the download can have copied. The high end of the range
    is without that space, because AWS does not say whether DiskUtilization counts this data.
When it is wrong: The code may write much that DiskUtilization does not count. AWS does not say
    which folders it counts, and in recorded jobs it is near 0 (0.01% to 1.3% of 30 GB). A job whose
    volume is full fails. A gp2 volume under 334 GB reads slower than 250 MB/s.
What to do: Try the smaller volume in a run that is allowed to fail. FastFile mode needs no space
    for data.
Sources: botocore, VolumeSizeInGB. 30 GB: the default of the SageMaker Python SDK. Job Defense
    Shield: a job requests too much memory if it uses at most 0.35 of it. Network: EC2
    DescribeInstanceTypes.
"""

from __future__ import annotations

from decimal import Decimal
from math import ceil

from sageaudit.rules import api

MIN_VOLUME = api.Threshold(
    "min_volume_gb", 30, "GB per instance", "the usual default", "SageMaker Python SDK"
)
PEAK_BELOW = api.Threshold(
    "max_peak_percent", 35, "percent of the volume", "requested in excess", "Job Defense Shield"
)
NEW_SIZE_FACTOR = api.Threshold("size_to_peak_ratio", 2, "new size / peak use", "headroom")
MIN_SAVING = api.Threshold("min_saving_usd", 0.1, "USD", "nobody changes a job for less")
MIN_COPY_SHARE = api.Threshold(
    "min_copy_share_percent", 20, "percent of the bill", "in File mode, a fifth of the bill"
)
_BITS_PER_BYTE = 8
_FULL_SPEED_GB = 334
"""From this size on a gp2 volume reads at its full 250 MB/s (EBS guide, gp2 performance)."""
_MIN_SHOWN_PERCENT = 0.1


def _unrecorded_reason(case: api.JobCase) -> str | None:
    job = case.job
    if job.is_streaming_data:
        return None
    if job.kind is not api.JobKind.TRAINING or not job.channels:
        return "how much data its volume holds is not recorded"
    total_usd, volumes_usd = case.bill.total_usd, _volumes_usd(case)
    if not total_usd or volumes_usd is None:
        return None
    percent = 100 * volumes_usd / total_usd
    if percent >= Decimal(str(case.threshold(MIN_COPY_SHARE))):
        return None
    return f"its data is copied to its volumes, which are {percent:.1f}% of the bill"


def _volumes_usd(case: api.JobCase) -> Decimal | None:
    costs_usd = [line.usd for line in case.bill.lines if line.item == "storage"]
    return api.sum_if_complete(costs_usd) if costs_usd else None


def _is_too_cheap(case: api.JobCase, unused_gb: int) -> bool:
    """True if the unused GB cost too little for a finding. False if the price is not known."""
    usd, size = _volumes_usd(case), case.job.volume_gb
    if usd is None or not size:
        return False
    return float(usd * unused_gb / size) < case.threshold(MIN_SAVING)


def _small_volume_reason(case: api.JobCase) -> str | None:
    size = case.job.volume_gb
    is_small = size is not None and size <= case.threshold(MIN_VOLUME)
    return f"its volume of {size} GB is not a large one" if is_small else None


@api.rule(
    id="SA501",
    scope=api.JobCase,
    kinds=set(api.VOLUME_PATHS),
    thresholds=(MIN_VOLUME, PEAK_BELOW, NEW_SIZE_FACTOR, MIN_SAVING, MIN_COPY_SHARE),
    required_metrics=(api.Metric.DISK,),
    max_period_s=300,
    uses_whole_run=True,
    not_applicable=(
        *(
            api.free_reason,
            api.serverless_reason,
            api.prepaid_reason,
            api.local_storage_reason,
            _small_volume_reason,
        ),
        _unrecorded_reason,
    ),
    report_once_per_family=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the fullest host, because every host has a volume of the same size."""
    job, size = case.job, case.job.volume_gb
    if size is None or api.is_on_ebs(case) is None:
        return api.Unknown(
            "storage_unknown", "whether there is a volume, or its size, is not known"
        )
    copied_gb = 0 if job.is_streaming_data else _max_copied_gb(case)
    if copied_gb is None:
        return api.Unknown("copy_unknown", "how much its download can have copied is not known")
    peak = max(max(line.present) for line in case.whole_run.series[api.Metric.DISK].values())
    used_gb = peak * size / 100
    room_gb = used_gb * case.threshold(NEW_SIZE_FACTOR)
    new_size, best_size = (
        max(int(case.threshold(MIN_VOLUME)), ceil(gb)) for gb in (room_gb + copied_gb, room_gb)
    )
    if (
        peak > case.threshold(PEAK_BELOW)
        or best_size >= size
        or _is_too_cheap(case, size - best_size)
    ):
        return api.Clear()
    if new_size >= size or _is_too_cheap(case, size - new_size):
        return api.NotApplicable(f"its download may have copied up to {copied_gb} GB")
    return api.possible_saving(
        f"{_at_most_text(peak)} of each {size} GB volume was used on {job.instances}.",
        {
            "volume_gb": size,
            "disk_max_percent": round(peak, 2),
            "used_gb": round(used_gb, 1),
            "copied_at_most_gb": copied_gb,
        },
        fix=(api.Parameter(api.VOLUME_PATHS[job.kind], size, new_size),),
        change=api.SetVolume(new_size),
        best=api.SetVolume(best_size) if copied_gb else None,
        caution=_caution(copied_gb, size, new_size),
    )


def _max_copied_gb(case: api.JobCase) -> int | None:
    """Returns the most GB that the download can have copied to a host; None if that is not known.

    SageMaker copies File-mode data only in Downloading, and does not unpack it.
    """
    seconds = [phase.seconds for phase in case.job.phases if phase.name == "Downloading"]
    rates = [
        None if instance_type is None else instance_type.network_gbps
        for instance_type in case.instance_types
    ]
    known_seconds = [duration_s for duration_s in seconds if duration_s is not None]
    known_gbps = [rate for rate in rates if rate is not None]
    if (
        not seconds
        or len(known_seconds) < len(seconds)
        or not rates
        or len(known_gbps) < len(rates)
    ):
        return None
    return ceil(max(known_seconds) * max(known_gbps) / _BITS_PER_BYTE)


def _at_most_text(percent: float) -> str:
    return "Less than 0.1%" if percent < _MIN_SHOWN_PERCENT else f"At most {percent:.1f}%"


def _caution(copied_gb: int, size: int, new_size: int) -> str:
    space_text = "All that the code writes must fit, and DiskUtilization often reads 0."
    if not copied_gb:
        return f"Its data is streamed. {space_text}"
    slower_text = f" Under {_FULL_SPEED_GB} GB a gp2 volume reads slower than 250 MB/s."
    return (
        f"The download can have copied {copied_gb} GB at most. {space_text}"
        f"{slower_text if new_size < _FULL_SPEED_GB <= size else ''}"
    )
