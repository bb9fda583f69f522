"""An on-demand run that managed spot training could have made cheaper.

## What it checks
A completed on-demand training job of at least 30 minutes on one kind of instance, without warm
pool, training plan or deadline tag.

## Why it costs
Managed spot bills fewer seconds of the same run; on demand bills all of them.

## Saving
Possible, never in a sum with others: SageMaker publishes no spot rate. The figure is what the worst
of six published managed spot runs saved (60%), the range goes to the best (70%). A run of an hour
or more without checkpoints gets no figure: an interruption would start it again.

## When it is wrong
EC2 spot prices lie between 62% above and 90% below on demand; a scarce type may wait for hours.

## What to do
Turn it on with a MaxWait above MaxRuntime, and write checkpoints. Built-in algorithms without
checkpoints allow a MaxWait of 3,600 s at most.

## Sources
AWS, managed spot training: saving = (1 - billable / training) x 100. Published runs: 14683/37026 s,
151/505, 316/1054, 52/175, 262/874, 43/143. EC2 Spot Advisor data of 2025-07 for the spread.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.change import SetPurchase
from sageaudit.domain.compatibility import spot_refused
from sageaudit.domain.finding import Bucket, Clear, Confidence, Found, Outcome, Parameter, Unknown
from sageaudit.domain.ref import JobKind
from sageaudit.rules.card import JobCase, Threshold, rule

FROM = Threshold("from_s", 1800, "seconds", "shorter runs save cents", "our choice")
SAFE_BELOW = Threshold(
    "safe_below_s", 3600, "seconds", "MaxWait without checkpoints", "SageMaker spot guide"
)
_WAIT_AT_MOST_S = 86_400
"""A day of waiting for capacity beside the run itself."""
_WORST_BILLED_SHARE = Decimal(14683) / 37026
_BEST_BILLED_SHARE = Decimal(52) / 175
DEADLINE_TAG = "sageaudit:deadline"


def _excuse(case: JobCase) -> str | None:
    if why := spot_refused(case.job):
        return why
    if DEADLINE_TAG in case.job.tags:
        return f"the tag {DEADLINE_TAG} says that it may not wait"
    return None if case.job.status == "Completed" else "the run did not complete"


@rule(
    id="SA401",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(FROM, SAFE_BELOW),
    excuse=_excuse,
)
def check(case: JobCase) -> Outcome:
    """Needs only how long the run took."""
    job = case.job
    if job.elapsed_s is None:
        return Unknown("times_missing", "how long the run took is not known")
    if job.elapsed_s < case.limit(FROM):
        return Clear()
    safe = job.checkpointed or job.elapsed_s < case.limit(SAFE_BELOW)
    run_s = job.max_runtime_s or int(job.elapsed_s)
    wait_s = run_s + min(run_s, _WAIT_AT_MOST_S)
    fix = [
        Parameter("EnableManagedSpotTraining", False, True),
        Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, wait_s),
    ]
    if not job.checkpointed:
        fix.append(Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"))
    spread = "Not promised: SageMaker publishes no spot rate, and published runs saved 60 to 70%."
    no_dollars = "No figure: without checkpoints an interruption starts a run this long again."
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"{job.elapsed_s / 3600:.1f} h on demand"
            f"{', with checkpoints' if job.checkpointed else ''}: managed spot is worth a trial."
        ),
        evidence={
            "elapsed_s": job.elapsed_s,
            "checkpointed": job.checkpointed,
            "published_savings_percent": "60 to 70",
        },
        fix=tuple(fix),
        change=SetPurchase(_WORST_BILLED_SHARE) if safe else None,
        best=SetPurchase(_BEST_BILLED_SHARE) if safe else None,
        caution=spread if safe else no_dollars,
    )
