"""How much of a run's billed seconds and dollars one phase took, when that is much, and what the
Downloading phase of a training job contains.
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
    "min_expensive_usd", 10, "USD of the phase", "a medium finding, whatever its share"
)
EXPENSIVE_ABOVE_S = api.Threshold(
    "min_expensive_s", 600, "seconds", "twice the longest recorded image pull", "recorded jobs"
)
"""A phase that passes both is long on a large cluster, where its share may be small."""
DOWNLOAD_MIN_SHARE = api.Threshold(
    "min_share_percent", 20, "percent of billed seconds", "a fifth of the bill"
)
DOWNLOAD_MIN_LENGTH = api.Threshold(
    "min_duration_s", 300, "seconds", "13 of 14 recorded image pulls take less", "recorded jobs"
)
PULL_AT_MOST = api.Threshold(
    "max_pull_s", 1800, "seconds", "six times the longest recorded image pull", "recorded jobs"
)
"""Of each attempt: a phase whose message names the image may be the pull alone up to here."""
DOWNLOAD_THRESHOLDS = (
    DOWNLOAD_MIN_SHARE,
    DOWNLOAD_MIN_LENGTH,
    EXPENSIVE_ABOVE_USD,
    EXPENSIVE_ABOVE_S,
    PULL_AT_MOST,
)
_IMAGE_PULL_IN_DOWNLOAD_SINCE = 2024
"""18 of 18 recorded jobs from 2024 on say "Downloading the training image" in this phase."""
_SDK_CHANNELS = frozenset({"code", "sm_drivers"})
"""ModelTrainer of the SageMaker Python SDK sends its script and its drivers as channels."""


class PhaseShare(Struct, frozen=True):
    """Seconds of the billed occurrences of a phase, and of all billed phases, by the clock.

    `billed_s`: the seconds that the bill counts; on spot these are fewer than by the clock, of each
    phase alike. `at_most`: nobody knows how many fewer. `dear_usd`: the phase's dollars, if these
    are what makes it large.
    """

    seconds: Decimal
    phases_s: Decimal
    billed_s: Decimal
    is_upper_bound: bool = False
    expensive_usd: Decimal | None = None

    @property
    def percent(self) -> Decimal:
        """0..100, of the billed seconds; 0 when nothing was billed."""
        return 100 * self.seconds / self.phases_s if self.phases_s else _ZERO

    @property
    def phase_billed_s(self) -> Decimal:
        """The phase's part of the billed seconds."""
        return self.percent * self.billed_s / 100

    @property
    def text(self) -> str:
        """For a sentence: `15 min of 1 h billed (25%)`, or `(9%, $41.26)` where dollars count; on
        spot `30 min, billed as 10 min of 20 min (50%)`.
        """
        took, billed = api.duration_text(self.seconds), api.duration_text(self.billed_s)
        own = api.duration_text(self.phase_billed_s)
        of_billed = f"{took} of {'up to ' if self.is_upper_bound else ''}{billed} billed"
        if own != took:
            of_billed = f"{took}, billed as {own} of {billed}"
        dollars = "" if self.expensive_usd is None else f", ${self.expensive_usd:,.2f}"
        return f"{of_billed} ({self.percent:.0f}%{dollars})"


def range_caution(reason: str) -> str:
    """The caution of a range that begins at nothing: the reason why, without a full stop."""
    return (
        f"{reason}, so the saving is between nothing and the whole phase: nothing of it is counted."
    )


def phase_share(job: api.Job, *names: str) -> PhaseShare | None:
    """The share of the phases of these names together; None when the run is not split.

    A job that never started has nothing billed, and nothing in any phase.
    """
    if job.has_never_started:
        return PhaseShare(_ZERO, _ZERO, _ZERO)
    phases_s, on_spot = job.billed_phases_s, job.purchase is api.Purchase.SPOT
    billed = [phase for phase in job.phases if phase.billed]
    if phases_s is None or any(phase.name == "Running" for phase in billed):
        return None
    seconds = sum((phase.seconds or _ZERO for phase in billed if phase.name in names), _ZERO)
    if not on_spot or job.billable_s is None:
        return PhaseShare(seconds, phases_s, phases_s, is_upper_bound=on_spot)
    return PhaseShare(seconds, phases_s, job.billable_s)


