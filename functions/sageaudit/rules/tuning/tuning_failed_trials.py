"""Many trials of a tuning job failed.

What it checks: At least 2 trials, and at least 20% of all, ended as Failed.
Why it costs: A failed trial is billed until it fails, and adds nothing to the search.
Saving: Lost: what the failed trials cost. The trials' own audits count these dollars; this rule
    does not count them again.
When it is wrong: A range may include values with which training fails, to find the limit.
What to do: Read the failure message of one trial.
    - If all trials fail the same way, first run one training job alone.
    - If some fail, narrow the hyperparameter range that they share. Memory grows with batch size
      and depth, and loss diverges at a high learning rate.
Sources: botocore, DescribeTrainingJob.TrainingEndTime: failed jobs are billed up to their end. The
    20% is our choice.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.tuning.trials import cost_text, total_usd

TRIALS = api.Threshold("min_failed_trials", 2, "trials", "one may be an exception")
SHARE = api.Threshold("min_failed_percent", 20, "percent of trials", "a fifth of them")


@api.rule(id="SA903", scope=api.RollUpCase, kinds={api.JobKind.TUNING}, thresholds=(TRIALS, SHARE))
def check(case: api.RollUpCase) -> api.Outcome:
    """Judges only the trials. It needs no description of the tuning job."""
    failed = [trial for trial in case.trials if trial.status == "Failed"]
    if not failed or len(failed) < case.threshold(TRIALS):
        return api.Clear()
    percent = 100 * len(failed) / len(case.trials)
    if percent < case.threshold(SHARE):
        return api.Clear()
    failed_usd = total_usd(failed)
    return api.lost_spend(
        f"{len(failed)} of {len(case.trials)} trials failed ({percent:.0f}%), for "
        f"{cost_text(failed_usd)}.",
        {
            "failed_trials": len(failed),
            "trials": len(case.trials),
            "failed_percent": round(percent, 1),
            "failed_usd": failed_usd,
            "total_usd": total_usd(case.trials),
        },
        change=api.DropTrials(frozenset(trial.name for trial in failed)),
        caution="Dollars that a trial's own finding counts are not counted again here.",
    )
