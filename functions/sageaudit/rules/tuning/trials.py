"""What the tuning rules share: sums over the trials of a tuning job, and paths in its request."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.job.parts import Direction
from sageaudit.domain.usage.objective import last_gain
from sageaudit.rules import api

TUNING_UNREAD = api.Unknown("tuning_unread", "the tuning job's own description is not known")
CONFIG = "HyperParameterTuningJobConfig"
MAX_TRIALS = f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs"
MAX_PARALLEL = f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs"
EARLY_STOPPING = f"{CONFIG}.TrainingJobEarlyStoppingType"


def total_usd(trials: Sequence[Trial]) -> Decimal | None:
    """Returns the cost of these trials together, or None if the cost of a trial is not known."""
    return api.sum_if_complete(trial.total_usd for trial in trials)


def cost_text(usd: Decimal | None) -> str:
    """Returns `$12.30`, or `an unknown sum` for None."""
    return "an unknown sum" if usd is None else f"{api.format_usd(usd)}"


def last_improving_trial(
    trials: Sequence[Trial], direction: Direction, tolerance_percent: Decimal
) -> Trial | None:
    """Returns the last trial that improved the best objective by more than `tolerance_percent`.

    Returns None if no trial has an objective.
    """
    trials_with_objective = [trial for trial in trials if trial.objective is not None]
    values = [trial.objective for trial in trials_with_objective if trial.objective is not None]
    return (
        trials_with_objective[last_gain(values, direction, tolerance_percent)] if values else None
    )
