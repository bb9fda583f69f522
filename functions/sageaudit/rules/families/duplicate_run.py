"""The same run had completed before.

What it checks: An earlier completed run of the family, at most 30 days before this one, has the
    same fingerprint: image, entry point, hyperparameters, environment and inputs. The inputs of
    both name a version (a date, a hash, an object version), so that the data is the same.
Why it costs: The same code on the same inputs gives the same model, and is paid for twice.
Saving: Possible, never in a total: the whole run.
When it is wrong: The code archive is not in the fingerprint, since the SDK uploads it under a new
    name each time: the same entry point may contain other code. A repeat may be intended, to
    measure the spread between random seeds or to try another instance type.
What to do: Look for an earlier run before starting one. A pipeline step with caching
    (`CacheConfig`) does it.
Sources: AWS, SageMaker Pipelines, "Caching pipeline steps": a step with the same arguments is not
    run again.
"""

from __future__ import annotations

from sageaudit.rules import api

WITHIN = api.Threshold("within_days", 30, "days", "older results are often gone")


@api.rule(
    id="SA702",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING, api.JobKind.PROCESSING, api.JobKind.TRANSFORM},
    thresholds=(WITHIN,),
    not_applicable=(api.free, api.not_completed),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Names the newest earlier success with the same fingerprint."""
    job = case.job
    if case.earlier is None:
        return api.HISTORY_UNREAD
    if job.fingerprint is None:
        reason = "it has no fingerprint: only a fingerprint secret makes runs comparable"
        return api.Unknown("fingerprint_missing", reason)
    recent = case.recent(case.limit(WITHIN))
    if recent is None:
        return api.Unknown("times_missing", "when the run started is not known")
    same = [run for run in recent if run.facts.fingerprint == job.fingerprint and _succeeded(run)]
    if not same:
        return api.Clear()
    same_data = [run for run in same if run.facts.data_pinned]
    if not job.data_pinned or not same_data:
        reason = f"{same[0].name} had the same settings; its data may have changed since"
        return api.Unknown("data_may_have_changed", reason)
    first = same_data[0]
    cost = "" if first.total_usd is None else f" for ${first.total_usd:,.2f}"
    return api.possible(
        f"{first.name} had completed{cost} with the same image, data, entry point and "
        "hyperparameters.",
        {
            "earlier_run": first.name,
            "earlier_ended_at": first.ended_at.isoformat(),
            "earlier_usd": first.total_usd,
            "same_runs": len(same_data),
        },
        change=api.DropRun(),
        caution=(
            "The code archive is not compared, and a repeat may be intended: to measure the spread "
            "between random seeds, or to try another instance type."
        ),
    )


def _succeeded(run: api.EarlierRun) -> bool:
    return run.status == "Completed" and run.facts.left_artifact is not False
