"""The same run had completed before.

## What it checks
An earlier completed run of the family, at most 30 days before this one, has the same fingerprint:
image, entry point, hyperparameters, environment and inputs. And the inputs of both name a version
(a date, a hash, an object version), so that they are the same data.

## Why it costs
The same inputs through the same code give the same model; it is paid for twice.

## Saving
Possible, never in a sum with others: the whole run.

## When it is wrong
The code archive is not in the fingerprint, since the SDK uploads it under a new name each time: the
same entry point may hold other code. Repeats can be meant, for the spread between seeds that the
code itself draws, or to try another instance type.

## What to do
Look the earlier run up before starting one. A pipeline step with caching (`CacheConfig`) does it.

## Sources
AWS, SageMaker Pipelines, "Caching pipeline steps": a step with the same arguments is not run again.
"""

from __future__ import annotations

from datetime import timedelta

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.change import DropRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule

WITHIN = Threshold("within_days", 30, "days", "older results are often gone", "our choice")


def _excuse(case: FamilyCase) -> str | None:
    if case.job.free:
        return case.job.free
    return None if case.job.status == "Completed" else "the run did not complete"


@rule(
    id="SA702",
    scope=FamilyCase,
    kinds={JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM},
    thresholds=(WITHIN,),
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """The newest earlier success with the same fingerprint is the one that sufficed."""
    job = case.job
    if case.earlier is None:
        return Unknown("history_unread", "the earlier runs of its family were not read")
    if job.fingerprint is None:
        return Unknown("fingerprint_missing", "without a fingerprint secret runs are not compared")
    begun = job.started_at or job.created_at
    if begun is None:
        return Unknown("times_missing", "when the run started is not known")
    days = timedelta(days=case.limit(WITHIN))
    same = [
        run
        for run in case.earlier
        if run.facts.fingerprint == job.fingerprint
        and _succeeded(run)
        and timedelta(0) <= begun - run.ended_at <= days
    ]
    if not same:
        return Clear()
    pinned = [run for run in same if run.facts.data_pinned]
    if not job.data_pinned or not pinned:
        reason = f"{same[0].name} had the same settings; its data may have changed since"
        return Unknown("data_may_have_changed", reason)
    first = pinned[0]
    cost = "" if first.total_usd is None else f" for ${first.total_usd:,.2f}"
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"{first.name} had completed{cost} with the same image, data, entry point and "
            "hyperparameters."
        ),
        evidence={
            "earlier_run": first.name,
            "earlier_ended_at": first.ended_at.isoformat(),
            "earlier_usd": first.total_usd,
            "same_runs": len(pinned),
        },
        change=DropRun(),
        caution=(
            "The code archive is not compared, and repeats may be meant: for the spread between "
            "seeds, or for another instance type."
        ),
    )


def _succeeded(run: EarlierRun) -> bool:
    return run.status == "Completed" and run.facts.left_artifact is not False
