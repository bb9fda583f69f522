"""Trials of a tuning job ran to their end however badly they went.

## What it checks
TrainingJobEarlyStoppingType is Off, at least 10 trials completed, and they took at least 10 minutes
in the median. Hyperband is not judged: it stops trials itself, and takes no other early stopping.

## Why it costs
A trial that is worse than the median of the others at the same epoch seldom wins; it is paid to its
end.

## Saving
Possible, and no figure: at which epoch each would have been stopped is not known. The evidence has
what went to trials that ended worse than the median of those before them: it cannot be more.

## When it is wrong
It works on algorithms that report the objective each epoch. One that reports it once, at the end,
is never stopped. A trial that starts slowly and ends well can be stopped too early.

## What to do
TrainingJobEarlyStoppingType: Auto.

## Sources
AWS guide, "Stop training jobs early": worse than the median of the running averages up to the same
epoch. botocore, HyperParameterTuningJobConfig: it must be Off for Hyperband.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from statistics import median

from sageaudit.domain.audit.trial import Trial
from sageaudit.domain.bill.compatibility import early_stopping_refused
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Direction
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.objective import settled_direction
from sageaudit.rules.card import Threshold, TuningCase, rule
from sageaudit.rules.tuning.tuning_plateau import UNREAD, total_usd

TRIALS = Threshold("trials_from", 10, "trials", "a median needs some", "our choice")
TYPICAL = Threshold("typical_from_s", 600, "seconds", "a shorter trial has no rest", "our choice")
_OFF = "Off"


def _excuse(case: TuningCase) -> str | None:
    tuning = case.job.tuning if case.job else None
    return early_stopping_refused(tuning.strategy) if tuning else None


@rule(
    id="SA901",
    scope=TuningCase,
    kinds={JobKind.TUNING},
    thresholds=(TRIALS, TYPICAL),
    excuse=_excuse,
)
def check(case: TuningCase) -> Outcome:
    """By configuration and lengths; the objective only tells how much it could be at most."""
    tuning = case.job.tuning if case.job else None
    if tuning is None:
        return UNREAD
    if tuning.early_stopping is None:
        return Unknown("early_stopping_unknown", "whether it stops trials early is not known")
    if tuning.early_stopping != _OFF:
        return Clear()
    ended = [trial for trial in case.trials if trial.status == "Completed"]
    lengths = [trial.elapsed_s for trial in ended if trial.elapsed_s is not None]
    if len(ended) < case.limit(TRIALS):
        return Clear()
    if not lengths:
        return Unknown("times_missing", "how long its trials took is not known")
    typical_s = median(lengths)
    if typical_s < case.limit(TYPICAL):
        return Clear()
    objective = tuning.objective
    better = settled_direction(objective, case.policy.objectives) if objective else None
    worse = _worse(ended, better) if better else None
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"Early stopping is off: {len(ended)} trials ran to their end, in a median of "
            f"{typical_s / 60:.0f} minutes."
        ),
        evidence={
            "completed_trials": len(ended),
            "median_trial_s": typical_s,
            "worse_than_median": None if worse is None else len(worse),
            "worse_than_median_usd": None if worse is None else total_usd(worse),
        },
        fix=(
            Parameter("HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType", _OFF, "Auto"),
        ),
        caution="No figure: at which epoch each trial would have been stopped is not known.",
    )


def _worse(ended: Sequence[Trial], better: Direction) -> list[Trial]:
    """Trials that ended worse than the median of those before them."""
    sign = 1 if better is Direction.MAXIMIZE else -1
    before: list[Decimal] = []
    worse = []
    for trial in ended:
        if trial.objective is None:
            continue
        if before and sign * trial.objective < sign * median(before):
            worse.append(trial)
        before.append(trial.objective)
    return worse
