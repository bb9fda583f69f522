"""Writes the digest of the newest week that is over, once, with a notice for each channel.

was it written? -> the week's figures -> report -> cards -> one transaction

The transaction has an item of the week, on condition that there is none: of two starts one writes.
The table's stream has the notices afterwards, as those of audits
(docs/decisions/0024-transactional-outbox.md). The report's name is that of the week, so that a
second start writes the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from msgspec import Struct

from sageaudit import __version__
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.advice.digest import Digest
from sageaudit.domain.job.listed import Period
from sageaudit.domain.policy.digest import DigestTimes
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route
from sageaudit.errors import AwsError
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.output.text.card import NOBODY, Notice, Writer, to_body
from sageaudit.output.text.digest import NO_REPORT, DigestReport, digest_card
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace, Link
from sageaudit.ports import Decisions, DigestLedger, History, ReportStore
from sageaudit.workflows.digest import digests
from sageaudit.workflows.report import ReportSource, account_report, heads_of

REPORT_DAYS = 30
_NOT_WRITTEN = "it could not be written: the log of digest says why"


class DigestDependencies(Struct, frozen=True):
    """What the digest reads, writes and is written by.

    `writers`: of each channel of the policy. `source`: what the report is read from, and `pages`
    where it goes; None for no report. `place`: the history that the commands of the digest ask.
    """

    history: History
    ledger: DigestLedger
    decisions: Decisions
    policy: Policy
    writers: Mapping[str, Writer]
    reports: ReportStore | None = None
    source: ReportSource | None = None
    place: HistoryPlace = OWN_HISTORY


class Digested(Struct, frozen=True):
    """A digest was written; `unwritten`: why its report was not. `left_out`: routes without
    a digest, and why.
    """

    last_day: date
    unwritten: AwsError | None
    left_out: tuple[str, ...]


def send_digest(deps: DigestDependencies, *, now: datetime) -> Digested | str:
    """Writes the digest of the newest week, or says why there is none.

    Raises AwsError, BadHistory or Malformed.
    """
    if never := why_no_digest(deps.policy):
        return never
    week = week_of(deps.policy, now)
    _, last_day = week
    written = f"the digest of the week to {last_day} was written before"
    if deps.ledger.has_digest(last_day):
        return written
    decided = deps.decisions.decisions()
    found = read_digests(deps, week, decided, now)
    report, unwritten = NO_REPORT, None
    try:
        report = _report(deps, last_day, decided, now)
    except AwsError as error:  # a digest without its report is better than none
        report, unwritten = DigestReport(missing=_NOT_WRITTEN), error
    routes, left_out = digest_routes(deps.policy)
    bodies = {}
    for number, digest in found.items():
        route, card = routes[number], digest_card(digest, report, deps.place)
        for channel in route.to if route else deps.policy.routes.default:
            payload = deps.writers[channel](card, NOBODY)
            notice = Notice(f"digest to {last_day}|{number}|{channel}", channel, payload)
            bodies[number, channel] = to_body(notice)
    done = deps.ledger.write_digest(last_day, bodies, now)
    return Digested(last_day, unwritten, left_out) if done else written


def why_no_digest(policy: Policy) -> str | None:
    """Why the policy has none sent."""
    if policy.mode == "observe":
        return "observe mode"
    return "the policy has switched it off" if policy.digest is None else None


def week_of(policy: Policy, now: datetime) -> tuple[date, date]:
    """The newest week that is over, by the policy or, where it has no digest, the usual one."""
    return (policy.digest or DigestTimes()).week(now)


def digest_routes(policy: Policy) -> tuple[dict[int, Route | None], tuple[str, ...]]:
    """By its number each route with a digest, 0 for all jobs; and of the others why they have none.

    The history knows only the tags that it shows. The spend of a route that selects advices alone
    would be that of all jobs.
    """
    routes: dict[int, Route | None] = {0: None}
    left_out = []
    for number, route in enumerate(policy.routes.rows, 1):
        if route.tag and route.tag[0] not in policy.tags_shown:
            left_out.append(f"{route}: none, as tags.show does not have its tag")
        elif not route.of_jobs:
            left_out.append(f"{route}: none, as it selects no jobs")
        else:
            routes[number] = route
    return routes, tuple(left_out)


def read_digests(
    deps: DigestDependencies, week: tuple[date, date], decided: Sequence[Decision], now: datetime
) -> dict[int, Digest]:
    """What the digests say, by the numbers of their routes."""
    routes, _ = digest_routes(deps.policy)
    found = digests(deps.history, week, routes.values(), decided, deps.ledger.alerts, now)
    return dict(zip(routes, found, strict=True))


def _report(
    deps: DigestDependencies, last_day: date, decided: Sequence[Decision], now: datetime
) -> DigestReport:
    """Stores the page of the last 30 days, and links it. Raises AwsError."""
    if deps.reports is None or deps.source is None:
        return NO_REPORT
    period = Period(last_day - timedelta(days=REPORT_DAYS - 1), last_day)
    heads, left_out = heads_of(deps.source, period, None)
    contents = account_report(deps.source, period, None, heads, left_out, last_day, decided)
    text = page(
        account_title(contents), account_body(contents), generated_at=now, version=__version__
    )
    url = deps.reports.put(f"{last_day}.html", "".join(text))
    return DigestReport(Link(f"Report of {REPORT_DAYS} days", url))
