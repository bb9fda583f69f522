"""The messages about one audit: the card of an alert, and the line about a job that ended.

A card has the headline, why, what to do, and how to hear less of it. A line, for channels that get
one about each job, has what the job cost and wasted, and what to change first. The numbers of the
evidence stand in the full audit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sageaudit.domain.alert.alert import AlertDecision
from sageaudit.domain.alert.audit_figures import MessageAudit, is_postable, is_regression
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import missing_parts
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import AmountKind, FindingDocument, FixDocument
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.text.amounts import Amounts, document_amounts, idle_headline
from sageaudit.output.text.card import (
    MAX_CODE_LENGTH,
    MAX_FAMILY_LENGTH,
    MAX_ROWS,
    CardLine,
    MessageCard,
    fit_card,
    message_attributes,
    row_count,
    short_name,
    short_path,
    subject_name,
    text_attributes,
)
from sageaudit.output.text.finding import (
    NO_STEP,
    SENTENCE_END,
    saving_figure,
    short_caveat,
    short_step,
)
from sageaudit.output.text.links import HistoryLocation, document_links
from sageaudit.output.text.money import ROUND_NEAREST, Figure
from sageaudit.output.text.reason import last_alert_lines, message_headline, other_steps_text
from sageaudit.output.text.untrusted import ELLIPSIS, cut_middle, without_paths
from sageaudit.output.text.words import assignment_line, capitalised, count_text, place_words

_ASIDE = re.compile(r" \([^()]*\)")
_PLACEHOLDER = re.compile(r"<.*")
_REST_OF_PARENTHESES = re.compile(r"[:,;] [^()]*(?=\))")
_REASON = 120
"""Characters of why a job could not be judged."""
_FIXES = 3
"""Parameters that a card names."""
_MAX_FINDING_ROWS = 3
"""From more rows on, the reason loses what is in brackets."""
_NOTHING_TO_CHANGE = "nothing to change"
_LOOK_AT_CHANGES = "look at what changed"
"""What to do about a run that cost more than comparable runs."""


def alert_card(audit: MessageAudit, decision: AlertDecision, place: HistoryLocation) -> MessageCard:
    """The card of an audit, about the advice that its message is due for.

    `decision` has its details (`with_details`). `place`: the history that the commands ask.
    """
    job, findings = audit.job, _findings(audit, decision)
    top = findings[0] if findings else None
    why, step, caveat = _finding_texts(top)
    steps = other_steps_text(decision.other_steps)
    monthly = not decision.is_run_only
    name = subject_name(job["family"]) if monthly else short_name(job["family"])
    card = MessageCard(
        headline=message_headline(name, audit, decision),
        next_step=_step(audit, top, decision),
        lines=(
            *(CardLine(text, label) for label, text in last_alert_lines(audit, decision)),
            *(_step_name(job["family"]) if monthly else ()),
            *([CardLine(without_paths(why), "Why")] if why else []),
            *_change_lines(audit, top, step, decision),
            *([] if decision.spike or top else [_cost(audit)]),
            *([CardLine(without_paths(caveat), "Caveat")] if caveat else []),
            *_uncounted_lines(audit, top),
            *([CardLine(steps, "Other steps")] if steps else []),
        ),
        owner=job["owner"],
        account_region=place_words(job["account"], job["region"]),
        links=document_links(audit.document),
        rule=cut_middle(top["rule"], MAX_FAMILY_LENGTH) if top else "",
        commands=tuple(_command_lines(job["name"], decision, place)),
        attributes=message_attributes(audit, decision),
    )
    return fit_card(card, MAX_ROWS)


def _findings(audit: MessageAudit, decision: AlertDecision) -> list[FindingDocument]:
    """What the message is about first, then what else counts."""
    if decision.amount_kind is AmountKind.POSSIBLE:
        found = list(audit.trial_findings)
    else:
        found = [*(audit.regressions if decision.spike else ()), *audit.counted_findings]
    rule = decision.recommendation.rule if decision.recommendation and not decision.spike else None
    return sorted(found, key=lambda one: rule is not None and one["rule"] != rule)


def _step(audit: MessageAudit, top: FindingDocument | None, decision: AlertDecision) -> str:
    """What to do, in a few words; of a correction nothing."""
    if decision.is_correction:
        return ""
    if decision.spike:
        return _LOOK_AT_CHANGES
    trial = decision.amount_kind is AmountKind.POSSIBLE
    return short_step(top, audit.job["instances"], is_trial=trial) if top else NO_STEP


def _finding_texts(finding: FindingDocument | None) -> tuple[str, str, str]:
    """Why, the first step where nothing is to be set, and a caveat, of a finding."""
    if finding is None:
        return "", "", ""
    first, *rest = SENTENCE_END.split(finding["summary"])
    # what a dear run cost stands in the first line
    why = " ".join(rest) if rest and is_regression(finding) else first
    for longer in (_REST_OF_PARENTHESES, _ASIDE):
        why = why if row_count(why) <= _MAX_FINDING_ROWS else longer.sub("", why)
    caveat = "" if is_regression(finding) else short_caveat(finding)
    return why, finding.get("first_step") or "", caveat


def _change_lines(
    audit: MessageAudit, top: FindingDocument | None, step: str, decision: AlertDecision
) -> Iterator[CardLine]:
    """The parameters to set, or the first step; then what that saves."""
    fix = sorted(
        top["fix"] if top else [], key=lambda one: _PLACEHOLDER.search(str(one["new"])) is not None
    )
    label = "Try once" if decision.amount_kind is AmountKind.POSSIBLE else "Do this"
    lost = top is not None and Bucket(top["bucket"]) is Bucket.LOST
    if step:
        yield CardLine(step, f"{label} first")
    if top and not decision.spike:
        saves, labelled = _saves(audit, top, decision), fix and not (step or lost)
        yield CardLine(saves, label) if labelled else CardLine(capitalised(saves))
    for at, one in enumerate(fix[:_FIXES]):
        before = "" if at or not lost else "Then" if step else label
        yield CardLine(cut_middle(_short_fix(one), MAX_CODE_LENGTH), before, is_code=True)
    if len(fix) > _FIXES:
        yield CardLine(f"and {count_text(len(fix) - _FIXES, 'parameter')} more")


def _short_fix(fix: FixDocument) -> str:
    """The line to paste; without its path where that is too long and the name says enough.

    A value that is left open, as `s3://<bucket>/<prefix>`, is cut there.
    """
    if isinstance(fix["new"], str):
        fix = {**fix, "new": _PLACEHOLDER.sub(ELLIPSIS, fix["new"])}
    return assignment_line(
        {**fix, "parameter": short_path(fix["parameter"], len(assignment_line(fix)))}
    )


def _saves(audit: MessageAudit, top: FindingDocument, decision: AlertDecision) -> str:
    """What following it saves of the run's cost, and in a month."""
    bucket, known, month = Bucket(top["bucket"]), saving_figure(top), decision.saves
    unknown = known.usd is None or not known.upper_end
    if bucket is Bucket.LOST:
        text = f"{_share_of_run(audit, known)} was lost"
    elif unknown:
        return f"its saving is not known; {_run_words(audit)} cost {_spend(audit)}"
    else:
        verb = "would save" if bucket is Bucket.POSSIBLE else "saves"
        text = f"{verb} {_share_of_run(audit, known)}"
    if month is None or not month.projected or month.is_single_occurrence or audit.is_rollup:
        return text
    rough = str(Figure(month.projected, rounding=ROUND_NEAREST)).removeprefix("about ")
    return f"{text}; {rough} a month"


