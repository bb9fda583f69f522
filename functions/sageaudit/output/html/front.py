"""The first screen of an account's report: headline, what to change, figures, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from sageaudit.domain.advice.advice import WORDS, Advice
from sageaudit.domain.advice.comparison import Comparison
from sageaudit.domain.audit.finding_document import Worth
from sageaudit.domain.audit.sums import ChangedFamily, RuleSums, Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.html.contents import AccountReport, DaysBefore, FirstChange
from sageaudit.output.html.job_table import family_name
from sageaudit.output.html.markup import Child, Markup, join, path, table, tag
from sageaudit.output.html.page import codes, section, tiles
from sageaudit.output.text.amounts import of_rule, of_sums
from sageaudit.output.text.finding import parts_of
from sageaudit.output.text.headline import (
    account_headline,
    coverage_headline,
    judged_figure,
    judged_jobs,
    outside_words,
    part_of_judged,
    period_words,
)
from sageaudit.output.text.money import (
    DOWN,
    NEAREST,
    Figure,
    percent_change,
    share,
    signed,
    together,
)
from sageaudit.output.text.notes import advice_words, price_dates
from sageaudit.output.text.words import counted
from sageaudit.structs import replace

_CHANGES = 10
_MONTH_DAYS = 30
_LEAST_DAYS = 7
"""One run, fewer days than a week, and less than a dollar say nothing about a month."""
_ZERO = Decimal(0)
_CENT = Decimal("0.01")
_NO_SUM = "not in the totals"
_ADVISED = (
    "By the runs of 180 days. 30 days: the avoidable and lost dollars of what nobody followed yet."
    " Predicted and measured: of all runs since it was followed; until it was undone, if ended."
    " Each row stands alone."
)
_NEW = "Nothing is compared: the history does not cover the {days} before."


def first_screen(report: AccountReport) -> Markup:
    """From the headline to what changed."""
    cards = tag("div", (_card(report, one) for one in report.advice), class_="cards")
    to_do = section("What to change first", cards, id_="to-do") if report.advice else None
    doubts, advised = _doubts(report.total), _advised(report)
    return join([_lead(report), to_do, _tiles(report), doubts, _changes(report), advised])


def _lead(report: AccountReport) -> Markup:
    dates = price_dates([one.document for one in report.details.values()])
    facts = ["Days in UTC, by the end of the job", dates]
    period = period_words(report.since, report.until)
    bill = report.coverage
    return join(
        [
            tag("p", f"{report.scope} · SageMaker jobs, {period}", class_="eyebrow"),
            tag("h1", f"{account_headline(report.total)}.", class_="headline"),
            tag("p", f"{coverage_headline(bill)}. {outside_words(bill)}") if bill else None,
            tag("p", " · ".join(fact for fact in facts if fact), class_="note"),
        ]
    )


def _card(report: AccountReport, advice: FirstChange) -> Markup:
    """What to change in a family: dollars, the fix to paste, the run to look at."""
    finding = parts_of(advice.fix.finding)
    ways = finding.ways[:1]
    kind = report.heads[advice.at].kind
    sums = next(of.sums for of in report.by if of.column == "Family")[advice.family]
    rule = sums.rules.get(finding.rule, RuleSums())
    runs = f"{finding.rule} in {rule.findings:,} of {counted(sums.jobs, 'job')}; look at "
    return tag(
        "article",
        tag("h3", tag("bdi", path(family_name(advice.family)))),
        tag("p", _worth(report, rule, Bucket(advice.fix.finding["bucket"])), class_="amount"),
        tag("p", finding.summary),
        tag("div", (codes(kind, way) for _, way in ways if way), class_="fix"),
        [tag("p", title) for title, way in ways if not way],
        tag("p", runs, tag("a", advice.fix.job, href=f"#j{advice.at}"), class_="note"),
        class_="card",
    )


def _worth(report: AccountReport, rule: RuleSums, bucket: Bucket) -> Markup:
    """`about $220 a month, avoidable`; `$10.38, lost` of one run, or of less than a week."""
    avoidable, lost, possible = of_rule(rule)
    figure = together((avoidable, lost)) if bucket.counted else possible
    days = (report.until - max(report.since, min(report.days, default=report.since))).days + 1
    ends = (figure.usd or _ZERO, figure.most or _ZERO)
    usd, most_usd = (end * _MONTH_DAYS / days for end in ends)
    known = rule.findings > 1 and days >= _LEAST_DAYS and usd >= 1
    if known:
        figure = replace(figure, usd=usd, most_usd=most_usd, rough=DOWN)
    word = bucket.value if bucket.counted else "worth a trial"
    return join([tag("strong", str(figure)), f"{' a month' if known else ''}, {word}"])


def _tiles(report: AccountReport) -> Markup:
    total, before = report.total, report.before
    found, then = of_sums(total), of_sums(before.total) if before else None
    judged = judged_figure(total)
    of_spend = f"{share(total.judged_usd, total.total_usd)} of spend; " if total.total_usd else ""
    idle = _NO_SUM
    if total.idle_counted_usd:
        idle = f"{Figure(total.idle_counted_usd, rough=NEAREST)} of it is counted already"
    lost = ""
    if found.lost.most and total.total_usd:
        lost = f"{share(found.lost.most, total.total_usd)} of spend"

    def note(words: str, name: str) -> str:
        earlier = getattr(then, name) if then else None
        return "; ".join(filter(None, (words, _against(getattr(found, name), earlier))))

    judged_part = part_of_judged(found.avoidable, total)
    return tiles(
        ("avoidable", "Avoidable", str(found.avoidable), note(judged_part, "avoidable")),
        ("spent", "Spend", str(found.spend), note(counted(total.jobs, "job"), "spend")),
        ("judged", "Judged", str(judged), f"{of_spend}{judged_jobs(total)}"),
        ("lost", "Lost", str(found.lost), note(lost, "lost")),
        ("possible", "Possible", str(found.possible), f"worth a trial; {_NO_SUM}"),
        ("idle", "Idle capacity", str(found.idle), idle),
    )


def _against(now: Figure, before: Figure | None) -> str | None:
    """`$54,000.00 before (+12%)`."""
    if before is None or (before.usd or _ZERO) < _CENT:
        return None
    change = percent_change(now, before, places=0) if now.usd else None
    return f"{before} before ({change})" if change else f"{before} before"


def _doubts(total: Sums) -> Markup | None:
    """Why the sums may be less than the whole, one sentence each."""
    known = [
        (total.unpriced, "has", "have", "no known cost: they are not in the sums"),
        (total.incomplete, "lacks", "lack", "a part of the bill: sums are at least this much"),
        (total.upper_bounds, "has", "have", "no billable seconds: sums are at most this much"),
        (total.estimated, "is", "are", "billed at an estimated rate: sums are estimates"),
        (total.unauditable, "was", "were", "deleted or could not be described: not in the sums"),
    ]
    lines = [
        tag("li", f"{counted(count, 'job')} {one if count == 1 else many} {rest}.")
        for count, one, many, rest in known
        if count
    ]
    return tag("ul", lines, class_="doubts") if lines else None


def _changes(report: AccountReport) -> Markup | None:
    """The families whose spend changed most, against as many days before."""
    before = report.before
    if before is None:
        days = counted((report.until - report.since).days + 1, "day")
        return tag("p", _NEW.format(days=days), class_="note") if report.total.jobs else None
    rows = [[*_change(report, one)] for one in before.changes[:_CHANGES]]
    titles = ("Family", "Change", "Spend", "Before", "Difference", "Jobs", "Jobs before", "Advice")
    numbers = titles[2:-1]
    return section(
        "What changed",
        table(titles, rows, "What changed", numbers=numbers) if rows else None,
        note=_changed_words(before),
    )


def _change(report: AccountReport, of: ChangedFamily) -> Iterator[Child]:
    families = next(one for one in report.by if one.column == "Family")
    now = families.sums.get(of.family, Sums())
    then = (families.before or {}).get(of.family, Sums())
    yield path(family_name(of.family))
    yield of.word
    yield str(of_sums(now).spend)
    yield str(of_sums(then).spend)
    yield signed(of.change_usd, of.qualifier)
    yield f"{of.jobs:,}"
    yield f"{of.jobs_before:,}"
    yield advice_words(one for one in report.advised if one.family == of.family)


def _changed_words(before: DaysBefore) -> str:
    """`Families: 2 dearer, 1 new. Compared with 2026-09-23 to 2026-10-23, as many days before.`"""
    counts = Counter(one.word for one in before.changes)
    words = ", ".join(f"{count:,} {word}" for word, count in counts.most_common())
    more = f" The {_CHANGES} largest changes:" if len(before.changes) > _CHANGES else ""
    days = period_words(before.since, before.until)
    return f"Families: {words or 'no change'}. Compared with {days}, as many days before.{more}"


def _advised(report: AccountReport) -> Markup | None:
    """What came of advices: a row of each state, whose dollars are in no sum with another's."""
    end = datetime.combine(report.until, time(), UTC) + timedelta(days=1)
    rows: list[Sequence[Child]] = []
    for word in WORDS:
        found = [one for one in report.advised if one.word == word]
        if found:
            rows.append([word.capitalize(), f"{len(found):,}", *_came_of(found, end)])
    if ended := [part for one in report.advised for part in one.ended]:
        rows.append(["Ended", f"{len(ended):,}", "-", *_compared(ended)])
    titles = ("State", "Advices", "30 days", "Predicted", "Measured")
    if not rows:
        return None
    cells = table(titles, rows, "What came of advice", numbers=titles[1:])
    return section("What came of advice", cells, note=_ADVISED)


def _came_of(found: Sequence[Advice], end: datetime) -> Iterator[str]:
    """Avoidable and lost dollars of 30 days of what nobody followed yet; what was followed has what
    it was to save, and what it did.
    """
    untaken = [one for one in found if one.comparison is None and one.worth is Worth.COUNTED]
    yield _known(
        together(map(Figure, one.amounts_of_days(end, _MONTH_DAYS))).usd for one in untaken
    )
    yield from _compared([one.comparison for one in found if one.comparison])


def _compared(parts: Sequence[Comparison]) -> Iterator[str]:
    yield _known(part.all_predicted_usd for part in parts)
    yield _known(part.all_saved_usd for part in parts)


def _known(amounts: Iterable[Decimal | None]) -> str:
    """The sum of what is known; "-" where nothing is."""
    known = [usd for usd in amounts if usd is not None]
    return str(Figure(sum(known, _ZERO))) if known else "-"
