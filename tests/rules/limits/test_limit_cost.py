from functools import partial

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.planned import LATER, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "limit-cost"
RUN = "StoppingCondition.MaxRuntimeInSeconds"
DEAR = {"ResourceConfig.InstanceType": "ml.g4dn.12xlarge", "ResourceConfig.VolumeSizeInGB": 30}


verdict = partial(request_answer, RULE)


def test_a_missing_limit_on_a_dear_type_is_found() -> None:
    """A day at $4.89."""
    assert verdict(DEAR | {RUN: None}) == finds("…up to $117…", severity="medium")


def test_a_missing_limit_on_a_cheap_type_is_not_worth_a_line() -> None:
    """A day at $0.23."""
    assert verdict({RUN: None}) == CLEAR


def test_a_limit_that_somebody_wrote_is_found_from_five_days_on() -> None:
    """Four days may be meant."""
    assert verdict(DEAR | {RUN: 4 * 86_400}) == CLEAR
    assert verdict(DEAR | {RUN: 5 * 86_400}) == finds("…5 d…")


def test_the_severity_follows_the_dollars() -> None:
    """Ten instances cost over $1,000."""
    result = verdict(DEAR | {RUN: None, "ResourceConfig.InstanceCount": 10})
    assert result == finds(severity="high")


def test_a_processing_job_has_a_default_too() -> None:
    """24 hours."""
    result = verdict(
        {
            "ProcessingResources": {
                "ClusterConfig": {
                    "InstanceType": "ml.g4dn.12xlarge",
                    "InstanceCount": 1,
                    "VolumeSizeInGB": 30,
                }
            },
            "StoppingCondition": None,
        },
        kind=JobKind.PROCESSING,
    )
    assert result == finds("…default of 24 h…")


def test_five_like_runs_know_better() -> None:
    """max-runtime-loose compares the limit with them."""
    result = verdict(
        DEAR | {RUN: None},
        earlier=[earlier_run(day, instance_type="ml.g4dn.12xlarge") for day in range(1, 6)],
    )
    assert result == does_not_apply("…")
    result = verdict(
        DEAR | {RUN: None},
        earlier=[earlier_run(day, instance_type="ml.g4dn.12xlarge") for day in range(1, 6)][:4],
    )
    assert result == FOUND


def test_a_limit_that_is_known_later_is_not_judged() -> None:
    """It may be an hour."""
    assert verdict(DEAR | {RUN: LATER}) == cannot_judge("…")
