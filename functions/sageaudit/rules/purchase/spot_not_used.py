"""An on-demand run that managed spot training could have made cheaper.

What it checks: A completed on-demand training job of at least 30 minutes on one type, without warm
    pool, training plan, instance groups or deadline tag. With the runs of its family it cost $4 or
    more. Its family has no spot run on this type
    that was interrupted too much. Several p4, p5 or p6 instances are left out: AWS reserves these
    in Capacity Blocks because they are sought after, and a run needs all of them at once.
Why it costs: Managed spot bills fewer seconds of the same run; on demand bills all of them.
Saving: SageMaker publishes no spot rate. With at least 3 completed spot runs of its family on this
    type, the saving is derived from their worst quartile; the range goes to the best of them.
    Messages have it only for the first run that shows it. With one or two such spot runs, the
    saving is possible and in no total. Without any, it is possible too, by published figures of the
    instance family that the finding names. There is no figure for families without published
    figures, for p4, p5 and p6, and for a run of an hour or more without CheckpointConfig, because
    an interruption would restart it.
When it is wrong: EC2 spot prices lie between 62% above and 90% below on demand; a scarce type may
    wait for hours.
What to do: Turn it on with a MaxWait above MaxRuntime, and write checkpoints. Built-in algorithms
    without checkpoints allow a MaxWait of 3,600 s at most.
Sources: AWS, managed spot training: saving = (1 - billable / training) x 100. Published runs:
    ml.m5.4xlarge 14683/37026 s, ml.p3.2xlarge 262/874 s. EC2 Spot Advisor (spotinfo, 2025-07-28),
    means of us-east-1: p3 83%, trn1 76%, g4dn 66%, m5 65%, g6e 64%, g5 60%.
"""

from __future__ import annotations

from decimal import Decimal
from statistics import median

from msgspec import Struct

from sageaudit.domain.bill.billed_job import spot_capacity_refusal, spot_refusal
from sageaudit.rules import api

MIN_DURATION = api.Threshold("min_duration_s", 1800, "seconds", "shorter runs save cents")
MIN_SPEND = api.Threshold(
    "min_spend_usd", 4, "USD, with its family's runs", "60% of less changes no request"
)
SAFE_BELOW = api.Threshold(
    "max_unsaved_s", 3600, "seconds", "MaxWait without checkpoints", "SageMaker spot guide"
)
MIN_OWN_RUNS = api.Threshold("min_own_runs", 3, "spot runs on this type", "fewer have no quartile")
DEADLINE_TAG = "sageaudit:deadline"
_MAX_EXTRA_WAIT_S = 86_400
"""A day of waiting for capacity in addition to the run itself."""
_EC2_MEAN = "EC2's spot prices of {} were {}% below on demand on average (us-east-1, July 2025)"
_EC2_PERCENT = {"g4dn": 66, "g5": 60, "g6e": 64, "m5": 65, "p3": 83, "trn1": 76}
_PUBLISHED = {
    "m5": ("ml.m5.4xlarge", Decimal(14683) / 37026),
    "p3": ("ml.p3.2xlarge", Decimal(262) / 874),
}
"""A managed spot run of the family, and the share of its seconds that was billed."""


class _BilledShare(Struct, frozen=True):
    """Billed seconds / seconds on demand: as counted and at best, with what it rests on.

    `own_runs`: the family's own behind it, newest first; none for a published figure.
    """

    counted: Decimal
    best: Decimal
    source: str
    own_runs: tuple[api.AuditSummary, ...] = ()

    @property
    def savings_text(self) -> str:
        """In percent, from the counted end to the best."""
        low, high = (f"{100 * (1 - share):.0f}" for share in (self.counted, self.best))
        return low if low == high else f"{low} to {high}"


def _spot_refusal(case: api.FamilyCase) -> str | None:
    return spot_refusal(case.job) or spot_capacity_refusal(case.job)


def _has_deadline(case: api.FamilyCase) -> str | None:
    tagged = DEADLINE_TAG in case.job.tags
    return f"the tag {DEADLINE_TAG} says that it may not wait" if tagged else None


def _interruptions_reason(case: api.FamilyCase) -> str | None:
    left = any(
        "spot-interrupted-much" in run.rules_with_findings and _is_comparable_spot_run(case, run)
        for run in case.earlier_runs
    )
    return "a spot run of its family on this type was interrupted too much" if left else None


def _is_comparable_spot_run(case: api.FamilyCase, run: api.AuditSummary) -> bool:
    """On managed spot, with the type of this job."""
    types = {group.instance_type for group in case.job.groups}
    return run.purchase is api.Purchase.SPOT and types == {run.instance_type}


