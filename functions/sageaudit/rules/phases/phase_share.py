"""The share of a run's billed seconds and dollars that a phase took, and what the Downloading phase
of a training job contains.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import groupby

from msgspec import Struct

from sageaudit.domain.bill.bill import Bill
from sageaudit.rules import api
from sageaudit.structs import replace

_ZERO = Decimal(0)
EXPENSIVE_ABOVE_USD = api.Threshold(
    "min_expensive_usd", 10, "USD of the phase", "a medium severity, whatever its share"
)
EXPENSIVE_ABOVE_S = api.Threshold(
    "min_expensive_s",
    600,
    "seconds",
    "about twice the longest recorded image pull",
    "recorded jobs",
)
"""A longer phase counts as large if it also costs `EXPENSIVE_ABOVE_USD`.

On a large cluster the phase's share of the run can be small.
"""
DOWNLOAD_MIN_SHARE = api.Threshold(
    "min_share_percent", 20, "percent of billed seconds", "a fifth of the bill"
)
DOWNLOAD_MIN_LENGTH = api.Threshold(
    "min_duration_s",
    300,
    "seconds",
    "13 of 14 recorded image pulls take less time",
    "recorded jobs",
)
PULL_AT_MOST = api.Threshold(
    "max_pull_s",
    1800,
    "seconds",
    "about six times the longest recorded image pull",
    "recorded jobs",
)
"""The longest Downloading of one attempt that may be an image pull alone."""
DOWNLOAD_THRESHOLDS = (
    DOWNLOAD_MIN_SHARE,
    DOWNLOAD_MIN_LENGTH,
    EXPENSIVE_ABOVE_USD,
    EXPENSIVE_ABOVE_S,
    PULL_AT_MOST,
)
_IMAGE_PULL_IN_DOWNLOAD_SINCE = 2024
"""From this year on, Downloading includes the image pull. Source: 18 of 18 recorded jobs."""
_SDK_CHANNELS = frozenset({"code", "sm_drivers"})
"""The SDK's ModelTrainer sends its script and drivers with these channels."""


class PhaseShare(Struct, frozen=True):
    """A phase's share of a run.

    `seconds`: the duration of the phase. `phases_s`: the duration of all billed phases. `billed_s`:
    the seconds that the bill counts, which are fewer on spot.

    `is_upper_bound`: `billed_s` is not known, so it equals `phases_s`. `expensive_usd`: the phase's
    dollars, if these make the phase large.
    """

    seconds: Decimal
    phases_s: Decimal
    billed_s: Decimal
    is_upper_bound: bool = False
    expensive_usd: Decimal | None = None

    @property
    def percent(self) -> Decimal:
        """The phase's percent (0..100) of the billed seconds. 0 if nothing was billed."""
        return 100 * self.seconds / self.phases_s if self.phases_s else _ZERO

    @property
    def phase_billed_s(self) -> Decimal:
        """The seconds of the phase that the bill counts."""
        return self.percent * self.billed_s / 100

    @property
    def text(self) -> str:
        """A phrase such as `15 min of the 1 h billed (25%)`.

        On spot: `30 min, billed as 10 min of 20 min (50%)`.
        """
        phase_time, billed_time = api.duration_text(self.seconds), api.duration_text(self.billed_s)
        phase_billed_time = api.duration_text(self.phase_billed_s)
        text = f"{phase_time} of {'up to' if self.is_upper_bound else 'the'} {billed_time} billed"
        if phase_billed_time != phase_time:
            text = f"{phase_time}, billed as {phase_billed_time} of {billed_time}"
        dollars = "" if self.expensive_usd is None else f", or {api.format_usd(self.expensive_usd)}"
        return f"{text} ({self.percent:.0f}%{dollars})"


def range_caution(reason: str) -> str:
    """Returns the caution of a saving between $0, which is counted, and the whole phase.

    `reason`: why the phase cannot be saved completely, as a clause without a full stop.
    """
    return (
        f"{reason}, so the saving is between nothing and the whole phase, and nothing is counted."
    )


def phase_share(job: api.Job, *names: str) -> PhaseShare | None:
    """Returns the share of all phases with these names, or None if the phases are not known.

    A job that never started has a share of 0.
    """
    if job.has_never_started:
        return PhaseShare(_ZERO, _ZERO, _ZERO)
    phases_s, is_spot = job.billed_phases_s, job.purchase is api.Purchase.SPOT
    billed = [phase for phase in job.phases if phase.billed]
    if phases_s is None or any(phase.name == "Running" for phase in billed):
        return None
    seconds = sum((phase.seconds or _ZERO for phase in billed if phase.name in names), _ZERO)
    if not is_spot or job.billable_s is None:
        return PhaseShare(seconds, phases_s, phases_s, is_upper_bound=is_spot)
    return PhaseShare(seconds, phases_s, job.billable_s)


