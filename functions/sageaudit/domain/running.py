"""What is seen of a job that runs, and whether that is worth a message: no I/O.

It does nothing where its hosts stand still as in idle-middle, or where all of them are quiet and
no GPU works. What is not known says nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.bill.bill import billed_seconds
from sageaudit.domain.job.course import LIMIT_REACHED, is_work_phase
from sageaudit.domain.job.job import Job, Phase
from sageaudit.domain.policy.scope import WatchSettings
from sageaudit.domain.usage.edges import does_real_work, idle_tail_so_far, trim_to_last_points
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.structs import replace

METRICS_WINDOW = timedelta(hours=24)
"""How much of a running job's metrics is read: a day of minutes, as much as one read can have. The
first GPU work must be in it, because one busy core before it may prepare that work."""
MAX_METRIC_DELAY = timedelta(minutes=15)
"""Points that are later than this are no delay: then nothing is known. Our choice: AWS states no
delay, and a finished job's points are complete after 5 minutes."""
MAX_IDLE_MESSAGES = 3
"""Messages of a run that it does nothing: whoever left two unanswered knows of it. Our choice."""
MIN_COMPLETED_RUNS = 3
"""Fewer completed runs forecast no limit: our choice, as for a usual cost. One shows what is three
times too long."""
_MAX_COMPLETED_RUNS = 10
_MIN_LONG_RUN_S = 3600
"""A shorter run is not too long: the one before may have been a test. Our choice."""
_RESUMED_WINDOW_S = 900
"""A job is at work again where 5 of its last 15 minutes had work, and it is not idle for 5 since:
one minute is no work, and none is no all-clear. Our choice."""
_RESUMED_MIN_S = 300
_NEAR_LIMIT_DIVISOR = 10
"""A limit is near in its last tenth, or half hour, but never in its first half."""
_NEAR_LIMIT_S = 1800


class RunningKind(enum.StrEnum):
    """What a message about a running job is; subscriptions can filter by it."""

    IDLE = "idle"
    RESUMED = "at-work"
    LONG_RUN = "long"
    LIMIT = "limit"


EQUIVALENT_RULES = {
    RunningKind.IDLE: ("idle-middle", "idle-tail"),
    RunningKind.RESUMED: (),
    RunningKind.LONG_RUN: ("max-runtime-loose",),
    RunningKind.LIMIT: ("limit-hit",),
}
"""By kind, the rules that say the same of a finished job. One that is off, or whose finding a
family has accepted or snoozed, silences the message. Routes ask for the first one."""


class WatchState(Struct, frozen=True):
    """What is kept of a watched run. `revision` counts the writes; 0: nothing is kept.

    `usd_per_hour` and `gpus` of all its instances: neither changes while it runs. While
    `idle_since` is set, people think that it does nothing, as of `idle_until`; `channels` have had
    that message, the `idle_message_count`th. `sent` has the kinds that are sent once a run.
    """

    key: JobKey
    revision: int = 0
    usd_per_hour: Decimal | None = None
    gpus: int = 0
    idle_since: datetime | None = None
    idle_until: datetime | None = None
    idle_message_count: int = 0
    sent: frozenset[RunningKind] = frozenset()
    channels: tuple[str, ...] = ()
    messages: int = 0


