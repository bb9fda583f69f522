"""Each rule's track record over all labelled jobs, as its page shows it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from sageaudit.cli.support.rules.track_record import AnswerCounts, Dollars, Example, TrackRecord
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, stands
from sageaudit.domain.bill.finding import Bucket, Found, Outcome
from tests.labelled import expert_jobs
from tests.labelled.accounts import ACCOUNTS, DAYS, LabelledAccount
from tests.labelled.labelled_jobs import LabelledJob, generated, of_experts, rules

_ZERO = Decimal(0)


def track_records() -> dict[str, TrackRecord]:
    """By rule."""
    jobs = {rule: _record(rule, (*of_experts(), *generated())) for rule in rules()}
    judged = {rule for account in ACCOUNTS for rule in account.truths}
    return jobs | {rule: _record_of_accounts(rule) for rule in sorted(judged)}


def _record(rule: str, jobs: tuple[LabelledJob, ...]) -> TrackRecord:
    known = [job for job in jobs if rule in job.truths]
    right = [job for job in known if job.truths[rule] and rule in job.told]
    fires = right[0] if right else None
    quiet = [job for job in known if not job.truths[rule] and rule not in job.told]
    asked = [job for job in quiet if rule in job.document["clear"]]
    silent = _nearest(fires, asked or quiet)
    return TrackRecord(
        fires=_example(fires, rule) if fires else None,
        silent=_example(silent, rule) if silent else None,
        answers=AnswerCounts(
            found=len(right),
            missed=sum(job.truths[rule] and rule not in job.told for job in known),
            false=sum(not job.truths[rule] and rule in job.told for job in known),
            quiet=len(quiet),
        ),
        dollars=_dollars(rule),
    )


def _nearest(fires: LabelledJob | None, quiet: list[LabelledJob]) -> LabelledJob | None:
    """The job most like the one that it speaks of: on the same type, of the same kind."""

    def alike(job: LabelledJob) -> tuple[bool, bool]:
        ours, theirs = job.document["job"], fires.document["job"] if fires else None
        if theirs is None:
            return False, False
        return ours["instances"] == theirs["instances"], ours["kind"] == theirs["kind"]

    return max(quiet, key=alike, default=None)


def _example(job: LabelledJob, rule: str) -> Example:
    findings = job.document["findings"]
    said = next((f for f in findings if f["rule"] == rule and not f["subsumed_by"]), None)
    return Example(
        job=job.name,
        happened=job.happened,
        ran_on=job.document["job"]["instances"] or "no instances",
        bill_usd=job.document["bill"]["total_usd"],
        says=said["summary"] if said else None,
        reason=None if said else _reason(job.document, rule),
        instead=() if said else tuple(sorted(job.told)),
    )


def _reason(document: AuditDocument, rule: str) -> str | None:
    """Why the rule was not asked; None where it was."""
    rows = (*document["not_applicable"], *document["unknown"])
    return next((row["reason"] for row in rows if row["rule"] == rule), None)


def _record_of_accounts(rule: str) -> TrackRecord:
    """Of a rule that judges accounts, which counts no dollars."""
    known = [account for account in ACCOUNTS if rule in account.truths]
    found = {one.name: one.outcome(rule) for one in known}
    told = [one for one in known if isinstance(found[one.name], Found)]
    quiet = [one for one in known if one not in told]
    return TrackRecord(
        fires=next((_of_account(one, found[one.name]) for one in told if one.truths[rule]), None),
        silent=next((_of_account(one, None) for one in quiet if not one.truths[rule]), None),
        answers=AnswerCounts(
            found=sum(one.truths[rule] for one in told),
            missed=sum(one.truths[rule] for one in quiet),
            false=sum(not one.truths[rule] for one in told),
            quiet=sum(not one.truths[rule] for one in quiet),
        ),
        dollars=Dollars(_ZERO, _ZERO, _ZERO, _ZERO),
    )


def _of_account(account: LabelledAccount, outcome: Outcome | None) -> Example:
    return Example(
        job=account.name,
        happened=account.happened,
        ran_on=f"an account with {len(account.runs)} runs in {DAYS} days",
        bill_usd=account.total_usd,
        says=outcome.summary if isinstance(outcome, Found) else None,
        reason=None,
        instead=(),
    )


def _dollars(rule: str) -> Dollars:
    counted = true = certain = recovered = _ZERO
    for one in expert_jobs.compared():
        if one.wasted_usd is None:
            continue
        low, high = one.wasted_usd
        own = _counted_usd(f for f in one.document["findings"] if f["rule"] == rule)
        counted, true = counted + own, true + min(own, high)
        if _is_to_say(rule, one):
            certain, recovered = certain + low, recovered + min(low, one.counted_usd)
    return Dollars(counted, true, certain, recovered)


def _is_to_say(rule: str, one: expert_jobs.Compared) -> bool:
    """The expert asks for this rule; where several would do, for the one that spoke."""
    said = {finding["rule"] for finding in one.document["findings"]}
    return any(
        topic == rule if isinstance(topic, str) else rule in topic & said
        for topic in one.expert.must_say
    )


def _counted_usd(findings: Iterable[FindingDocument]) -> Decimal:
    return sum(
        (f["saving_usd"] or _ZERO for f in findings if Bucket(f["bucket"]).counted and stands(f)),
        _ZERO,
    )
