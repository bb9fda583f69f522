from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Clear, Unknown
from tests.fakes.planned import KMEANS, LATER, said, told

RULE = "spot-wait"
SPOT = {"EnableManagedSpotTraining": True}
WAIT, RUN = "StoppingCondition.MaxWaitTimeInSeconds", "StoppingCondition.MaxRuntimeInSeconds"


def test_spot_without_a_wait_is_refused() -> None:
    """The fix gives the run as long again."""
    finding = told(RULE, SPOT)
    assert "MaxWaitTimeInSeconds is missing" in finding.found.summary
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (WAIT, None, 7200)
    assert finding.severity.value == "high"


@pytest.mark.parametrize(("wait_s", "clear"), [(3599, False), (3600, True), (3601, True)])
def test_the_wait_counts_the_run_too(wait_s: int, clear: bool) -> None:
    """Equal is enough."""
    assert (said(RULE, SPOT | {WAIT: wait_s}) == Clear()) is clear


def test_the_default_limit_is_a_day() -> None:
    """A wait of an hour is less than the day that AWS takes."""
    assert "86400" in told(RULE, SPOT | {WAIT: 3600, RUN: None}).found.summary


def test_a_wait_without_spot_is_refused() -> None:
    """One of the two is a mistake."""
    assert "managed spot is not on" in told(RULE, {WAIT: 7200}).found.summary
    assert said(RULE) == Clear()


def test_a_built_in_algorithm_waits_an_hour_without_checkpoints() -> None:
    """With them, or within the hour, it may."""
    long = SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS, WAIT: 7200}
    assert "k-means" in told(RULE, long).found.summary
    assert said(RULE, long | {WAIT: 3600}) == Clear()
    assert said(RULE, long | {"CheckpointConfig": {"S3Uri": "s3://bucket/c"}}) == Clear()


def test_a_wait_that_is_known_later_is_not_judged() -> None:
    """It may be right."""
    answer = said(RULE, SPOT | {WAIT: LATER})
    assert isinstance(answer, Unknown)
    assert answer.code == "not_known_yet"
