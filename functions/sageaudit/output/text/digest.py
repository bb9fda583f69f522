"""The weekly digest as a card: spend, waste, open recommendations, and results of followed ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import chain

from msgspec import Struct

from sageaudit.domain.advice.advice import WITHDRAWN, FamilyRecommendation
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS, MONTH_DAYS, Digest
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.audit.sums import ChangedFamily, Sums
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.scope import WEEK_DAYS
from sageaudit.output.text.amounts import sums_amounts, waste_text
from sageaudit.output.text.budget import BUDGET_LABEL, budget_lines
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
    percent_text,
    sum_figures,
)
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

DIGEST_ROWS = 30
"""The maximum number of rows of the card: two screens of a phone."""
_ALL_JOBS_SCOPE = "All jobs"
_ROUTE_SCOPE = "One route"
_ATTRIBUTES: Mapping[str, Attribute] = {"message_kind": {"type": "String", "value": "digest"}}
_MAX_RECOMMENDATIONS = 5
_MAX_MEMBERS = 3
_MAX_BUDGETS = 10
_MAX_CHANGES = 3
_OLD_DAYS = 60
"""Older open recommendations are counted in a line of their own."""
_GROWTH_FACTOR = Decimal("1.5")
_MIN_GROWTH_USD = Decimal(20)
"""The smallest growth in the headline. It must also reach `_GROWTH_FACTOR`. Our choice."""
_MIN_CHANGE_USD = Decimal(1)
"""The smallest change with which a family is listed. Our choice."""
_MIN_IDLE_USD = Decimal(10)
"""The smallest idle capacity of a week that has a line. Our choice."""
_ZERO = Decimal(0)


class DigestReport(Struct, frozen=True):
    """A link to the digest's report, or the reason why there is none."""

    link: Link | None = None
    missing_reason: str | None = None


NO_REPORT = DigestReport()


def digest_card(
    digest: Digest, report: DigestReport = NO_REPORT, history: HistoryLocation = DEFAULT_HISTORY
) -> MessageCard:
    """Returns the digest's card. Without jobs it has only a headline, the budgets and the members.

    `history`: the history that the card's command reads.
    """
    budget_count = min(len(digest.budgets), _MAX_BUDGETS)
    while True:
        lines = [*budget_lines(digest.budgets, budget_count)]
        card = fit_card(
            _card(digest, lines, report, history)
            if digest.total.jobs
            else _card_without_jobs(digest, lines),
            DIGEST_ROWS,
        )
        shown_count = sum(line.label.startswith(f"{BUDGET_LABEL} ") for line in card.lines)
        if shown_count == budget_count:
            return card
        budget_count = shown_count  # makes the last line count the dropped budgets too


def _card_without_jobs(digest: Digest, budgets: Sequence[CardLine]) -> MessageCard:
    route_text = f" for {digest.route}" if digest.route else ""
    return MessageCard(
        f"Week to {digest.until}{route_text}: no job was audited",
        lines=(*budgets, *_member_lines(digest)),
        attributes=_ATTRIBUTES,
    )


def _card(
    digest: Digest, budgets: Sequence[CardLine], report: DigestReport, history: HistoryLocation
) -> MessageCard:
    listed = [
        recommendation
        for recommendation in _open_recommendations(digest.recommendations)
        if _should_list(recommendation, digest)
    ]
    spend = sums_amounts(digest.total).spend
    return MessageCard(
        headline=f"Week to {digest.until}: {spend}{_headline_end(digest)}",
        next_step=_growth_text(digest),
        lines=(
            *([CardLine(str(digest.route), "Filter")] if digest.route else []),
            CardLine(", ".join(_spend_texts(digest)), "Spend"),
            CardLine(waste_text(digest.total), "Avoidable"),
            *_idle_lines(digest.total),
            *_change_lines(digest.changed_families),
            *budgets,
            *_recommendation_lines(listed[:_MAX_RECOMMENDATIONS], digest),
            *_outcome_lines(digest),
            *([CardLine(report.missing_reason, "Report")] if report.missing_reason else []),
            *_unreadable_lines(digest, history),
            *_member_lines(digest),
        ),
        scope=_ROUTE_SCOPE if digest.route else _ALL_JOBS_SCOPE,
        place_or_period=period_text(digest.since, digest.until),
        links=(report.link,) if report.link else (),
        attributes=_ATTRIBUTES,
        commands=tuple(
            CardLine(
                history.command("advice", "snooze", recommendation.id),
                "Snooze 30 days",
                is_code=True,
            )
            for recommendation in listed[:1]
        ),
    )


