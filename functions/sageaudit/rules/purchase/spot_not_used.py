"""Managed spot training could have made this on-demand run cheaper.

What it checks: A completed on-demand training job took at least 30 minutes on one type. Together
    with the runs of its family it cost $4 or more. These jobs are left out:
    - Jobs with a warm pool, a training plan, instance groups or the tag `sageaudit:deadline`.
    - Jobs of a family with a spot run on this type that was interrupted too much.
    - Runs on several p4, p5 or p6 instances: these types are scarce, and a run needs all its
      instances at once.
Why it costs: On demand, every second of a run is billed; managed spot bills fewer seconds.
Saving: SageMaker publishes no spot rate, so the saving depends on what is known:
    - With at least 3 completed spot runs of the family on this type, the saving is derived. Their
      worst quartile is counted, and the range goes to the best run. Messages show this finding only
      for the first run that has it.
    - With one or two such runs, the saving is possible.
    - Without any, it is possible too. It comes from published figures for the instance family,
      which the finding names.
    - There is no figure for families without published figures, such as p4, p5 and p6. Without a
      spot run of the family, there is also none for a run of an hour or more without
      CheckpointConfig: an interruption would restart it.
When it is wrong: EC2 spot prices are between 90% below and 62% above on demand. A job on a scarce
    type may wait for hours.
What to do: Set EnableManagedSpotTraining, and a MaxWaitTimeInSeconds above MaxRuntimeInSeconds.
    Write checkpoints. For built-in algorithms without checkpoints, MaxWaitTimeInSeconds is 3,600 s
    at most.
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
    "min_spend_usd", 4, "USD, with its family's runs", "60% of less is not worth a change"
)
SAFE_BELOW = api.Threshold(
    "max_unsaved_s", 3600, "seconds", "MaxWait without checkpoints", "SageMaker spot guide"
)
MIN_OWN_RUNS = api.Threshold(
    "min_own_runs", 3, "spot runs on this type", "fewer have no worst quartile"
)
DEADLINE_TAG = "sageaudit:deadline"
_MAX_EXTRA_WAIT_S = 86_400
"""The longest wait for capacity that the fix adds to the run. Our choice."""
_EC2_MEAN = (
    "EC2's spot prices for {} were on average {}% below the on-demand price (us-east-1, July 2025)"
)
_EC2_PERCENT = {"g4dn": 66, "g5": 60, "g6e": 64, "m5": 65, "p3": 83, "trn1": 76}
_PUBLISHED = {
    "m5": ("ml.m5.4xlarge", Decimal(14683) / 37026),
    "p3": ("ml.p3.2xlarge", Decimal(262) / 874),
}
"""Published managed spot runs: the type, and the billed share of the seconds."""


class _BilledShare(Struct, frozen=True):
    """The share (0..1) of its on-demand seconds that AWS bills if a run uses spot.

    `counted`: the share that gives the counted saving. `best`: the lowest share. `source`: a clause
    that names the source. `own_runs`: the family's spot runs, newest first; empty for published
    figures.
    """

    counted: Decimal
    best: Decimal
    source: str
    own_runs: tuple[api.AuditSummary, ...] = ()

    @property
    def savings_text(self) -> str:
        """The saving in percent, from the counted one to the best: `40 to 65`."""
        low, high = (f"{100 * (1 - share):.0f}" for share in (self.counted, self.best))
        return low if low == high else f"{low} to {high}"


def _spot_refusal(case: api.FamilyCase) -> str | None:
    return spot_refusal(case.job) or spot_capacity_refusal(case.job)


def _deadline_reason(case: api.FamilyCase) -> str | None:
    has_deadline = DEADLINE_TAG in case.job.tags
    return f"its tag {DEADLINE_TAG} says that it may not wait" if has_deadline else None


def _interruptions_reason(case: api.FamilyCase) -> str | None:
    is_interrupted = any(
        "spot-interrupted-much" in run.rules_with_findings and _is_comparable_spot_run(case, run)
        for run in case.earlier_runs
    )
    return (
        "a spot run of its family on this type was interrupted too much" if is_interrupted else None
    )


def _is_comparable_spot_run(case: api.FamilyCase, run: api.AuditSummary) -> bool:
    types = {group.instance_type for group in case.job.groups}
    return run.purchase is api.Purchase.SPOT and types == {run.instance_type}


@api.rule(
    id="SA401",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_DURATION, MIN_SPEND, SAFE_BELOW, MIN_OWN_RUNS),
    not_applicable=(
        _spot_refusal,
        _deadline_reason,
        api.not_completed_reason,
        _interruptions_reason,
    ),
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
    """Compares the run with its family's own spot runs, else with published figures."""
    job = case.job
    if job.elapsed_s is None:
        return api.TIMES_MISSING
    if case.duration_basis not in {None, api.DurationBasis.HISTORY}:
        return api.Unknown("run_time_unknown", "how long it will run is not known")
    if job.elapsed_s < case.threshold(MIN_DURATION):
        return api.Clear()
    share = _share_from_own_runs(case) or _published_share(case)
    own_runs = share.own_runs if share else ()
    is_proven = len(own_runs) >= max(case.threshold(MIN_OWN_RUNS), 1)
    is_safe = bool(own_runs) or job.checkpointed or job.elapsed_s < case.threshold(SAFE_BELOW)
    if (share and share.counted >= 1) or not (is_proven or _has_enough_spend(case)):
        return api.Clear()
    known_share = share if is_safe else None
    build_finding = (
        api.derived_saving
        if is_proven
        else api.possible_saving_by_runs
        if own_runs
        else api.possible_saving
    )
    verb = "The run took" if case.duration_basis is None else "A run takes"
    checkpoints = " with checkpoints" if job.checkpointed else ""
    return build_finding(
        f"{verb} {api.duration_text(job.elapsed_s)} on demand{checkpoints}"
        f"{_benefit_text(known_share, is_safe=is_safe)}.",
        {
            "elapsed_s": job.elapsed_s,
            "checkpointed": job.checkpointed,
            "own_spot_runs": len(own_runs),
            "savings_percent": known_share.savings_text if known_share else None,
        },
        fix=_fix(job),
        change=api.SetPurchase(known_share.counted) if known_share else None,
        best=api.SetPurchase(known_share.best)
        if known_share and known_share.best != known_share.counted
        else None,
        caution=_caution(case, known_share, is_safe=is_safe, is_proven=is_proven),
        reported_for_run=_reported_for_run(case, own_runs) if is_proven else None,
    )


