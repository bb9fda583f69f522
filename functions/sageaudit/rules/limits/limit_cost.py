"""The limit on the run time lets a hung job cost a lot.

What it checks: The most that a request can cost, its limit x its instances x their rate, is above
    $50 with AWS's default limit, because the request has none; or above $200 with a limit of 5 days
    or more.
Why it costs: Nothing, if the job ends by itself. A hung job is billed until its limit.
Saving: None: what is shown is the most that the job can cost.
When it is wrong: A run that needs so long. With five runs of its family in the history
    max-runtime-loose compares the limit with the longest of them instead.
What to do: Set MaxRuntimeInSeconds to about three times the run that you expect.
Sources: API reference, StoppingCondition: "the default value is 1 day", 28 days at most; a
    processing job's default is 24 hours too (SageMaker Python SDK, Processor). The $50, the
    $200, a job that hangs for a night, and the 5 days are our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.request.forecast import forecast_family
from sageaudit.rules import api

_LIMIT = "StoppingCondition.MaxRuntimeInSeconds"
MIN_EXPOSURE = api.Threshold("min_exposed_usd", 200, "USD at the limit", "a big sum")
MIN_DEFAULT_EXPOSURE = api.Threshold(
    "min_default_usd", 50, "USD at AWS's default limit", "worth a line"
)
MIN_LONG_LIMIT = api.Threshold(
    "min_long_limit_s", 5 * 86_400, "seconds", "a working week, weekend excluded"
)
MIN_RUNS = api.Threshold("min_runs", 5, "runs", "fewer do not show the longest")


def _other_purchase_reason(case: api.RequestCase) -> str | None:
    free = {api.Purchase.TRAINING_PLAN: "its training plan is prepaid",
            api.Purchase.SERVERLESS: "it is serverless"}  # fmt: skip
    return free.get(case.job.purchase)


def _known_history_reason(case: api.RequestCase) -> str | None:
    runs = forecast_family(case.job, case.family_history or ()).comparable_runs
    known = runs >= case.threshold(MIN_RUNS)
    return f"{runs} runs on these instances are known: see max-runtime-loose" if known else None


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
    """Prices the limit."""
    limit, usd = case.cost.limit, case.cost.usd
    if limit.seconds is None or usd is None:
        return api.Unknown(
            "cost_unknown", case.cost.unknown_because or limit.no_limit_reason or "no rate is known"
        )
    long = float(limit.seconds) >= case.threshold(MIN_LONG_LIMIT)
    least = case.threshold(MIN_DEFAULT_EXPOSURE if limit.is_default else MIN_EXPOSURE)
    if usd <= Decimal(str(least)) or not (limit.is_default or long):
        return api.Clear()
    allowed = (
        "MaxRuntimeInSeconds is not set, so that AWS's default of 24 h holds"
        if limit.is_default
        else f"MaxRuntimeInSeconds allows {api.duration_text(limit.seconds)}"
    )
    return api.measured_fact(
        f"{allowed}: a hung run would be billed up to ${usd:,.0f}.",
        {"max_runtime_s": limit.seconds, "exposed_usd": round(usd, 2)},
        fix=(api.Parameter(_LIMIT, case.request.value(_LIMIT), "<3 x the run you expect>"),),
        caution="A precaution: nothing is counted, a job that ends by itself costs what it takes.",
    )
