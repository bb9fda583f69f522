"""What a message says beside its finding: the headline, what is new, and other steps' months."""

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
from sageaudit.output.text.amounts import document_amounts
from sageaudit.output.text.card import short_name
from sageaudit.output.text.finding import saving_figure
from sageaudit.output.text.money import ROUND_NEAREST, Figure, format_usd
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

_UNKNOWN = "an unknown amount"
_MAX_CHANGES = 4
_MAX_STEPS = 3


class _Verbs(NamedTuple):
    """What a family does with its dollars: each month, in one occasion, and by a projection."""

    monthly: str
    once: str
    projected: str | None = None


_WASTES = _Verbs("wastes {} a month", "wasted {}", "{} of waste a month")
_LOSES = _Verbs("loses {} a month", "lost {}", "{} of losses a month")
_MAY_LOSE = _Verbs("may lose {} a month", "may have lost {}")
_MIGHT_SAVE = _Verbs("might save {} a month", "might have saved {}")


def message_headline(family: str, audit: MessageAudit, decision: AlertDecision) -> str:
    """`train-bert wastes about $540 a month, 12 runs`: whose message it is, and what is new."""
    if decision.is_correction:
        return f"Correction: {family} wasted {_correction_text(audit, decision)}"
    if spike := decision.spike:
        cost = replace(document_amounts(audit.document).spend, usd=spike.cost_usd)
        return f"{family} cost {cost} in one run, expected {format_usd(spike.expected_usd)}"
    return f"{family} {_month(audit, decision)}"


def _correction_text(audit: MessageAudit, decision: AlertDecision) -> str:
    """`$6.00, we said $412.00`; with the severity of the run, where that alone differs."""
    now = audit.figures
    last = decision.previous_alert.figures if decision.previous_alert else now
    words, said = _summary(now), _summary(last)
    if words == said:
        words, said = f"{words} ({now.severity} for a run)", f"{said} ({last.severity})"
    return f"{words}, we said {said}"


def _month(audit: MessageAudit, decision: AlertDecision) -> str:
    """What the family comes to in a month; what a roll-up comes to alone."""
    month = cast("Month", decision.month)  # every message that is sent has the details
    figures, runs = audit.figures, count_text(month.runs, "run")
    if audit.is_rollup and figures.at_stake_usd:  # it does not come again
        once = _verbs(month, figures).once
        in_it = JobKind(audit.job["kind"]).spec.label_with_article
        return f"{once.format(_rough(figures.at_stake_usd))} in {in_it}"
    again, now, was = _news(decision)
    if not month.projected:
        return f"{again}wasted an unknown amount in {runs}"
    verbs, last = _verbs(month, figures), f", was {was}" if was else ""
    if month.is_single_occurrence:
        return f"{again}{now}{verbs.once.format(_rough(month.total))} in {runs}{last}"
    amount = _rough(month.projected)
    if month.projected != month.total and verbs.projected:
        ahead = verbs.projected.format(amount.removeprefix("about "))
        return f"is {again}{now}heading for {ahead}{last}, after {runs}"
    return f"{again}{now}{verbs.monthly.format(amount)}{last}, {runs}"


def other_steps_text(steps: Sequence[tuple[str, Month]]) -> str:
    """What the pipeline's other steps come to in a month; "" without any."""
    shown = [
        f"{short_name(name, with_group=False)} {_monthly_amount_text(one)}" for name, one in steps
    ]
    if len(shown) > _MAX_STEPS:
        shown[_MAX_STEPS:] = [f"and {count_text(len(shown) - _MAX_STEPS, 'step')} more"]
    return "; ".join(shown)


def _monthly_amount_text(month: Month) -> str:
    about = _rough(month.usd) if month.usd else "dollars not known"
    return about if month.amount_kind is AmountKind.COUNTED else about.replace("about", "maybe")


def _verbs(month: Month, figures: AlertFigures) -> _Verbs:
    if month.amount_kind is AmountKind.POSSIBLE:
        return _MIGHT_SAVE
    if not figures.usd and figures.possible_loss_usd:
        return _MAY_LOSE
    return _LOSES if not figures.avoidable_usd and figures.lost_usd else _WASTES


