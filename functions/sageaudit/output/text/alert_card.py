"""The messages about one audit: the card of an alert, and the line about a job that ended.

Channels with `every_job` get the line. The evidence is only in the full audit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sageaudit.domain.alert.alert import AlertDecision
from sageaudit.domain.alert.audit_figures import MessageAudit, is_postable, is_regression
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import SpendQualifier, missing_parts
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

_PARENTHESES = re.compile(r" \([^()]*\)")
_PLACEHOLDER = re.compile(r"<.*")
_REST_OF_PARENTHESES = re.compile(r"[:,;] [^()]*(?=\))")
_MAX_REASON_LENGTH = 120
_MAX_PARAMETERS = 3
_MAX_FINDING_ROWS = 3
"""The maximum number of rows of the reason. A longer reason loses its parentheses."""
_NOTHING_TO_CHANGE = "nothing to change"
_CHANGE_PREFIX = "What changed: "
"""A cost spike's second sentence begins with this."""
_LOOK_AT_CHANGES = "look at what changed"


def alert_card(
    audit: MessageAudit, alert_decision: AlertDecision, history: HistoryLocation
) -> MessageCard:
    """Returns the card for the recommendation of `alert_decision`.

    `with_details` must have added the card's fields to `alert_decision`. `history`: the history
    that the card's commands read.
    """
    job, findings = audit.job, _findings(audit, alert_decision)
    top = findings[0] if findings else None
    reason, first_step, caveat = _finding_texts(top)
    is_change = reason.startswith(_CHANGE_PREFIX)
    reason_line = CardLine(
        without_paths(reason.removeprefix(_CHANGE_PREFIX)), "What changed" if is_change else "Why"
    )
    other_steps = other_steps_text(alert_decision.other_steps)
    is_monthly = not alert_decision.is_run_only
    name = subject_name(job["family"]) if is_monthly else short_name(job["family"])
    card = MessageCard(
        headline=message_headline(name, audit, alert_decision),
        next_step=_next_step(audit, top, alert_decision),
        lines=(
            *(CardLine(text, label) for label, text in last_alert_lines(audit, alert_decision)),
            *(_pipeline_step_lines(job["family"]) if is_monthly else ()),
            *([reason_line] if reason else []),
            *_change_lines(audit, top, first_step, alert_decision),
            *([] if alert_decision.spike or top else [_cost_line(audit)]),
            *([CardLine(without_paths(caveat), "Caveat")] if caveat else []),
            *_uncounted_lines(audit, top),
            *([CardLine(other_steps, "Other steps, a month")] if other_steps else []),
        ),
        scope=job["owner"],
        place_or_period=place_words(job["account"], job["region"]),
        links=document_links(audit.document),
        rule=cut_middle(top["rule"], MAX_FAMILY_LENGTH) if top else "",
        commands=tuple(_command_lines(job["name"], alert_decision, history)),
        attributes=message_attributes(audit, alert_decision),
    )
    return fit_card(card, MAX_ROWS)


def _findings(audit: MessageAudit, alert_decision: AlertDecision) -> list[FindingDocument]:
    if alert_decision.amount_kind is AmountKind.POSSIBLE:
        findings = list(audit.trial_findings)
    else:
        findings = [*(audit.regressions if alert_decision.spike else ()), *audit.counted_findings]
    rule = (
        alert_decision.recommendation.rule
        if alert_decision.recommendation and not alert_decision.spike
        else None
    )
    return sorted(findings, key=lambda finding: rule is not None and finding["rule"] != rule)


def _next_step(
    audit: MessageAudit, top: FindingDocument | None, alert_decision: AlertDecision
) -> str:
    if alert_decision.is_correction:
        return ""
    if alert_decision.spike:
        return _LOOK_AT_CHANGES
    is_trial = alert_decision.amount_kind is AmountKind.POSSIBLE
    return short_step(top, audit.job["instances"], is_trial=is_trial) if top else NO_STEP


def _finding_texts(finding: FindingDocument | None) -> tuple[str, str, str]:
    """Returns the reason, the first step and the caveat. A missing text is ""."""
    if finding is None:
        return "", "", ""
    first_sentence, *other_sentences = SENTENCE_END.split(finding["summary"])
    # the first sentence of a cost spike has the cost, which is in the headline
    has_other_reason = other_sentences and is_regression(finding)
    reason = " ".join(other_sentences) if has_other_reason else first_sentence
    for pattern in (_REST_OF_PARENTHESES, _PARENTHESES):
        reason = reason if row_count(reason) <= _MAX_FINDING_ROWS else pattern.sub("", reason)
    caveat = "" if is_regression(finding) else short_caveat(finding)
    return reason, finding.get("first_step") or "", caveat


