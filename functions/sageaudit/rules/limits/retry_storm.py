"""The family fails again and again for the same reason.

What it checks: This run and at least two runs of its family before it failed in a row, within 7
    days and for the same class of reason (such as memory, code or data). A completed run, or a
    failure of another class, ends the row. Stopped runs are skipped.
Why it costs: Each failed run is billed until it fails. A schedule or a retry loop continues until
    somebody intervenes.
Saving: None here: each run's own audit counts its dollars as lost. The finding shows their sum, and
    since when the runs have failed.
When it is wrong: Somebody may be fixing the fault, with new code in each try. This shows only if
    the code's S3 address has a hash. The evidence says whether settings and data were the same each
    time.
What to do: Stop the schedule or the retries until the fault is fixed. Try the fix on one small
    instance or in local mode. For internal errors of AWS, use a RetryStrategy, which retries only
    these, inside one job.
Sources: botocore, CreateTrainingJob.RetryStrategy: for InternalServerError only;
    DescribeTrainingJob: failed jobs are billed from start to end.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from sageaudit.domain.job.course import failure_class, is_trial
from sageaudit.rules import api
from sageaudit.rules.limits.failures import retry_fix

MIN_FAILED_RUNS = api.Threshold("min_failed_runs", 3, "failed runs", "two may be one retry")
MAX_AGE = api.Threshold("max_age_days", 7, "days", "older failures are unrelated")


def _trial_reason(case: api.FamilyCase) -> str | None:
    return "it is a trial: tuning-failed-trials counts these" if is_trial(case.job) else None


@api.rule(
    id="SA604",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_FAILED_RUNS, MAX_AGE),
    not_applicable=(_trial_reason, api.free_reason),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Counts the failures in a row that end with this run. Ignores failures that cost nothing."""
    job = case.job
    if job.status != "Failed":
        return api.Clear()
    if case.family_history is None:
        return api.HISTORY_UNREAD
    ended_at = job.ended_at or job.last_modified_at
    if ended_at is None:
        return api.Unknown("times_missing", "when the run failed is not known")
    reason = failure_class(job)
    days = timedelta(days=case.threshold(MAX_AGE))
    earlier_failures = _failures_in_a_row(
        case.family_history, reason, ended_at=ended_at, max_age=days
    )
    count = 1 + len(earlier_failures)
    bills_usd = [case.bill.total_usd, *(run.total_usd for run in earlier_failures)]
    known_usd = [usd for usd in bills_usd if usd is not None]
    so_far_usd = sum(known_usd, Decimal(0))
    if count < case.threshold(MIN_FAILED_RUNS) or (len(known_usd) == count and not so_far_usd):
        return api.Clear()
    fingerprints = {job.fingerprint, *(run.fingerprint for run in earlier_failures)}
    since = earlier_failures[-1].ended_at if earlier_failures else ended_at
    bound = "at least " if len(known_usd) < count else ""
    return api.measured_fact(
        f"{count} runs in a row have failed since {since:%Y-%m-%d %H:%M} UTC ({reason}). They have "
        f"cost {bound}{api.format_usd(so_far_usd)} so far.",
        {
            "failed_in_a_row": count,
            "first_ended_at": since.isoformat(),
            "last_ended_at": ended_at.isoformat(),
            "reason_class": reason,
            "so_far_usd": so_far_usd,
            "runs_of_unknown_cost": count - len(known_usd),
            "same_settings": None if None in fingerprints else len(fingerprints) == 1,
        },
        fix=retry_fix(job),
        caution="Each run's dollars are counted as lost in its own audit, not here.",
    )


def _failures_in_a_row(
    runs: Iterable[api.AuditSummary], reason: str, *, ended_at: datetime, max_age: timedelta
) -> list[api.AuditSummary]:
    """Returns the last failures in a row for `reason`, at most `max_age` before `ended_at`.

    `runs`: newest first. Runs that somebody stopped are skipped.
    """
    failures: list[api.AuditSummary] = []
    for run in runs:
        has_same_reason = run.status == "Failed" and run.reason == reason
        if ended_at - run.ended_at > max_age or not (has_same_reason or run.status == "Stopped"):
            break
        if has_same_reason:
            failures.append(run)
    return failures
