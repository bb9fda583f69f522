"""The other type that a run may move to; where there is none, the reason in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.resize import Resize, impossible, resize
from sageaudit.domain.prices.market import InstanceType
from sageaudit.rules import api
from sageaudit.rules.outcomes import Details

PEAKS_HIDDEN = "One-minute means hide peaks: try it once."


def resized(case: api.JobCase, only: Callable[[InstanceType], bool] = lambda _: True) -> Resize:
    """The run on each other type that `only` takes, with the policy's headroom."""
    headroom = Decimal(str(case.limit(api.HEADROOM)))
    return resize(case.job, case.usage, case.market, headroom_percent=headroom, only=only)


def cannot_move(case: api.JobCase) -> str | None:
    """Why no other type can be named for a run at all, or None."""
    if case.job.purchase is api.Purchase.TRAINING_PLAN:
        return "its training plan is prepaid, for this type"
    return impossible(case.job, case.market)


def cheaper(run: Resize) -> Iterator[Candidate]:
    """The types that hold the run and save, the cheapest first; none of an older generation."""
    for candidate in run.worthwhile:
        if not candidate.type.legacy or run.today.legacy:
            yield candidate


def why_none(run: Resize, otherwise: str, *, gpu_model: str | None = None) -> str:
    """What keeps the run from the dearest of the cheaper types, else `otherwise`.

    With `gpu_model`, of the types that have this GPU.
    """
    refused = [
        (candidate.type.name, candidate.refused.reason)
        for candidate in run.candidates
        if candidate.refused and run.cheaper(candidate)
        if gpu_model is None or candidate.type.gpu_model == gpu_model
    ]
    if not refused:
        return otherwise
    name, reason = refused[-1]
    return f"{name} does not fit ({reason})"


def move(case: api.JobCase, to: Candidate | None, caution: str) -> Details:
    """The fix of a finding that names a type, as it is counted and at best; only words without."""
    if to is None:
        return {"caution": caution}
    return {
        "fix": api.type_fix(case.job, to.type.name),
        "change": to.change,
        "best": to.best,
        "caution": caution,
    }
