"""A message about a job that runs as a card: what it costs, and the command that stops it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.course import possible_resume_source
from sageaudit.domain.job.job import Job, Purchase, duration_text, seconds_between
from sageaudit.domain.running import (
    EQUIVALENT_RULES,
    RunningJob,
    RunningKind,
    RunTimeLimit,
    WatchState,
    working_since,
)
from sageaudit.output.text.card import CardLine, MessageCard, fit_card, text_attributes
from sageaudit.output.text.links import RunToLink, run_links
from sageaudit.output.text.money import Figure
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import MAX_ACCOUNT_LENGTH, count_text, place_words

RUNNING_ROWS = 20
"""A screen and a half of a phone: the commands are not cut."""
_NAME = 30
_TWO_HOURS_S = 7200
_LINK_MARGIN = timedelta(minutes=30)
"""Of the log, before the job did nothing: `aws logs tail` takes a moment of ISO 8601."""
_WAITS = "A run that waits for a query or for another job looks the same."


def running_card(
    kinds: Sequence[RunningKind], running: RunningJob, state: WatchState, severity: Severity
) -> MessageCard:
    """The card: its first line is that of the first kind. `state`: what was kept before it."""
    (first, *others), job = kinds, running.job
    over = first is RunningKind.RESUMED
    card = MessageCard(
        headline=f"{_job_text(running)} {_HEADLINES[first](running, state)}",
        next_step=_cost_meanwhile(running, state) if over else _costs(running),
        lines=(
            *(CardLine(_HEADLINES[kind](running, state), "It also") for kind in others),
            *_LINES[first](running),
            *(_limit_lines(running) if RunningKind.LIMIT in others else ()),
            *_money(running),
            *(() if over else _commands(running, idle=RunningKind.IDLE in kinds)),
            *([CardLine(_WAITS, "Caveat", drop_priority=2)] if first is RunningKind.IDLE else []),
        ),
        owner=running.owner,
        account_region=place_words(job.account, job.region),
        links=run_links(_run_to_link(job)),
        rule=next(iter(EQUIVALENT_RULES[first]), ""),
        attributes=text_attributes(
            {
                "month_severity": severity,
                "job_type": job.kind.value,
                "owner": running.owner,
                "account": job.account,
                "region": job.region,
                "message_kind": "running",
                "running": first,
            }
        ),
    )
    return fit_card(card, RUNNING_ROWS)


def _run_to_link(job: Job) -> RunToLink:
    start = job.started_at or job.created_at
    return RunToLink(job.kind, job.name, job.arn, job.region, start, None, job.instance_count)


def _commands(running: RunningJob, *, idle: bool) -> Iterator[CardLine]:
    """What a person of the account may run; no function calls it."""
    job, region = running.job, shlex.quote(for_terminal(running.job.region or ""))
    name, word, metrics = shlex.quote(for_terminal(job.name)), job.kind.value, job.kind.spec.metrics
    if metrics is not None:
        tail = f"aws logs tail {metrics.namespace} --log-stream-name-prefix {name}/"
        since = running.idleness.idle_since if running.idleness and idle else None
        begin = f"{(since - _LINK_MARGIN).astimezone(UTC):%Y-%m-%dT%H:%M:00Z}" if since else "2h"
        look = f"{tail} --since {begin} --region {region}"
        yield CardLine(look, "Look first", is_code=True, drop_priority=3)
    stop = f"aws sagemaker stop-{word}-job --{word}-job-name {name} --region {region}"
    where = f", in account {cut_middle(job.account, MAX_ACCOUNT_LENGTH)}" if job.account else ""
    yield CardLine(stop, f"Stop it{where}", is_code=True)


def _job_text(running: RunningJob) -> str:
    """`ml.p4d.24xlarge training job llm-7b`."""
    job = running.job
    instances = (job.instances or "").removeprefix("1 x ")
    return f"{instances} {job.kind.value} job {cut_middle(for_terminal(job.name), _NAME)}".strip()


def _costs(running: RunningJob) -> str:
    """`it costs $37.69 an hour`; of one without a price, how many GPUs it has."""
    if running.usd_per_hour is None:
        prepaid = " of prepaid capacity" if running.job.purchase is Purchase.TRAINING_PLAN else ""
        return f"it holds {count_text(running.gpus, 'GPU')}{prepaid}"
    return f"it costs {_usd(running, running.usd_per_hour)} an hour"


def _cost_meanwhile(running: RunningJob, state: WatchState) -> str:
    """What the time without work cost; empty where that is not known."""
    seconds, rate = _idle_seconds(running, state), running.usd_per_hour
    if seconds is None or rate is None:
        return ""
    return f"it cost {_usd(running, rate * seconds / 3600)} meanwhile"


def _idle_seconds(running: RunningJob, state: WatchState) -> Decimal | None:
    since, back = state.idle_since, running.idleness.resumed_at if running.idleness else None
    began = working_since(running.job)
    if since is None or back is None or (began and began > since):
        return None  # it waited in between, which costs nothing
    return seconds_between(since, back)


def _usd(running: RunningJob, amount: Decimal | None) -> str:
    """Of spot, which costs less, the most that it may be."""
    return str(Figure(amount, estimated=running.estimated, at_most=running.is_upper_bound))


def _duration_text(seconds: Decimal) -> str:
    """Up to two hours in minutes: `50 min`; then `3 h 5 min`."""
    return f"{seconds / 60:.0f} min" if seconds < _TWO_HOURS_S else duration_text(seconds)


def _time_text(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment else "an unknown time"


def _idle_headline(running: RunningJob, state: WatchState) -> str:
    again = " again" if state.idle_message_count else ""
    least = "at least " if running.idleness and running.idleness.is_at_least else ""
    minutes = Decimal(running.idleness.idle_minutes if running.idleness else 0)
    what = "no GPU work" if running.gpus else "nothing"
    return f"has{again} done {what} for {least}{_duration_text(60 * minutes)}"


def _at_work_headline(running: RunningJob, state: WatchState) -> str:
    seconds = _idle_seconds(running, state)
    after = "" if seconds is None else f" after {_duration_text(seconds)} without work"
    return f"is at work again{after}"


def _long_headline(running: RunningJob, _: WatchState) -> str:
    longest_s, ran_s = running.runs.longest_s or Decimal(1), running.ran_s or Decimal(0)
    times = f"{ran_s / longest_s:.1f} times"
    return f"has run {times} as long as the longest of its finished runs on the same instances"


def _limit_headline(running: RunningJob, _: WatchState) -> str:
    limit = running.limit
    left, sure = (
        (_duration_text(limit.left_s), limit.is_unlikely_to_finish)
        if limit
        else ("an unknown time", False)
    )
    return (
        f"will probably be cut off in {left}" if sure else f"has {left} left {_limit_text(limit)}"
    )


def _limit_text(limit: RunTimeLimit | None) -> str:
    return "until its waiting limit" if limit and limit.includes_waiting else "until its limit"


_HEADLINES = {
    RunningKind.IDLE: _idle_headline,
    RunningKind.RESUMED: _at_work_headline,
    RunningKind.LONG_RUN: _long_headline,
    RunningKind.LIMIT: _limit_headline,
}


def _idle_lines(running: RunningJob) -> Iterator[CardLine]:
    since = running.idleness.idle_since if running.idleness else None
    what = "no GPU worked, at most one core busy" if running.gpus else "all CPUs idle"
    hosts = "on every host " if (running.job.instance_count or 1) > 1 else ""
    yield CardLine(f"{hosts}{what} since {_time_text(since)}", "Seen", drop_priority=1)


def _at_work_lines(running: RunningJob) -> Iterator[CardLine]:
    yield CardLine(
        "work began again at"
        f" {_time_text(running.idleness.resumed_at if running.idleness else None)}",
        "Seen",
    )


def _long_lines(running: RunningJob) -> Iterator[CardLine]:
    runs, longest_s = running.runs, running.runs.longest_s or Decimal(0)
    of = (
        f"the longest of {len(runs.all_s)} finished runs"
        if runs.all_s[1:]
        else "its one finished run"
    )
    took = f"{of} took {_duration_text(longest_s)}"
    yield CardLine(f"{took}; this one {_duration_text(running.ran_s or Decimal(0))} so far", "Seen")


def _limit_lines(running: RunningJob) -> Iterator[CardLine]:
    limit = running.limit
    if limit and limit.is_unlikely_to_finish:
        completed = count_text(limit.completed_runs, "completed run")
        runs = f"{limit.slower_runs} of the last {completed} of its family"
        yield CardLine(f"{runs} would need longer than is left", "Seen")
    part = possible_resume_source(running.job)
    lost = f"{part} may hold a part" if part else "it has no checkpoints, so all may be lost"
    whole = duration_text(Decimal(limit.seconds)) if limit else "unknown"
    yield CardLine(f"{whole}, and cannot be raised while it runs; {lost}", "The limit")
    is_idle = running.idleness is not None and running.idleness.idle_since is not None
    step = "start the next run with a higher limit"
    if is_idle:
        step = "read its log for what it waits for: a higher limit only lets it wait longer"
    yield CardLine(f"copy checkpoints out, or {step}", "Next")


_LINES = {
    RunningKind.IDLE: _idle_lines,
    RunningKind.RESUMED: _at_work_lines,
    RunningKind.LONG_RUN: _long_lines,
    RunningKind.LIMIT: _limit_lines,
}


def _money(running: RunningJob) -> Iterator[CardLine]:
    """What it has cost, and what it may cost until its limit."""
    ran_s, limit, rate = running.ran_s, running.limit, running.usd_per_hour
    so_far = f"in {_duration_text(ran_s)}" if ran_s is not None else "in a time that is not known"
    usd = f"{_usd(running, running.spent_usd)} " if rate is not None else ""
    yield CardLine(f"{usd}{so_far}", "So far")
    if limit is None:
        yield CardLine("it has no time limit that is known", "Ahead")
        return
    more = (
        ""
        if rate is None
        else f"up to {Figure(running.remaining_cost_usd, estimated=running.estimated)} more, "
    )
    yield CardLine(f"{more}{_duration_text(limit.left_s)} {_limit_text(limit)}", "Ahead")