def _unreadable_lines(digest: Digest, history: HistoryLocation) -> list[CardLine]:
    if not (count := len(digest.unreadable_items)):
        return []
    text = f"the figures lack {count_text(count, 'stored item')} that cannot be read"
    return [CardLine(f"{text}: {history.command('doctor')} names them", "Missing")]


def _member_lines(digest: Digest) -> list[CardLine]:
    """Returns the line about accounts and regions that deny access."""
    members = digest.unreadable_members
    if not members:
        return []
    since = min(member.denial.since for member in members if member.denial)
    named = [str(member.account_region) for member in members[:_MAX_MEMBERS]]
    others = len(members) - len(named)
    names = [*named, *([f"{others} more"] if others else [])]
    count = count_text(len(members), "member")
    since_text = "since" if len(members) == 1 else "the first since"
    text = f"{count} cannot be read, {since_text} {since.date()}"
    advice = "`sageaudit doctor --stack NAME --members` says why"
    return [CardLine(f"{text}: {', '.join(names)}; {advice}", "Not read")]


def _open_recommendations(
    recommendations: Iterable[FamilyRecommendation],
) -> list[FamilyRecommendation]:
    return [recommendation for recommendation in recommendations if recommendation.is_open]


def _should_list(recommendation: FamilyRecommendation, digest: Digest) -> bool:
    return recommendation.amount is None or recommendation.recent_total(digest.now, MONTH_DAYS) > 0


def _headline_end(digest: Digest) -> str:
    if _growth_text(digest) and digest.previous_total:
        times_text = f"{digest.total.total_usd / digest.previous_total.total_usd:.1f} times"
        return f", {_ratio_text(times_text, digest)} the week before"
    amounts = sums_amounts(digest.total)
    if amounts.waste.usd is None:
        return f", avoidable: {amounts.waste}"
    figures = ((amounts.avoidable, "avoidable"), (amounts.lost, "lost"))
    waste_text = " or ".join(word for figure, word in figures if figure.upper_end)
    return f", {amounts.waste} of it {waste_text}" if waste_text else ", none of it found avoidable"


def _growth_text(digest: Digest) -> str:
    """Returns the change of the family that caused at least half of a large growth, or ""."""
    previous_usd = digest.previous_total.total_usd if digest.previous_total else _ZERO
    growth_usd = digest.total.total_usd - previous_usd
    top = digest.changed_families[0] if digest.changed_families else None
    is_large = (
        previous_usd
        and digest.total.total_usd >= _GROWTH_FACTOR * previous_usd
        and growth_usd >= _MIN_GROWTH_USD
    )
    return _change_text(top) if is_large and top and top.change_usd >= growth_usd / 2 else ""


def _spend_texts(digest: Digest) -> Iterator[str]:
    total, previous_total = digest.total, digest.previous_total
    yield count_text(total.jobs, "job")
    if previous_total is None:
        yield "no data for the week before"
    elif (
        previous_total.total_usd and total.known_total_usd is not None and not _growth_text(digest)
    ):
        change_usd = total.total_usd - previous_total.total_usd
        word = "more" if change_usd >= 0 else "less"
        percent = percent_text(abs(change_usd), previous_total.total_usd)
        yield f"{_ratio_text(percent, digest)} {word} than the week before"
    if total.total_usd:
        yield f"{percent_text(total.judged_usd, total.total_usd)} judged"


def _ratio_text(ratio: str, digest: Digest) -> str:
    weeks = filter(None, (digest.total, digest.previous_total))
    is_exact = all(week.spend_qualifier is SpendQualifier.EXACT for week in weeks)
    return about_text(ratio, estimated=not is_exact)


def _idle_lines(total: Sums) -> Iterator[CardLine]:
    idle = sums_amounts(total).idle
    uncounted_usd = (idle.usd or _ZERO) - total.idle_counted_usd
    if uncounted_usd >= _MIN_IDLE_USD:
        text = f"{replace(idle, usd=uncounted_usd)} at list price, not in the totals"
        yield CardLine(text, "Idle", drop_priority=2)


def _change_lines(changes: Iterable[ChangedFamily]) -> Iterator[CardLine]:
    texts = [
        _change_text(change) for change in changes if abs(change.change_usd) >= _MIN_CHANGE_USD
    ]
    if texts:
        yield CardLine("; ".join(texts[:_MAX_CHANGES]), "Changed", drop_priority=1)


