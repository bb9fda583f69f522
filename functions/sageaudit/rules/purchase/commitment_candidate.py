"""The account spends steadily enough to consider a Savings Plan.

What it checks: In at least 80% of the hours (UTC) of at least 30 days, the account's on-demand jobs
    cost at least the policy's `[commitment] usd_per_hour`. The rule judges the account, never a
    single job.
    - Training, processing and transform jobs count; spot and training plans do not.
    - Avoidable and lost dollars of other findings, and retained warm pools, are subtracted first,
      hour by hour.
    - Runs that were not judged do not count. If they would change the answer, it is unknown.
Why it costs: On-demand rates have no discount. SageMaker Savings Plans commit to USD per hour for
    one or three years. The discount applies across types, regions and kinds of jobs.
Saving: Possible, without a figure: AWS's discount depends on type, term and payment.
When it is wrong: A plan is paid whether it is used or not, and jobs may change before it ends.
    - The steady spend includes volumes, which a plan does not cover.
    - Possible savings, such as managed spot, are not subtracted. So the evidence also gives the
      steady spend without the runs that managed spot may suit.
    - A plan has lower rates, so the same hours use less of the commitment than they cost on demand.
    - Endpoints and notebooks, which a plan also covers, are not included.
What to do: First follow the other findings, then ask Cost Explorer for its SageMaker Savings Plans
    recommendation. Commit to less than the steady spend; published advice is 70 to 80% of it.
Sources: AWS Savings Plans guide: SageMaker plans commit to USD per hour for one or three years.
    Cost Explorer looks back 7, 30 or 60 days. cloudburn.io, "SageMaker AI Savings Plans" (2026): 70
    to 80% of the baseline. The 80% of hours are our choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.job import seconds_between
from sageaudit.rules import api
from sageaudit.structs import replace

HOURS = api.Threshold("min_hours_percent", 80, "percent of hours", "a plan is paid in every hour")
MIN_DAYS = api.Threshold(
    "min_days", 30, "days", "they include four weekends", "Cost Explorer's look-back"
)
_KINDS = {api.JobKind.TRAINING, api.JobKind.PROCESSING, api.JobKind.TRANSFORM}
_COVERED_KINDS = frozenset(kind.value for kind in _KINDS)
_SPOT_RULE = "spot-not-used"
_HOUR = timedelta(hours=1)
_ZERO = Decimal(0)


class RunCost(Struct, frozen=True):
    """The cost of a run. `elapsed_s` is more than 0."""

    ended_at: datetime
    elapsed_s: Decimal
    usd: Decimal


def _no_commitment_reason(case: api.AccountCase) -> str | None:
    plan_usd = case.policy.commitment_usd_per_hour
    return None if plan_usd else "the policy has no [commitment] usd_per_hour: give one with it"


def _savings_plan_reason(case: api.AccountCase) -> str | None:
    if not case.policy.discounts.savings_plan:
        return None
    return "by the policy the account has a Savings Plan; what it covers is not known"


@api.rule(
    id="SA405",
    scope=api.AccountCase,
    kinds=_KINDS,
    thresholds=(HOURS, MIN_DAYS),
    not_applicable=(_no_commitment_reason, _savings_plan_reason),
)
def check(case: api.AccountCase) -> api.Outcome:
    """Judges the days before the end of the newest run, because running jobs are not known."""
    if not case.runs:
        return api.Unknown("no_runs", "there are no audited runs to count")
    if case.days < case.threshold(MIN_DAYS):
        reason = f"{case.days} days, the rule needs {case.threshold(MIN_DAYS):.0f}"
        return api.Unknown("too_short", reason)
    plan_usd = case.policy.commitment_usd_per_hour or _ZERO
    runs = [run for run in case.runs if _is_counted(run)]
    steady_usd = _steady_hourly_usd(case, runs)
    if steady_usd < plan_usd:
        runs_at_most = [_without_waste(run) for run in case.runs]
        if _steady_hourly_usd(case, filter(_is_counted, runs_at_most)) < plan_usd:
            return api.Clear()
        return api.Unknown(
            "runs_not_judged", "runs without metrics may cost enough, but were not judged"
        )
    steady_without_spot_usd = _steady_hourly_usd(
        case, (run for run in runs if _SPOT_RULE not in run.rules_with_findings)
    )
    unknown_cost = [run for run in case.runs if _is_on_demand(run) and _remaining_usd(run) is None]
    spot_caution = (
        f"Without the runs that managed spot may suit, the steady spend is "
        f"{api.format_rate(steady_without_spot_usd)} an hour: decide on spot first. "
    )
    return api.possible_saving(
        f"In {case.threshold(HOURS):.0f}% of the hours of {case.days} days, on-demand jobs cost at "
        f"least {api.format_rate(steady_usd)} an hour after all other fixes: compare a Savings "
        f"Plan of {api.format_rate(plan_usd)} an hour.",
        {
            "days": case.days,
            "hours_percent": case.threshold(HOURS),
            "steady_usd_per_hour": round(steady_usd, 6),
            "steady_without_spot_candidates_usd_per_hour": round(steady_without_spot_usd, 6),
            "commitment_usd_per_hour": plan_usd,
            "runs_counted": len(runs),
            "runs_of_unknown_cost": len(unknown_cost),
        },
        caution=(
            f"{spot_caution if steady_without_spot_usd < plan_usd else ''}A plan's discount "
            "depends on type, term and payment. At its lower rates these hours use less of the "
            "commitment, which is paid whether it is used or not."
        ),
    )


def _is_on_demand(run: api.AuditSummary) -> bool:
    return run.kind in _COVERED_KINDS and run.purchase is api.Purchase.ON_DEMAND


def _is_counted(run: api.AuditSummary) -> bool:
    return _is_on_demand(run) and bool(run.elapsed_s) and bool(_remaining_usd(run))


def _remaining_usd(run: api.AuditSummary) -> Decimal | None:
    """Returns the cost without the retained pool and without avoidable and lost dollars.

    None if an amount is unknown.
    """
    if run.total_usd is None or run.avoidable_usd is None or run.lost_usd is None:
        return None
    run_s = run.billable_s or run.elapsed_s or _ZERO
    pool_s = run.retained_s or _ZERO
    own_usd = run.total_usd * run_s / (run_s + pool_s) if run_s else _ZERO
    return max(own_usd - run.avoidable_usd - run.lost_usd, _ZERO)


def _without_waste(run: api.AuditSummary) -> api.AuditSummary:
    is_unjudged = run.judged is api.Judged.NO and run.avoidable_usd is None
    return replace(run, avoidable_usd=_ZERO) if is_unjudged else run


def _steady_hourly_usd(case: api.AccountCase, runs: Iterable[api.AuditSummary]) -> Decimal:
    costs = [
        RunCost(run.ended_at, run.elapsed_s or _ZERO, _remaining_usd(run) or _ZERO) for run in runs
    ]
    newest = max(run.ended_at for run in case.runs)
    hourly_usd = hourly_spend(costs, newest, case.days * 24)
    return spend_reached(hourly_usd, Decimal(str(case.threshold(HOURS))))


def hourly_spend(runs: Iterable[RunCost], end: datetime, hours: int) -> tuple[Decimal, ...]:
    """Returns the dollars spent in each of the last `hours` whole hours (UTC) before `end`, the
    oldest first.
    """
    last_hour = end.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first_hour = last_hour - hours * _HOUR
    spend_usd = [_ZERO] * hours
    for run in runs:
        usd_per_s = run.usd / run.elapsed_s
        started_at = run.ended_at - timedelta(seconds=float(run.elapsed_s))
        first = max((started_at - first_hour) // _HOUR, 0)
        last = min((run.ended_at - first_hour) // _HOUR, hours - 1)
        for hour in range(first, last + 1):
            hour_start = first_hour + hour * _HOUR
            inside_s = seconds_between(
                max(started_at, hour_start), min(run.ended_at, hour_start + _HOUR)
            )
            spend_usd[hour] += usd_per_s * (inside_s or _ZERO)
    return tuple(spend_usd)


def spend_reached(hourly_usd: Iterable[Decimal], percent: Decimal) -> Decimal:
    """Returns the highest spend that at least `percent` of the hours reach, or 0 without hours."""
    descending = sorted(hourly_usd, reverse=True)
    position = math.ceil(percent * len(descending) / 100) - 1
    return descending[max(position, 0)] if descending else _ZERO
