"""Why a message is sent now, in words: what is new, a correction, idle hours.

The first line of a message is `<lead>  <figures> - <job> <tail>`.
"""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from sageaudit.domain.alert.alert import Alert, AlertFigures, Kind
from sageaudit.domain.alert.rule import Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.earlier import Worth
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text.headline import headline
from sageaudit.output.text.idle_capacity import UNIT_WORDS, idle_headline, shown_hours
from sageaudit.output.text.money import usd
from sageaudit.output.text.notice import counted_findings, figures_of
from sageaudit.output.text.words import counted

_NO_DOLLARS = "dollars not known"
_MOST_CHANGES = 4


def lead(severity: Severity, notify: Notify) -> str:
    """The word that the first line begins with."""
    if notify.corrects:
        return "Correction:"
    if notify.kind is Kind.DEARER:
        return "DEARER"
    words = {Worth.TRIAL: "TRIAL", Worth.COUNTED: severity.upper(), None: severity.upper()}
    return words.get(notify.worth, "IDLE")


def first_words(document: AuditDocument, notify: Notify) -> str:
    """The figures of the first line."""
    if notify.corrects:
        now = figures_of(document)
        gone = notify.idle and not now.idle
        said = _few_idle(document) if gone else _summary(now)
        return f"{said}; was {_summary(notify.corrects.figures)}"
    if dear := notify.dearer:
        return f"expected {usd(dear.expected_usd)}, cost {usd(dear.cost_usd)}"
    return idle_headline(document) if notify.idle else headline(document)


def tail(notify: Notify, *, short: bool = False) -> str:
    """What the first line of a further message ends in; "" for any other."""
    if notify.after is None:
        return ""
    if short:
        return f"({notify.kind.value})"
    if notify.kind is Kind.BACK:
        return f"({notify.why})"
    return f"({notify.why}; before it {_summary(notify.after.alert.figures)})"


def note(document: AuditDocument, notify: Notify) -> tuple[str, str] | None:
    """A label and sentences on what was sent before; None for a first message."""
    if notify.corrects:
        return "Corrects", _what_is_corrected(document, notify.corrects, notify)
    if notify.after is None:
        return None
    last = notify.after.alert
    earlier = f"The message of {last.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    first = f"{earlier} about the job family {document['job']['family']} said"
    return "Said before", f"{first} {_summary(last.figures)}; now {notify.why}."


def _what_is_corrected(document: AuditDocument, last: Alert, notify: Notify) -> str:
    earlier = f"the message of {last.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    sentences = [
        f"{earlier}, which said {_summary(last.figures)}.",
        f"Now: {_now(document, idle=notify.idle)}.",
    ]
    if notify.before and (changes := what_changed(notify.before, document)):
        sentences.append(f"What changed: {'; '.join(changes)}.")
    figures = figures_of(document)
    if not (figures.at_stake_usd or figures.idle):
        sentences.append("Do not act on the earlier message.")
    return " ".join(sentences)


def _now(document: AuditDocument, *, idle: bool) -> str:
    figures = figures_of(document)
    if idle:
        return f"IDLE, {idle_headline(document)}" if figures.idle else _few_idle(document)
    line = headline(document)
    return f"{figures.severity.upper()}, {line}" if figures.of_money else line


def _few_idle(document: AuditDocument) -> str:
    known = document.get("idle_capacity") is not None
    return "few or no hours were idle" if known else "the idle hours are not known"


def _summary(figures: AlertFigures) -> str:
    """`LOW $6.00`, `HIGH, dollars not known`, `IDLE 40 GPU-hours`, `nothing avoidable`."""
    if not figures.of_money and figures.idle:
        hours, unit = shown_hours(figures.idle.hours), UNIT_WORDS[figures.idle.unit]
        return f"IDLE {hours} {unit}"
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
    clauses = [
        *_cost(before, now),
        *_judged(before, now),
        *_children(before, now),
        *_findings(before, now),
        *_by_whom(before, now),
    ]
    return tuple(clauses[:_MOST_CHANGES])


def _cost(before: AuditDocument, now: AuditDocument) -> list[str]:
    was_usd, is_usd = before["bill"]["total_usd"], now["bill"]["total_usd"]
    if usd(was_usd) == usd(is_usd):
        return []
    return [f"the run's cost is {usd(is_usd)}, was {usd(was_usd)}"]


def _judged(before: AuditDocument, now: AuditDocument) -> list[str]:
    if before["judged"] == now["judged"]:
        return []
    if now["judged"] == Judged.YES:
        return ["all of it could be judged now"]
    return ["less of it could be judged now"] if before["judged"] == Judged.YES else []


def _children(before: AuditDocument, now: AuditDocument) -> list[str]:
    was, came = len(before["children"] or ()), len(now["children"] or ())
    return [f"{counted(came - was, 'training job')} came later"] if came > was else []


def _findings(before: AuditDocument, now: AuditDocument) -> list[str]:
    """Rules whose counted dollars changed, the largest change first."""
    was, are = _savings(before), _savings(now)
    none = Decimal(0)

    def by_size(rule: str) -> tuple[Decimal, str]:
        return -abs((are.get(rule) or none) - (was.get(rule) or none)), rule

    rules = was.keys() | are.keys()
    changed = (rule for rule in rules if usd(was.get(rule)) != usd(are.get(rule)))
    return [_rule(rule, was, are) for rule in sorted(changed, key=by_size)]


def _rule(rule: str, was: dict[str, Decimal | None], are: dict[str, Decimal | None]) -> str:
    if rule not in are:
        return f"{rule} ({usd(was[rule])}) is no longer found"
    if rule not in was:
        return f"{rule} ({usd(are[rule])}) is found now"
    return f"{rule} is {usd(are[rule])}, was {usd(was[rule])}"


def _savings(document: AuditDocument) -> dict[str, Decimal | None]:
    return {finding["rule"]: finding["saving_usd"] for finding in counted_findings(document)}


def _by_whom(before: AuditDocument, now: AuditDocument) -> list[str]:
    names = {"ruleset": "the rules changed", "policy": "the policy changed"}
    was, known = before["audit"], now["audit"]
    return [clause for key, clause in names.items() if was.get(key) != known.get(key)]
