"""A message about a job that runs as a card: what it costs, and the command that stops it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from sageaudit.domain.alert.running import RULES, Limit, Look, RunningKind, WatchState
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.failure import may_resume_from
from sageaudit.domain.job.job import Purchase, duration
from sageaudit.output.text.attributes import text_attributes
from sageaudit.output.text.card import ROWS, CardLine, MessageCard, fitted
from sageaudit.output.text.links import LinkedRun, links_of
from sageaudit.output.text.money import Figure
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted

_NAME, _ACCOUNT = 40, 12
_WAITS = "A run that waits for a query or for another job looks the same."


def running_card(
    kind: RunningKind, look: Look, state: WatchState, severity: Severity
) -> MessageCard:
    """The card. `state`: what was kept before this message."""
    job, rule = look.job, next(iter(RULES[kind]), "")
    body = _LINES[kind](look, state)
    account = middle(job.account, _ACCOUNT) if job.account else "account unknown"
    over = kind is RunningKind.AT_WORK
    card = MessageCard(
        news=_NEWS[kind](look, state),
        lines=tuple(body) if over else (*body, CardLine(stop_command(look), "Stop it", code=True)),
        owner=look.owner,
        place=f"{'at work' if over else severity.upper()}, {account}",
        links=links_of(
            LinkedRun(
                job.kind,
                job.name,
                job.arn,
                job.region,
                job.started_at or job.created_at,
                None,
                job.instance_count,
            )
        ),
        rule=rule,
        attributes=text_attributes(
            {
                "severity": severity,
                "job_type": job.kind.value,
                "owner": look.owner,
                "account": job.account,
                "region": job.region,
                "message_kind": kind,
            }
        ),
    )
    return fitted(card, ROWS)


def stop_command(look: Look) -> str:
    """What a person of the account may run; no function calls it."""
    word, name = look.job.kind.value, shlex.quote(terminal(look.job.name))
    region = shlex.quote(terminal(look.job.region or ""))
    return f"aws sagemaker stop-{word}-job --{word}-job-name {name} --region {region}"


def _who(look: Look) -> str:
    """`ml.p4d.24xlarge training job llm-7b`."""
    instances = (look.job.instances or "").removeprefix("1 x ")
    return f"{instances} {look.job.kind.value} job {middle(terminal(look.job.name), _NAME)}".strip()


def _costs(look: Look) -> str:
    """`costs $37.69 an hour`; of one without a price, how many GPUs it has."""
    if look.usd_per_hour is None:
        prepaid = look.job.purchase is Purchase.TRAINING_PLAN
        return f"holds {counted(look.gpus, 'GPU')}{' of prepaid capacity' if prepaid else ''}"
    most = "at most " if look.at_most else ""
    return f"costs {most}{_usd(look, look.usd_per_hour)} an hour"


def _usd(look: Look, amount: Decimal | None) -> str:
    return str(Figure(amount, estimated=look.estimated))


def _minutes(look: Look) -> str:
    idle = look.idle
    minutes = idle.minutes if idle else 0
    least = "at least " if idle and idle.at_least else ""
    return f"{least}{_long(Decimal(minutes * 60))}"


def _long(seconds: Decimal) -> str:
    """Up to two hours in minutes: `50 min`; then `3 h 5 min`."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else duration(seconds)  # noqa: PLR2004


def _idle_news(look: Look, state: WatchState) -> str:
    again = " again" if state.idle_told else ""
    return f"{_who(look)} has done nothing{again} for {_minutes(look)} and {_costs(look)}"


def _at_work_news(look: Look, state: WatchState) -> str:
    since, back = state.idle_since, look.idle.back_at if look.idle else None
    if since is None or back is None:
        return f"{_who(look)} is at work again"
    seconds = Decimal((back - since).total_seconds())
    cost = ""
    if look.usd_per_hour is not None:
        most = "at most " if look.at_most else ""
        cost = f", which cost {most}{_usd(look, look.usd_per_hour * seconds / 3600)}"
    return f"{_who(look)} is at work again after {_long(seconds)} without work{cost}"


