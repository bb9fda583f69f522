from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, NotApplicable, Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.planned import LATER, said, told

RULE = "limit-cost"
RUN = "StoppingCondition.MaxRuntimeInSeconds"
DEAR = {"ResourceConfig.InstanceType": "ml.g4dn.12xlarge", "ResourceConfig.VolumeSizeInGB": 30}


def test_a_missing_limit_on_a_dear_type_is_found() -> None:
    """A day at $4.89."""
    finding = told(RULE, DEAR | {RUN: None})
    assert "up to $117" in finding.found.summary
    assert finding.severity.value == "medium"


def test_a_missing_limit_on_a_cheap_type_is_not_worth_a_line() -> None:
    """A day at $0.23."""
    assert said(RULE, {RUN: None}) == Clear()


def test_a_limit_that_somebody_wrote_is_found_from_five_days_on() -> None:
    """Four days may be meant."""
    assert said(RULE, DEAR | {RUN: 4 * 86_400}) == Clear()
    assert "5 d" in told(RULE, DEAR | {RUN: 5 * 86_400}).found.summary


def test_the_severity_follows_the_dollars() -> None:
    """Ten instances cost over $1,000."""
    many = DEAR | {RUN: None, "ResourceConfig.InstanceCount": 10}
    assert told(RULE, many).severity.value == "high"


def test_a_processing_job_has_a_default_too() -> None:
    """24 hours."""
    resources = {"ClusterConfig": {"InstanceType": "ml.g4dn.12xlarge", "InstanceCount": 1,
                                   "VolumeSizeInGB": 30}}  # fmt: skip
    changes = {"ProcessingResources": resources, "StoppingCondition": None}
    assert "default of 24 h" in told(RULE, changes, kind=JobKind.PROCESSING).found.summary


def test_five_like_runs_know_better() -> None:
    """max-runtime-loose compares the limit with them."""
    runs = [earlier_run(day, instance_type="ml.g4dn.12xlarge") for day in range(1, 6)]
    assert isinstance(said(RULE, DEAR | {RUN: None}, earlier=runs), NotApplicable)
    assert told(RULE, DEAR | {RUN: None}, earlier=runs[:4])


def test_a_limit_that_is_known_later_is_not_judged() -> None:
    """It may be an hour."""
    assert isinstance(said(RULE, DEAR | {RUN: LATER}), Unknown)
