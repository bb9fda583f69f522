"""Finds what the metrics of a running job show, and which messages are due; no I/O.

A job is idle if its hosts stand still as in the rule idle-middle. It is also idle if the CPUs of
all hosts are quiet and no GPU is busy.
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
"""How far back a running job's metrics are read: the most that one read returns at one-minute
resolution. A host with one busy core counts as idle only after the first GPU work. So this time
should include the first GPU work."""
MAX_METRIC_DELAY = timedelta(minutes=15)
"""If the newest metric points are older than this, they do not show whether a job is idle. Our
choice: AWS documents no delay, and a finished job's points are complete after 5 minutes."""
MAX_IDLE_MESSAGES = 3
"""The maximum number of idle messages about one run: our choice."""
MIN_COMPLETED_RUNS = 3
"""The fewest completed runs from which sageaudit predicts that a limit will be reached. Our choice.
"""
_MAX_COMPLETED_RUNS = 10
"""sageaudit uses at most this many completed runs to predict that a limit will be reached."""
_MIN_LONG_RUN_S = 3600
"""A run under this many seconds is never reported as long. The earlier runs may have been short
tests. Our choice."""
_RESUMED_WINDOW_S = 900
"""To see whether an idle job works again, sageaudit checks this many of the last seconds of
metrics. Our choice."""
_RESUMED_MIN_S = 300
"""An idle job works again if it worked for at least this many of the last `_RESUMED_WINDOW_S`
seconds. Our choice."""
_NEAR_LIMIT_DIVISOR = 10
"""A limit is near if at most a tenth of its seconds is left, but never in its first half."""
_NEAR_LIMIT_S = 1800
"""A limit is also near if at most this many seconds are left, but never in its first half."""


class RunningKind(enum.StrEnum):
    """The kind of a message about a running job. Subscriptions can filter by it."""

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
"""By kind of message about a running job, the rules that report the same about a finished job.
sageaudit does not send the message if one of the rules is off, or if the family's finding of one of
the rules is accepted or snoozed. Routes match the first rule."""


class WatchState(Struct, frozen=True):
    """The stored state of a watched run.

    `revision`: the number of writes; 0 if nothing is stored. `usd_per_hour` and `gpus`: the totals
    of all instances. `idle_since` and `idle_until`: the idle time that the last message to
    `channels` reported. They are None once the job works again. `sent`: the kinds of message that
    were sent and must not be sent again.
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
    """Whether a running job is idle at the end of its metrics.

    `known_until`: the end of the metrics. `idle_since`: None if the job is not idle. `is_at_least`:
    the job was idle in all of `METRICS_WINDOW`, and perhaps for longer. `resumed_at`: when work
    began after the idle time that was reported last; None without enough work. `is_working`:
    whether the last minutes had enough work.
    """

    idle_since: datetime | None
    known_until: datetime
    is_at_least: bool = False
    resumed_at: datetime | None = None
    is_working: bool = False

    @property
    def idle_minutes(self) -> int:
        """The minutes without work at the end of the metrics."""
        return (
            0
            if self.idle_since is None
            else int((self.known_until - self.idle_since).total_seconds() // 60)
        )


def working_since(job: Job) -> datetime | None:
    """Returns since when the job's own code has run without a break; None if it is not running."""
    last_phase: Phase | None = job.phases[-1] if job.phases else None
    is_running = job.status == "InProgress" and last_phase is not None and is_work_phase(last_phase)
    return last_phase.started_at if last_phase is not None and is_running else None


