"""One failing call, answer or crash leads to exactly one audit and message; nothing is lost."""

import os
from collections.abc import Callable, Sequence

import pytest

from tests.faults.channels import channel_cells
from tests.faults.conftest import CELLS, EMPTY
from tests.faults.crashes import crash_cells, crash_cells_of
from tests.faults.matrix import cells, cells_of
from tests.faults.poison import poisoned_cells, poisoned_cells_of
from tests.faults.stories import stories
from tests.faults.verdict import Case, judge

PARTS = 48
SHARE = int(os.environ.get("FAULTS_SHARE", "1"))
OFFSET = int(os.environ.get("FAULTS_OFFSET", "0")) % SHARE
"""With a share of 2, every second cell is run: the first or, with an odd offset, the second one."""
POISONED = ("notified", "digest", "hangs")
"""The stories with unreadable items; `python -m tests.faults.cell "beside a"` plays all."""
Record = Callable[[str, object], None]
SAMPLE = (
    "notified/audit/sagemaker.DescribeTrainingJob#1/throttled-for-ever",
    "notified/audit/dynamodb.TransactWriteItems JOB+RUNS+SUM#1/timeout-after-effect",
    "notified/audit/cloudwatch.GetMetricData#1/denied",
    "notified/notify/sqs.SendMessage NoticesQueueSns#1/hangs-for-ever",
    "notified/notify/dynamodb.GetItem ALERTS ALERTS#1/500-for-ever",
    "notified/notify/dynamodb.TransactWriteItems ALERT+ALERTS+CHANNEL+JOB#1/timeout-after-effect",
    "queued late/notify/dynamodb.GetItem ALERT NOTICE#1/denied",
    "notified/deliver/dynamodb.PutItem DELIVERY DELIVERY#1/timeout-after-effect",
    "notified/deliver/sns.Publish#1/timeout-after-effect",
    "slack/hangs, posted/hours",
    "slack/404 no_service/hours",
    "slack/200 as a page/once",
    "sns/KMSDisabled/hours",
    "teams/202/once",
    "teams/401 of its sig/hours",
    "teams/hangs, posted/once",
    "on Teams/notify/sqs.SendMessage NoticesQueueResearch#1/hangs-for-ever",
    "every job/notify/dynamodb.GetItem ALERT LINE#1/500-for-ever",
    "every job/notify/dynamodb.TransactWriteItems ALERT+CHANNEL#1/timeout-after-effect",
    "every job/killed after TransactWriteItems#2/1",
    "above the most/deliver/dynamodb.GetItem CHANNEL HOUR#2/empty-page",
    "notified/notify/dynamodb.GetItem CHANNEL HOUR#1/empty-page",
    "notified/audit/dynamodb.GetItem JOB HEAD#1/hangs-for-ever",
    "late metrics/audit/cloudwatch.GetMetricData#1/endless-token",
    "digest/digest/dynamodb.TransactWriteItems DIGEST#1/timeout-after-effect",
    "digest/digest/dynamodb.Query ADVICE#1/throttled-for-ever",
    "hangs/watch/dynamodb.GetItem WATCH STATE#1/empty-page",
    "hangs/watch/dynamodb.TransactWriteItems WATCH#1/timeout-after-effect",
    "hangs/watch/cloudwatch.GetMetricData#1/denied",
    "hangs/killed after TransactWriteItems#1/1",
    "hangs/killed before TransactWriteItems#2/1",
    "hangs/beside a decision at the end of time",
    "notified/beside a decision of an unknown verb",
    "digest/beside a head with a text for a total",
)
"""One or two cells of each kind, run in every test run."""


def run(chosen: Sequence[Case], record: Record) -> None:
    """Runs cells; fails with the names of those that are not right."""
    verdicts = [judge(case) for case in chosen]
    record(CELLS, sum(verdict.met for verdict in verdicts))
    record(EMPTY, sum(not verdict.met for verdict in verdicts))
    wrong = [
        f"{verdict.case.name}\n    " + "\n    ".join(verdict.wrong)
        for verdict in verdicts
        if verdict.wrong
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.faults
@pytest.mark.parametrize("part", range(PARTS))
def test_each_call_with_each_fault(part: int, record_property: Record) -> None:
    """Each call ends as the table says if throttled, denied, hanging, malformed or endless."""
    run(cells()[OFFSET::SHARE][part::PARTS], record_property)


@pytest.mark.faults
@pytest.mark.parametrize("part", range(12))
def test_each_answer_of_a_channel(part: int, record_property: Record) -> None:
    """A notice is sent or becomes a dead letter with a reason; never sent twice without a mark."""
    run(channel_cells()[part::12], record_property)


@pytest.mark.faults
@pytest.mark.parametrize("part", range(24))
def test_a_crash_at_each_step(part: int, record_property: Record) -> None:
    """After a crash it is delivered again and ends as if nothing had happened."""
    run(crash_cells()[OFFSET::SHARE][part::24], record_property)


@pytest.mark.faults
@pytest.mark.parametrize("part", range(12))
def test_each_item_that_cannot_be_read(part: int, record_property: Record) -> None:
    """Beside such an item every job ends as if it were not there, and it is counted."""
    chosen = [case for case in poisoned_cells() if case.story.name in POISONED]
    run(chosen[OFFSET::SHARE][part::12], record_property)


def test_a_sample_of_the_matrix(record_property: Record) -> None:
    """A sample of one or two cells of each kind; `make faults` runs all."""
    cases = list(channel_cells())
    for story in stories():
        if any(name.startswith(f"{story.name}/") for name in SAMPLE):
            cases += [*cells_of(story), *crash_cells_of(story, set()), *poisoned_cells_of(story)]
    by_name = {case.name: case for case in cases}
    run([by_name[name] for name in SAMPLE], record_property)


@pytest.mark.parametrize("part", range(2))
def test_a_crash_after_each_step_of_one_job(part: int, record_property: Record) -> None:
    """Each handler crashes once after each step; a crash before a step is one after the last."""
    cases = [
        case
        for case in crash_cells_of(stories()[0], set())
        if case.name.endswith("/1") and "/killed before" not in case.name
    ]
    assert len(cases) > 20
    run(cases[part::2], record_property)


@pytest.mark.faults
def test_the_matrix_is_large() -> None:
    """There are at least 500 cells, each with its own name."""
    names = [case.name for case in (*cells(), *channel_cells(), *crash_cells(), *poisoned_cells())]
    assert len(names) == len(set(names)) >= 500