def _has_enough_spend(case: api.FamilyCase) -> bool:
    """True if the family's known runs cost enough together, or if this run's bill is unknown."""
    own_usd = case.bill.total_usd
    earlier_usd = [run.total_usd for run in case.earlier_runs if run.total_usd is not None]
    return own_usd is None or float(sum(earlier_usd, own_usd)) >= case.threshold(MIN_SPEND)


def _benefit_text(share: _BilledShare | None, *, is_safe: bool) -> str:
    if not is_safe:
        return ": if you first let it write checkpoints, managed spot is worth a trial"
    trial_text = ", so managed spot is worth a trial"
    if share is None:
        return trial_text
    if share.own_runs:
        return f": {share.source}"
    return f"{trial_text}. {share.source[0].upper()}{share.source[1:]}"


def _share_from_own_runs(case: api.FamilyCase) -> _BilledShare | None:
    """Returns the billed share of the family's spot runs, or None without such runs.

    The lowest share of the worst quartile is counted. With up to four runs this is the worst run.
    """
    own_runs = [
        (run, share) for run in case.earlier_runs if (share := _billed_share(case, run)) is not None
    ]
    if not own_runs:
        return None
    shares = sorted(share for _, share in own_runs)
    worst_quartile = -(-len(shares) // 4)
    counted_share = shares[-worst_quartile]
    runs_text = "1 spot run" if len(own_runs) == 1 else f"{len(own_runs)} spot runs"
    percent_text = _BilledShare(counted_share, shares[0], "").savings_text
    median_text = (
        f", {100 * (1 - median(shares)):.0f}% at the median" if " to " in percent_text else ""
    )
    source = f"{runs_text} of its family on this type saved {percent_text}%{median_text}"
    return _BilledShare(counted_share, shares[0], source, tuple(run for run, _ in own_runs))


def _billed_share(case: api.FamilyCase, run: api.AuditSummary) -> Decimal | None:
    """Returns a spot run's billed seconds, as a share (0..1) of the seconds it takes on demand.

    None unless the run completed on managed spot and on this type, and its seconds are known. An
    interrupted run takes longer than on demand, so its billed seconds are compared with this job's
    duration. An interrupted run under half of that duration did less work and is left out.
    """
    own_s, needed_s = case.job.elapsed_s, run.elapsed_s
    if "Interrupted" in run.phase_s:
        needed_s = own_s if own_s and needed_s and 2 * needed_s >= own_s else None
    if run.status != "Completed" or not _is_comparable_spot_run(case, run):
        return None
    return run.billable_s / needed_s if run.billable_s and needed_s else None


def _published_share(case: api.FamilyCase) -> _BilledShare | None:
    current_type = next(iter(case.instance_types), None)
    family = current_type.family if current_type else ""
    percent = _EC2_PERCENT.get(family)
    if percent is None:
        return None
    source, best = _EC2_MEAN.format(family, percent), 1 - Decimal(percent) / 100
    if family not in _PUBLISHED:
        return _BilledShare(best, best, source)
    name, counted = _PUBLISHED[family]
    source = f"a published run on {name} saved {100 * (1 - counted):.0f}%, and {source}"
    return _BilledShare(counted, best, source)


def _reported_for_run(case: api.FamilyCase, own_runs: tuple[api.AuditSummary, ...]) -> str | None:
    """Returns the newest earlier run that has this finding, or None.

    The run must have ended after the family had enough spot runs.
    """
    since = own_runs[-max(int(case.threshold(MIN_OWN_RUNS)), 1)].ended_at
    runs_with_finding = (
        run for run in case.earlier_runs if "spot-not-used" in run.rules_with_findings
    )
    return next((run.job for run in runs_with_finding if run.ended_at > since), None)


def _caution(
    case: api.FamilyCase, share: _BilledShare | None, *, is_safe: bool, is_proven: bool
) -> str:
    if not is_safe:
        return "Without checkpoints an interruption starts a run this long again."
    if share is None:
        return (
            "No figure: SageMaker publishes no spot rate, and there is no EC2 figure for this type."
        )
    if not share.own_runs:
        return (
            "Not certain: SageMaker publishes no spot rate, and EC2's spot prices are usually far "
            "below the on-demand price, but can be above it."
        )
    restart_text = (
        ""
        if case.job.checkpointed
        else " Without checkpoints an interruption starts the run again."
    )
    basis_text = (
        "Counted by the worst quartile of the family's spot runs"
        if is_proven
        else "One or two runs prove little"
    )
    return f"{basis_text}; spot may wait for capacity.{restart_text}"


def _fix(job: api.Job) -> tuple[api.Parameter, ...]:
    run_s = job.max_runtime_s or int(job.elapsed_s or 0)
    wait_s = run_s + min(run_s, _MAX_EXTRA_WAIT_S)
    fix = (
        api.Parameter("EnableManagedSpotTraining", False, True),
        api.Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, wait_s),
    )
    return fix if job.checkpointed else (api.CHECKPOINTS, *fix)
