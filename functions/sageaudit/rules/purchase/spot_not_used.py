"""An on-demand run that managed spot training could have made cheaper.

What it checks: A completed on-demand training job of at least 30 minutes on one type, without warm
    pool, training plan, instance groups or deadline tag. With the runs of its family it cost $4 or
    more. Its family has no spot run on this type
    that was interrupted too much. Several p4, p5 or p6 instances are left out: AWS reserves these
    in Capacity Blocks because they are sought after, and a run needs all of them at once.
Why it costs: Managed spot bills fewer seconds of the same run; on demand bills all of them.
Saving: SageMaker publishes no spot rate. With at least 3 completed spot runs of its own family on
    this type the saving is derived from their worst quartile; the range goes to the best of them.
    With fewer it is possible, never in a total: the figure is what the worst of six published
    managed spot runs saved (60%), the range goes to the best (70%); both are
    shown with two digits, as their source has. A run of an hour or more without CheckpointConfig
    has no figure: an interruption would restart it, so the checkpoints come first.
When it is wrong: EC2 spot prices lie between 62% above and 90% below on demand; a scarce type may
    wait for hours.
What to do: Turn it on with a MaxWait above MaxRuntime, and write checkpoints. Built-in algorithms
    without checkpoints allow a MaxWait of 3,600 s at most.
Sources: AWS, managed spot training: saving = (1 - billable / training) x 100. Published runs:
    14683/37026 s, 151/505, 316/1054, 52/175, 262/874, 43/143. EC2 Spot Advisor data of 2025-07 for
    the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.bill.compatibility import spot_refused, spot_scarce
from sageaudit.rules import api

FROM = api.Threshold("from_s", 1800, "seconds", "shorter runs save cents")
FROM_USD = api.Threshold(
    "from_usd", 4, "USD, with its family's runs", "60% of less changes no request"
)
SAFE_BELOW = api.Threshold(
    "safe_below_s", 3600, "seconds", "MaxWait without checkpoints", "SageMaker spot guide"
)
RUNS_FROM = api.Threshold("own_runs_from", 3, "spot runs on this type", "fewer have no quartile")
DEADLINE_TAG = "sageaudit:deadline"
_WAIT_AT_MOST_S = 86_400
"""A day of waiting for capacity in addition to the run itself."""
_WORST_BILLED_SHARE = Decimal(14683) / 37026
_BEST_BILLED_SHARE = Decimal(52) / 175


@dataclass(frozen=True, slots=True)
class _BilledShare:
    """Billed seconds / elapsed seconds on spot: as counted and at best; `own_runs` behind it."""

    counted: Decimal
    best: Decimal
    own_runs: int = 0

    @property
    def savings(self) -> str:
        """In percent, from the counted end to the best."""
        return f"{100 * (1 - self.counted):.0f} to {100 * (1 - self.best):.0f}"


def _refused(case: api.FamilyCase) -> str | None:
    return spot_refused(case.job) or spot_scarce(case.job)


def _has_deadline(case: api.FamilyCase) -> str | None:
    tagged = DEADLINE_TAG in case.job.tags
    return f"the tag {DEADLINE_TAG} says that it may not wait" if tagged else None


def _interrupted_much(case: api.FamilyCase) -> str | None:
    left = any(
        "spot-interrupted-much" in run.facts.found and _on_spot(case, run) for run in case.runs
    )
    return "a spot run of its family on this type was interrupted too much" if left else None


def _on_spot(case: api.FamilyCase, run: api.EarlierRun) -> bool:
    """On managed spot, with the type of this job."""
    types = {group.instance_type for group in case.job.groups}
    return run.facts.purchase is api.Purchase.SPOT and types == {run.facts.instance_type}


@api.rule(
    id="SA401",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(FROM, FROM_USD, SAFE_BELOW, RUNS_FROM),
    not_applicable=(_refused, _has_deadline, api.not_completed, _interrupted_much),
    once_a_family=True,
    before_run=api.Severity.LOW,
    reads=("EnableManagedSpotTraining", "CheckpointConfig.S3Uri", *api.TYPE_READS),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """How long the run took, and what its family's own spot runs were billed."""
    job = case.job
    if job.elapsed_s is None:
        return api.TIMES_MISSING
    if case.before_run not in {None, api.Basis.HISTORY}:
        return api.Unknown("run_time_unknown", "how long it will run is not known")
    if job.elapsed_s < case.limit(FROM):
        return api.Clear()
    safe = job.checkpointed or job.elapsed_s < case.limit(SAFE_BELOW)
    share = _billed_share(case)
    by_own_runs = bool(safe and share.own_runs)
    if share.counted >= 1 or not (by_own_runs or _spends(case)):
        return api.Clear()
    found = api.derived if by_own_runs else api.possible
    checkpoints = ", with checkpoints" if job.checkpointed else ""
    return found(
        f"{api.duration(job.elapsed_s)} on demand{checkpoints}: {_worth(share, safe=safe)}.",
        {
            "elapsed_s": job.elapsed_s,
            "checkpointed": job.checkpointed,
            "own_spot_runs": share.own_runs,
            "savings_percent": share.savings,
        },
        fix=_fix(job),
        change=api.SetPurchase(share.counted) if safe else None,
        best=api.SetPurchase(share.best) if safe else None,
        caution=_caution(share, safe=safe),
    )


def _spends(case: api.FamilyCase) -> bool:
    """Whether the family spends enough for a change of its request; an unknown bill may be more."""
    own = case.bill.total_usd
    known = [run.total_usd for run in case.runs if run.total_usd is not None]
    return own is None or float(sum(known, own)) >= case.limit(FROM_USD)


def _worth(share: _BilledShare, *, safe: bool) -> str:
    """What speaks for spot, and how much by which source."""
    if not safe:
        return "write checkpoints first, then managed spot is worth a trial"
    if share.own_runs:
        return f"{share.own_runs} spot runs of its family on this type saved {share.savings}%"
    return f"managed spot is worth a trial; published runs saved {share.savings}%"


def _billed_share(case: api.FamilyCase) -> _BilledShare:
    """The mildest run of the worst quartile counts: with three runs the worst of all."""
    shares = sorted(
        run.facts.billable_s / run.facts.elapsed_s
        for run in case.runs
        if run.status == "Completed"
        and _on_spot(case, run)
        and run.facts.billable_s is not None
        and run.facts.elapsed_s
    )
    if len(shares) < max(case.limit(RUNS_FROM), 1):
        return _BilledShare(_WORST_BILLED_SHARE, _BEST_BILLED_SHARE)
    worst_quartile = -(-len(shares) // 4)
    return _BilledShare(shares[-worst_quartile], shares[0], len(shares))


def _caution(share: _BilledShare, *, safe: bool) -> str:
    if not safe:
        return "Without checkpoints an interruption starts a run this long again."
    if share.own_runs:
        return "Counted at the family's worst quartile; spot may wait for capacity."
    return (
        "Not promised: SageMaker publishes no spot rate, and EC2's spot prices lie between far "
        "below on demand and above it."
    )


def _fix(job: api.Job) -> tuple[api.Parameter, ...]:
    run_s = job.max_runtime_s or int(job.elapsed_s or 0)
    wait_s = run_s + min(run_s, _WAIT_AT_MOST_S)
    fix = (
        api.Parameter("EnableManagedSpotTraining", False, True),
        api.Parameter("StoppingCondition.MaxWaitTimeInSeconds", job.max_wait_s, wait_s),
    )
    return fix if job.checkpointed else (api.CHECKPOINTS, *fix)
