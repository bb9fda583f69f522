"""Interruptions of managed spot cost more than spot saved.

What it checks: A managed spot run was interrupted and still completed, but was billed for more
    seconds than the same run takes on demand; or waiting and work together passed
    MaxWaitTimeInSeconds.
Why it costs: Spot saves by billing fewer seconds. Work that an interruption destroys is computed
    and billed again.
Saving: Derived: the billed seconds above those of the run on demand. On demand means the median of
    at least 3 completed on-demand runs of the family on this type and count. With fewer runs, and
    without checkpoints, it is the last attempt, which did all the work; else unknown. A run that
    MaxWait ended has no figure. For a run over an hour without checkpoints, spot-without-checkpoint
    has the figure, and this rule has none.
When it is wrong: Spot capacity changes by the hour: one bad run is no rule. Checkpoints make the
    next one cheaper.
What to do: Run it on demand, or on another type with more spare capacity; keep checkpoints if it
    stays on spot.
Sources: SageMaker guide, managed spot training: saving = (1 - billable / training) x 100;
    interruptions show as the status Interrupted, a wait that is too long as MaxWaitTimeExceeded.
"""

from __future__ import annotations

from decimal import Decimal
from statistics import median

from sageaudit.domain.audit.family_runs import comparable_runs
from sageaudit.domain.bill.bill_facts import (
    lacks_checkpoints,
    last_attempt_s,
    restarts_from_scratch,
)
from sageaudit.rules import api

MIN_EXCESS = api.Threshold(
    "min_excess_percent", 100, "percent of the on-demand seconds", "spot saved nothing"
)
MIN_RUNS = api.Threshold("min_runs", 3, "on-demand runs", "one run is an accident")


@api.rule(
    id="SA403",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_EXCESS, MIN_RUNS),
    not_applicable=(api.not_on_spot, api.never_started),
    used_by_later_runs=True,
    subsumes={"spot-without-checkpoint"},
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Compares what was billed with what the run takes on demand."""
    job = case.job
    if job.secondary_status == "MaxWaitTimeExceeded":
        return _wait_limit_finding(job)
    if not job.interruptions:
        return api.Clear()
    if job.status != "Completed":
        return api.NotApplicable("the run did not complete: other rules judge what it cost")
    if lacks_checkpoints(job):
        return api.NotApplicable("checkpoints come first: spot-without-checkpoint has its figure")
    if job.billable_s is None:
        return api.Unknown("billable_missing", "the billable seconds are not known")
    needed_s = _usual_on_demand_s(case)
    if not needed_s:
        return api.Unknown("on_demand_unknown", "how long the run takes on demand is not known")
    if 100 * job.billable_s <= Decimal(str(case.threshold(MIN_EXCESS))) * needed_s:
        return api.Clear()
    return api.derived_saving(
        f"After {_interruptions(job)} managed spot was billed for"
        f" {api.duration_text(job.billable_s)}; "
        f"on demand the run takes {api.duration_text(needed_s)}.",
        {"interruptions": job.interruptions, "billable_s": job.billable_s, "on_demand_s": needed_s},
        fix=_on_demand_fix(job),
        alternatives=_alternatives(job),
        change=api.SetPurchase(needed_s / job.billable_s, api.Purchase.ON_DEMAND),
        caution="One bad run is no rule: spot capacity changes by the hour.",
    )


def _wait_limit_finding(job: api.Job) -> api.Detection:
    """MaxWait ended it: what it had is kept, or was lost."""
    billed_s = job.billable_s
    billed = "an unknown time was" if billed_s is None else f"{api.duration_text(billed_s)} was"
    kept = job.has_artifact or job.checkpointed
    first = bool(job.interruptions) and lacks_checkpoints(job)
    why = "what it left can be used" if kept else "limit-hit counts a run that left nothing"
    return api.recommendation(
        f"Waiting and work together passed MaxWaitTimeInSeconds after {_interruptions(job)}; "
        f"{billed} billed.",
        {"interruptions": job.interruptions, "max_wait_s": job.max_wait_s, "billable_s": billed_s},
        fix=(api.CHECKPOINTS,) if first else _on_demand_fix(job),
        alternatives=(_on_demand_fix(job), *_alternatives(job)[:1])
        if first
        else _alternatives(job),
        caution=f"Nothing is counted here: {why}.",
    )


def _interruptions(job: api.Job) -> str:
    return f"{job.interruptions or 'no'} interruption{'' if job.interruptions == 1 else 's'}"


def _usual_on_demand_s(case: api.FamilyCase) -> Decimal | None:
    job = case.job
    alike = [
        run.elapsed_s
        for run in comparable_runs(job, case.earlier_runs, except_field="purchase")
        if run.purchase is api.Purchase.ON_DEMAND and run.elapsed_s
    ]
    if alike and len(alike) >= case.threshold(MIN_RUNS):
        return median(alike)
    return last_attempt_s(job) if restarts_from_scratch(job) else None


def _on_demand_fix(job: api.Job) -> tuple[api.Parameter, ...]:
    off = api.Parameter("EnableManagedSpotTraining", True, False)
    if job.max_wait_s is None:
        return (off,)
    return (off, api.Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, None))


def _alternatives(job: api.Job) -> tuple[tuple[api.Parameter, ...], ...]:
    today = job.groups[0].instance_type if job.groups else None
    other = (api.Parameter("ResourceConfig.InstanceType", today, "<another type>"),)
    return (other,) if job.checkpointed else (other, (api.CHECKPOINTS,))
