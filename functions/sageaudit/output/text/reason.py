"""The texts of a message that do not come from its finding: the headline, what changed since the
last message, and the amounts of a pipeline's steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from decimal import Decimal
from typing import NamedTuple, cast

from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import AlertDecision, AlertKind, FollowUpReason
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.money import format_usd
from sageaudit.output.text.amounts import document_amounts
from sageaudit.output.text.card import short_name
from sageaudit.output.text.finding import saving_figure
from sageaudit.output.text.money import ROUND_NEAREST, Figure
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

_UNKNOWN = "an unknown amount"
_NOTHING = "nothing"
_MAX_CHANGES = 4
_MAX_STEPS = 2


class _Verbs(NamedTuple):
    monthly: str
    once: str
    projected: str | None = None


_WASTES = _Verbs("wastes {} a month", "wasted {}", "waste {} a month at this rate")
_LOSES = _Verbs("loses {} a month", "lost {}", "lose {} a month at this rate")
_MAY_LOSE = _Verbs("loses up to {} a month", "may have lost {}")
_MIGHT_SAVE = _Verbs("might save {} a month", "might have saved {}")


def message_headline(family: str, audit: MessageAudit, alert_decision: AlertDecision) -> str:
    """Returns a headline such as `train-bert wastes about $540 a month (12 runs)`."""
    if alert_decision.is_correction:
        return f"Correction: {family} wasted {_correction_text(audit, alert_decision)}"
    if spike := alert_decision.spike:
        cost = replace(document_amounts(audit.document).spend, usd=spike.cost_usd)
        expected = format_usd(spike.expected_usd)
        return f"One run of {family} cost {cost}, but {expected} was expected"
    return f"{family} {_amount_text(audit, alert_decision)}"


def _correction_text(audit: MessageAudit, alert_decision: AlertDecision) -> str:
    current = audit.figures
    reported = alert_decision.previous_alert.figures if alert_decision.previous_alert else current
    current_text, reported_text = _waste_text(current), _waste_text(reported)
    if current_text == reported_text:
        current_text = f"{current_text} (severity {current.severity})"
        reported_text = f"{reported_text} ({reported.severity})"
    if {current_text, reported_text}.isdisjoint({_NOTHING, _UNKNOWN}):
        return f"{current_text}, not {reported_text} as reported"
    return f"{current_text}, although {reported_text} was reported"


def _amount_text(audit: MessageAudit, alert_decision: AlertDecision) -> str:
    month = cast("Month", alert_decision.month)  # every message that is sent has the details
    figures, runs_text = audit.figures, count_text(month.runs, "run")
    if audit.is_rollup and figures.at_stake_usd:  # a roll-up is not repeated
        amount_text = _rough(figures.at_stake_usd)
        rollup = JobKind(audit.job["kind"]).spec.label_with_article
        return f"{_verbs(month, figures).once.format(amount_text)} in {rollup}"
    repeat_word, growth_word, previous_amount = _change_words(alert_decision)
    if not month.projected:
        return f"{repeat_word}wasted an unknown amount in {runs_text}"
    verbs = _verbs(month, figures)
    start_text = f"{repeat_word}{growth_word}"
    previous_text = f", up from {previous_amount}" if previous_amount else ""
    if month.is_single_occurrence:
        return f"{start_text}{verbs.once.format(_rough(month.total))} in {runs_text}{previous_text}"
    amount_text = _rough(month.projected)
    if month.projected != month.total and verbs.projected:
        projection = verbs.projected.format(amount_text)
        return f"will {start_text}{projection}{previous_text} ({runs_text} so far)"
    return f"{start_text}{verbs.monthly.format(amount_text)}{previous_text} ({runs_text})"


def other_steps_text(steps: Sequence[tuple[str, Month]]) -> str:
    """Returns the monthly amounts of a pipeline's other steps, or "" if there are none."""
    texts = [
        f"{short_name(name, with_group=False)} {_monthly_amount_text(month)}"
        for name, month in steps
    ]
    if len(texts) > _MAX_STEPS:
        texts[_MAX_STEPS:] = [f"and {len(texts) - _MAX_STEPS} more"]
    return "; ".join(texts)


def _monthly_amount_text(month: Month) -> str:
    text = _rough(month.usd) if month.usd else "unknown amount"
    return text if month.amount_kind is AmountKind.COUNTED else text.replace("about", "maybe")


def _verbs(month: Month, figures: AlertFigures) -> _Verbs:
    if month.amount_kind is AmountKind.POSSIBLE:
        return _MIGHT_SAVE
    if not figures.usd and figures.possible_loss_usd:
        return _MAY_LOSE
    return _LOSES if not figures.avoidable_usd and figures.lost_usd else _WASTES


