"""The run-time limit would let a hung job cost a lot.

What it checks: MaxRuntimeInSeconds x rate is above $200 (for a request $10), and the limit is at
    least ten times the run time. If 5 runs of the family are known, the longest of them counts as
    the run time.
Why it costs: Nothing yet. A hung job is billed until its limit: one day by default, 28 at most.
Saving: None.
When it is wrong: The next run of the same job is known to be much longer. A run that its limit
    ended may have needed longer than it ran.
What to do: Set the limit to three times the longest known run, in whole hours. With a RetryStrategy
    it covers all attempts together.
Sources: Jobstats: time efficiency of 10% or less is red. The $200 and the $10 are our choice.
"""

from __future__ import annotations

import math
from decimal import Decimal

from sageaudit.domain.job.course import LIMIT_REACHED
from sageaudit.domain.resize.type_choice import cluster_usd_per_hour
from sageaudit.rules import api

MIN_EXPOSURE = api.Threshold("min_exposed_usd", 200, "USD at the limit", "a large sum")
MIN_REQUEST_EXPOSURE = api.Threshold(
    "min_request_usd", 10, "USD at the limit of a request", "a request is easy to change"
)
MIN_LIMIT_FACTOR = api.Threshold(
    "min_limit_ratio", 10, "limit / run", "10% or less is red", "Jobstats"
)
MIN_RUNS = api.Threshold("min_runs", 5, "runs", "fewer do not show the longest")


def _no_limit_reason(case: api.FamilyCase) -> str | None:
    return "no MaxRuntimeInSeconds is recorded" if case.job.max_runtime_s is None else None


def _is_completed_or_limited(run: api.AuditSummary) -> bool:
    return run.status == "Completed" or run.reason == LIMIT_REACHED


@api.rule(
    id="SA601",
    scope=api.FamilyCase,
    kinds=api.LIMITED_KINDS,
    thresholds=(MIN_EXPOSURE, MIN_REQUEST_EXPOSURE, MIN_LIMIT_FACTOR, MIN_RUNS),
    not_applicable=(
        _no_limit_reason,
        api.free_reason,
        api.serverless_reason,
        api.prepaid_reason,
        api.not_completed_reason,
    ),
    sent_to_channels=False,
    report_once_per_family=True,
    request_severity=api.Severity.LOW,
    required_parameters=(api.RUN_LIMIT, *api.TYPE_PARAMETERS),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Compares the limit with the run time or the family's longest run, and prices the limit."""
    job, limit_s = case.job, case.job.max_runtime_s or 0
    if not job.elapsed_s:
        return api.TIMES_MISSING
    earlier_s = [run.elapsed_s for run in case.earlier_runs if _is_completed_or_limited(run)]
    elapsed_s = [*([] if case.duration_basis else [job.elapsed_s]), *filter(None, earlier_s)]
    if len(elapsed_s) < case.threshold(MIN_RUNS):
        if case.duration_basis:
            reason = f"{len(elapsed_s)} earlier runs do not show how long it may take"
            return api.Unknown("too_few_runs", reason)
        elapsed_s = [job.elapsed_s]
    longest_s = max(elapsed_s)
    suggested_s = math.ceil(3 * longest_s / 3600) * 3600
    is_loose = limit_s >= case.threshold(MIN_LIMIT_FACTOR) * float(longest_s)
    if not is_loose or suggested_s >= limit_s:
        return api.Clear()
    usd_per_hour = cluster_usd_per_hour(job, case.market)
    if usd_per_hour is None:
        return api.Unknown("price_unknown", "no rate is known to price the limit")
    exposed_usd = usd_per_hour * limit_s / 3600
    if exposed_usd <= case.threshold(MIN_REQUEST_EXPOSURE if case.duration_basis else MIN_EXPOSURE):
        return api.Clear()
    run_text = f"the longest of {len(elapsed_s)} runs" if len(elapsed_s) > 1 else "this run"
    return api.measured_fact(
        f"A hung run would be billed up to {api.format_usd(exposed_usd)}: the limit is "
        f"{api.duration_text(Decimal(limit_s))}, {run_text} took {api.duration_text(longest_s)}.",
        {
            "max_runtime_s": limit_s,
            "elapsed_s": job.elapsed_s,
            "longest_s": longest_s,
            "runs": len(elapsed_s),
            "exposed_usd": round(exposed_usd, 6),
        },
        fix=(api.Parameter(api.RUN_LIMIT, limit_s, suggested_s),),
        caution="A precaution: the limit has cost nothing so far, so nothing is counted.",
    )