def _change_lines(
    audit: MessageAudit, top: FindingDocument | None, first_step: str, alert_decision: AlertDecision
) -> Iterator[CardLine]:
    parameters = sorted(
        top["fix"] if top else [],
        key=lambda parameter: _PLACEHOLDER.search(str(parameter["new"])) is not None,
    )
    label = "Try it once" if alert_decision.amount_kind is AmountKind.POSSIBLE else "Do this"
    is_lost = top is not None and Bucket(top["bucket"]) is Bucket.LOST
    if first_step:
        yield CardLine(first_step, f"{label} first")
    if top and not alert_decision.spike:
        saving_text = _saving_text(audit, top, alert_decision)
        has_label = parameters and not (first_step or is_lost)
        yield CardLine(saving_text, label) if has_label else CardLine(capitalised(saving_text))
    for index, parameter in enumerate(parameters[:_MAX_PARAMETERS]):
        line_label = "" if index or not is_lost else "Then" if first_step else label
        yield CardLine(
            cut_middle(_short_assignment(parameter), MAX_CODE_LENGTH), line_label, is_code=True
        )
    if len(parameters) > _MAX_PARAMETERS:
        yield CardLine(f"and {count_text(len(parameters) - _MAX_PARAMETERS, 'more parameter')}")


def _short_assignment(parameter: FixDocument) -> str:
    """Returns the line to copy. A value like `s3://<bucket>/<prefix>` is cut at the placeholder."""
    if isinstance(parameter["new"], str):
        parameter = {**parameter, "new": _PLACEHOLDER.sub(ELLIPSIS, parameter["new"])}
    path = short_path(parameter["parameter"], len(assignment_line(parameter)))
    return assignment_line({**parameter, "parameter": path})


def _saving_text(audit: MessageAudit, top: FindingDocument, alert_decision: AlertDecision) -> str:
    bucket, saving, month = Bucket(top["bucket"]), saving_figure(top), alert_decision.saves
    is_unknown = saving.usd is None or not saving.upper_end
    if bucket is Bucket.LOST:
        text = _loss_text(audit, saving)
    elif is_unknown:
        return f"its saving is unknown; {_run_label(audit)} cost {_spend_text(audit)}"
    else:
        verb = "may save" if bucket is Bucket.POSSIBLE else "saves"
        text = f"it {verb} {_share_of_run(audit, saving)}"
    if month is None or not month.projected or month.is_single_occurrence or audit.is_rollup:
        return text
    monthly = f"{Figure(month.projected, rounding=ROUND_NEAREST)} a month"
    if bucket is Bucket.LOST:
        return f"{text}: {monthly}" if saving.usd else f"{text}: up to {monthly}"
    return f"{text}, or {monthly}"


def _share_of_run(audit: MessageAudit, amount: Figure) -> str:
    spend = document_amounts(audit.document).spend
    if not spend.upper_end:
        return f"{amount} a run"
    is_exact = spend.qualifier is SpendQualifier.EXACT
    spend_text = f"{spend}" if is_exact else f"cost ({spend})"
    spend_text = f"{_run_label(audit)}'s {spend_text}"
    return f"all of {spend_text}" if amount.usd == spend.usd else f"{amount} of {spend_text}"


def _loss_text(audit: MessageAudit, amount: Figure) -> str:
    spend = document_amounts(audit.document).spend
    verb = "was lost" if amount.usd else "may have been lost"
    if not spend.upper_end or amount.upper_end != spend.usd:
        return f"{_share_of_run(audit, amount)} {verb}"
    if amount.usd:
        return f"{_run_label(audit)}'s full cost, {spend}, {verb}"
    return f"{amount}, the full cost of {_run_label(audit)}, {verb}"


def _run_label(audit: MessageAudit) -> str:
    return f"this {JobKind(audit.job['kind']).spec.label}" if audit.is_rollup else "this run"


def _spend_text(audit: MessageAudit) -> str:
    spend = document_amounts(audit.document).spend
    if audit.bill["basis"] == "prepaid":
        return "nothing per hour: its capacity is prepaid"
    return "an unknown amount" if spend.usd is None else str(spend)


def _cost_line(audit: MessageAudit) -> CardLine:
    return CardLine(capitalised(f"{_run_label(audit)} cost {_spend_text(audit)}"), drop_priority=1)