class Idleness(Struct, frozen=True):
    """How a running job's metrics end: idle from `since` to `until`, the end of what is known.

    `since` is None where it is not idle there. `at_least`: it was idle in all of READ_BACK.
    `back_at`: when work began after the idle time of the message, if there was enough of it;
    `at_work`: there is enough of it in the last minutes.
    """

    idle_since: datetime | None
    known_until: datetime
    is_at_least: bool = False
    resumed_at: datetime | None = None
    is_working: bool = False

    @property
    def idle_minutes(self) -> int:
        """Known minutes without work."""
        return (
            0
            if self.idle_since is None
            else int((self.known_until - self.idle_since).total_seconds() // 60)
        )


def working_since(job: Job) -> datetime | None:
    """Since when the job's own code runs without a break; None where it does not run now.

    A job that waits, downloads, uploads or stops is not at work, and does not do nothing either.
    """
    last: Phase | None = job.phases[-1] if job.phases else None
    running = job.status == "InProgress" and last is not None and is_work_phase(last)
    return last.started_at if last is not None and running else None


def idleness(usage: Measurements, state: WatchState, now: datetime) -> Idleness | None:
    """How these metrics end; None where that is not known of every host."""
    known, period_s = trim_to_last_points(usage), usage.period_s or 0
    if known is None or known.begins_at is None:
        return None
    begins_at, period = known.begins_at, timedelta(seconds=period_s)
    until = begins_at + known.points * period
    if now - until > MAX_METRIC_DELAY:
        return None
    tail, works = idle_tail_so_far(known), does_real_work(known)
    last = works[-max(_RESUMED_WINDOW_S // period_s, 1) :]
    back = [
        moment
        for at, one in enumerate(works)
        if one and state.idle_until and (moment := begins_at + at * period) >= state.idle_until
    ]
    return Idleness(
        idle_since=begins_at + tail.start * period if tail else None,
        known_until=until,
        is_at_least=tail.start == 0 and until - begins_at >= METRICS_WINDOW - MAX_METRIC_DELAY,
        resumed_at=back[0] if len(back) * period_s >= _RESUMED_MIN_S else None,
        is_working=sum(last) * period_s >= _RESUMED_MIN_S > len(tail) * period_s,
    )


class FinishedRuns(Struct, frozen=True):
    """Seconds of a family's finished runs of a kind on the same instances, newest first.

    `completed` are those of them that no limit ended.
    """

    all_s: tuple[Decimal, ...] = ()
    completed_s: tuple[Decimal, ...] = ()

    @property
    def longest_s(self) -> Decimal | None:
        """The longest; None where none is known."""
        return max(self.all_s, default=None)


def finished_comparable_runs(job: Job, runs: Iterable[AuditSummary]) -> FinishedRuns:
    """The runs that took as long as their work does, or were ended by their limit."""
    if len(job.groups) != 1:
        return FinishedRuns()
    own = (job.kind.value, job.groups[0].instance_type, job.groups[0].count)
    like = [
        (run.status == "Completed", run.elapsed_s)
        for run in runs
        if (run.kind, run.instance_type, run.instance_count) == own
        and (run.status == "Completed" or run.reason == LIMIT_REACHED)
        and run.elapsed_s
    ]
    return FinishedRuns(
        tuple(seconds for _, seconds in like if seconds),
        tuple(seconds for completed, seconds in like if completed and seconds)[
            :_MAX_COMPLETED_RUNS
        ],
    )


class RunTimeLimit(Struct, frozen=True):
    """A job's time limit: `left_s` until it ends the job. `longer`: so many of the family's `of`
    last completed runs needed longer than until then. `waiting`: of a spot job's whole time.
    """

    seconds: int
    left_s: Decimal
    slower_runs: int = 0
    completed_runs: int = 0
    includes_waiting: bool = False

    @property
    def is_unlikely_to_finish(self) -> bool:
        """Whether most completed runs took longer: three of four, and RUNS_FROM are known."""
        return (
            self.completed_runs >= MIN_COMPLETED_RUNS
            and 4 * self.slower_runs >= 3 * self.completed_runs
        )


def next_limit(job: Job, runs: FinishedRuns, now: datetime) -> RunTimeLimit | None:
    """The limit that ends the job first: that of its run time, or of a spot job's whole time.

    Waiting counts for the second alone.
    """
    ran_s, limits = job.ran_s or billed_seconds(job)[0], list[tuple[Decimal, int, bool]]()
    if job.max_runtime_s is not None and ran_s is not None:
        limits.append((job.max_runtime_s - ran_s, job.max_runtime_s, False))
    if job.max_wait_s is not None and job.created_at is not None:
        since_s = Decimal(round((now - job.created_at).total_seconds()))
        limits.append((job.max_wait_s - since_s, job.max_wait_s, True))
    if not limits:
        return None
    left_s, seconds, waiting = min(limits)
    longer = sum(took_s - (ran_s or 0) > left_s for took_s in runs.completed_s)
    return RunTimeLimit(seconds, max(left_s, Decimal(0)), longer, len(runs.completed_s), waiting)


def is_limit_near(limit: RunTimeLimit, ran_s: Decimal, runs: FinishedRuns) -> bool:
    """Whether little is left of it, and no completed run of the family was still at work now."""
    near_s = min(max(limit.seconds / _NEAR_LIMIT_DIVISOR, _NEAR_LIMIT_S), limit.seconds / 2)
    usual = len(runs.completed_s) >= MIN_COMPLETED_RUNS and max(runs.completed_s) > ran_s
    return limit.left_s <= near_s and not usual


class RunningJob(Struct, frozen=True):
    """A running job as of now. `idle` is None where its metrics do not say.

    `usd_per_hour` of all instances, None without a price: `gpus` are theirs. `spent_usd` so far;
    `at_most`: both are bounds, as spot costs less. `estimated`: they rest on an estimated rate.
    """

    job: Job
    now: datetime
    family: str
    owner: str | None
    usd_per_hour: Decimal | None
    gpus: int
    spent_usd: Decimal | None
    is_upper_bound: bool
    estimated: bool
    runs: FinishedRuns
    idleness: Idleness | None

    @property
    def ran_s(self) -> Decimal | None:
        """Billed seconds so far."""
        return billed_seconds(self.job)[0]

    @property
    def limit(self) -> RunTimeLimit | None:
        """Its limit, and what is left of it."""
        return next_limit(self.job, self.runs, self.now)

    @property
    def remaining_cost_usd(self) -> Decimal | None:
        """What it costs at most from now until its limit; None without one or without a price."""
        if self.limit is None or self.usd_per_hour is None:
            return None
        return self.usd_per_hour * self.limit.left_s / 3600


def due_messages(
    running: RunningJob,
    state: WatchState,
    settings: WatchSettings,
    silenced_kinds: Collection[RunningKind] = (),
) -> tuple[RunningKind, ...]:
    """What is due, in one message: the first is its headline. Empty for none."""
    works = working_since(running.job) is not None
    due = {
        RunningKind.IDLE: _is_idle(running, state, settings),
        RunningKind.LIMIT: works and _is_near_limit(running),
        RunningKind.LONG_RUN: works and _is_long(running, settings),
        RunningKind.RESUMED: _has_resumed(running, state),
    }
    return tuple(kind for kind in due if due[kind] and kind not in {*state.sent, *silenced_kinds})


def _has_resumed(running: RunningJob, state: WatchState) -> bool:
    idle = running.idleness
    return bool(state.idle_since and idle and idle.resumed_at and idle.is_working)


def _is_idle(running: RunningJob, state: WatchState, watching: WatchSettings) -> bool:
    """Long enough, and without a message; work between two sweeps ends the last one."""
    idle = running.idleness
    if (
        idle is None
        or idle.idle_minutes < watching.idle_minutes
        or state.idle_message_count >= MAX_IDLE_MESSAGES
    ):
        return False
    return state.idle_since is None or idle.resumed_at is not None


def _is_near_limit(running: RunningJob) -> bool:
    limit, ran_s = running.limit, running.ran_s
    if limit is None or not ran_s:
        return False
    return limit.is_unlikely_to_finish or is_limit_near(limit, ran_s, running.runs)


def _is_long(running: RunningJob, watching: WatchSettings) -> bool:
    longest_s, ran_s = running.runs.longest_s, running.ran_s
    if not longest_s or not ran_s or ran_s < _MIN_LONG_RUN_S:
        return False
    return ran_s > watching.longest_times * longest_s


def advance_state(
    state: WatchState,
    kinds: Collection[RunningKind],
    running: RunningJob,
    channels: tuple[str, ...],
) -> WatchState:
    """The state once these are said to these channels."""
    once = frozenset(kinds) - {RunningKind.IDLE, RunningKind.RESUMED}
    sent = replace(
        state, revision=state.revision + 1, messages=state.messages + 1, sent=state.sent | once
    )
    if RunningKind.IDLE in kinds and running.idleness is not None:
        return replace(
            sent,
            idle_since=running.idleness.idle_since,
            idle_until=running.idleness.known_until,
            idle_message_count=state.idle_message_count + 1,
            channels=channels,
        )
    if RunningKind.RESUMED in kinds:
        return replace(sent, idle_since=None, idle_until=None, channels=())
    return sent
