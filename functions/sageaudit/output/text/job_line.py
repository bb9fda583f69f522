"""The line about a job that ended, for channels that get one about each: what it cost and wasted,
and what to change first.
"""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.alert.audit_figures import MessageAudit
from sageaudit.domain.audit.bill_document import gaps
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.text.alert_card import LOOK_AT_CHANGES
from sageaudit.output.text.amounts import idle_headline, of_document
from sageaudit.output.text.card import MessageCard, attributes_of, text_attributes
from sageaudit.output.text.finding import saving, step_words
from sageaudit.output.text.untrusted import middle, private
from sageaudit.output.text.words import counted

NOTHING_TO_CHANGE = "nothing to change"
_REASON = 120
_KIND = "job"
"""By which subscriptions filter."""


def job_line(audit: MessageAudit, children: int | None = None) -> MessageCard:
    """`train-bert-0412 completed: $4.55, $2.04 avoidable: use 1 x ml.g4dn.xlarge`.

    `children`: how many jobs the cost of a roll-up sums; None of any other job.
    """
    document, job, attributes = audit.document, audit.job, attributes_of(audit)
    attributes |= text_attributes({"message_kind": _KIND})
    subject = f"{job['name']} {job['status'].lower()}"
    if document["unauditable"] is not None:
        step = _reason(document["unauditable"])
        return MessageCard(f"{subject}: could not be audited", step, attributes=attributes)
    words = [*_children(audit, children), _cost(audit)]
    step = _step(audit)
    words += [*_waste(audit)] or ([] if step else [_nothing(document)])
    return MessageCard(f"{subject}: {', '.join(words)}", step, attributes=attributes)


def _children(audit: MessageAudit, number: int | None) -> Iterator[str]:
    rollup = JobKind(audit.job["kind"]).row.rollup
    if rollup is not None and number is not None:
        yield counted(number, "trial" if rollup.is_search else rollup.child)


def _cost(audit: MessageAudit) -> str:
    if audit.bill["basis"] == "prepaid":
        return "prepaid capacity"
    spend = of_document(audit.document).spend
    return "cost unknown" if spend.usd is None else str(spend)


def _waste(audit: MessageAudit) -> Iterator[str]:
    """What was avoidable, lost, worth a trial or idle; nothing for what is none of these."""
    found, bill = of_document(audit.document), audit.bill
    for figure, word in ((found.avoidable, "avoidable"), (found.lost, "lost")):
        if figure.most:
            all_of_it = figure.usd == bill["total_usd"] and not gaps(bill)
            yield f"all {word}" if all_of_it else f"{figure} {word}"
    counts = found.avoidable.most or found.lost.most
    trials = () if counts else audit.trials
    if trials and saving(trials[0]).most:
        yield f"may save {saving(trials[0])}"
    if audit.shows_idle:
        yield idle_headline(audit.document)


def _step(audit: MessageAudit) -> str:
    """What to do first; empty where the audit names nothing."""
    if audit.own:
        return step_words(audit, audit.own[0])
    if audit.trials:
        return step_words(audit, audit.trials[0], trial=True)
    return LOOK_AT_CHANGES if audit.regressions else ""


def _nothing(document: AuditDocument) -> str:
    """Why there is nothing to change."""
    if document["judged"] != Judged.NO:
        partly = document["judged"] == Judged.PARTLY
        return f"{NOTHING_TO_CHANGE}, but judged in part" if partly else NOTHING_TO_CHANGE
    reason = _reason(next(iter(document["not_judged"]), "not judged"))
    return f"{reason[:1].lower()}{reason[1:]}"


def _reason(text: str) -> str:
    """The first sentence of why it could not be judged."""
    return middle(private(text).split(". ", 1)[0].rstrip("."), _REASON)
