"""An on-demand run that managed spot training could have made cheaper.

## What it checks
A completed on-demand training job of at least 30 minutes on one kind of instance, without warm
pool, training plan, instance groups or deadline tag, in a family that did not leave spot for its
interruptions on this type.

## Why it costs
Managed spot bills fewer seconds of the same run; on demand bills all of them.

## Saving
SageMaker publishes no spot rate. With at least 3 completed spot runs of its own family on this type
it is derived from their worst quartile; the range goes to the best of them. With fewer it is
possible, never in a sum with others: the figure is what the worst of six published managed spot
runs saved (60%), the range goes to the best (70%). A run of an hour or more without
CheckpointConfig gets no figure: an interruption would start it again.

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

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.change import SetPurchase
from sageaudit.domain.bill.compatibility import spot_refused
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule

FROM = Threshold("from_s", 1800, "seconds", "shorter runs save cents", "our choice")
SAFE_BELOW = Threshold(
    "safe_below_s", 3600, "seconds", "MaxWait without checkpoints", "SageMaker spot guide"
)
RUNS_FROM = Threshold(
    "own_runs_from", 3, "spot runs on this type", "fewer have no quartile", "our choice"
)
_WAIT_AT_MOST_S = 86_400
"""A day of waiting for capacity beside the run itself."""
_WORST_BILLED_SHARE = Decimal(14683) / 37026
_BEST_BILLED_SHARE = Decimal(52) / 175
_LEFT_SPOT = "spot-interrupted-much"
DEADLINE_TAG = "sageaudit:deadline"


@dataclass(frozen=True, slots=True)
class _Share:
    """Of the seconds, how much is billed: as counted and at best; `runs` of its own, if any."""

    counted: Decimal
    best: Decimal
    runs: int = 0


def _excuse(case: FamilyCase) -> str | None:
    if why := spot_refused(case.job):
        return why
    if DEADLINE_TAG in case.job.tags:
        return f"the tag {DEADLINE_TAG} says that it may not wait"
    if case.job.status != "Completed":
        return "the run did not complete"
    if any(_LEFT_SPOT in run.facts.found and _same_type(case, run) for run in case.runs):
        return "a spot run of its family on this type was interrupted too much"
    return None


def _same_type(case: FamilyCase, run: EarlierRun) -> bool:
    types = {group.instance_type for group in case.job.groups}
    return run.facts.purchase is Purchase.SPOT and types == {run.facts.instance_type}


@rule(
    id="SA401",
    scope=FamilyCase,
    kinds={JobKind.TRAINING},
    thresholds=(FROM, SAFE_BELOW, RUNS_FROM),
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """How long the run took, and what its family's own spot runs were billed."""
    job = case.job
    if job.elapsed_s is None:
        return Unknown("times_missing", "how long the run took is not known")
    if job.elapsed_s < case.limit(FROM):
        return Clear()
    safe = job.checkpointed or job.elapsed_s < case.limit(SAFE_BELOW)
    share = _share(case)
    if share.counted >= 1:
        return Clear()
    derived = bool(safe and share.runs)
    return Found(
        confidence=Confidence.DERIVED if derived else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if derived else Bucket.POSSIBLE,
        summary=_summary(job, share if derived else None),
        evidence={
            "elapsed_s": job.elapsed_s,
            "checkpointed": job.checkpointed,
            "own_spot_runs": share.runs,
            "savings_percent": _savings(share),
        },
        fix=_fix(job),
        change=SetPurchase(share.counted) if safe else None,
        best=SetPurchase(share.best) if safe else None,
        caution=_caution(share, safe=safe),
    )


def _share(case: FamilyCase) -> _Share:
    """The mildest run of the worst quartile counts: at three runs the worst of all."""
    shares = sorted(
        run.facts.billable_s / run.facts.elapsed_s
        for run in case.runs
        if run.status == "Completed"
        and _same_type(case, run)
        and run.facts.billable_s is not None
        and run.facts.elapsed_s
    )
    if len(shares) < max(case.limit(RUNS_FROM), 1):
        return _Share(_WORST_BILLED_SHARE, _BEST_BILLED_SHARE)
    worst_quartile = -(-len(shares) // 4)
    return _Share(shares[-worst_quartile], shares[0], len(shares))


def _savings(share: _Share) -> str:
    return f"{100 * (1 - share.counted):.0f} to {100 * (1 - share.best):.0f}"


def _summary(job: Job, own: _Share | None) -> str:
    hours = (job.elapsed_s or Decimal(0)) / 3600
    ran = f"{hours:.1f} h on demand{', with checkpoints' if job.checkpointed else ''}"
    if own is None:
        return f"{ran}: managed spot is worth a trial."
    return f"{ran}: {own.runs} spot runs of its family on this type saved {_savings(own)}%."


def _caution(share: _Share, *, safe: bool) -> str:
    if not safe:
        return "No figure: without checkpoints an interruption starts a run this long again."
    if share.runs:
        return "Counted at the family's worst quartile; spot may wait for capacity."
    return "Not promised: SageMaker publishes no spot rate, and published runs saved 60 to 70%."


def _fix(job: Job) -> tuple[Parameter, ...]:
    run_s = job.max_runtime_s or int(job.elapsed_s or 0)
    wait_s = run_s + min(run_s, _WAIT_AT_MOST_S)
    fix = (
        Parameter("EnableManagedSpotTraining", False, True),
        Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, wait_s),
    )
    if job.checkpointed:
        return fix
    return (*fix, Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"))
