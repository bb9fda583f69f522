"""The weekly digest as a card: the week, what to do next, and what came of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from itertools import chain

from msgspec import Struct

from sageaudit.domain.advice.advice import WITHDRAWN, FamilyRecommendation
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS, MONTH_DAYS, Digest
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.policy.scope import WEEK_DAYS
from sageaudit.output.text.amounts import sums_amounts
from sageaudit.output.text.card import (
    Attribute,
    CardLine,
    MessageCard,
    fit_card,
    line_to_paste,
    short_name,
)
from sageaudit.output.text.headline import period_text
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation, Link
from sageaudit.output.text.money import (
    ROUND_NEAREST,
    Figure,
    about_text,
    format_signed_usd,
    format_usd,
    percent_text,
    sum_figures,
)
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

DIGEST_ROWS = 30
"""Two screens of a phone."""
_ALL_JOBS = "All jobs"
_ROUTE_TITLE = "One route"
_ATTRIBUTES: Mapping[str, Attribute] = {"message_kind": {"type": "String", "value": "digest"}}
_MAX_RECOMMENDATIONS = 5
_CHANGES = 3
_RECENT_DAYS = 60
_GREW = Decimal("1.5")
_MIN_GROWTH_USD = Decimal(20)
_MIN_CHANGE_USD = Decimal(1)
"""Half as much again, and at least $20, is in the headline; a dollar is no change. Our choice."""
_IDLE_USD = Decimal(10)
"""Idle capacity of the week from which on it has a line. Our choice."""
_ZERO = Decimal(0)


class DigestReport(Struct, frozen=True):
    """The page of a digest: where it is, or why there is none."""

    link: Link | None = None
    missing_reason: str | None = None


NO_REPORT = DigestReport()


def digest_card(
    digest: Digest, report: DigestReport = NO_REPORT, place: HistoryLocation = DEFAULT_HISTORY
) -> MessageCard:
    """The card; of a week without a job, one line. `place`: the history that its command asks."""
    week = f"Week to {digest.until}"
    if not digest.total.jobs:
        whose = f" for {digest.route}" if digest.route else ""
        return MessageCard(f"{week}{whose}: no job was audited", attributes=_ATTRIBUTES)
    found = [
        one for one in _open_recommendations(digest.recommendations) if _should_list(one, digest)
    ]
    card = MessageCard(
        headline=f"{week}: {sums_amounts(digest.total).spend}{_spend_qualifications(digest)}",
        next_step=_runaway(digest),
        lines=(
            *([CardLine(str(digest.route), "Only")] if digest.route else []),
            CardLine(", ".join(_spend(digest)), "Spend"),
            CardLine(_waste(digest.total), "Avoidable"),
            *_idle(digest.total),
            *_change_lines(digest.changed_families),
            *_recommendation_lines(found[:_MAX_RECOMMENDATIONS], digest),
            *_outcomes(digest),
            *([CardLine(report.missing_reason, "Report")] if report.missing_reason else []),
        ),
        owner=_ROUTE_TITLE if digest.route else _ALL_JOBS,
        account_region=period_text(digest.since, digest.until),
        links=(report.link,) if report.link else (),
        attributes=_ATTRIBUTES,
        commands=tuple(
            CardLine(place.command("advice", "snooze", one.id), "Snooze 30 days", is_code=True)
            for one in found[:1]
        ),
    )
    return fit_card(card, DIGEST_ROWS)


def _open_recommendations(
    recommendations: Iterable[FamilyRecommendation],
) -> list[FamilyRecommendation]:
    return [one for one in recommendations if one.is_open]


def _should_list(one: FamilyRecommendation, digest: Digest) -> bool:
    """Whether runs of the last days still had it, or its dollars are not known."""
    return one.amount is None or one.recent_total(digest.now, MONTH_DAYS) > 0


def _spend_qualifications(digest: Digest) -> str:
    """What is words of the spend in the first line."""
    if _runaway(digest) and digest.previous_total:
        times = f"{digest.total.total_usd / digest.previous_total.total_usd:.1f} times"
        return f", {_ratio(times, digest)} the week before"
    found = sums_amounts(digest.total)
    if found.waste.usd is None:
        return f", avoidable: {found.waste}"
    parts = ((found.avoidable, "avoidable"), (found.lost, "lost"))
    words = " or ".join(word for figure, word in parts if figure.upper_end)
    return f", {found.waste} of it {words}" if words else ", none of it found avoidable"


def _runaway(digest: Digest) -> str:
    """The family by which the spend grew far; "" where it did not."""
    before = digest.previous_total.total_usd if digest.previous_total else _ZERO
    grew = digest.total.total_usd - before
    top = digest.changed_families[0] if digest.changed_families else None
    far = before and digest.total.total_usd >= _GREW * before and grew >= _MIN_GROWTH_USD
    return _change(top) if far and top and top.change_usd >= grew / 2 else ""


def _spend(digest: Digest) -> Iterator[str]:
    total, before = digest.total, digest.previous_total
    yield count_text(total.jobs, "job")
    if before is None:
        yield "the week before is not known"
    elif before.total_usd and total.known_total_usd is not None and not _runaway(digest):
        change = total.total_usd - before.total_usd
        word = "more" if change >= 0 else "less"
        changed = _ratio(percent_text(abs(change), before.total_usd), digest)
        yield f"{changed} {word} than the week before"
    if total.total_usd:
        yield f"{percent_text(total.judged_usd, total.total_usd)} judged"


def _ratio(shown: str, digest: Digest) -> str:
    """A ratio of the week to the week before: "about" unless both are exact."""
    sums = filter(None, (digest.total, digest.previous_total))
    exact = all(one.spend_qualifier is SpendQualifier.EXACT for one in sums)
    return about_text(shown, estimated=not exact)


def _waste(total: Sums) -> str:
    found = sums_amounts(total)
    return f"{found.avoidable}, lost: {found.lost}"


def _idle(total: Sums) -> Iterator[CardLine]:
    """What was paid for and not used, at list price, beyond what is avoidable or lost."""
    idle = sums_amounts(total).idle
    rest_usd = (idle.usd or _ZERO) - total.idle_counted_usd
    if rest_usd >= _IDLE_USD:
        yield CardLine(
            f"{replace(idle, usd=rest_usd)} at list price, in no sum", "Idle", drop_priority=2
        )


def _change_lines(changes: Iterable[ChangedFamily]) -> Iterator[CardLine]:
    words = [_change(one) for one in changes if abs(one.change_usd) >= _MIN_CHANGE_USD]
    if words:
        yield CardLine("; ".join(words[:_CHANGES]), "Changed", drop_priority=1)


def _change(of: ChangedFamily) -> str:
    return (
        f"{short_name(of.family or 'unknown')} {of.change}"
        f" {format_signed_usd(of.change_usd, of.qualifier)}"
    )


def _recommendation_lines(
    recommendations: Iterable[FamilyRecommendation], digest: Digest
) -> Iterator[CardLine]:
    """What to do, the dearest first; the last is left out first."""
    for at, one in enumerate(recommendations):
        change = line_to_paste(one.parameter, one.new) if one.parameter else one.rule
        text = f"{_amount(one, digest)}: {change} ({one.id})"
        if not at:
            yield CardLine(f"the largest of {MONTH_DAYS} days", "Open")
        yield CardLine(
            text, f"{at + 1}. {short_name(one.family)}", drop_priority=max(3 * at - 3, 0)
        )


def _amount(one: FamilyRecommendation, digest: Digest) -> str:
    amount = one.recent_total(digest.now, MONTH_DAYS)
    if not amount and one.amount is None:
        return "dollars not known"
    rough = str(Figure(amount, rounding=ROUND_NEAREST))
    return rough if one.amount_kind is AmountKind.COUNTED else rough.replace("about", "maybe")


def _outcomes(digest: Digest) -> Iterator[CardLine]:
    """What became of advices, and what no message words; no line about nothing."""
    taken = [one for one in digest.recommendations if one.earlier_comparisons or one.was_followed]
    if taken:
        yield CardLine(_taken(taken), "Taken", drop_priority=1)
    old = digest.now - timedelta(_RECENT_DAYS)
    groups = (
        ("Snoozed", [one for one in digest.recommendations if one.state_label == "snoozed"]),
        (
            f"Open for {_RECENT_DAYS} days",
            [one for one in _open_recommendations(digest.recommendations) if one.since <= old],
        ),
    )
    for label, found in groups:
        if found:
            usd_of = _monthly_usd(found, digest, MONTH_DAYS)
            yield CardLine(f"{len(found):,}, {usd_of} in {MONTH_DAYS} days", label, drop_priority=2)
    if digest.unsent_recommendations:
        families = {(one.account, one.region, one.family) for one in digest.unsent_recommendations}
        known = "1 family" if len(families) == 1 else f"{len(families):,} families"
        text = f"{known}, {_monthly_usd(digest.unsent_recommendations, digest, WEEK_DAYS)}"
        yield CardLine(text, "No message about", drop_priority=2)
    if digest.total.unauditable:
        yield CardLine(count_text(digest.total.unauditable, "job"), "Not audited")


def _taken(recommendations: list[FamilyRecommendation]) -> str:
    """`3 in 180 days; 1 measured: $84.20 saved in 6 runs; 1 withdrawn`."""
    words = [f"{len(recommendations):,} in {LOOK_BACK_DAYS} days"]
    measured = [one for one in recommendations if one.measured]
    if measured:
        parts = [part for one in measured for part in one.measured]
        saved = sum(((one.saved_usd or _ZERO) * one.runs for one in parts), _ZERO)
        runs = count_text(sum(one.runs for one in parts if one.saved_usd), "run")
        words.append(f"{len(measured):,} measured: {format_usd(saved)} saved in {runs}")
    if withdrawn := sum(one.outcome == WITHDRAWN for one in recommendations):
        words.append(f"{withdrawn:,} withdrawn")
    return "; ".join(words)


def _monthly_usd(recommendations: Iterable[FamilyRecommendation], digest: Digest, days: int) -> str:
    """Their avoidable and lost dollars of some days."""
    of_days = (
        one.recent_amounts(digest.now, days)
        for one in recommendations
        if one.amount_kind is AmountKind.COUNTED
    )
    return str(sum_figures(map(Figure, chain.from_iterable(of_days))))