def phase_seconds_by_attempt(job: api.Job, *names: str) -> list[Decimal | None]:
    """The billed seconds of the phases of these names, one entry for each attempt that has some.

    Each attempt pulls the image and mounts the data again. None: not known.
    """
    runs = groupby(job.phases, key=lambda phase: phase.billed and phase.name in names)
    return [api.sum_if_complete(phase.seconds for phase in run) for inside, run in runs if inside]


def phase_usd(billed: Bill, *names: str) -> Decimal | None:
    """The dollars of the phases of these names together; None when they are not known."""
    parts = [cost.usd for cost in billed.phases if cost.phase.name in names]
    return api.sum_if_complete(parts) if parts else None


def find_large_share(
    case: api.JobCase, *names: str, min_s: float, min_percent: float
) -> PhaseShare | api.Clear | api.Unknown:
    """The share of these phases when it is large: Clear under the limits, Unknown without phases.

    Large by its share (`min_duration_s` and `min_share_percent`), or by its dollars
    (`min_expensive_s` and `min_expensive_usd`).
    """
    share = phase_share(case.job, *names)
    if share is None:
        return api.PHASES_MISSING
    if share.seconds > min_s and share.percent >= min_percent:
        return share
    usd = phase_usd(case.bill, *names)
    dear = usd is not None and usd >= case.threshold(EXPENSIVE_ABOVE_USD)
    if dear and share.seconds > case.threshold(EXPENSIVE_ABOVE_S):
        return replace(share, expensive_usd=usd)
    return api.Clear()


def data_channels(job: api.Job) -> list[api.InputChannel]:
    """The channels with data: all but those in which the SDK sends its scripts."""
    return [channel for channel in job.channels if channel.name not in _SDK_CHANNELS]


def copied_channels(job: api.Job) -> list[api.InputChannel]:
    """The data channels that SageMaker copies from S3 before the code starts."""
    return [
        channel
        for channel in data_channels(job)
        if channel.source is api.DataSource.S3 and channel.mode == "File"
    ]


def input_mode_fix(channels: Iterable[api.InputChannel], mode: str) -> tuple[api.Parameter, ...]:
    """The parameters that read these File-mode channels in another mode."""
    return tuple(
        api.Parameter(f"InputDataConfig[{channel.name}].InputMode", "File", mode)
        for channel in channels
    )


def has_image_pull_in_download(job: api.Job) -> bool:
    """Is the image pull part of Downloading, by the job's own message or by its year?"""
    started_at = job.started_at
    recent = started_at is not None and started_at.year >= _IMAGE_PULL_IN_DOWNLOAD_SINCE
    return bool(job.image_pull_in_download) or recent


def can_be_image_pull_only(case: api.JobCase) -> bool:
    """Does the phase's own message name the image, and can each attempt's be its pull alone?

    Each transition keeps its last message only, so that a copy of data beside it is not excluded.
    """
    attempts = phase_seconds_by_attempt(case.job, "Downloading")
    limit_s = case.threshold(PULL_AT_MOST)
    short = all(seconds is not None and seconds <= limit_s for seconds in attempts)
    return bool(case.job.image_pull_in_download and attempts) and short


def image_pull_reason(case: api.JobCase) -> str | None:
    """For advice about data: nothing shows that a copy took the time."""
    pulled = can_be_image_pull_only(case)
    return "its message says that the image was pulled: see image-pull-heavy" if pulled else None


def find_large_download(case: api.JobCase, *names: str) -> PhaseShare | api.Clear | api.Unknown:
    """The share of Downloading, and of phases of these names, when it passes both thresholds."""
    return find_large_share(
        case,
        "Downloading",
        *names,
        min_s=case.threshold(DOWNLOAD_MIN_LENGTH),
        min_percent=case.threshold(DOWNLOAD_MIN_SHARE),
    )


def download_evidence(share: PhaseShare) -> dict[str, api.Scalar]:
    """The evidence that all rules about Downloading have."""
    return {
        "downloading_s": share.seconds,
        "downloading_billed_s": round(share.phase_billed_s),
        "billed_s": share.billed_s,
        "downloading_percent": round(share.percent, 1),
    }