def _uncounted_lines(audit: MessageAudit, top: FindingDocument | None) -> Iterator[CardLine]:
    document = audit.document
    texts = [
        f"{finding['rule']} {saving_figure(finding)}"
        for finding in document["findings"]
        if finding is not top
        and Bucket(finding["bucket"]) is Bucket.POSSIBLE
        and is_postable(finding)
        and saving_figure(finding).upper_end
    ]
    if document["not_judged"]:
        texts.insert(0, SENTENCE_END.split(document["not_judged"][0])[0].rstrip("."))
    if not document["audit"]["settled"]:
        texts.insert(0, "late metrics or costs (the job will be audited again)")
    texts += missing_parts(audit.bill)
    if texts:
        yield CardLine(without_paths("; ".join(texts[:2])), "Not counted", drop_priority=4)


def _pipeline_step_lines(family: str) -> Iterator[CardLine]:
    if subject_name(family) != short_name(family):
        yield CardLine(short_name(family, with_group=False), "Step")


def _command_lines(
    job_name: str, alert_decision: AlertDecision, history: HistoryLocation
) -> Iterator[CardLine]:
    yield CardLine(history.command("show", job_name), "Details", is_code=True, drop_priority=3)
    if alert_decision.recommendation and not alert_decision.spike:
        snooze = history.command("advice", "snooze", alert_decision.recommendation.id)
        yield CardLine(snooze, "Snooze 30 days", is_code=True)


def job_line_card(audit: MessageAudit, child_count: int | None = None) -> MessageCard:
    """Returns a card such as `train-bert-0412 completed: $4.55, $2.04 avoidable`.

    `child_count`: the number of jobs in a roll-up's cost; None for other jobs.
    """
    document, job, attributes = audit.document, audit.job, message_attributes(audit)
    attributes |= text_attributes({"message_kind": "job"})
    subject_text = f"{job['name']} {job['status'].lower()}"
    if document["unauditable"] is not None:
        reason = _short_reason(document["unauditable"])
        return MessageCard(f"{subject_text}: could not be audited", reason, attributes=attributes)
    amounts = document_amounts(document)
    texts = [*_child_texts(audit, child_count), _cost_text(audit, amounts.spend)]
    step = _job_line_step(audit)
    texts += [*_waste_texts(audit, amounts)] or ([] if step else [_no_change_text(document)])
    return MessageCard(f"{subject_text}: {', '.join(texts)}", step, attributes=attributes)


def _child_texts(audit: MessageAudit, child_count: int | None) -> Iterator[str]:
    rollup = JobKind(audit.job["kind"]).spec.rollup
    if rollup is not None and child_count is not None:
        yield count_text(child_count, "trial" if rollup.is_search else rollup.child_label)


def _cost_text(audit: MessageAudit, spend: Figure) -> str:
    if audit.bill["basis"] == "prepaid":
        return "prepaid capacity"
    return "cost unknown" if spend.usd is None else str(spend)


def _waste_texts(audit: MessageAudit, amounts: Amounts) -> Iterator[str]:
    bill = audit.bill
    for figure, word in ((amounts.avoidable, "avoidable"), (amounts.lost, "lost")):
        if figure.upper_end:
            is_all = figure.usd == bill["total_usd"] and not missing_parts(bill)
            yield f"all {word}" if is_all else f"{figure} {word}"
    has_waste = amounts.avoidable.upper_end or amounts.lost.upper_end
    trials = () if has_waste else audit.trial_findings
    if trials and saving_figure(trials[0]).upper_end:
        yield f"may save {saving_figure(trials[0])}"
    if audit.shows_idle:
        yield idle_headline(audit.document)


def _job_line_step(audit: MessageAudit) -> str:
    if audit.run_findings:
        return short_step(audit.run_findings[0], audit.job["instances"])
    if audit.trial_findings:
        return short_step(audit.trial_findings[0], audit.job["instances"], is_trial=True)
    return _LOOK_AT_CHANGES if audit.regressions else ""


def _no_change_text(document: AuditDocument) -> str:
    if document["judged"] != Judged.NO:
        is_partly = document["judged"] == Judged.PARTLY
        return f"{_NOTHING_TO_CHANGE}, but only partly judged" if is_partly else _NOTHING_TO_CHANGE
    reason = _short_reason(next(iter(document["not_judged"]), "not judged"))
    return f"{reason[:1].lower()}{reason[1:]}"


def _short_reason(text: str) -> str:
    return cut_middle(without_paths(text).split(". ", 1)[0].rstrip("."), _MAX_REASON_LENGTH)
