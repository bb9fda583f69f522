"""Spend over time: a bar for each day, week or month, with its avoidable and lost part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

from sageaudit.domain.audit.sums import Sums
from sageaudit.output.html.markup import (
    Markup,
    data,
    drawing,
    figure,
    percent,
    pieces_of,
    plot,
    tag,
)
from sageaudit.output.text.amounts import TITLES, of_sums
from sageaudit.output.text.money import usd
from sageaudit.output.text.words import counted

Step = Literal["day", "week", "month"]

_HEIGHT = 190
_MOST_DAYS, _MOST_WEEKS = 45, 53
_LABELS = 5
_NICE = tuple(map(Decimal, ("1", "1.5", "2", "3", "4", "5", "6", "8", "10")))


def spend_over_time(days: Mapping[date, Sums], since: date, until: date) -> Markup:
    """The chart with its table; days up to 45 of them, weeks up to a year, else months.

    It begins with the first day and ends with the last day on which a job ended.
    """
    since, until = max(since, min(days, default=since)), min(until, max(days, default=until))
    step = _step(since, until)
    begins = list(_begins(since, until, step))
    sums = {begin: Sums() for begin in begins}
    for day, of_day in days.items():
        sums[_begin(day, step)] += of_day
    top = _ceiling(max((one.total_usd for one in sums.values()), default=Decimal(0)))
    bars = [_bar(at, len(begins), pair, top, step) for at, pair in enumerate(sums.items())]
    label = f"Spend by {step} from {since} to {until}, with its avoidable and lost part"
    grid = [tag("line", x1=0, x2="100%", y1=y, y2=y, class_="grid") for y in (1, _HEIGHT // 2)]
    svg = drawing(label, _HEIGHT, grid, bars)
    names = [_named(begin, step) for begin in begins]
    rows = (
        (name, f"{one.jobs:,}", *map(str, of_sums(one)[:3]))
        for name, one in zip(names, sums.values(), strict=True)
    )
    return figure(
        (f"Spend by {step} ", _legend()),
        plot((_axis(top), _axis(top / 2), "$0"), _some(names), svg),
        data((step.capitalize(), "Jobs", *TITLES[:3]), rows, f"spend by {step}"),
    )


def _step(since: date, until: date) -> Step:
    days = (until - since).days + 1
    return "day" if days <= _MOST_DAYS else "week" if days <= _MOST_WEEKS * 7 else "month"


def _begin(day: date, step: Step) -> date:
    """The day on which a week (from Monday) or a month begins."""
    if step == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if step == "month" else day


def _begins(since: date, until: date, step: Step) -> Iterator[date]:
    begin = _begin(since, step)
    while begin <= until:
        yield begin
        begin = _begin(begin + timedelta(days={"day": 1, "week": 7, "month": 31}[step]), step)


def _bar(at: int, count: int, pair: tuple[date, Sums], top: Decimal, step: Step) -> Markup:
    begin, sums = pair
    width = 100 / count
    place = {"x": f"{at * width + width * 0.1:.2f}%", "width": f"{width * 0.8:.2f}%"}
    rects, bottom = [], Decimal(_HEIGHT)
    for piece in pieces_of(sums):
        if piece.usd > 0 and top > 0:
            height = Decimal(percent(piece.usd, top)) * _HEIGHT / 100
            bottom -= height
            drawn = {"y": float(bottom), "height": float(height)}
            rects.append(tag("rect", **place, **drawn, class_=piece.kind))
    spend, avoidable, lost, *_ = of_sums(sums)
    title = f"{_named(begin, step)}: {spend} of {counted(sums.jobs, 'job')}"
    return tag("g", tag("title", f"{title}, {avoidable} avoidable, {lost} lost"), rects)


def _legend() -> Markup:
    return tag(
        "span", (tag("span", tag("i", class_=kind), word) for word, kind in _KINDS), class_="legend"
    )


_KINDS = (("needed or not judged", "spent"), ("avoidable", "avoidable"), ("lost", "lost"))


def _ceiling(amount: Decimal) -> Decimal:
    """The end of the axis: a round number not far above the amount."""
    if amount <= 0:
        return Decimal(0)
    power = Decimal(1).scaleb(amount.adjusted())
    return next(power * nice for nice in _NICE if power * nice >= amount)


def _axis(amount: Decimal) -> str:
    return usd(amount).removesuffix(".00")


def _named(begin: date, step: Step) -> str:
    if step == "month":
        return f"{begin:%b %Y}"
    return f"{'week of ' if step == 'week' else ''}{begin.day} {begin:%b}"


def _some(names: list[str]) -> list[str]:
    """The first, the last and some between them."""
    if len(names) <= _LABELS:
        return names
    return [names[(len(names) - 1) * at // (_LABELS - 1)] for at in range(_LABELS)]