def phase_seconds_by_attempt(job: api.Job, *names: str) -> list[Decimal | None]:
    """Returns the billed seconds of the phases with these names, for each attempt that has them.

    None stands for unknown seconds. Each attempt pulls the image again.
    """
    groups = groupby(job.phases, key=lambda phase: phase.billed and phase.name in names)
    return [
        api.sum_if_complete(phase.seconds for phase in phases)
        for is_named, phases in groups
        if is_named
    ]


def phase_usd(job_bill: Bill, *names: str) -> Decimal | None:
    """Returns the dollars of all phases with these names, or None if they are not known."""
    parts = [cost.usd for cost in job_bill.phases if cost.phase.name in names]
    return api.sum_if_complete(parts) if parts else None


def find_large_share(
    case: api.JobCase, *names: str, min_s: float, min_percent: float
) -> PhaseShare | api.Clear | api.Unknown:
    """Returns the share of the named phases if it is large, else Clear.

    A share is large if the phases took more than `min_s` seconds and at least `min_percent`
    percent. It is also large if they took more than `EXPENSIVE_ABOVE_S` and cost at least
    `EXPENSIVE_ABOVE_USD`. Returns Unknown if the phases are not known.
    """
    share = phase_share(case.job, *names)
    if share is None:
        return api.PHASES_MISSING
    if share.seconds > min_s and share.percent >= min_percent:
        return share
    usd = phase_usd(case.bill, *names)
    is_expensive = usd is not None and usd >= case.threshold(EXPENSIVE_ABOVE_USD)
    if is_expensive and share.seconds > case.threshold(EXPENSIVE_ABOVE_S):
        return replace(share, expensive_usd=usd)
    return api.Clear()


def data_channels(job: api.Job) -> list[api.InputChannel]:
    """Returns all channels except those with which the SDK sends its scripts."""
    return [channel for channel in job.channels if channel.name not in _SDK_CHANNELS]


def copied_channels(job: api.Job) -> list[api.InputChannel]:
    """Returns the data channels that SageMaker copies from S3 before the code starts."""
    return [
        channel
        for channel in data_channels(job)
        if channel.source is api.DataSource.S3 and channel.mode == "File"
    ]


def input_mode_fix(channels: Iterable[api.InputChannel], mode: str) -> tuple[api.Parameter, ...]:
    """Returns the parameters that read these File-mode channels in `mode`."""
    return tuple(
        api.Parameter(f"InputDataConfig[{channel.name}].InputMode", "File", mode)
        for channel in channels
    )


def has_image_pull_in_download(job: api.Job) -> bool:
    """Returns True if the job's message or year shows that Downloading includes the image pull."""
    started_at = job.started_at
    is_recent = started_at is not None and started_at.year >= _IMAGE_PULL_IN_DOWNLOAD_SINCE
    return bool(job.image_pull_in_download) or is_recent


def can_be_image_pull_only(case: api.JobCase) -> bool:
    """Returns True if Downloading may be the image pull alone.

    Its message must name the image, and each attempt must be short. A phase keeps only its last
    message, so data may have been copied as well.
    """
    attempts = phase_seconds_by_attempt(case.job, "Downloading")
    limit_s = case.threshold(PULL_AT_MOST)
    is_short = all(seconds is not None and seconds <= limit_s for seconds in attempts)
    return bool(case.job.image_pull_in_download and attempts) and is_short


def image_pull_reason(case: api.JobCase) -> str | None:
    """Returns why rules about data do not apply if Downloading may be the image pull alone, else
    None.
    """
    is_pull = can_be_image_pull_only(case)
    return "its message names the image pull: see image-pull-heavy" if is_pull else None


def find_large_download(case: api.JobCase, *names: str) -> PhaseShare | api.Clear | api.Unknown:
    """Returns the share of Downloading and the named phases if it is large, else Clear.

    Returns Unknown if the phases are not known.
    """
    return find_large_share(
        case,
        "Downloading",
        *names,
        min_s=case.threshold(DOWNLOAD_MIN_LENGTH),
        min_percent=case.threshold(DOWNLOAD_MIN_SHARE),
    )


def download_evidence(share: PhaseShare) -> dict[str, api.Scalar]:
    """Returns the evidence that all findings about Downloading contain."""
    return {
        "downloading_s": share.seconds,
        "downloading_billed_s": round(share.phase_billed_s),
        "billed_s": share.billed_s,
        "downloading_percent": round(share.percent, 1),
    }
