"""What the rules about tuning jobs share: the cost of trials and the request's paths."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.audit.trial import Trial
from sageaudit.rules import api

TUNING_UNREAD = api.Unknown("tuning_unread", "the tuning job's own description is not known")
CONFIG = "HyperParameterTuningJobConfig"
MAX_TRIALS = f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs"
MAX_PARALLEL = f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs"
EARLY_STOPPING = f"{CONFIG}.TrainingJobEarlyStoppingType"


def total_usd(trials: Sequence[Trial]) -> Decimal | None:
    """What trials cost together; None when the cost of one is not known."""
    known = [trial.total_usd for trial in trials if trial.total_usd is not None]
    return sum(known, Decimal(0)) if len(known) == len(trials) else None


def cost_text(usd: Decimal | None) -> str:
    """For a sentence."""
    return "an unknown sum" if usd is None else f"${usd:,.2f}"