def _long_news(look: Look, _: WatchState) -> str:
    longest_s, ran_s = look.runs.longest_s or Decimal(1), look.ran_s or Decimal(0)
    times = f"{ran_s / longest_s:.1f} times its family's longest run"
    return f"{_who(look)} has run for {_long(ran_s)}, {times}, and {_costs(look)}"


def _limit_news(look: Look, _: WatchState) -> str:
    limit = look.limit
    left = _long(limit.left_s) if limit else "unknown"
    if limit and limit.by_family:
        return f"{_who(look)} will probably reach its limit, in {left}, and {_costs(look)}"
    return f"{_who(look)} is ended by its limit in {left} if it is not done, and {_costs(look)}"


_NEWS = {
    RunningKind.IDLE: _idle_news,
    RunningKind.AT_WORK: _at_work_news,
    RunningKind.LONG: _long_news,
    RunningKind.LIMIT: _limit_news,
}


def _idle_lines(look: Look, _: WatchState) -> Iterator[CardLine]:
    since = look.idle.since if look.idle else None
    what = "no GPU worked, at most one core busy" if look.gpus else "all CPUs idle"
    hosts = "on every host, " if (look.job.instance_count or 1) > 1 else ""
    yield CardLine(f"{hosts}{what} since {_at(since)}", "Seen", spare=1)
    yield from _money(look)
    yield CardLine(_WAITS, "Caveat", spare=2)


def _at_work_lines(look: Look, _: WatchState) -> Iterator[CardLine]:
    yield CardLine(f"work began again at {_at(look.idle.back_at if look.idle else None)}", "Seen")
    yield from _money(look)


def _long_lines(look: Look, _: WatchState) -> Iterator[CardLine]:
    runs, longest_s = look.runs, look.runs.longest_s or Decimal(0)
    took = f"the longest of {counted(len(runs.all), 'finished run')} on the same instances"
    yield CardLine(f"{took} took {_long(longest_s)}", "Seen")
    yield from _money(look)


def _limit_lines(look: Look, _: WatchState) -> Iterator[CardLine]:
    limit = look.limit
    if limit and limit.by_family:
        runs = f"{limit.longer} of the last {counted(limit.of, 'completed run')} of its family"
        yield CardLine(f"{runs} took longer than the limit, {_whole(limit)}", "Seen")
    elif limit:
        yield CardLine(f"the limit is {_whole(limit)}; the job may end before", "Seen", spare=1)
    part = may_resume_from(look.job)
    lost = f"{part} may hold a part" if part else "no checkpoints are configured: all may be lost"
    yield CardLine(f"it is stopped; {lost}", "At the limit")
    yield from _money(look)


_LINES = {
    RunningKind.IDLE: _idle_lines,
    RunningKind.AT_WORK: _at_work_lines,
    RunningKind.LONG: _long_lines,
    RunningKind.LIMIT: _limit_lines,
}


def _whole(limit: Limit) -> str:
    return duration(Decimal(limit.seconds))


def _at(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment else "an unknown time"


def _money(look: Look) -> Iterator[CardLine]:
    """What it has cost, and what it may cost until its limit."""
    ran_s, limit = look.ran_s, look.limit
    so_far = f"in {_long(ran_s)}" if ran_s is not None else "its time so far is not known"
    if look.usd_per_hour is not None:
        most = "at most " if look.at_most else ""
        so_far = f"{most}{_usd(look, look.spent_usd)} {so_far}"
    yield CardLine(so_far, "So far")
    if limit is None:
        yield CardLine("no time limit is known: it may run until somebody stops it", "Ahead")
        return
    more = "" if look.ahead_usd is None else f"up to {_usd(look, look.ahead_usd)} more, "
    yield CardLine(f"{more}{_long(limit.left_s)} until its limit", "Ahead")
