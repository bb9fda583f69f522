"""What a message says beside its finding: the headline, what is new, and other steps' months."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from decimal import Decimal
from typing import NamedTuple, cast

from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import AlertDecision, AlertKind, News
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.finding_document import Worth
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.text.amounts import of_document
from sageaudit.output.text.card import short_name
from sageaudit.output.text.finding import saving
from sageaudit.output.text.money import NEAREST, Figure, usd
from sageaudit.output.text.words import counted
from sageaudit.structs import replace

_UNKNOWN = "an unknown amount"
_MOST_CHANGES = 4
_MOST_STEPS = 3


class _Verbs(NamedTuple):
    """What a family does with its dollars: each month, in one occasion, and by a projection."""

    month: str
    once: str
    ahead: str | None = None


_WASTES = _Verbs("wastes {} a month", "wasted {}", "{} of waste a month")
_LOSES = _Verbs("loses {} a month", "lost {}", "{} of losses a month")
_MAY_LOSE = _Verbs("may lose {} a month", "may have lost {}")
_MIGHT_SAVE = _Verbs("might save {} a month", "might have saved {}")


def message_headline(family: str, audit: MessageAudit, decision: AlertDecision) -> str:
    """`train-bert wastes about $540 a month, 12 runs`: whose message it is, and what is new."""
    if decision.is_correction:
        return f"Correction: {family} wasted {_corrected(audit, decision)}"
    if spike := decision.spike:
        cost = replace(of_document(audit.document).spend, usd=spike.cost_usd)
        return f"{family} cost {cost} in one run, expected {usd(spike.expected_usd)}"
    return f"{family} {_month(audit, decision)}"


def _corrected(audit: MessageAudit, decision: AlertDecision) -> str:
    """`$6.00, we said $412.00`; with the severity of the run, where that alone differs."""
    now = audit.figures
    last = decision.since_alert.figures if decision.since_alert else now
    words, said = _summary(now), _summary(last)
    if words == said:
        words, said = f"{words} ({now.severity} for a run)", f"{said} ({last.severity})"
    return f"{words}, we said {said}"


def _month(audit: MessageAudit, decision: AlertDecision) -> str:
    """What the family comes to in a month; what a roll-up comes to alone."""
    month = cast("Month", decision.month)  # every message that is sent has the details
    figures, runs = audit.figures, counted(month.runs, "run")
    if audit.is_rollup and figures.at_stake_usd:  # it does not come again
        once = _verbs(month, figures).once
        in_it = JobKind(audit.job["kind"]).row.with_article
        return f"{once.format(_rough(figures.at_stake_usd))} in {in_it}"
    again, now, was = _news(decision)
    if not month.projected:
        return f"{again}wasted an unknown amount in {runs}"
    verbs, last = _verbs(month, figures), f", was {was}" if was else ""
    if month.is_single_occurrence:
        return f"{again}{now}{verbs.once.format(_rough(month.total))} in {runs}{last}"
    amount = _rough(month.projected)
    if month.projected != month.total and verbs.ahead:
        ahead = verbs.ahead.format(amount.removeprefix("about "))
        return f"is {again}{now}heading for {ahead}{last}, after {runs}"
    return f"{again}{now}{verbs.month.format(amount)}{last}, {runs}"


def other_steps_words(steps: Sequence[tuple[str, Month]]) -> str:
    """What the pipeline's other steps come to in a month; "" without any."""
    shown = [f"{short_name(name, with_group=False)} {_month_words(one)}" for name, one in steps]
    if len(shown) > _MOST_STEPS:
        shown[_MOST_STEPS:] = [f"and {counted(len(shown) - _MOST_STEPS, 'step')} more"]
    return "; ".join(shown)


def _month_words(month: Month) -> str:
    about = _rough(month.usd) if month.usd else "dollars not known"
    return about if month.worth is Worth.COUNTED else about.replace("about", "maybe")


def _verbs(month: Month, figures: AlertFigures) -> _Verbs:
    if month.worth is Worth.TRIAL:
        return _MIGHT_SAVE
    if not figures.usd and figures.possible_loss_usd:
        return _MAY_LOSE
    return _LOSES if not figures.avoidable_usd and figures.lost_usd else _WASTES


def _news(decision: AlertDecision) -> tuple[str, str, str]:
    """`again ` of what came back; `now ` of what grew, and what was said before, where a text did
    say it.
    """
    again = "again " if decision.news is News.CAME_BACK else ""
    is_more = decision.kind is AlertKind.WORSE or decision.news is News.GREW
    last = decision.since_alert
    if not is_more or not last or not last.amount:
        return again, "", ""
    was = "" if last.is_single_occurrence else _rough(last.amount).removeprefix("about ")
    return again, "now ", was


def _rough(amount: Decimal) -> str:
    return str(Figure(amount, rough=NEAREST))


def since_last_alert(audit: MessageAudit, decision: AlertDecision) -> Iterator[tuple[str, str]]:
    """Labels and sentences on the last alert; none for a first message."""
    last = decision.since_alert
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
    if corrected and (changes := what_changed(corrected, audit)):
        yield "What changed", f"{'; '.join(changes)}."


def _summary(figures: AlertFigures) -> str:
    """`$6.00`, `an unknown amount`, `nothing`."""
    if not figures.has_dollars:
        return _UNKNOWN if figures.avoidable_usd is None else "nothing"
    return _UNKNOWN if figures.usd is None and not figures.possible_loss_usd else _dollars(figures)


def _dollars(figures: AlertFigures) -> str:
    certain = figures.usd or Decimal(0)
    if not figures.possible_loss_usd:
        return usd(certain)
    perhaps = f"up to {usd(figures.possible_loss_usd)}"
    return f"{usd(certain)} and {perhaps} more" if certain else perhaps


def what_changed(before: MessageAudit, now: MessageAudit) -> tuple[str, ...]:
    """Short clauses, the causes first; none where the two do not say."""
    clauses = [
        *_cost(before, now),
        *_findings(before, now),
        *_by_whom(before, now),
    ]
    return tuple(clauses[:_MOST_CHANGES])


def _cost(before: MessageAudit, now: MessageAudit) -> list[str]:
    was, cost = (str(of_document(one.document).spend) for one in (before, now))
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
    return [_rule(rule, was, are) for rule in sorted(changed, key=by_size)]


def _rule(rule: str, was: dict[str, Figure], are: dict[str, Figure]) -> str:
    if rule not in are:
        return f"{rule} ({was[rule]}) is no longer found"
    if rule not in was:
        return f"{rule} ({are[rule]}) is found now"
    return f"{rule} is {are[rule]}, was {was[rule]}"


def _savings(audit: MessageAudit) -> dict[str, Figure]:
    return {finding["rule"]: saving(finding) for finding in audit.counted}


def _by_whom(before: MessageAudit, now: MessageAudit) -> list[str]:
    names = {"ruleset": "the rules changed", "policy": "the policy changed"}
    was, known = before.document["audit"], now.document["audit"]
    return [clause for key, clause in names.items() if was.get(key) != known.get(key)]
