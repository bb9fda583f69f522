"""Just inside and just outside of what CloudWatch allows in a call, and of our own limits."""

from datetime import timedelta

import pytest

from tests.adapters.aws.test_cloudwatch import (
    HandMade,
    algorithm_queries,
    queries,
    read,
    transform,
)
from tests.fakes.jobs import START, ran

TWO_HOURS, SECOND = timedelta(hours=2), timedelta(seconds=1)


@pytest.mark.parametrize(
    ("after_end", "recently"), [(TWO_HOURS - SECOND, "PT3H"), (TWO_HOURS, None)]
)
def test_only_recent_hosts_are_listed_of_a_job_that_ended_under_two_hours_ago(
    after_end: timedelta, recently: str | None
) -> None:
    """ListMetrics is then a few pages instead of all hosts of two weeks."""
    client, run = HandMade(hosts=("train/i-0a",)), transform()
    read(client, run, (run.ended_at or START) + after_end)
    assert [call.get("RecentlyActive") for call in client.listed] == [recently]


@pytest.mark.parametrize(
    ("hosts", "notes"), [(1000, []), (1001, ["the metrics of 1000 of 1001 hosts were read"])]
)
def test_the_metrics_of_1000_hosts_are_read(hosts: int, notes: list[str]) -> None:
    """The note says how many are left out."""
    client = HandMade(point=lambda *_: None)
    assert read(client, ran(300, "ml.g4dn.xlarge", hosts)).notes == tuple(notes)
    assert len(queries(client)) == 5 * 1000


def test_a_call_asks_for_as_many_points_as_one_may() -> None:
    """70 series of a day of minutes are 100,800 points: 150 series take three calls."""
    client = HandMade(point=lambda *_: None)
    read(client, ran(86_400, "ml.g4dn.xlarge", 30))
    assert [len(call["MetricDataQueries"]) for call in client.calls] == [70, 70, 10]


@pytest.mark.parametrize(("defined", "asked"), [(39, 39), (40, 40), (41, 40)])
def test_forty_algorithm_metrics_are_asked_for(defined: int, asked: int) -> None:
    """A training job can define no more."""
    client = HandMade()
    read(client, ran(180, metric_names=tuple(f"metric-{n}" for n in range(defined))))
    assert len(algorithm_queries(client)) == asked


@pytest.mark.parametrize(("minutes", "is_whole"), [(40, True), (41, False)])
def test_200_pages_of_an_answer_are_read(minutes: int, is_whole: bool) -> None:
    """Five series, a point a page. Where there are more, the audit says so."""
    client = HandMade(page=1)
    notes = read(client, ran(minutes * 60, "ml.g4dn.xlarge")).notes
    assert len(client.calls) == 200
    assert bool(notes) is not is_whole
