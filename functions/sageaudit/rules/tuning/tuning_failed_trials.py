"""Many trials of a tuning job failed.

## What it checks
At least 2 trials, and at least 20% of all, ended as Failed.

## Why it costs
A failed trial is billed until it fails, and tells the search nothing.

## Saving
What they cost, as lost, less what the findings on the trials themselves took, which is all of it:
the evidence has the sum, and no dollar is counted twice.

## When it is wrong
A range that reaches to where training fails can be meant, to find the edge.

## What to do
Read one trial's failure. If all fail alike, run one training job before a tuning job; if some do,
narrow the range that they share (memory grows with batch size and depth, loss diverges with a high
learning rate).

## Sources
botocore, DescribeTrainingJob.TrainingEndTime: failed jobs are billed up to their end. The 20% is
our choice.
"""

from __future__ import annotations

from sageaudit.domain.bill.change import DropTrials
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import Threshold, TuningCase, rule
from sageaudit.rules.tuning.tuning_plateau import total_usd

TRIALS = Threshold("failed_from", 2, "trials", "one is an accident", "our choice")
SHARE = Threshold("failed_percent", 20, "percent of trials", "a fifth of them", "our choice")


@rule(id="SA903", scope=TuningCase, kinds={JobKind.TUNING}, thresholds=(TRIALS, SHARE))
def check(case: TuningCase) -> Outcome:
    """Needs the trials alone, not the tuning job's own answer."""
    failed = [trial for trial in case.trials if trial.status == "Failed"]
    if not failed or len(failed) < case.limit(TRIALS):
        return Clear()
    percent = 100 * len(failed) / len(case.trials)
    if percent < case.limit(SHARE):
        return Clear()
    cost_usd, all_usd = total_usd(failed), total_usd(case.trials)
    cost = "an unknown sum" if cost_usd is None else f"${cost_usd:,.2f}"
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.LOST,
        summary=f"{len(failed)} of {len(case.trials)} trials failed ({percent:.0f}%), for {cost}.",
        evidence={
            "failed_trials": len(failed),
            "trials": len(case.trials),
            "failed_percent": round(percent, 1),
            "failed_usd": cost_usd,
            "total_usd": all_usd,
        },
        change=DropTrials(frozenset(trial.name for trial in failed)),
        caution="Counted here is only what the findings on the failed trials themselves left.",
    )
