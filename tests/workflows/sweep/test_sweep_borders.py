"""Just inside and just outside of the times by which a sweep looks at a job or a list."""

from datetime import timedelta

import pytest

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import (
    ListProgress,
    ListState,
    decide_row,
    drop_abandoned_lists,
    finish_list,
    first_state,
)
from sageaudit.structs import replace
from tests.fakes.sweeps import DAY, HOUR, MINUTE, NOON, TRAINING, flow_with, row
from tests.workflows.sweep.test_handler import context, sweeper

SECOND = timedelta(seconds=1)
STATE = replace(first_state(NOON - DAY), began_at=NOON - DAY)
BEGUN = ListProgress(NOON, NOON + DAY, None)


@pytest.mark.parametrize(
    ("kind", "grace"),
    [
        (JobKind.TRAINING, 35 * MINUTE),
        (JobKind.PROCESSING, 35 * MINUTE),
        (JobKind.TUNING, 80 * MINUTE),
    ],
)
def test_a_job_must_have_an_audit_35_minutes_after_its_end_and_a_sum_after_80(
    kind: JobKind, grace: timedelta
) -> None:
    """A second earlier its audit may still wait, and it is listed again."""
    by_now, later = (
        decide_row(row("a", NOON - ago, kind=kind), STATE, BEGUN) for ago in (grace, grace - SECOND)
    )
    assert (by_now.needs_audit, by_now.must_be_listed_again) == (True, False)
    assert (later.needs_audit, later.must_be_listed_again) == (False, True)


@pytest.mark.parametrize(("ago", "look"), [(3 * HOUR - SECOND, True), (3 * HOUR, False)])
def test_jobs_that_ended_three_hours_before_the_watermark_are_not_looked_at_again(
    ago: timedelta, look: bool
) -> None:
    """A list that is behind shows a job some minutes late, and not hours."""
    state = replace(STATE, watermark=NOON - HOUR)
    assert decide_row(row("a", state.watermark - ago), state, BEGUN).needs_audit is look


@pytest.mark.parametrize(("ago", "swept"), [(3 * HOUR, 2), (3 * HOUR + SECOND, 1)])
def test_a_list_that_was_not_tried_for_three_hours_is_not_swept_any_more(
    ago: timedelta, swept: int
) -> None:
    """Its account or region has left the policy; the others are tried every quarter of an hour."""
    other = replace(TRAINING, region="eu-west-1")
    tried = {TRAINING: replace(STATE, tried_at=NOON), other: replace(STATE, tried_at=NOON - ago)}
    assert len(drop_abandoned_lists(tried)) == swept


@pytest.mark.parametrize(("open_days", "listed_days"), [(31, 31.125), (32, 32), (40, 32)])
def test_a_job_that_stays_open_is_listed_for_32_days(open_days: int, listed_days: float) -> None:
    """A job lasts 30 at most; without an end, one would make every list longer for ever."""
    under_way = replace(BEGUN, oldest_open_created_at=NOON - open_days * DAY)
    state: ListState = finish_list(STATE, under_way, JobKind.TRAINING)
    assert NOON - state.next_created_after == listed_days * DAY


@pytest.mark.parametrize(("left_ms", "reads"), [(90_000, True), (89_999, False)])
def test_a_sweep_reads_a_page_only_if_90_seconds_are_left(left_ms: int, reads: bool) -> None:
    """No request is begun in the last minute, and the states must be stored."""
    flow = flow_with()
    sweeper(flow)({}, context(left_ms=left_ms))
    assert bool(flow.pages.requests) is reads
