"""The family fails again and again for the same reason.

## What it checks
This run failed, and with it at least 3 runs of its family in a row, within 7 days, for reasons of
the same class (memory, code, data ...). A completed run, or another class of reason, ends the row;
runs that somebody stopped are passed over.

## Why it costs
Each failed run is billed until it fails. A schedule or a retry loop pays for the same failure until
somebody looks.

## Saving
None here: each run's dollars are counted as lost on its own audit. The finding has their sum so
far, and since when.

## When it is wrong
Somebody is at work on the fault: each try has other code, and the code archive is not compared. The
evidence says whether settings and data were the same each time.

## What to do
Stop the schedule or the retries until the fault is mended; try the fix on one small instance or in
local mode. A RetryStrategy retries only errors of AWS's own, inside one job, and is the right place
for these.

## Sources
botocore, CreateTrainingJob.RetryStrategy: for InternalServerError only; DescribeTrainingJob: failed
jobs are billed from start to end. Three runs and 7 days are our choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Unknown
from sageaudit.domain.job.failure import is_trial, reason_class
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule
from sageaudit.rules.limits.failed_spend import retries

RUNS_FROM = Threshold("runs_from", 3, "failed runs", "two may be one try and one retry", "ours")
WITHIN = Threshold("within_days", 7, "days", "older failures are another story", "our choice")
_FAILED = "Failed"


def _excuse(case: FamilyCase) -> str | None:
    return "a trial: tuning-failed-trials counts these" if is_trial(case.job) else case.job.free


@rule(
    id="SA604",
    scope=FamilyCase,
    kinds={JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM},
    thresholds=(RUNS_FROM, WITHIN),
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """Counts back from this run; where nothing was billed there is nothing to tell."""
    job = case.job
    if job.status != _FAILED:
        return Clear()
    if case.earlier is None:
        return Unknown("history_unread", "the earlier runs of its family were not read")
    ended_at = job.ended_at or job.last_modified_at
    if ended_at is None:
        return Unknown("times_missing", "when the run failed is not known")
    why = reason_class(job)
    days = timedelta(days=case.limit(WITHIN))
    row = _row(case.earlier, why, lambda run: ended_at - run.ended_at <= days)
    count = 1 + len(row)
    bills = [case.bill.total_usd, *(run.total_usd for run in row)]
    known = [usd for usd in bills if usd is not None]
    so_far_usd = sum(known, Decimal(0))
    if count < case.limit(RUNS_FROM) or (len(known) == count and not so_far_usd):
        return Clear()
    since = row[-1].ended_at if row else ended_at
    prints = {job.fingerprint, *(run.facts.fingerprint for run in row)}
    more = "at least " if len(known) < count else ""
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=(
            f"{count} runs in a row failed since {since:%Y-%m-%d %H:%M} UTC ({why}), for {more}"
            f"${so_far_usd:,.2f} so far."
        ),
        evidence={
            "failed_in_a_row": count,
            "first_ended_at": since.isoformat(),
            "last_ended_at": ended_at.isoformat(),
            "reason_class": why,
            "so_far_usd": so_far_usd,
            "runs_of_unknown_cost": count - len(known),
            "same_settings": None if None in prints else len(prints) == 1,
        },
        fix=retries(job),
        caution="No figure here: each run's dollars are counted as lost on its own audit.",
    )


def _row(
    runs: Sequence[EarlierRun], why: str, recent: Callable[[EarlierRun], bool]
) -> list[EarlierRun]:
    """The failures before this one without a success, or another reason, between them."""
    row: list[EarlierRun] = []
    for run in runs:
        same = run.status == _FAILED and run.facts.reason_class == why
        if not recent(run) or not (same or run.status == "Stopped"):
            break
        if same:
            row.append(run)
    return row
