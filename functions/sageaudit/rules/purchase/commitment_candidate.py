"""The account's hours are steady enough to ask for a Savings Plan.

## What it checks
A figure of the account, never of one job. In at least 80% of the hours (UTC) of at least 30 days,
its on-demand training, processing and transform jobs cost at least `[commitment] usd_per_hour`, the
plan that the policy asks about. What other findings count as avoidable or lost is taken off first,
hour by hour, and so are retained warm pools. Spot and training plans are left out.

## Why it costs
On-demand rates are those for hours that nobody promised. SageMaker Savings Plans ask for an hourly
sum over one or three years and discount what it covers, across types, regions and kinds of jobs.

## Saving
Possible, without a figure: a plan's discount depends on type, term and payment, and stands in AWS's
own offer.

## When it is wrong
Jobs change faster than plans end: a plan is paid used or not. Advice that is only possible, such as
managed spot, is not taken off; the evidence has the steady sum without these runs. Volumes, a small
part of each bill, are in the figure and not covered. At the plan's lower rates the same hours use
up less of it. Endpoints and notebooks, which a plan covers too, are not seen here.

## What to do
First follow the other findings, then ask Cost Explorer for its SageMaker Savings Plans
recommendation, and commit to less than the steady sum: 70 to 80% of it, by published advice.

## Sources
AWS Savings Plans guide: SageMaker plans commit to USD per hour for one or three years. Cost
Explorer looks back 7, 30 or 60 days. cloudburn.io, "SageMaker AI Savings Plans" (2026): 70 to 80%
of the baseline. The 80% of hours are our choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Unknown
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import AccountCase, Threshold, rule
from sageaudit.rules.purchase.hourly_spend import Spent, hourly_usd, reached_usd

HOURS = Threshold(
    "hours_percent", 80, "percent of hours", "a plan is paid in all of them", "our choice"
)
DAYS_FROM = Threshold("days_from", 30, "days", "four weekends", "Cost Explorer's look-back")
_KINDS = {JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM}
_COVERED = frozenset(kind.value for kind in _KINDS)
_SPOT_ADVICE = "spot-not-used"
_ZERO = Decimal(0)


def _excuse(case: AccountCase) -> str | None:
    if not case.policy.commitment_usd_per_hour:
        return "the policy has no [commitment] usd_per_hour"
    if case.policy.discounts.savings_plan:
        return "the policy says that the account has a Savings Plan: what it covers is not known"
    return None


@rule(
    id="SA405",
    scope=AccountCase,
    kinds=_KINDS,
    thresholds=(HOURS, DAYS_FROM),
    excuse=_excuse,
)
def check(case: AccountCase) -> Outcome:
    """The window ends with the newest run, since nothing is known of what still runs."""
    if not case.runs:
        return Unknown("no_runs", "there are no audited runs to count")
    if case.days < case.limit(DAYS_FROM):
        reason = f"{case.days} days, {case.limit(DAYS_FROM):.0f} needed"
        return Unknown("too_short", reason)
    asked_usd = case.policy.commitment_usd_per_hour or _ZERO
    runs = [run for run in case.runs if _counts(run)]
    steady_usd = _steady_usd(case, runs)
    if steady_usd < asked_usd:
        return Clear()
    firm_usd = _steady_usd(case, (run for run in runs if _SPOT_ADVICE not in run.facts.found))
    spot_first = (
        f"Without the runs that managed spot may suit, ${firm_usd:,.2f} an hour are steady: "
        "decide on spot first. "
    )
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"In {case.limit(HOURS):.0f}% of the hours of {case.days} days on-demand jobs cost at "
            f"least ${steady_usd:,.2f} after all other fixes: compare a Savings Plan of "
            f"${asked_usd:,.2f} an hour."
        ),
        evidence={
            "days": case.days,
            "hours_percent": case.limit(HOURS),
            "steady_usd_per_hour": round(steady_usd, 4),
            "steady_without_spot_candidates_usd_per_hour": round(firm_usd, 4),
            "commitment_usd_per_hour": asked_usd,
            "runs_counted": len(runs),
            "runs_of_unknown_cost": sum(
                _on_demand(run) and _left_usd(run) is None for run in case.runs
            ),
        },
        caution=(
            f"{spot_first if firm_usd < asked_usd else ''}No figure: a plan's discount depends on "
            "type, term and payment, at its rates these hours use up less of it, and it is paid "
            "used or not."
        ),
    )


def _on_demand(run: EarlierRun) -> bool:
    return run.kind in _COVERED and run.facts.purchase is Purchase.ON_DEMAND


def _counts(run: EarlierRun) -> bool:
    return _on_demand(run) and bool(run.facts.elapsed_s) and bool(_left_usd(run))


def _left_usd(run: EarlierRun) -> Decimal | None:
    """What the run itself costs once its findings are followed; its retained pool is none of it."""
    if run.total_usd is None or run.avoidable_usd is None or run.lost_usd is None:
        return None
    run_s = run.facts.billable_s or run.facts.elapsed_s or _ZERO
    pool_s = run.facts.retained_s or _ZERO
    own_usd = run.total_usd * run_s / (run_s + pool_s) if run_s else _ZERO
    return max(own_usd - run.avoidable_usd - run.lost_usd, _ZERO)


def _steady_usd(case: AccountCase, runs: Iterable[EarlierRun]) -> Decimal:
    spent = [
        Spent(run.ended_at, run.facts.elapsed_s or _ZERO, _left_usd(run) or _ZERO) for run in runs
    ]
    newest = max(run.ended_at for run in case.runs)
    hourly = hourly_usd(spent, newest, case.days * 24)
    return reached_usd(hourly, Decimal(str(case.limit(HOURS))))