def _change_text(family: ChangedFamily) -> str:
    amount = format_signed_usd(family.change_usd, family.qualifier)
    suffix_text = f" ({family.change})" if family.change in {"new", "gone"} else ""
    return f"{short_name(family.family or 'unknown')} {amount}{suffix_text}"


def _recommendation_lines(
    recommendations: Iterable[FamilyRecommendation], digest: Digest
) -> Iterator[CardLine]:
    """Yields a line for each recommendation. A full card drops the last recommendations first."""
    for index, recommendation in enumerate(recommendations):
        change = recommendation.rule
        if recommendation.parameter:
            change = line_to_paste(recommendation.parameter, recommendation.new)
        text = f"{_amount_text(recommendation, digest)}: {change} ({recommendation.id})"
        label = f"{index + 1}. {short_name(recommendation.family)}"
        if not index:
            yield CardLine(f"the largest of the last {MONTH_DAYS} days", "Open")
        yield CardLine(text, label, drop_priority=max(3 * index - 3, 0))


def _amount_text(recommendation: FamilyRecommendation, digest: Digest) -> str:
    usd = recommendation.recent_total(digest.now, MONTH_DAYS)
    if not usd and recommendation.amount is None:
        return "unknown amount"
    text = str(Figure(usd, rounding=ROUND_NEAREST))
    is_counted = recommendation.amount_kind is AmountKind.COUNTED
    return text if is_counted else text.replace("about", "maybe")


def _outcome_lines(digest: Digest) -> Iterator[CardLine]:
    followed = [
        recommendation
        for recommendation in digest.recommendations
        if recommendation.earlier_comparisons or recommendation.was_followed
    ]
    if followed:
        yield CardLine(_followed_text(followed), "Followed", drop_priority=1)
    snoozed = [
        recommendation
        for recommendation in digest.recommendations
        if recommendation.state_label == "snoozed"
    ]
    old_since = digest.now - timedelta(_OLD_DAYS)
    old = [
        recommendation
        for recommendation in _open_recommendations(digest.recommendations)
        if recommendation.since <= old_since
    ]
    for label, group in (("Snoozed", snoozed), (f"Open for {_OLD_DAYS}+ days", old)):
        if group:
            usd_text = _recent_usd_text(group, digest, MONTH_DAYS)
            text = f"{len(group):,}, {usd_text} in {MONTH_DAYS} days"
            yield CardLine(text, label, drop_priority=2)
    if unsent := digest.unsent_recommendations:
        families = {
            (recommendation.account, recommendation.region, recommendation.family)
            for recommendation in unsent
        }
        families_text = "1 family" if len(families) == 1 else f"{len(families):,} families"
        usd_text = _recent_usd_text(unsent, digest, WEEK_DAYS)
        text = f"{families_text}, {usd_text} in {WEEK_DAYS} days"
        yield CardLine(text, "No message", drop_priority=2)
    if digest.total.unauditable:
        yield CardLine(count_text(digest.total.unauditable, "job"), "Not audited")


def _followed_text(recommendations: list[FamilyRecommendation]) -> str:
    texts = [f"{len(recommendations):,} in {LOOK_BACK_DAYS} days"]
    measured = [recommendation for recommendation in recommendations if recommendation.measured]
    if measured:
        comparisons = [
            comparison for recommendation in measured for comparison in recommendation.measured
        ]
        saved_usd = sum(
            ((comparison.saved_usd or _ZERO) * comparison.runs for comparison in comparisons), _ZERO
        )
        runs = sum(comparison.runs for comparison in comparisons if comparison.saved_usd)
        runs_text = count_text(runs, "run")
        texts.append(f"{len(measured):,} measured: {format_usd(saved_usd)} saved in {runs_text}")
    outcomes = [recommendation.outcome for recommendation in recommendations]
    if withdrawn_count := outcomes.count(WITHDRAWN):
        texts.append(f"{withdrawn_count:,} withdrawn")
    return "; ".join(texts)


def _recent_usd_text(
    recommendations: Iterable[FamilyRecommendation], digest: Digest, days: int
) -> str:
    amounts = (
        recommendation.recent_amounts(digest.now, days)
        for recommendation in recommendations
        if recommendation.amount_kind is AmountKind.COUNTED
    )
    return str(sum_figures(map(Figure, chain.from_iterable(amounts))))
