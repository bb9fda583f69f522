"""Checks the running jobs of all accounts and regions that the sweeps' last lists showed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TypeVar
from zlib import crc32

from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.ref import AccountRegion
from sageaudit.domain.members import AuditScope, Member
from sageaudit.domain.running import WatchState
from sageaudit.domain.sweep import ListedJob, SweptRegion
from sageaudit.errors import AwsError, MalformedData
from sageaudit.ports import Workers
from sageaudit.workflows.side_by_side import run_side_by_side
from sageaudit.workflows.watch.running_job import JobCheck, RunningJobCheck, WatchDependencies

T = TypeVar("T")
MAX_PARALLEL_IN_REGION = 4
"""The maximum number of jobs of one account and region that are checked at the same time: with
about three requests to SageMaker and one to CloudWatch a second and lane, they stay below the rates
of `adapters/aws/pace.py`."""


def watched_jobs(
    scope: AuditScope,
    swept: Mapping[AccountRegion, SweptRegion],
    members: Mapping[AccountRegion, Member],
) -> list[ListedJob]:
    """Returns the running jobs that the last lists of all audited accounts and regions showed.

    Members that deny access to their jobs are left out.
    """
    return [
        row
        for account_region in scope.audited(members)
        if (region := swept.get(account_region)) is not None
        for rows in region.running_jobs.values()
        for row in rows
        if not members.get(account_region, Member(account_region)).denies_job(row.ref.kind)
    ]


def check_running_jobs(
    deps: WatchDependencies, rows: Iterable[ListedJob], workers: Workers
) -> Iterator[JobCheck]:
    """Checks these jobs side by side until the time is up. A job that fails does not stop others.

    The stored states tell which jobs are known to be cheap, so these cost one read of the table.
    Each account and region has its own lanes, so that a slow one delays itself.
    """
    reads = [iter([partial(_read_state, deps, row)]) for row in shuffle(rows, deps.clock())]
    lanes: dict[AccountRegion, list[Callable[[], JobCheck]]] = {}
    for row, state in run_side_by_side(reads, workers):
        if isinstance(state, JobCheck):
            yield state
        elif state.revision and not deps.settings.should_watch(state.usd_per_hour, state.gpus):
            yield JobCheck(row.ref, is_expensive=False)
        else:
            check = partial(_check, deps, row, state)
            lanes.setdefault(row.ref.account_region, []).append(check)
    checks = (
        iter(calls[start::MAX_PARALLEL_IN_REGION])
        for calls in lanes.values()
        for start in range(min(MAX_PARALLEL_IN_REGION, len(calls)))
    )
    yield from run_side_by_side(checks, workers)


def shuffle(rows: Iterable[ListedJob], now: datetime) -> list[ListedJob]:
    """Returns the jobs in another order at each watch, so that no job is always left out."""
    return sorted(rows, key=lambda row: crc32(f"{now.isoformat()} {row.ref.arn}".encode()))


def _read_state(deps: WatchDependencies, row: ListedJob) -> tuple[ListedJob, WatchState | JobCheck]:
    if deps.is_out_of_time():
        return row, JobCheck(row.ref, was_out_of_time=True)
    key = JobKey(row.ref.arn, row.created_at)
    return row, _guard(row, partial(deps.ledger.watch_state, key))


def _check(deps: WatchDependencies, row: ListedJob, state: WatchState) -> JobCheck:
    if deps.is_out_of_time():
        return JobCheck(row.ref, was_out_of_time=True)
    return _guard(row, RunningJobCheck(deps, row, state, deps.clock()).check)


def _guard(row: ListedJob, step: Callable[[], T]) -> T | JobCheck:
    try:
        return step()
    except AwsError as error:
        return JobCheck(row.ref, error=error)
    except MalformedData as error:
        return JobCheck(row.ref, unreadable=f"{row.ref.arn}: {error}")
    except Exception as error:  # noqa: BLE001 - a bug with one job must not stop the others
        return JobCheck(row.ref, defect=error)