def _share_of_run(audit: MessageAudit, part: Figure) -> str:
    """`$10.38 of this run's $14.67`; the figure alone where the cost is not known."""
    spend = document_amounts(audit.document).spend
    if not spend.upper_end:
        return f"{part} a run"
    whole = f"{_run_words(audit)}'s {spend}"
    if part.upper_end != spend.usd:
        return f"{part} of {whole}"
    return f"all of {whole}" if part.usd else f"up to all of {whole}"


def _run_words(audit: MessageAudit) -> str:
    return f"this {JobKind(audit.job['kind']).spec.label}" if audit.is_rollup else "this run"


def _spend(audit: MessageAudit) -> str:
    """What the run cost."""
    spend = document_amounts(audit.document).spend
    if audit.bill["basis"] == "prepaid":
        return "nothing by the hour: its capacity is prepaid"
    return "an unknown amount" if spend.usd is None else str(spend)


def _cost(audit: MessageAudit) -> CardLine:
    """The run's cost, if neither the first line nor what following saves has it."""
    return CardLine(capitalised(f"{_run_words(audit)} cost {_spend(audit)}"), drop_priority=1)


def _uncounted_lines(audit: MessageAudit, top: FindingDocument | None) -> Iterator[CardLine]:
    """What no sum has."""
    document = audit.document
    rest = [
        f"{one['rule']} {saving_figure(one)}"
        for one in document["findings"]
        if one is not top
        and Bucket(one["bucket"]) is Bucket.POSSIBLE
        and is_postable(one)
        and saving_figure(one).upper_end
    ]
    if document["not_judged"]:
        rest.insert(0, SENTENCE_END.split(document["not_judged"][0])[0].rstrip("."))
    if not document["audit"]["settled"]:
        rest.insert(0, "what came late, it is judged again")
    rest += missing_parts(audit.bill)
    if rest:
        yield CardLine(without_paths("; ".join(rest[:2])), "Not counted", drop_priority=4)


