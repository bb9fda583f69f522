"""The same run had completed before.

What it checks: An earlier completed run of the family, at most 30 days before this one, has the
    same fingerprint: image, entry point, hyperparameters, environment and inputs. The inputs of
    both name a version (a date, a hash, an object version), so that the data is the same.
Why it costs: The same code on the same inputs gives the same model, and is paid for twice.
Saving: Possible, never in a total: the whole run. No figure for a schedule, whose data usually
    changes under the same name: at least 4 equal runs, with three in four gaps within 20% of the
    usual one. This is reported once.
When it is wrong: The code archive is in the fingerprint only where its address has a hash of its
    content, as in pipelines. Elsewhere the SDK uploads it under a new name each time: the same
    entry point may contain other code. A repeat may be intended, to measure the spread between
    random seeds or to try another instance type.
What to do: Look for an earlier run before starting one. A pipeline step with caching
    (`CacheConfig`) does it.
Sources: AWS, SageMaker Pipelines, "Caching pipeline steps": a step with the same arguments is not
    run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from sageaudit.rules import api

MIN_SCHEDULED_RUNS = api.Threshold("min_scheduled_runs", 4, "runs", "three gaps show a cadence")
MAX_AGE = api.Threshold("max_age_days", 30, "days", "older results are often gone")


@api.rule(
    id="SA702",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MAX_AGE, MIN_SCHEDULED_RUNS),
    not_applicable=(api.free, api.not_completed),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Names the newest earlier success with the same fingerprint."""
    job = case.job
    if case.family_history is None:
        return api.HISTORY_UNREAD
    if job.fingerprint is None:
        reason = "it has no fingerprint: only a fingerprint secret makes runs comparable"
        return api.Unknown("fingerprint_missing", reason)
    recent = case.recent_runs(case.threshold(MAX_AGE))
    if recent is None:
        return api.Unknown("times_missing", "when the run started is not known")
    same = [
        run
        for run in recent
        if run.fingerprint == job.fingerprint
        and run.status == "Completed"
        and run.has_artifact is not False
    ]
    if not same:
        return api.Clear()
    same_data = [run for run in same if run.is_data_pinned]
    if not job.is_data_pinned or not same_data:
        reason = f"{same[0].job} had the same settings; its data may have changed since"
        return api.Unknown("data_may_have_changed", reason)
    first = same_data[0]
    ends = [run.ended_at for run in same_data]
    least = int(case.threshold(MIN_SCHEDULED_RUNS))
    gap_h = _cadence_h([job.ended_at, *ends] if job.ended_at else [], least)
    if gap_h is not None:
        return api.measured_fact(
            f"A schedule: {len(same_data) + 1} runs about {gap_h:,.0f} h apart with the same "
            "image, data addresses, entry point and hyperparameters.",
            {"same_runs": len(same_data), "usual_gap_h": round(gap_h, 1)},
            caution="Nothing is counted: the data may change under the same name. If it does not, "
            "a pipeline step with caching skips the run.",
            reported_for_run=first.job if _cadence_h(ends, least) is not None else None,
        )
    cost = "" if first.total_usd is None else f" for ${first.total_usd:,.2f}"
    return api.possible_saving(
        f"{first.job} had completed{cost} with the same image, data, entry point and "
        "hyperparameters.",
        {
            "earlier_run": first.job,
            "earlier_ended_at": first.ended_at.isoformat(),
            "earlier_usd": first.total_usd,
            "same_runs": len(same_data),
        },
        change=api.DropRun(),
        caution=(
            "The code is compared only where its address has a hash of it, and a repeat may be "
            "intended: to measure the spread between random seeds, or to try another type."
        ),
    )


def _cadence_h(ends: Sequence[datetime], min_runs: int) -> float | None:
    """The usual hours between runs that end at about equal intervals; None for any others."""
    gaps_h = [(later - sooner).total_seconds() / 3600 for later, sooner in pairwise(ends)]
    if len(ends) < min_runs or not gaps_h:
        return None
    usual_h = median(gaps_h)
    equal = sum(abs(gap_h - usual_h) <= usual_h / 5 for gap_h in gaps_h)
    return usual_h if 4 * equal >= 3 * len(gaps_h) else None
