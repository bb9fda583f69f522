"""The card about a running job: what it does, what it costs, and the command that stops it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.course import possible_resume_source
from sageaudit.domain.job.job import Job, Purchase, duration_text, minutes_text, seconds_between
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
"""The rows fill one and a half screens of a phone, because commands are not cut."""
_MAX_NAME_LENGTH = 30
_LOG_MARGIN = timedelta(minutes=30)
"""The command shows the log from this long before the idle time."""
_IDLE_CAVEAT = "A run that waits for a query or for another job looks the same."


def running_card(
    kinds: Sequence[RunningKind], running_job: RunningJob, state: WatchState, severity: Severity
) -> MessageCard:
    """Returns the card about a running job. Its headline is about the first of `kinds`.

    `state`: the state that was stored before this message.
    """
    (first, *others), job = kinds, running_job.job
    has_resumed = first is RunningKind.RESUMED
    is_idle = first is RunningKind.IDLE
    card = MessageCard(
        headline=f"{_job_text(running_job)} {_HEADLINES[first](running_job, state)}",
        next_step=_idle_cost_text(running_job, state) if has_resumed else _rate_text(running_job),
        lines=(
            *(CardLine(_HEADLINES[kind](running_job, state), "It also") for kind in others),
            *_LINES[first](running_job),
            *(_limit_lines(running_job) if RunningKind.LIMIT in others else ()),
            *_cost_lines(running_job),
            *(
                ()
                if has_resumed
                else _command_lines(running_job, is_idle=RunningKind.IDLE in kinds)
            ),
            *([CardLine(_IDLE_CAVEAT, "Caveat", drop_priority=2)] if is_idle else []),
        ),
        scope=running_job.owner,
        place_or_period=place_words(job.account, job.region),
        links=run_links(_run_to_link(job)),
        rule=next(iter(EQUIVALENT_RULES[first]), ""),
        attributes=text_attributes(
            {
                "month_severity": severity,
                "job_type": job.kind.value,
                "owner": running_job.owner,
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


def _command_lines(running_job: RunningJob, *, is_idle: bool) -> Iterator[CardLine]:
    """Yields the lines with commands to copy. sageaudit runs none of them."""
    job, region = running_job.job, shlex.quote(for_terminal(running_job.job.region or ""))
    name, kind, metrics = shlex.quote(for_terminal(job.name)), job.kind.value, job.kind.spec.metrics
    if metrics is not None:
        tail_command = f"aws logs tail {metrics.namespace} --log-stream-name-prefix {name}/"
        idle_since = running_job.idleness.idle_since if running_job.idleness and is_idle else None
        log_start_text = "2h"
        if idle_since:
            log_start_text = f"{(idle_since - _LOG_MARGIN).astimezone(UTC):%Y-%m-%dT%H:%M:00Z}"
        log_command = f"{tail_command} --since {log_start_text} --region {region}"
        yield CardLine(log_command, "Look first", is_code=True, drop_priority=3)
    stop_command = f"aws sagemaker stop-{kind}-job --{kind}-job-name {name} --region {region}"
    account_text = (
        f", in account {cut_middle(job.account, MAX_ACCOUNT_LENGTH)}" if job.account else ""
    )
    yield CardLine(stop_command, f"Stop it{account_text}", is_code=True)


def _job_text(running_job: RunningJob) -> str:
    job = running_job.job
    instances_text = (job.instances or "").removeprefix("1 x ")
    name = cut_middle(for_terminal(job.name), _MAX_NAME_LENGTH)
    return f"{instances_text} {job.kind.value} job {name}".strip()


def _rate_text(running_job: RunningJob) -> str:
    if running_job.usd_per_hour is None:
        prepaid_text = (
            " of prepaid capacity" if running_job.job.purchase is Purchase.TRAINING_PLAN else ""
        )
        return f"it occupies {count_text(running_job.gpus, 'GPU')}{prepaid_text}"
    return f"it costs {_usd_text(running_job, running_job.usd_per_hour)} an hour"


def _idle_cost_text(running_job: RunningJob, state: WatchState) -> str:
    seconds, usd_per_hour = _idle_seconds(running_job, state), running_job.usd_per_hour
    if seconds is None or usd_per_hour is None:
        return ""
    return f"it cost {_usd_text(running_job, usd_per_hour * seconds / 3600)} meanwhile"


def _idle_seconds(running_job: RunningJob, state: WatchState) -> Decimal | None:
    idle_since = state.idle_since
    resumed_at = running_job.idleness.resumed_at if running_job.idleness else None
    started_at = working_since(running_job.job)
    if idle_since is None or resumed_at is None or (started_at and started_at > idle_since):
        return None  # it waited in between, which costs nothing
    return seconds_between(idle_since, resumed_at)


def _usd_text(running_job: RunningJob, amount: Decimal | None) -> str:
    return str(Figure(amount, estimated=running_job.estimated, at_most=running_job.is_upper_bound))


def _minutes_text(seconds: Decimal) -> str:
    return minutes_text(seconds / 60)


def _time_text(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment else "an unknown time"


def _idle_headline(running_job: RunningJob, state: WatchState) -> str:
    again_word = " again" if state.idle_message_count else ""
    bound_text = "at least " if running_job.idleness and running_job.idleness.is_at_least else ""
    minutes = Decimal(running_job.idleness.idle_minutes if running_job.idleness else 0)
    work_text = "no GPU work" if running_job.gpus else "nothing"
    return f"has{again_word} done {work_text} for {bound_text}{_minutes_text(60 * minutes)}"


def _at_work_headline(running_job: RunningJob, state: WatchState) -> str:
    seconds = _idle_seconds(running_job, state)
    idle_text = "" if seconds is None else f" after {_minutes_text(seconds)} without work"
    return f"is at work again{idle_text}"


def _long_headline(running_job: RunningJob, _: WatchState) -> str:
    longest_s, ran_s = running_job.runs.longest_s or Decimal(1), running_job.ran_s or Decimal(0)
    times_text = f"{ran_s / longest_s:.1f} times"
    return (
        f"has run {times_text} as long as its family's longest finished run on the same instances"
    )


def _limit_headline(running_job: RunningJob, _: WatchState) -> str:
    limit = running_job.limit
    time_left_text = _minutes_text(limit.left_s) if limit else "an unknown time"
    if limit and limit.is_unlikely_to_finish:
        return f"will probably be stopped by its limit in {time_left_text}"
    return f"has {time_left_text} left {_limit_text(limit)}"


def _limit_text(limit: RunTimeLimit | None) -> str:
    return "until its waiting limit" if limit and limit.includes_waiting else "until its limit"


_HEADLINES = {
    RunningKind.IDLE: _idle_headline,
    RunningKind.RESUMED: _at_work_headline,
    RunningKind.LONG_RUN: _long_headline,
    RunningKind.LIMIT: _limit_headline,
}


def _idle_lines(running_job: RunningJob) -> Iterator[CardLine]:
    idle_since = running_job.idleness.idle_since if running_job.idleness else None
    use_text = "no GPU worked, at most one core busy" if running_job.gpus else "all CPUs idle"
    hosts_text = "on every host " if (running_job.job.instance_count or 1) > 1 else ""
    yield CardLine(
        f"{hosts_text}{use_text} since {_time_text(idle_since)}", "Seen", drop_priority=1
    )


def _at_work_lines(running_job: RunningJob) -> Iterator[CardLine]:
    yield CardLine(
        "work began again at"
        f" {_time_text(running_job.idleness.resumed_at if running_job.idleness else None)}",
        "Seen",
    )


def _long_lines(running_job: RunningJob) -> Iterator[CardLine]:
    runs, longest_s = running_job.runs, running_job.runs.longest_s or Decimal(0)
    longest_run_text = (
        f"the longest of {len(runs.all_s)} finished runs"
        if runs.all_s[1:]
        else "the only finished run"
    )
    ran_text = _minutes_text(running_job.ran_s or Decimal(0))
    text = f"{longest_run_text} took {_minutes_text(longest_s)}; this one has run for {ran_text}"
    yield CardLine(text, "Seen")


def _limit_lines(running_job: RunningJob) -> Iterator[CardLine]:
    limit = running_job.limit
    if limit and limit.is_unlikely_to_finish:
        completed_text = count_text(limit.completed_runs, "completed run")
        runs_text = f"{limit.slower_runs} of the last {completed_text} of its family"
        yield CardLine(f"{runs_text} would not finish in the time that is left", "Seen")
    source = possible_resume_source(running_job.job)
    loss_text = "it has no checkpoints, so all may be lost"
    if source:
        loss_text = f"{source} may hold part of its work"
    limit_text = duration_text(Decimal(limit.seconds)) if limit else "unknown"
    yield CardLine(f"{limit_text}, and cannot be raised while it runs; {loss_text}", "The limit")
    is_idle = running_job.idleness is not None and running_job.idleness.idle_since is not None
    step = "start the next run with a higher limit"
    if is_idle:
        step = "read in its log what it waits for: a higher limit only lets it wait longer"
    yield CardLine(f"copy checkpoints out, or {step}", "Next")


_LINES = {
    RunningKind.IDLE: _idle_lines,
    RunningKind.RESUMED: _at_work_lines,
    RunningKind.LONG_RUN: _long_lines,
    RunningKind.LIMIT: _limit_lines,
}


def _cost_lines(running_job: RunningJob) -> Iterator[CardLine]:
    ran_s, limit = running_job.ran_s, running_job.limit
    has_price = running_job.usd_per_hour is not None
    spent_text = f"{_usd_text(running_job, running_job.spent_usd)} " if has_price else ""
    time_text = f"in {_minutes_text(ran_s)}" if ran_s is not None else "in an unknown time"
    yield CardLine(f"{spent_text}{time_text}", "So far")
    if limit is None:
        yield CardLine("no known time limit", "Remaining")
        return
    remaining = Figure(running_job.remaining_cost_usd, estimated=running_job.estimated)
    cost_text = f"up to {remaining} more, " if has_price else ""
    text = f"{cost_text}{_minutes_text(limit.left_s)} {_limit_text(limit)}"
    yield CardLine(text, "Remaining")