@api.rule(
    id="SA401",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_DURATION, MIN_SPEND, SAFE_BELOW, MIN_OWN_RUNS),
    not_applicable=(_spot_refusal, _has_deadline, api.not_completed, _interruptions_reason),
    report_once_per_family=True,
    used_by_later_runs=True,
    request_severity=api.Severity.LOW,
    required_parameters=(
        "EnableManagedSpotTraining",
        "CheckpointConfig.S3Uri",
        *api.TYPE_PARAMETERS,
    ),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """How long the run took, and what its family's own spot runs were billed."""
    job = case.job
    if job.elapsed_s is None:
        return api.TIMES_MISSING
    if case.duration_basis not in {None, api.DurationBasis.HISTORY}:
        return api.Unknown("run_time_unknown", "how long it will run is not known")
    if job.elapsed_s < case.threshold(MIN_DURATION):
        return api.Clear()
    share = _share_from_own_runs(case) or _published_share(case)
    own = share.own_runs if share else ()
    proven = len(own) >= max(case.threshold(MIN_OWN_RUNS), 1)
    safe = bool(own) or job.checkpointed or job.elapsed_s < case.threshold(SAFE_BELOW)
    if (share and share.counted >= 1) or not (proven or _has_enough_spend(case)):
        return api.Clear()
    known = share if safe else None
    found = (
        api.derived_saving
        if proven
        else api.possible_saving_by_runs
        if own
        else api.possible_saving
    )
    checkpoints = ", with checkpoints" if job.checkpointed else ""
    return found(
        f"{api.duration_text(job.elapsed_s)} on demand{checkpoints}:"
        f" {_benefit_text(known, safe=safe)}.",
        {
            "elapsed_s": job.elapsed_s,
            "checkpointed": job.checkpointed,
            "own_spot_runs": len(own),
            "savings_percent": known.savings_text if known else None,
        },
        fix=_fix(job),
        change=api.SetPurchase(known.counted) if known else None,
        best=api.SetPurchase(known.best) if known and known.best != known.counted else None,
        caution=_caution(case, known, safe=safe, proven=proven),
        reported_for_run=_reported_for_run(case, own) if proven else None,
    )


def _has_enough_spend(case: api.FamilyCase) -> bool:
    """Whether the family spends enough for a change of its request; an unknown bill may be more."""
    own = case.bill.total_usd
    known = [run.total_usd for run in case.earlier_runs if run.total_usd is not None]
    return own is None or float(sum(known, own)) >= case.threshold(MIN_SPEND)


def _benefit_text(share: _BilledShare | None, *, safe: bool) -> str:
    """What speaks for spot, and how much by which source."""
    if not safe:
        return "write checkpoints first, then managed spot is worth a trial"
    if share is None:
        return "managed spot is worth a trial"
    trial = "" if share.own_runs else "managed spot is worth a trial; "
    return f"{trial}{share.source}"


def _share_from_own_runs(case: api.FamilyCase) -> _BilledShare | None:
    """The mildest run of the worst quartile counts: with three runs the worst of all."""
    own = [(run, share) for run in case.earlier_runs if (share := _share(case, run)) is not None]
    if not own:
        return None
    shares = sorted(share for _, share in own)
    worst_quartile = -(-len(shares) // 4)
    counted = shares[-worst_quartile]
    runs = "1 spot run" if len(own) == 1 else f"{len(own)} spot runs"
    saved = _BilledShare(counted, shares[0], "").savings_text
    middle = f", {100 * (1 - median(shares)):.0f}% at the median" if " to " in saved else ""
    source = f"{runs} of its family on this type saved {saved}%{middle}"
    return _BilledShare(counted, shares[0], source, tuple(run for run, _ in own))


def _share(case: api.FamilyCase, run: api.AuditSummary) -> Decimal | None:
    """Of a completed spot run on this type.

    An interrupted one is longer than it is on demand: it is compared with the job, unless it took
    less than half as long, and so did less.
    """
    own_s, needed_s = case.job.elapsed_s, run.elapsed_s
    if "Interrupted" in run.phase_s:
        needed_s = own_s if own_s and needed_s and 2 * needed_s >= own_s else None
    if run.status != "Completed" or not _is_comparable_spot_run(case, run):
        return None
    return run.billable_s / needed_s if run.billable_s and needed_s else None


def _published_share(case: api.FamilyCase) -> _BilledShare | None:
    """What is published of the job's instance family; none where capacity is doubtful."""
    today = next(iter(case.instance_types), None)
    family = today.family if today else ""
    percent = _EC2_PERCENT.get(family)
    if percent is None:
        return None
    source, best = _EC2_MEAN.format(family, percent), 1 - Decimal(percent) / 100
    if family not in _PUBLISHED:
        return _BilledShare(best, best, source)
    name, counted = _PUBLISHED[family]
    source = f"a published run on {name} saved {100 * (1 - counted):.0f}%, and {source}"
    return _BilledShare(counted, best, source)


def _reported_for_run(case: api.FamilyCase, own: tuple[api.AuditSummary, ...]) -> str | None:
    """The newest run that was told the same: by as many own runs as are needed."""
    since = own[-max(int(case.threshold(MIN_OWN_RUNS)), 1)].ended_at
    told = (run for run in case.earlier_runs if "spot-not-used" in run.rules_with_findings)
    return next((run.job for run in told if run.ended_at > since), None)


def _caution(case: api.FamilyCase, share: _BilledShare | None, *, safe: bool, proven: bool) -> str:
    if not safe:
        return "Without checkpoints an interruption starts a run this long again."
    if share is None:
        return "No figure: SageMaker publishes no spot rate, and EC2's means do not help here."
    if not share.own_runs:
        return (
            "Not promised: SageMaker publishes no spot rate, and EC2's spot prices lie between far "
            "below on demand and above it."
        )
    again = "" if case.job.checkpointed else " Without checkpoints an interruption starts it again."
    counted = "Counted at the family's worst quartile" if proven else "One or two runs are no rule"
    return f"{counted}; spot may wait for capacity.{again}"


def _fix(job: api.Job) -> tuple[api.Parameter, ...]:
    run_s = job.max_runtime_s or int(job.elapsed_s or 0)
    wait_s = run_s + min(run_s, _MAX_EXTRA_WAIT_S)
    fix = (
        api.Parameter("EnableManagedSpotTraining", False, True),
        api.Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, wait_s),
    )
    return fix if job.checkpointed else (api.CHECKPOINTS, *fix)