def _change_words(alert_decision: AlertDecision) -> tuple[str, str, str]:
    """Returns "again ", "now " and the last message's amount, each of which may be ""."""
    repeat_word = "again " if alert_decision.follow_up_reason is FollowUpReason.CAME_BACK else ""
    is_more = (
        alert_decision.kind is AlertKind.WORSE
        or alert_decision.follow_up_reason is FollowUpReason.GREW
    )
    alert = alert_decision.previous_alert
    if not is_more or not alert or not alert.amount:
        return repeat_word, "", ""
    amount_text = "" if alert.is_single_occurrence else _rough(alert.amount).removeprefix("about ")
    return repeat_word, "now ", amount_text


def _rough(amount: Decimal) -> str:
    return str(Figure(amount, rounding=ROUND_NEAREST))


def last_alert_lines(
    audit: MessageAudit, alert_decision: AlertDecision
) -> Iterator[tuple[str, str]]:
    """Yields labels and sentences about the last message, if there was one."""
    alert = alert_decision.previous_alert
    if alert is None:
        return
    day_text = f"{alert.at.astimezone(UTC):%Y-%m-%d}"
    if not alert_decision.is_correction:
        yield "New", f"{alert_decision.news_text} (last message on {day_text})"
        return
    warning = "" if audit.figures.at_stake_usd else " Do not act on that message."
    yield "", f"The message of {day_text} said {_waste_text(alert.figures)}.{warning}"
    corrected = alert_decision.corrected_audit
    if corrected and (changes := change_clauses(corrected, audit)):
        *first_changes, last_change = changes
        others = f"{'; '.join(first_changes)}, and " if first_changes else ""
        yield "What changed", f"{others}{last_change}."


def _waste_text(figures: AlertFigures) -> str:
    if not figures.has_dollars:
        return _UNKNOWN if figures.avoidable_usd is None else _NOTHING
    if figures.usd is None and not figures.possible_loss_usd:
        return _UNKNOWN
    return _dollars_text(figures)


def _dollars_text(figures: AlertFigures) -> str:
    wasted_usd = figures.usd or Decimal(0)
    if not figures.possible_loss_usd:
        return format_usd(wasted_usd)
    possible_loss_text = f"up to {format_usd(figures.possible_loss_usd)}"
    return (
        f"{format_usd(wasted_usd)} and {possible_loss_text} more"
        if wasted_usd
        else possible_loss_text
    )


def change_clauses(previous: MessageAudit, current: MessageAudit) -> tuple[str, ...]:
    """Returns what differs between two audits of a run, causes first."""
    clauses = [
        *_cost_changes(previous, current),
        *_finding_changes(previous, current),
        *_ruleset_changes(previous, current),
    ]
    return tuple(clauses[:_MAX_CHANGES])


def _cost_changes(previous: MessageAudit, current: MessageAudit) -> list[str]:
    old_cost, new_cost = (
        str(document_amounts(audit.document).spend) for audit in (previous, current)
    )
    return [] if old_cost == new_cost else [f"the run cost {new_cost}, not {old_cost}"]


def _finding_changes(previous: MessageAudit, current: MessageAudit) -> list[str]:
    old_savings, new_savings = _savings(previous), _savings(current)
    zero, no_saving = Decimal(0), Figure(None)

    def by_size(rule: str) -> tuple[Decimal, str]:
        old_usd = old_savings.get(rule, no_saving).usd or zero
        new_usd = new_savings.get(rule, no_saving).usd or zero
        return -abs(new_usd - old_usd), rule

    changed_rules = (
        rule
        for rule in old_savings.keys() | new_savings.keys()
        if str(old_savings.get(rule, "")) != str(new_savings.get(rule, ""))
    )
    return [
        _rule_change_text(rule, old_savings, new_savings)
        for rule in sorted(changed_rules, key=by_size)
    ]


def _rule_change_text(
    rule: str, old_savings: dict[str, Figure], new_savings: dict[str, Figure]
) -> str:
    if rule not in new_savings:
        return f"{rule} ({old_savings[rule]}) is no longer a finding"
    if rule not in old_savings:
        return f"{rule} ({new_savings[rule]}) is a new finding"
    return f"{rule} is {new_savings[rule]}, not {old_savings[rule]}"


def _savings(audit: MessageAudit) -> dict[str, Figure]:
    return {finding["rule"]: saving_figure(finding) for finding in audit.counted_findings}


def _ruleset_changes(previous: MessageAudit, current: MessageAudit) -> list[str]:
    clauses = {"ruleset": "the rules changed", "policy": "the policy changed"}
    old, new = previous.document["audit"], current.document["audit"]
    return [clause for key, clause in clauses.items() if old.get(key) != new.get(key)]
