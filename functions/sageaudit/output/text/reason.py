"""The headline of a message: the family's month, a dear run, a correction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from decimal import Decimal

from sageaudit.domain.alert.alert import AlertFigures, AlertKind
from sageaudit.domain.alert.audit_figures import counted_findings, figures_of
from sageaudit.domain.alert.rule import AlertDecision
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import Worth
from sageaudit.output.text.amounts import of_document
from sageaudit.output.text.finding import saving
from sageaudit.output.text.headline import headline
from sageaudit.output.text.idle_capacity import UNIT_WORDS, idle_headline, shown_hours
from sageaudit.output.text.money import NEAREST, Figure, usd
from sageaudit.output.text.words import counted

_NO_DOLLARS = "dollars not known"
_MOST_CHANGES = 4


def message_headline(family: str, document: AuditDocument, decision: AlertDecision) -> str:
    """`train-bert: about $540 a month, 12 runs`: whose message it is, and what is new."""
    if decision.corrects:
        now = figures_of(document)
        gone = decision.idle and now.idle_hours is None
        summary = _few_idle(document) if gone else _summary(now)
        return f"Correction: {summary}; was {_summary(decision.corrects.figures)} - {family}"
    if dear := decision.dearer:
        cost = replace(of_document(document).spend, usd=dear.cost_usd)
        return f"{family}: one run cost {cost}, expected {usd(dear.expected_usd)}"
    return f"{family}: {_month(document, decision)}"


def _month(document: AuditDocument, decision: AlertDecision) -> str:
    """What the family comes to; of a run alone, where nothing is known of it."""
    month, figures = decision.month, figures_of(document)
    if month is None:
        return idle_headline(document) if decision.idle else headline(document)
    runs = counted(month.runs, "run")
    if month.worth in {Worth.PREPAID, Worth.UNPRICED}:
        unit = "hours" if figures.idle_hours is None else UNIT_WORDS[figures.idle_unit]
        how = "prepaid " if month.worth is Worth.PREPAID else "unpriced "
        return f"{shown_hours(month.total)} {how}{unit} idle in 30 days, {runs}"
    if document["rollup"] and figures.at_stake_usd:  # it does not come again
        return f"{_rough(figures.at_stake_usd)} in a tuning job"
    if not month.projected:
        return f"{_NO_DOLLARS}, {runs}"
    about = _rough(month.total if month.of_one_occasion else month.projected)
    perhaps = month.worth is Worth.COUNTED and not figures.usd and figures.perhaps_usd
    if month.worth is Worth.TRIAL or perhaps:
        about = about.replace("about", "maybe")
    elif month.projected != month.total and not month.of_one_occasion:
        about = about.replace("about", "heading for")
    lost = not figures.avoidable_usd and (figures.lost_usd or figures.perhaps_usd)
    what = " of idle capacity" if decision.idle else " lost" if lost else ""
    each = "" if month.of_one_occasion else " a month"
    runs = f"after {runs}" if about.startswith("heading") else runs
    month_words = f"{about}{each}{what if month.worth is not Worth.TRIAL else ''}"
    after = decision.after
    if after and decision.kind in {AlertKind.WORSE, AlertKind.GREW} and after.amount:
        was = _rough(after.amount).removeprefix("about ")
        month_words = f"now {month_words}{'' if after.of_one_occasion else f', was {was}'}"
    return f"{'back, ' if decision.kind is AlertKind.BACK else ''}{month_words}, {runs}"


def _rough(amount: Decimal) -> str:
    return str(Figure(amount, rough=NEAREST))


def since_last_alert(document: AuditDocument, decision: AlertDecision) -> Iterator[tuple[str, str]]:
    """Labels and sentences on the last alert; none for a first message."""
    last = decision.corrects or (decision.after)
    if last is None:
        return
    day = f"{last.at.astimezone(UTC):%Y-%m-%d}"
    if not decision.corrects:
        yield "New", f"{decision.why} (last told {day})"
        return
    figures = figures_of(document)
    nothing = not (figures.at_stake_usd or figures.idle_hours is not None)
    do = ". Do not act on it" if nothing else ""
    yield f"We said on {day}", f"{_summary(last.figures)}{do}."
    if decision.before and (changes := what_changed(decision.before, document)):
        yield "What changed", f"{'; '.join(changes)}."


def _few_idle(document: AuditDocument) -> str:
    known = document.get("idle_capacity") is not None
    return "few or no hours were idle" if known else "the idle hours are not known"


def _summary(figures: AlertFigures) -> str:
    """`LOW $6.00`, `HIGH, dollars not known`, `IDLE 40 GPU-hours`, `nothing avoidable`."""
    if not figures.of_money and figures.idle_hours is not None:
        return f"IDLE {shown_hours(figures.idle_hours)} {UNIT_WORDS[figures.idle_unit]}"
    if not figures.of_money:
        return _NO_DOLLARS if figures.avoidable_usd is None else "nothing avoidable"
    if figures.usd is None and not figures.perhaps_usd:
        return f"{figures.severity.upper()}, {_NO_DOLLARS}"
    return f"{figures.severity.upper()} {_dollars(figures)}"


def _dollars(figures: AlertFigures) -> str:
    certain = figures.usd or Decimal(0)
    if not figures.perhaps_usd:
        return usd(certain)
    perhaps = f"up to {usd(figures.perhaps_usd)}"
    return f"{usd(certain)} and {perhaps} more" if certain else perhaps


def what_changed(before: AuditDocument, now: AuditDocument) -> tuple[str, ...]:
    """Short clauses, the causes first; none where the two do not say."""
    clauses = [*_cost(before, now), *_findings(before, now), *_by_whom(before, now)]
    return tuple(clauses[:_MOST_CHANGES])


def _cost(before: AuditDocument, now: AuditDocument) -> list[str]:
    was, cost = (str(of_document(one).spend) for one in (before, now))
    return [] if was == cost else [f"the run's cost is {cost}, was {was}"]


def _findings(before: AuditDocument, now: AuditDocument) -> list[str]:
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


def _savings(document: AuditDocument) -> dict[str, Figure]:
    return {finding["rule"]: saving(finding) for finding in counted_findings(document)}


def _by_whom(before: AuditDocument, now: AuditDocument) -> list[str]:
    names = {"ruleset": "the rules changed", "policy": "the policy changed"}
    was, known = before["audit"], now["audit"]
    return [clause for key, clause in names.items() if was.get(key) != known.get(key)]
