"""Interruptions made a managed spot run cost more than on demand.

What it checks: A managed spot run was interrupted and completed, and was billed for more seconds
    than the same run takes on demand. Or waiting and work together took longer than
    MaxWaitTimeInSeconds.
Why it costs: Work that an interruption destroys is done and billed again.
Saving: Derived: the billed seconds above the seconds that the run takes on demand.
    - The on-demand seconds are the median of at least 3 completed on-demand runs of the family on
      this type and count.
    - With fewer such runs, the last attempt of a run without checkpoints counts instead, because it
      did all the work. With checkpoints there is then no figure.
    - A run that MaxWaitTimeInSeconds ended has no figure.
    - If a run of over an hour has no checkpoints, spot-without-checkpoint has the figure.
When it is wrong: Spot capacity changes by the hour, so one bad run proves little.
What to do: Run the job on demand, or on another type with more spare capacity. If it stays on spot,
    write checkpoints.
Sources: SageMaker guide, managed spot training: saving = (1 - billable / training) x 100; an
    interruption has the status Interrupted, a wait that is too long MaxWaitTimeExceeded.
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
MIN_RUNS = api.Threshold("min_runs", 3, "on-demand runs", "one run may be an exception")


@api.rule(
    id="SA403",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_EXCESS, MIN_RUNS),
    not_applicable=(api.not_on_spot_reason, api.never_started_reason),
    used_by_later_runs=True,
    subsumes={"spot-without-checkpoint"},
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Compares the billed seconds with the seconds that the run takes on demand."""
    job = case.job
    if job.secondary_status == "MaxWaitTimeExceeded":
        return _wait_limit_finding(job)
    if not job.interruptions:
        return api.Clear()
    if job.status != "Completed":
        return api.NotApplicable("the run did not complete, so other rules judge its cost")
    if lacks_checkpoints(job):
        return api.NotApplicable("it has no checkpoints: see spot-without-checkpoint")
    if job.billable_s is None:
        return api.Unknown("billable_missing", "the billable seconds are not known")
    needed_s = _usual_on_demand_s(case)
    if not needed_s:
        return api.Unknown("on_demand_unknown", "how long the run takes on demand is not known")
    if 100 * job.billable_s <= Decimal(str(case.threshold(MIN_EXCESS))) * needed_s:
        return api.Clear()
    return api.derived_saving(
        f"After {_interruptions_text(job)}, managed spot was billed for"
        f" {api.duration_text(job.billable_s)}; "
        f"on demand the run takes {api.duration_text(needed_s)}.",
        {"interruptions": job.interruptions, "billable_s": job.billable_s, "on_demand_s": needed_s},
        fix=_on_demand_fix(job),
        alternatives=_alternatives(job),
        change=api.SetPurchase(needed_s / job.billable_s, api.Purchase.ON_DEMAND),
        caution="One bad run proves little: spot capacity changes by the hour.",
    )


def _wait_limit_finding(job: api.Job) -> api.Detection:
    """Returns a finding without lost dollars, because limit-hit counts them."""
    billed_s = job.billable_s
    billed_text = (
        "an unknown time was" if billed_s is None else f"{api.duration_text(billed_s)} was"
    )
    has_results = job.has_artifact or job.checkpointed
    checkpoints_first = bool(job.interruptions) and lacks_checkpoints(job)
    reason = "the run left results" if has_results else "limit-hit counts a run that left nothing"
    return api.recommendation(
        f"Waiting and work together took longer than MaxWaitTimeInSeconds, after "
        f"{_interruptions_text(job)}; "
        f"{billed_text} billed.",
        {"interruptions": job.interruptions, "max_wait_s": job.max_wait_s, "billable_s": billed_s},
        fix=(api.CHECKPOINTS,) if checkpoints_first else _on_demand_fix(job),
        alternatives=(_on_demand_fix(job), *_alternatives(job)[:1])
        if checkpoints_first
        else _alternatives(job),
        caution=f"Nothing is counted here: {reason}.",
    )


def _interruptions_text(job: api.Job) -> str:
    return f"{job.interruptions or 'no'} interruption{'' if job.interruptions == 1 else 's'}"


def _usual_on_demand_s(case: api.FamilyCase) -> Decimal | None:
    job = case.job
    durations_s = [
        run.elapsed_s
        for run in comparable_runs(job, case.earlier_runs, except_field="purchase")
        if run.purchase is api.Purchase.ON_DEMAND and run.elapsed_s
    ]
    if durations_s and len(durations_s) >= case.threshold(MIN_RUNS):
        return median(durations_s)
    return last_attempt_s(job) if restarts_from_scratch(job) else None


def _on_demand_fix(job: api.Job) -> tuple[api.Parameter, ...]:
    spot_off = api.Parameter("EnableManagedSpotTraining", True, False)
    if job.max_wait_s is None:
        return (spot_off,)
    return (spot_off, api.Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, None))


def _alternatives(job: api.Job) -> tuple[tuple[api.Parameter, ...], ...]:
    current_name = job.groups[0].instance_type if job.groups else None
    other_type = (api.Parameter("ResourceConfig.InstanceType", current_name, "<another type>"),)
    return (other_type,) if job.checkpointed else (other_type, (api.CHECKPOINTS,))
