"""Each rule's track record over all labelled jobs, as its page shows it.

A record covers only one rule and jobs that name it, so other rules and stories do not change it.
"""

from collections.abc import Iterable
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, is_standing
from sageaudit.domain.bill.finding import Bucket, Detection, Outcome
from tests.labelled.accounts import ACCOUNTS, DAYS, LabelledAccount
from tests.labelled.audits import LabelledJob, expert_judged_jobs, rules, story_jobs
from tests.labelled.expert_comparison import all_compared
from tools.pages.track_record import AnswerCounts, CountedDollars, Example, TrackRecord

_ZERO = Decimal(0)


def track_records() -> dict[str, TrackRecord]:
    """Returns the track records by rule."""
    jobs = {rule: _record(rule, (*expert_judged_jobs(), *story_jobs())) for rule in rules()}
    judged = {rule for account in ACCOUNTS for rule in account.truths}
    return jobs | {rule: _record_of_accounts(rule) for rule in sorted(judged)}


def _record(rule: str, jobs: tuple[LabelledJob, ...]) -> TrackRecord:
    labelled = [job for job in jobs if rule in job.truths]
    right = [job for job in labelled if job.truths[rule] and rule in job.reported_rules]
    fires = right[0] if right else None
    quiet = [
        job for job in labelled if not job.truths[rule] and rule in job.named - job.reported_rules
    ]
    clear_jobs = [job for job in quiet if rule in job.document["clear"]]
    silent = _nearest(fires, clear_jobs or quiet)
    return TrackRecord(
        fires=_example(fires, rule) if fires else None,
        silent=_example(silent, rule) if silent else None,
        answers=AnswerCounts(
            found=len(right),
            missed=sum(job.truths[rule] and rule not in job.reported_rules for job in labelled),
            false=sum(not job.truths[rule] and rule in job.reported_rules for job in labelled),
        ),
        dollars=_dollars(rule),
    )


def _nearest(fires: LabelledJob | None, quiet: list[LabelledJob]) -> LabelledJob | None:
    """Returns the job most similar to the reported one: same instances, then same kind."""

    def alike(job: LabelledJob) -> tuple[bool, bool]:
        ours, theirs = job.document["job"], fires.document["job"] if fires else None
        if theirs is None:
            return False, False
        return ours["instances"] == theirs["instances"], ours["kind"] == theirs["kind"]

    return max(quiet, key=alike, default=None)


def _example(job: LabelledJob, rule: str) -> Example:
    findings = job.document["findings"]
    shown_finding = next((f for f in findings if f["rule"] == rule and not f["subsumed_by"]), None)
    return Example(
        job=job.name,
        happened=job.happened,
        ran_on=job.document["job"]["instances"] or "no instances",
        bill_usd=job.document["bill"]["total_usd"],
        says=shown_finding["summary"] if shown_finding else None,
        reason=None if shown_finding else _reason(job.document, rule),
    )


def _reason(document: AuditDocument, rule: str) -> str | None:
    """Returns why the rule did not judge the job; None if it did."""
    rows = (*document["not_applicable"], *document["unknown"])
    return next((row["reason"] for row in rows if row["rule"] == rule), None)


def _record_of_accounts(rule: str) -> TrackRecord:
    """Returns the record of a rule that judges accounts, which counts no dollars."""
    labelled = [account for account in ACCOUNTS if rule in account.truths]
    outcomes = {account.name: account.outcome(rule) for account in labelled}
    reported = [account for account in labelled if isinstance(outcomes[account.name], Detection)]
    quiet = [account for account in labelled if account not in reported]
    return TrackRecord(
        fires=next(
            (
                _of_account(account, outcomes[account.name])
                for account in reported
                if account.truths[rule]
            ),
            None,
        ),
        silent=next(
            (_of_account(account, None) for account in quiet if not account.truths[rule]), None
        ),
        answers=AnswerCounts(
            found=sum(account.truths[rule] for account in reported),
            missed=sum(account.truths[rule] for account in quiet),
            false=sum(not account.truths[rule] for account in reported),
        ),
        dollars=CountedDollars(_ZERO, _ZERO),
    )


def _of_account(account: LabelledAccount, outcome: Outcome | None) -> Example:
    return Example(
        job=account.name,
        happened=account.happened,
        ran_on=f"an account with {len(account.runs)} runs in {DAYS} days",
        bill_usd=account.total_usd,
        says=outcome.summary if isinstance(outcome, Detection) else None,
        reason=None,
    )


def _dollars(rule: str) -> CountedDollars:
    counted = true = _ZERO
    for comparison in all_compared():
        if comparison.wasted_usd is not None:
            own = _counted_usd(f for f in comparison.document["findings"] if f["rule"] == rule)
            counted, true = counted + own, true + min(own, comparison.wasted_usd[1])
    return CountedDollars(counted, true)


def _counted_usd(findings: Iterable[FindingDocument]) -> Decimal:
    return sum(
        (
            f["saving_usd"] or _ZERO
            for f in findings
            if Bucket(f["bucket"]).is_counted and is_standing(f)
        ),
        _ZERO,
    )
