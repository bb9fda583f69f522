"""Interruptions of managed spot cost more than spot saved.

## What it checks
A managed spot run was interrupted and still completed, but was billed for more seconds than the
same run takes on demand; or the wait for capacity passed MaxWaitTimeInSeconds.

## Why it costs
Spot saves by billing fewer seconds. What an interruption undoes is computed, and billed, again.

## Saving
Derived: the billed seconds above what the run takes on demand, which is the median of its family's
completed on-demand runs on this type and count (at least 3). With fewer, and without checkpoints,
it is the last attempt, which did all the work. Else it is not known. A run that MaxWait ended gets
no figure: what it left may be used, and a run that left nothing is limit-hit's to count.

## When it is wrong
Spot capacity changes by the hour: one bad run is no rule. Checkpoints make the next one cheaper.

## What to do
Run it on demand, or on another type with more spare capacity; keep checkpoints if it stays on spot.

## Sources
SageMaker guide, managed spot training: saving = (1 - billable / training) x 100; interruptions show
as the status Interrupted, a wait that is too long as MaxWaitTimeExceeded.
"""

from __future__ import annotations

from decimal import Decimal
from statistics import median

from sageaudit.domain.bill.change import SetPurchase
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    NotApplicable,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule

OVER = Threshold(
    "over_percent", 100, "percent of the on-demand seconds", "spot saved nothing", "our choice"
)
RUNS_FROM = Threshold("runs_from", 3, "on-demand runs", "one run is an accident", "our choice")
_WAITED_OUT = "MaxWaitTimeExceeded"


def _excuse(case: FamilyCase) -> str | None:
    if case.job.purchase is not Purchase.SPOT:
        return "it did not run on managed spot"
    return "it never started: nothing was billed" if case.job.never_started else None


@rule(
    id="SA403",
    scope=FamilyCase,
    kinds={JobKind.TRAINING},
    thresholds=(OVER, RUNS_FROM),
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """Compares what was billed with what the run takes on demand."""
    job = case.job
    if job.secondary_status == _WAITED_OUT:
        return _waited_out(job)
    if not job.interruptions:
        return Clear()
    if job.status != "Completed":
        return NotApplicable("the run did not complete: what it cost is another rule's story")
    if job.billable_s is None:
        return Unknown("billable_missing", "the billable seconds are not known")
    needed_s = _on_demand_s(case)
    if not needed_s:
        return Unknown("on_demand_unknown", "how long the run takes on demand is not known")
    if 100 * job.billable_s <= Decimal(str(case.limit(OVER))) * needed_s:
        return Clear()
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"After {_times(job.interruptions)} managed spot was billed for "
            f"{job.billable_s / 60:.0f} minutes; on demand the run takes {needed_s / 60:.0f}."
        ),
        evidence={
            "interruptions": job.interruptions,
            "billable_s": job.billable_s,
            "on_demand_s": needed_s,
        },
        fix=_on_demand(job),
        alternatives=_other_ways(job),
        change=SetPurchase(needed_s / job.billable_s, Purchase.ON_DEMAND),
        caution="One bad run is no rule: spot capacity changes by the hour.",
    )


def _waited_out(job: Job) -> Found:
    """Stopped before the end; what it had is kept, or was lost."""
    billed = "an unknown time" if job.billable_s is None else f"{job.billable_s / 60:.0f} minutes"
    kept = job.left_artifact or job.checkpointed
    why = "what it left can be used" if kept else "limit-hit counts a run that left nothing"
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.NONE,
        summary=(
            f"The wait for spot capacity passed MaxWaitTimeInSeconds after "
            f"{_times(job.interruptions)}; {billed} were billed."
        ),
        evidence={
            "interruptions": job.interruptions,
            "max_wait_s": job.max_wait_s,
            "billable_s": job.billable_s,
        },
        fix=_on_demand(job),
        alternatives=_other_ways(job),
        caution=f"No figure here: {why}.",
    )


def _times(interruptions: int) -> str:
    return f"{interruptions or 'no'} interruption{'' if interruptions == 1 else 's'}"


def _on_demand_s(case: FamilyCase) -> Decimal | None:
    job = case.job
    group = (job.groups[0].instance_type, job.groups[0].count) if job.groups else None
    alike = [
        run.facts.elapsed_s
        for run in case.runs
        if run.status == "Completed"
        and run.facts.purchase is Purchase.ON_DEMAND
        and (run.facts.instance_type, run.facts.instance_count) == group
        and run.facts.elapsed_s
    ]
    if alike and len(alike) >= case.limit(RUNS_FROM):
        return median(alike)
    return None if job.checkpointed or job.hints.own_checkpoints else _last_attempt_s(job)


def _last_attempt_s(job: Job) -> Decimal | None:
    """Without checkpoints it began with nothing, and completed."""
    cut = max(n for n, phase in enumerate(job.phases) if phase.name == "Interrupted")
    seconds = [phase.seconds for phase in job.phases[cut:] if phase.billed]
    known = [value for value in seconds if value is not None]
    return sum(known, Decimal(0)) if len(known) == len(seconds) else None


def _on_demand(job: Job) -> tuple[Parameter, ...]:
    off = Parameter("EnableManagedSpotTraining", True, False)
    if job.max_wait_s is None:
        return (off,)
    return (off, Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, None))


def _other_ways(job: Job) -> tuple[tuple[Parameter, ...], ...]:
    kind = job.groups[0].instance_type if job.groups else None
    other = (Parameter("ResourceConfig.InstanceType", kind, "<another type>"),)
    keep = (Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"),)
    return (other,) if job.checkpointed else (other, keep)
