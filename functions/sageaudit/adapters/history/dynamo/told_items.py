"""Converts what was told to and from attributes of items. Unknown values have no attribute.

Items of before there were figures in them are read too: a family's day named one audit (`audit`),
and a run's last notice was a text (`news`), such as "high $12.30"; it had no revision and no claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar, get_args

from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo.table import PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.moments import moment_text, read_moment
from sageaudit.domain.alert.family_day import DayClaim, FamilyDay, Telling
from sageaudit.domain.alert.news import IdleHours, News, Said
from sageaudit.domain.alert.rule import Tell, Why
from sageaudit.domain.alert.run_told import RunClaim, RunTold
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.usage.work_share import Unit
from sageaudit.errors import UNREADABLE, Malformed

T = TypeVar("T")
_OLD_NEWS = re.compile(r"(?P<severity>[a-z]+) (?:unknown|\$(?P<usd>[0-9,]+\.[0-9]+))")


def day_attributes(day: FamilyDay) -> Item:
    """The attributes of a family's day."""
    return {"revision": day.revision, "tellings": [_telling(one) for one in day.tellings]}


def read_day(item: Item) -> FamilyDay:
    """Raises Malformed for an item that sageaudit did not write."""
    with _named(item):
        if "tellings" not in item:
            run, _, version = item["audit"].rpartition("|")
            unknown = News(Severity.LOW, None, None)
            return FamilyDay(0, (Telling(run, Said(int(version), unknown, None)),))
        return FamilyDay(
            int(item["revision"]), tuple(_read_telling(one) for one in item["tellings"])
        )


def run_attributes(told: RunTold) -> Item:
    """The attributes of what was told of a run."""
    said = {} if told.said is None else _said(told.said)
    return _known({"revision": told.revision, "claim": _if(told.claim, _run_claim), **said})


def read_run(item: Item) -> RunTold:
    """Raises Malformed for an item that sageaudit did not write."""
    with _named(item):
        claim = _if(item.get("claim"), _read_run_claim)
        said = _read_notice(item) if {"news", "version"} & item.keys() else None
        return RunTold(int(item.get("revision", 0)), said, claim)


def _read_notice(item: Item) -> Said:
    return _read_old(item) if isinstance(item["news"], str) else _read_said(item)


def _telling(telling: Telling) -> Item:
    said = None if telling.said is None else _said(telling.said)
    claim = None if telling.claim is None else _claim(telling.claim)
    return _known({"run": telling.run, "said": said, "claim": claim})


def _read_telling(item: Item) -> Telling:
    return Telling(
        str(item["run"]), _if(item.get("said"), _read_said), _if(item.get("claim"), _read_claim)
    )


def _said(said: Said) -> Item:
    at = _if(said.at, moment_text)
    return _known({"version": said.version, "news": _news(said.news), "at": at})


def _read_said(item: Item) -> Said:
    return Said(int(item["version"]), _read_news(item["news"]), _if(item.get("at"), read_moment))


def _claim(claim: DayClaim) -> Item:
    return {
        "version": claim.version,
        "news": _news(claim.news),
        "until": moment_text(claim.until),
        "corrects": claim.corrects,
    }


def _read_claim(item: Item) -> DayClaim:
    news, until = _read_news(item["news"]), read_moment(item["until"])
    return DayClaim(int(item["version"]), news, until, bool(item["corrects"]))


def _run_claim(claim: RunClaim) -> Item:
    return {
        "version": claim.version,
        "news": _news(claim.news),
        "tell": _tell(claim.tell),
        "since": moment_text(claim.since),
        "until": moment_text(claim.until),
        "begun": claim.begun,
    }


def _read_run_claim(item: Item) -> RunClaim:
    return RunClaim(
        version=int(item["version"]),
        news=_read_news(item["news"]),
        tell=_read_tell(item["tell"]),
        since=read_moment(item["since"]),
        until=read_moment(item["until"]),
        begun=bool(item["begun"]),
    )


def _tell(tell: Tell) -> Item:
    return _known(
        {
            "idle": tell.idle,
            "nth": tell.nth,
            "why": _if(tell.why, lambda why: why.name),
            "after": _if(tell.after, _said),
            "corrects": _if(tell.corrects, _said),
        }
    )


def _read_tell(item: Item) -> Tell:
    return Tell(
        idle=bool(item["idle"]),
        nth=int(item["nth"]),
        why=_if(item.get("why"), lambda name: Why[name]),
        after=_if(item.get("after"), _read_said),
        corrects=_if(item.get("corrects"), _read_said),
    )


def _news(news: News) -> Item:
    return _known(
        {
            "severity": news.severity.value,
            "avoidable_usd": news.avoidable_usd,
            "lost_usd": news.lost_usd,
            "perhaps_usd": news.perhaps_usd,
            "idle": _if(news.idle, _idle),
        }
    )


def _read_news(item: Item) -> News:
    return News(
        severity=Severity(item["severity"]),
        avoidable_usd=_if(item.get("avoidable_usd"), Decimal),
        lost_usd=_if(item.get("lost_usd"), Decimal),
        perhaps_usd=Decimal(item["perhaps_usd"]),
        idle=_if(item.get("idle"), _read_idle),
    )


def _idle(idle: IdleHours) -> Item:
    return _known({"unit": idle.unit, "hours": idle.hours, "usd": idle.usd})


def _read_idle(item: Item) -> IdleHours:
    units: dict[str, Unit] = {unit: unit for unit in get_args(Unit)}
    return IdleHours(units[item["unit"]], Decimal(item["hours"]), _if(item.get("usd"), Decimal))


def _read_old(item: Item) -> Said:
    told = _OLD_NEWS.fullmatch(item["news"])
    if told is None:
        raise ValueError("news")
    usd = _if(told["usd"], lambda text: Decimal(text.replace(",", "")))
    return Said(int(item["version"]), News(Severity(told["severity"]), usd, None), None)


def _if(value: Any, read: Callable[[Any], T]) -> T | None:
    return None if value is None else read(value)


def _known(item: Item) -> Item:
    return {name: value for name, value in item.items() if value is not None}


@contextmanager
def _named(item: Item) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        where = f"{item.get(PARTITION_KEY)!r} {item.get(SORT_KEY)!r}"
        reason = f"cannot be read ({type(error).__name__}: {error}); delete it"
        raise Malformed(f"the item {where}", reason) from error