def idleness(usage: Measurements, state: WatchState, now: datetime) -> Idleness | None:
    """Returns the idleness at the end of the metrics; None if they are too old or missing.

    `state`: has the idle time that was reported last.
    """
    trimmed, period_s = trim_to_last_points(usage), usage.period_s or 0
    if trimmed is None or trimmed.begins_at is None:
        return None
    begins_at, period = trimmed.begins_at, timedelta(seconds=period_s)
    known_until = begins_at + trimmed.points * period
    if now - known_until > MAX_METRIC_DELAY:
        return None
    tail, work_flags = idle_tail_so_far(trimmed), does_real_work(trimmed)
    last_work_flags = work_flags[-max(_RESUMED_WINDOW_S // period_s, 1) :]
    resumed_times = [
        moment
        for period_index, has_work in enumerate(work_flags)
        if has_work
        and state.idle_until
        and (moment := begins_at + period_index * period) >= state.idle_until
    ]
    return Idleness(
        idle_since=begins_at + tail.start * period if tail else None,
        known_until=known_until,
        is_at_least=tail.start == 0
        and known_until - begins_at >= METRICS_WINDOW - MAX_METRIC_DELAY,
        resumed_at=resumed_times[0] if len(resumed_times) * period_s >= _RESUMED_MIN_S else None,
        is_working=sum(last_work_flags) * period_s >= _RESUMED_MIN_S > len(tail) * period_s,
    )


class FinishedRuns(Struct, frozen=True):
    """The run times in seconds of a family's finished runs on the same instances, newest first.

    `all_s`: of the completed runs, and of the runs that their limit ended. `completed_s`: of the
    newest completed runs only.
    """

    all_s: tuple[Decimal, ...] = ()
    completed_s: tuple[Decimal, ...] = ()

    @property
    def longest_s(self) -> Decimal | None:
        """The longest run time in seconds; None without runs."""
        return max(self.all_s, default=None)


def finished_comparable_runs(job: Job, runs: Iterable[AuditSummary]) -> FinishedRuns:
    """Returns the run times of the earlier runs on the job's instances.

    Only runs that completed or that their limit ended are included.
    """
    if len(job.groups) != 1:
        return FinishedRuns()
    instances = (job.kind.value, job.groups[0].instance_type, job.groups[0].count)
    comparable = [
        (run.status == "Completed", run.elapsed_s)
        for run in runs
        if (run.kind, run.instance_type, run.instance_count) == instances
        and (run.status == "Completed" or run.reason == LIMIT_REACHED)
        and run.elapsed_s
    ]
    return FinishedRuns(
        tuple(seconds for _, seconds in comparable if seconds),
        tuple(seconds for completed, seconds in comparable if completed and seconds)[
            :_MAX_COMPLETED_RUNS
        ],
    )


class RunTimeLimit(Struct, frozen=True):
    """A time limit that ends the job in `left_s` seconds.

    `slower_runs`: how many of the family's last `completed_runs` runs took longer than the limit
    allows. `includes_waiting`: whether the waiting time of a spot job counts.
    """

    seconds: int
    left_s: Decimal
    slower_runs: int = 0
    completed_runs: int = 0
    includes_waiting: bool = False

    @property
    def is_unlikely_to_finish(self) -> bool:
        """Whether at least 75% of the completed runs took longer than the limit allows.

        False if fewer than `MIN_COMPLETED_RUNS` runs completed.
        """
        return (
            self.completed_runs >= MIN_COMPLETED_RUNS
            and 4 * self.slower_runs >= 3 * self.completed_runs
        )


def next_limit(job: Job, runs: FinishedRuns, now: datetime) -> RunTimeLimit | None:
    """Returns the limit that ends the job first; None without a limit.

    Only the limit on a spot job's whole time includes waiting.
    """
    ran_s, limits = job.ran_s or billed_seconds(job)[0], list[tuple[Decimal, int, bool]]()
    if job.max_runtime_s is not None and ran_s is not None:
        limits.append((job.max_runtime_s - ran_s, job.max_runtime_s, False))
    if job.max_wait_s is not None and job.created_at is not None:
        waited_and_ran_s = Decimal(round((now - job.created_at).total_seconds()))
        limits.append((job.max_wait_s - waited_and_ran_s, job.max_wait_s, True))
    if not limits:
        return None
    left_s, seconds, includes_waiting = min(limits)
    slower_runs = sum(took_s - (ran_s or 0) > left_s for took_s in runs.completed_s)
    return RunTimeLimit(
        seconds, max(left_s, Decimal(0)), slower_runs, len(runs.completed_s), includes_waiting
    )


def is_limit_near(limit: RunTimeLimit, ran_s: Decimal, runs: FinishedRuns) -> bool:
    """Returns whether little time is left before the limit.

    `ran_s`: the job's seconds so far. Returns False if enough runs completed, and one of them took
    longer than `ran_s`.
    """
    near_s = min(max(limit.seconds / _NEAR_LIMIT_DIVISOR, _NEAR_LIMIT_S), limit.seconds / 2)
    is_usual = len(runs.completed_s) >= MIN_COMPLETED_RUNS and max(runs.completed_s) > ran_s
    return limit.left_s <= near_s and not is_usual


class RunningJob(Struct, frozen=True):
    """A running job as of `now`.

    `idleness`: None if the metrics do not show it. `usd_per_hour` and `gpus`: the totals of all
    instances. `usd_per_hour` and `spent_usd`: None without a price. `is_upper_bound`: both are
    upper bounds, because Spot costs less. `estimated`: both use an estimated rate.
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
        """The billed seconds so far; None if unknown."""
        return billed_seconds(self.job)[0]

    @property
    def limit(self) -> RunTimeLimit | None:
        """The limit that ends the job first; None without a limit."""
        return next_limit(self.job, self.runs, self.now)

    @property
    def remaining_cost_usd(self) -> Decimal | None:
        """The most USD that the job still costs until its limit; None without a limit or price."""
        if self.limit is None or self.usd_per_hour is None:
            return None
        return self.usd_per_hour * self.limit.left_s / 3600


def due_messages(
    running_job: RunningJob,
    state: WatchState,
    settings: WatchSettings,
    silenced_kinds: Collection[RunningKind] = (),
) -> tuple[RunningKind, ...]:
    """Returns the kinds of message that are due. They are sent as one message.

    The first kind is the headline. `silenced_kinds`: the kinds that must not be sent.
    """
    is_working = working_since(running_job.job) is not None
    due = {
        RunningKind.IDLE: _is_idle(running_job, state, settings),
        RunningKind.LIMIT: is_working and _is_near_limit(running_job),
        RunningKind.LONG_RUN: is_working and _is_long(running_job, settings),
        RunningKind.RESUMED: _has_resumed(running_job, state),
    }
    return tuple(kind for kind in due if due[kind] and kind not in {*state.sent, *silenced_kinds})


def _has_resumed(running_job: RunningJob, state: WatchState) -> bool:
    idleness = running_job.idleness
    return bool(state.idle_since and idleness and idleness.resumed_at and idleness.is_working)


def _is_idle(running_job: RunningJob, state: WatchState, settings: WatchSettings) -> bool:
    """Returns whether the job is idle for long enough, and this idle time was not reported.

    False after `MAX_IDLE_MESSAGES` messages.
    """
    idleness = running_job.idleness
    if (
        idleness is None
        or idleness.idle_minutes < settings.idle_minutes
        or state.idle_message_count >= MAX_IDLE_MESSAGES
    ):
        return False
    return state.idle_since is None or idleness.resumed_at is not None


def _is_near_limit(running_job: RunningJob) -> bool:
    limit, ran_s = running_job.limit, running_job.ran_s
    if limit is None or not ran_s:
        return False
    return limit.is_unlikely_to_finish or is_limit_near(limit, ran_s, running_job.runs)


def _is_long(running_job: RunningJob, settings: WatchSettings) -> bool:
    longest_s, ran_s = running_job.runs.longest_s, running_job.ran_s
    if not longest_s or not ran_s or ran_s < _MIN_LONG_RUN_S:
        return False
    return ran_s > settings.longest_times * longest_s


def advance_state(
    state: WatchState,
    kinds: Collection[RunningKind],
    running_job: RunningJob,
    channels: tuple[str, ...],
) -> WatchState:
    """Returns the state after a message of these kinds was sent to these channels."""
    sent_once = frozenset(kinds) - {RunningKind.IDLE, RunningKind.RESUMED}
    sent_state = replace(
        state, revision=state.revision + 1, messages=state.messages + 1, sent=state.sent | sent_once
    )
    if RunningKind.IDLE in kinds and running_job.idleness is not None:
        return replace(
            sent_state,
            idle_since=running_job.idleness.idle_since,
            idle_until=running_job.idleness.known_until,
            idle_message_count=state.idle_message_count + 1,
            channels=channels,
        )
    if RunningKind.RESUMED in kinds:
        return replace(sent_state, idle_since=None, idle_until=None, channels=())
    return sent_state
