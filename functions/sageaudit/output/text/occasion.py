"""Why a message is sent now, in words: a further one of the day, a correction, idle hours.

The first line of a message is `<lead>  <news> - <job> <tail>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from sageaudit.domain.alert.news import IdleHours, News, Said
from sageaudit.domain.alert.rule import TIMES, Tell, Why
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text.headline import headline
from sageaudit.output.text.idle_capacity import UNIT_WORDS, idle_headline, shown_hours
from sageaudit.output.text.money import usd
from sageaudit.output.text.notice import news_of
from sageaudit.output.text.words import capitalised

_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
_NO_DOLLARS = "dollars not known"


@dataclass(frozen=True, slots=True)
class Occasion:
    """What was decided to tell. `day`: the family's day where it is over; None is today.

    `changes`: why a figure that was told changed, as far as that is known.
    """

    tell: Tell = Tell()
    day: date | None = None
    changes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """`first`, `further` or `correction`: subscriptions can filter by it."""
        if self.tell.corrects:
            return "correction"
        return "further" if self.tell.why else "first"


FIRST = Occasion()
"""The family's first message of the day."""


def lead(severity: Severity, occasion: Occasion) -> str:
    """The word that the first line begins with."""
    if occasion.tell.corrects:
        return "Correction:"
    return "IDLE" if occasion.tell.idle else severity.upper()


def first_words(document: AuditDocument, occasion: Occasion) -> str:
    """The news of the first line."""
    if occasion.tell.corrects:
        return _corrected(document, news_of(document), occasion.tell.corrects.news)
    return idle_headline(document) if occasion.tell.idle else headline(document)


def tail(occasion: Occasion, *, short: bool = False) -> str:
    """What the first line of a further message ends in; "" for any other."""
    tell = occasion.tell
    if tell.why is None or tell.after is None:
        return ""
    if short:
        return f"({_nth(tell.nth)} {_day(occasion)})"
    return f"({_nth(tell.nth)} message {_day(occasion)}, after {_told(tell.after.news)})"


def note(document: AuditDocument, occasion: Occasion) -> tuple[str, str] | None:
    """A label and sentences on what was told before; None for a first message."""
    tell = occasion.tell
    if tell.corrects:
        return "Corrects", _what_is_corrected(document, tell.corrects, occasion)
    if tell.why is None or tell.after is None:
        return None
    at = tell.after.at
    earlier = f"The message of {at.astimezone(UTC):%H:%M} UTC" if at else "An earlier message"
    said = f"{earlier} about the job family {document['job']['family']} said"
    because = {
        Why.WORSE: "this run is more severe",
        Why.TEN_TIMES: f"this run is {TIMES} times as much or more",
        Why.IDLE: "it was not about idle hours",
    }[tell.why]
    label = f"{capitalised(_nth(tell.nth))} message {_day(occasion)}"
    return label, f"{said} {_told(tell.after.news)}; {because}."


def _what_is_corrected(document: AuditDocument, before: Said, occasion: Occasion) -> str:
    earlier = f"the message of {_moment(before.at)}" if before.at else "an earlier message"
    said = [f"{earlier}, which said {_told(before.news)}.", f"Now: {_now(document, occasion)}."]
    if occasion.changes:
        said.append(f"What changed: {'; '.join(occasion.changes)}.")
    news = news_of(document)
    if not (news.at_stake_usd or news.idle):
        said.append("Do not act on the earlier message.")
    return " ".join(said)


def _now(document: AuditDocument, occasion: Occasion) -> str:
    news = news_of(document)
    if not occasion.tell.idle:
        return (
            f"{news.severity.upper()}, {headline(document)}"
            if news.of_money
            else headline(document)
        )
    return f"IDLE, {idle_headline(document)}" if news.idle else _few_idle(document)


def _few_idle(document: AuditDocument) -> str:
    known = document.get("idle_capacity") is not None
    return "few or no hours were idle" if known else "the idle hours are not known"


def _nth(number: int) -> str:
    return _ORDINALS.get(number, f"{number}th")


def _day(occasion: Occasion) -> str:
    return "today" if occasion.day is None else f"of {occasion.day.isoformat()}"


def _corrected(document: AuditDocument, now: News, before: News) -> str:
    """`$95.00, not $412.00, was avoidable`: the new figure first."""
    if not (now.of_money or before.of_money):
        return _idle_corrected(document, now.idle, before.idle)
    if now.usd is None and not now.perhaps_usd:
        return f"the dollars are not known; {_amount(before)} is withdrawn"
    if not before.of_money:
        return (
            f"{_amount(now)}; the earlier message had only idle hours"
            if before.idle
            else _amount(now)
        )
    if before.usd is None and not before.perhaps_usd:
        return f"{_amount(now)}; the dollars were not known"
    if not now.at_stake_usd:
        return f"nothing was {_word(before)}, not {_dollars(before)}"
    if _amount(now) == _amount(before):
        return f"{now.severity.upper()}, not {before.severity.upper()}: {_amount(now)}"
    if _word(now) == _word(before):
        return f"{_dollars(now)}, not {_dollars(before)}, was {_word(now)}"
    return f"{_amount(now)}, not {_amount(before)}"


def _idle_corrected(
    document: AuditDocument, now: IdleHours | None, before: IdleHours | None
) -> str:
    told = _hours(before) if before else "idle hours"
    if document.get("idle_capacity") is None:
        return f"{_few_idle(document)}; {told} are withdrawn"
    if now is None or before is None or now.unit != before.unit:
        return f"{_few_idle(document)}, not {told}"
    return f"{_hours(now)} were idle, not {shown_hours(before.hours)}"


def _told(news: News) -> str:
    """`LOW $6.00`, `HIGH, dollars not known`, `IDLE 40 GPU-hours`."""
    if not news.of_money:
        return f"IDLE {_hours(news.idle)}" if news.idle else "nothing avoidable"
    if not news.at_stake_usd and news.usd is None:
        return f"{news.severity.upper()}, {_NO_DOLLARS}"
    return f"{news.severity.upper()} {_dollars(news)}"


def _dollars(news: News) -> str:
    certain = news.usd or Decimal(0)
    if not news.perhaps_usd:
        return _NO_DOLLARS if news.usd is None else usd(certain)
    perhaps = f"up to {usd(news.perhaps_usd)}"
    return f"{usd(certain)} and {perhaps} more" if certain else perhaps


def _amount(news: News) -> str:
    return f"{_dollars(news)} {_word(news)}"


def _word(news: News) -> str:
    """`avoidable`, `lost` or `avoidable or lost`."""
    lost = bool(news.lost_usd or news.perhaps_usd)
    if news.avoidable_usd and lost:
        return "avoidable or lost"
    return "lost" if lost else "avoidable"


def _hours(idle: IdleHours) -> str:
    return f"{shown_hours(idle.hours)} {UNIT_WORDS[idle.unit]}"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
