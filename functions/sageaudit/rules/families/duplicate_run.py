"""An earlier run had already done the same work.

What it checks: An earlier run of the family has the same fingerprint: image, entry point,
    hyperparameters, environment and inputs. It completed at most 30 days before this one started.
    The inputs of both name a version (a date, a hash, an object version), so the data is the same.
Why it costs: The same code on the same inputs gives the same model, and is billed twice.
Saving: Possible: the whole run. Scheduled runs are reported once, without a figure, because their
    data usually changes under the same name. A schedule is at least 4 equal runs, with at least
    three quarters of the gaps between them within 20% of the median gap.
When it is wrong: The fingerprint includes the code archive only if its address has a hash of its
    content, as in pipelines. Otherwise the same entry point may contain other code. A repeated run
    may be intended, for example to compare random seeds or instance types.
What to do: Look for an earlier run before you start one, or use a pipeline step with caching
    (`CacheConfig`).
Sources: AWS, SageMaker Pipelines, "Caching pipeline steps": a step with the same arguments is not
    run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from sageaudit.rules import api

MIN_SCHEDULED_RUNS = api.Threshold("min_scheduled_runs", 4, "runs", "three gaps show a schedule")
MAX_AGE = api.Threshold("max_age_days", 30, "days", "older results are often deleted")


@api.rule(
    id="SA702",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MAX_AGE, MIN_SCHEDULED_RUNS),
    not_applicable=(api.free_reason, api.not_completed_reason),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Finds the newest completed run with the same fingerprint."""
    job = case.job
    if case.family_history is None:
        return api.HISTORY_UNREAD
    if job.fingerprint is None:
        reason = "it has no fingerprint: only a fingerprint secret makes runs comparable"
        return api.Unknown("fingerprint_missing", reason)
    recent = case.recent_runs(case.threshold(MAX_AGE))
    if recent is None:
        return api.Unknown("times_missing", "when the run started is not known")
    same_runs = [
        run
        for run in recent
        if run.fingerprint == job.fingerprint
        and run.status == "Completed"
        and run.has_artifact is not False
    ]
    if not same_runs:
        return api.Clear()
    same_data = [run for run in same_runs if run.is_data_pinned]
    if not job.is_data_pinned or not same_data:
        reason = f"{same_runs[0].job} had the same settings; its data may have changed since"
        return api.Unknown("data_may_have_changed", reason)
    newest = same_data[0]
    ended_at = [run.ended_at for run in same_data]
    min_runs = int(case.threshold(MIN_SCHEDULED_RUNS))
    gap_h = _cadence_h([job.ended_at, *ended_at] if job.ended_at else [], min_runs)
    if gap_h is not None:
        return api.measured_fact(
            f"{len(same_data) + 1} runs, about {gap_h:,.0f} h apart like a schedule, had the same "
            "image, data addresses, entry point and hyperparameters.",
            {"same_runs": len(same_data), "usual_gap_h": round(gap_h, 1)},
            caution=(
                "Nothing is counted, because the data may change under the same name. If it does "
                "not, a pipeline step with caching skips the run."
            ),
            reported_for_run=newest.job if _cadence_h(ended_at, min_runs) is not None else None,
        )
    cost_text = "" if newest.total_usd is None else f"; it cost {api.format_usd(newest.total_usd)}"
    return api.possible_saving(
        f"{newest.job} had already completed with the same image, data, entry point and "
        f"hyperparameters{cost_text}.",
        {
            "earlier_run": newest.job,
            "earlier_ended_at": newest.ended_at.isoformat(),
            "earlier_usd": newest.total_usd,
            "same_runs": len(same_data),
        },
        change=api.DropRun(),
        caution=(
            "The code is compared only if its S3 address contains a hash of the code. A "
            "repeated run may be intended: to measure the spread between random seeds, or to try "
            "another type."
        ),
    )


def _cadence_h(ended_at: Sequence[datetime], min_runs: int) -> float | None:
    """Returns the median hours between runs that end at regular intervals.

    None if the intervals are irregular, or if there are fewer than `min_runs` runs.
    """
    gaps_h = [(later - earlier).total_seconds() / 3600 for later, earlier in pairwise(ended_at)]
    if len(ended_at) < min_runs or not gaps_h:
        return None
    usual_h = median(gaps_h)
    regular_gaps = sum(abs(gap_h - usual_h) <= usual_h / 5 for gap_h in gaps_h)
    return usual_h if 4 * regular_gaps >= 3 * len(gaps_h) else None