def _news(decision: AlertDecision) -> tuple[str, str, str]:
    """`again ` of what came back; `now ` of what grew, and what was said before, where a text did
    say it.
    """
    again = "again " if decision.follow_up_reason is FollowUpReason.CAME_BACK else ""
    is_more = decision.kind is AlertKind.WORSE or decision.follow_up_reason is FollowUpReason.GREW
    last = decision.previous_alert
    if not is_more or not last or not last.amount:
        return again, "", ""
    was = "" if last.is_single_occurrence else _rough(last.amount).removeprefix("about ")
    return again, "now ", was


def _rough(amount: Decimal) -> str:
    return str(Figure(amount, rounding=ROUND_NEAREST))


def last_alert_lines(audit: MessageAudit, decision: AlertDecision) -> Iterator[tuple[str, str]]:
    """Labels and sentences on the last alert; none for a first message."""
    last = decision.previous_alert
    if last is None:
        return
    day = f"{last.at.astimezone(UTC):%Y-%m-%d}"
    if not decision.is_correction:
        yield "New", f"{decision.why} (last told {day})"
        return
    figures = audit.figures
    do = "" if figures.at_stake_usd else ". Do not act on it"
    yield f"We said on {day}", f"{_summary(last.figures)}{do}."
    corrected = decision.corrected_audit
    if corrected and (changes := change_clauses(corrected, audit)):
        yield "What changed", f"{'; '.join(changes)}."


def _summary(figures: AlertFigures) -> str:
    """`$6.00`, `an unknown amount`, `nothing`."""
    if not figures.has_dollars:
        return _UNKNOWN if figures.avoidable_usd is None else "nothing"
    return _UNKNOWN if figures.usd is None and not figures.possible_loss_usd else _dollars(figures)


def _dollars(figures: AlertFigures) -> str:
    certain = figures.usd or Decimal(0)
    if not figures.possible_loss_usd:
        return format_usd(certain)
    perhaps = f"up to {format_usd(figures.possible_loss_usd)}"
    return f"{format_usd(certain)} and {perhaps} more" if certain else perhaps


def change_clauses(before: MessageAudit, now: MessageAudit) -> tuple[str, ...]:
    """Short clauses, the causes first; none where the two do not say."""
    clauses = [
        *_cost(before, now),
        *_findings(before, now),
        *_owner_changes(before, now),
    ]
    return tuple(clauses[:_MAX_CHANGES])


def _cost(before: MessageAudit, now: MessageAudit) -> list[str]:
    was, cost = (str(document_amounts(one.document).spend) for one in (before, now))
    return [] if was == cost else [f"the run's cost is {cost}, was {was}"]


def _findings(before: MessageAudit, now: MessageAudit) -> list[str]:
    """Rules whose counted dollars changed, the largest change first."""
    was, are = _savings(before), _savings(now)
    none = Figure(None)

    def by_size(rule: str) -> tuple[Decimal, str]:
        size = (are.get(rule, none).usd or Decimal(0)) - (was.get(rule, none).usd or Decimal(0))
        return -abs(size), rule

    rules = was.keys() | are.keys()
    changed = (rule for rule in rules if str(was.get(rule, "")) != str(are.get(rule, "")))
    return [_rule_change_text(rule, was, are) for rule in sorted(changed, key=by_size)]


def _rule_change_text(
    rule: str, amounts_before: dict[str, Figure], amounts_now: dict[str, Figure]
) -> str:
    if rule not in amounts_now:
        return f"{rule} ({amounts_before[rule]}) is no longer found"
    if rule not in amounts_before:
        return f"{rule} ({amounts_now[rule]}) is found now"
    return f"{rule} is {amounts_now[rule]}, was {amounts_before[rule]}"


def _savings(audit: MessageAudit) -> dict[str, Figure]:
    return {finding["rule"]: saving_figure(finding) for finding in audit.counted_findings}


def _owner_changes(before: MessageAudit, now: MessageAudit) -> list[str]:
    names = {"ruleset": "the rules changed", "policy": "the policy changed"}
    was, known = before.document["audit"], now.document["audit"]
    return [clause for key, clause in names.items() if was.get(key) != known.get(key)]
