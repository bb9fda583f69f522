"""All trials of a tuning job ran to their end, even bad ones.

What it checks: TrainingJobEarlyStoppingType is Off, at least 10 trials completed, and their median
    run time is at least 10 minutes. Hyperband is not judged: it stops trials itself, and allows no
    other early stopping.
Why it costs: A trial that is worse than the median of the others at the same epoch seldom becomes
    the best, but is billed to its end.
Saving: Possible, without a figure: it is not known at which epoch each trial would have been
    stopped.
When it is wrong: Early stopping needs an algorithm that reports the objective each epoch. A trial
    that reports it once, at the end, is never stopped. A trial that starts slowly and ends well can
    be stopped too early.
What to do: Set TrainingJobEarlyStoppingType to Auto.
Sources: AWS guide, "Stop training jobs early": worse than the median of the running averages up to
    the same epoch. botocore, HyperParameterTuningJobConfig: it must be Off for Hyperband.
"""

from __future__ import annotations

from statistics import median

from sageaudit.domain.bill.billed_job import early_stopping_refusal
from sageaudit.domain.job.parts import TuningSettings
from sageaudit.rules import api
from sageaudit.rules.tuning import trials

TRIALS = api.Threshold("min_trials", 10, "trials", "a median needs several")
MIN_MEDIAN_TRIAL = api.Threshold("min_median_trial_s", 600, "seconds", "shorter trials save little")
_OFF = "Off"


def _early_stopping_refusal(case: api.RollUpCase) -> str | None:
    return early_stopping_refusal(case.tuning.strategy) if case.tuning else None


@api.rule(
    id="SA901",
    scope=api.RollUpCase,
    kinds={api.JobKind.TUNING},
    thresholds=(TRIALS, MIN_MEDIAN_TRIAL),
    not_applicable=(_early_stopping_refusal,),
    request_severity=api.Severity.LOW,
    required_parameters=(trials.EARLY_STOPPING, f"{trials.CONFIG}.Strategy", trials.MAX_TRIALS),
)
def check(case: api.RollUpCase) -> api.Outcome:
    """Judges by the settings and the trials' run times."""
    tuning = case.tuning
    if tuning is None:
        return trials.TUNING_UNREAD
    if case.duration_basis is not None:
        return _check_request(case, tuning)
    if tuning.early_stopping is None:
        reason = "whether it stops trials early is not known"
        return api.Unknown("early_stopping_unknown", reason)
    if tuning.early_stopping != _OFF:
        return api.Clear()
    completed = [trial for trial in case.trials if trial.status == "Completed"]
    lengths_s = [trial.elapsed_s for trial in completed if trial.elapsed_s is not None]
    if len(completed) < case.threshold(TRIALS):
        return api.Clear()
    if not lengths_s:
        return api.Unknown("times_missing", "how long its trials took is not known")
    typical_s = median(lengths_s)
    if typical_s < case.threshold(MIN_MEDIAN_TRIAL):
        return api.Clear()
    return api.possible_saving(
        f"Early stopping is off: {len(completed)} trials ran to their end, with a median of "
        f"{api.duration_text(typical_s)}.",
        {"completed_trials": len(completed), "median_trial_s": typical_s},
        fix=(api.Parameter(trials.EARLY_STOPPING, _OFF, "Auto"),),
        caution="At which epoch each trial would have been stopped is not known.",
    )


def _check_request(case: api.RollUpCase, tuning: TuningSettings) -> api.Outcome:
    """Returns a finding on a request without early stopping. A missing value counts as Off."""
    if tuning.early_stopping not in {None, _OFF} or (tuning.max_jobs or 0) < case.threshold(TRIALS):
        return api.Clear()
    return api.recommendation(
        f"Early stopping is off: up to {tuning.max_jobs} trials will all run to their end.",
        {"max_trials": tuning.max_jobs},
        fix=(api.Parameter(trials.EARLY_STOPPING, tuning.early_stopping, "Auto"),),
        caution="It needs an algorithm that reports the objective each epoch.",
    )
