"""A tuning job's strategy learns little from its own trials.

## What it checks
At least 20 trials by Grid; or by Random in at least 10 rounds (trials by parallel ones), which a
strategy that learns could have used; or by Bayesian in fewer than 3 rounds, at 10 trials or more,
so that it had hardly anything to learn from.

## Why it costs
A search that learns needs fewer trials for the same objective.

## Saving
Possible, and no figure: how many trials less is not known before.

## When it is wrong
Grid shows the whole space and repeats exactly; Random runs any number side by side, and is a fair
base line. Fewer trials side by side take longer, which a deadline may not allow.

## What to do
Bayesian with at most a tenth of the trials in parallel; Hyperband for long trials of an algorithm
that reports its objective each epoch, with early stopping Off.

## Sources
AWS guide, "Best practices for hyperparameter tuning": random search runs the most jobs in parallel,
Bayesian optimisation uses what earlier ones told and does not scale so; one job at a time gives the
best result for the least compute; Hyperband shortens large jobs.
"""

from __future__ import annotations

from sageaudit.domain.bill.compatibility import HYPERBAND
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Tuning
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import Threshold, TuningCase, rule
from sageaudit.rules.tuning.tuning_plateau import UNREAD

MANY = Threshold("trials_from", 20, "trials", "fewer teach little", "our choice")
ROUNDS = Threshold("rounds_from", 10, "rounds", "enough to learn from", "our choice")
FEW_ROUNDS = Threshold("rounds_below", 3, "rounds", "two teach nothing much", "our choice")
SMALL = Threshold("bayesian_trials_from", 10, "trials", "fewer are a test", "our choice")
_CONFIG = "HyperParameterTuningJobConfig"
_PARALLEL = f"{_CONFIG}.ResourceLimits.MaxParallelTrainingJobs"


@rule(
    id="SA904",
    scope=TuningCase,
    kinds={JobKind.TUNING},
    thresholds=(MANY, ROUNDS, FEW_ROUNDS, SMALL),
)
def check(case: TuningCase) -> Outcome:
    """By strategy and rounds alone: what it advises has rounds enough to stay unadvised."""
    tuning = case.job.tuning if case.job else None
    if tuning is None:
        return UNREAD
    if tuning.strategy is None:
        return Unknown("strategy_unknown", "the tuning job names no strategy")
    trials = len(case.trials)
    if tuning.strategy == "Grid" and trials >= case.limit(MANY):
        return _found(case, tuning, f"Grid search ran {trials} trials and learnt from none.")
    if tuning.strategy not in {"Random", "Bayesian"} or not trials:
        return Clear()
    if not tuning.max_parallel:
        return Unknown("limits_missing", "how many trials it ran in parallel is not known")
    rounds = trials / tuning.max_parallel
    if tuning.strategy == "Random":
        if trials < case.limit(MANY) or rounds < case.limit(ROUNDS):
            return Clear()
        text = f"Random search ran {trials} trials in {rounds:.0f} rounds and learnt from none."
        return _found(case, tuning, text)
    if trials < case.limit(SMALL) or rounds >= case.limit(FEW_ROUNDS):
        return Clear()
    text = (
        f"Bayesian search ran {trials} trials, {tuning.max_parallel} at a time: it had "
        f"{rounds:.1f} rounds to learn from."
    )
    return _found(case, tuning, text)


def _found(case: TuningCase, tuning: Tuning, summary: str) -> Found:
    trials = len(case.trials)
    rounds = max(case.limit(ROUNDS), case.limit(FEW_ROUNDS), 1)
    parallel = max(int(trials / rounds), 1)
    fewer = (
        (Parameter(_PARALLEL, tuning.max_parallel, parallel),)
        if tuning.max_parallel is None or tuning.max_parallel > parallel
        else ()
    )
    learns = tuning.strategy == "Bayesian"
    other = () if learns else (Parameter(f"{_CONFIG}.Strategy", tuning.strategy, "Bayesian"),)
    count = (
        (Parameter(f"{_CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", None, trials),)
        if tuning.strategy == "Grid" and tuning.max_jobs is None
        else ()
    )
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=summary,
        evidence={
            "strategy": tuning.strategy,
            "trials": trials,
            "max_parallel": tuning.max_parallel,
            "max_jobs": tuning.max_jobs,
        },
        fix=(*other, *count, *fewer),
        alternatives=() if learns else (_hyperband(tuning, count),),
        caution="No figure: how many trials less give the same is not known before.",
    )


def _hyperband(tuning: Tuning, count: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """Which takes no early stopping but its own."""
    stop = f"{_CONFIG}.TrainingJobEarlyStoppingType"
    off = (Parameter(stop, tuning.early_stopping, "Off"),)
    auto = off if tuning.early_stopping not in {None, "Off"} else ()
    return (Parameter(f"{_CONFIG}.Strategy", tuning.strategy, HYPERBAND), *count, *auto)