def _step_name(family: str) -> Iterator[CardLine]:
    """The step of a pipeline that the message was sent for."""
    if subject_name(family) != short_name(family):
        yield CardLine(short_name(family, with_group=False), "Step")


def _command_lines(
    name: str, decision: AlertDecision, place: HistoryLocation
) -> Iterator[CardLine]:
    yield CardLine(place.command("show", name), "Numbers", is_code=True, drop_priority=3)
    if decision.recommendation and not decision.spike:
        snooze = place.command("advice", "snooze", decision.recommendation.id)
        yield CardLine(snooze, "Snooze 30 days", is_code=True)


def job_line_card(audit: MessageAudit, children: int | None = None) -> MessageCard:
    """`train-bert-0412 completed: $4.55, $2.04 avoidable: use 1 x ml.g4dn.xlarge`.

    `children`: how many jobs the cost of a roll-up sums; None of any other job.
    """
    document, job, attributes = audit.document, audit.job, message_attributes(audit)
    attributes |= text_attributes({"message_kind": "job"})
    subject = f"{job['name']} {job['status'].lower()}"
    if document["unauditable"] is not None:
        step = _reason(document["unauditable"])
        return MessageCard(f"{subject}: could not be audited", step, attributes=attributes)
    found = document_amounts(document)
    words = [*_children(audit, children), _cost_words(audit, found.spend)]
    step = _line_step(audit)
    words += [*_waste(audit, found)] or ([] if step else [_nothing(document)])
    return MessageCard(f"{subject}: {', '.join(words)}", step, attributes=attributes)


def _children(audit: MessageAudit, number: int | None) -> Iterator[str]:
    rollup = JobKind(audit.job["kind"]).spec.rollup
    if rollup is not None and number is not None:
        yield count_text(number, "trial" if rollup.is_search else rollup.child_label)


def _cost_words(audit: MessageAudit, spend: Figure) -> str:
    if audit.bill["basis"] == "prepaid":
        return "prepaid capacity"
    return "cost unknown" if spend.usd is None else str(spend)


def _waste(audit: MessageAudit, found: Amounts) -> Iterator[str]:
    """What was avoidable, lost, worth a trial or idle; nothing for what is none of these."""
    bill = audit.bill
    for figure, word in ((found.avoidable, "avoidable"), (found.lost, "lost")):
        if figure.upper_end:
            all_of_it = figure.usd == bill["total_usd"] and not missing_parts(bill)
            yield f"all {word}" if all_of_it else f"{figure} {word}"
    counts = found.avoidable.upper_end or found.lost.upper_end
    trials = () if counts else audit.trial_findings
    if trials and saving_figure(trials[0]).upper_end:
        yield f"may save {saving_figure(trials[0])}"
    if audit.shows_idle:
        yield idle_headline(audit.document)


def _line_step(audit: MessageAudit) -> str:
    """What to do first; empty where the audit names nothing."""
    if audit.run_findings:
        return short_step(audit.run_findings[0], audit.job["instances"])
    if audit.trial_findings:
        return short_step(audit.trial_findings[0], audit.job["instances"], is_trial=True)
    return _LOOK_AT_CHANGES if audit.regressions else ""


def _nothing(document: AuditDocument) -> str:
    """Why there is nothing to change."""
    if document["judged"] != Judged.NO:
        partly = document["judged"] == Judged.PARTLY
        return f"{_NOTHING_TO_CHANGE}, but judged in part" if partly else _NOTHING_TO_CHANGE
    reason = _reason(next(iter(document["not_judged"]), "not judged"))
    return f"{reason[:1].lower()}{reason[1:]}"


def _reason(text: str) -> str:
    """The first sentence of why it could not be judged."""
    return cut_middle(without_paths(text).split(". ", 1)[0].rstrip("."), _REASON)
