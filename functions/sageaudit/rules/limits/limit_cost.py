"""The request's run-time limit would let a hung job cost a lot.

What it checks: The most that a request can cost is its limit x its instances x their rate. The rule
    reports more than $200 with a limit of 5 days or more, and more than $50 without a limit.
    Without a limit, AWS's default counts.
Why it costs: Nothing, if the job ends by itself. A hung job is billed until its limit.
Saving: None. The finding shows the most that the job can cost.
When it is wrong: The run needs that long. If the history has five runs of the family,
    max-runtime-loose judges the limit instead.
What to do: Set MaxRuntimeInSeconds to about three times the run time that you expect.
Sources: API reference, StoppingCondition: "the default value is 1 day", 28 days at most; a
    processing job's default is 24 hours too (SageMaker Python SDK, Processor). The $50, the $200
    and the 5 days are our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.request.forecast import forecast_family
from sageaudit.rules import api

_LIMIT = "StoppingCondition.MaxRuntimeInSeconds"
MIN_EXPOSURE = api.Threshold("min_exposed_usd", 200, "USD at the limit", "a large sum")
MIN_DEFAULT_EXPOSURE = api.Threshold(
    "min_default_usd", 50, "USD at AWS's default limit", "less is not worth a finding"
)
MIN_LONG_LIMIT = api.Threshold(
    "min_long_limit_s", 5 * 86_400, "seconds", "a working week, weekend excluded"
)
MIN_RUNS = api.Threshold("min_runs", 5, "runs", "fewer do not show the longest")


def _other_purchase_reason(case: api.RequestCase) -> str | None:
    reasons = {api.Purchase.TRAINING_PLAN: "its training plan is prepaid",
            api.Purchase.SERVERLESS: "it is serverless"}  # fmt: skip
    return reasons.get(case.job.purchase)


def _known_history_reason(case: api.RequestCase) -> str | None:
    runs = forecast_family(case.job, case.family_history or ()).comparable_runs
    is_known = runs >= case.threshold(MIN_RUNS)
    return f"{runs} runs on these instances are known: see max-runtime-loose" if is_known else None


@api.rule(
    id="SA607",
    scope=api.RequestCase,
    kinds=api.LIMITED_KINDS,
    thresholds=(MIN_EXPOSURE, MIN_DEFAULT_EXPOSURE, MIN_LONG_LIMIT, MIN_RUNS),
    not_applicable=(_other_purchase_reason, _known_history_reason),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(_LIMIT, *api.TYPE_PARAMETERS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Multiplies the limit by the number of instances and their rate."""
    limit, bill = case.cost.limit, case.cost.bill_at_limit
    usd = bill.total_usd if bill else None
    if limit.seconds is None or usd is None:
        return api.Unknown(
            "cost_unknown", case.cost.unknown_because or limit.no_limit_reason or "no rate is known"
        )
    is_long = float(limit.seconds) >= case.threshold(MIN_LONG_LIMIT)
    min_usd = case.threshold(MIN_DEFAULT_EXPOSURE if limit.is_default else MIN_EXPOSURE)
    if usd <= Decimal(str(min_usd)) or not (limit.is_default or is_long):
        return api.Clear()
    limit_text = (
        "MaxRuntimeInSeconds is not set, so AWS's default of 24 h applies"
        if limit.is_default
        else f"MaxRuntimeInSeconds allows {api.duration_text(limit.seconds)}"
    )
    return api.measured_fact(
        f"{limit_text}: a hung run would be billed up to {api.format_usd(usd)}.",
        {"max_runtime_s": limit.seconds, "exposed_usd": round(usd, 6)},
        fix=(api.Parameter(_LIMIT, case.request.value(_LIMIT), "<3 x the run time you expect>"),),
        caution=(
            "A precaution: nothing is counted, because a job that ends by itself does not reach "
            "its limit."
        ),
    )
