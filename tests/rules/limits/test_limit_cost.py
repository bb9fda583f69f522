from functools import partial

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import market
from tests.fakes.planned import LATER, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "limit-cost"
RUN = "StoppingCondition.MaxRuntimeInSeconds"
DEAR = {"ResourceConfig.InstanceType": "ml.g4dn.12xlarge", "ResourceConfig.VolumeSizeInGB": 30}


verdict = partial(request_answer, RULE)


def test_without_a_limit_a_day_at_4_89_dollars_an_hour_is_found() -> None:
    """AWS's default: 24 h x $4.89 = $117."""
    assert verdict(DEAR | {RUN: None}) == finds("…up to $117…", severity="medium")


def test_without_a_limit_a_day_at_0_23_dollars_an_hour_is_clear() -> None:
    """24 h x $0.23 = $5.52."""
    assert verdict({RUN: None}) == CLEAR


def test_a_limit_of_5_days_is_found_and_of_4_days_it_may_be_meant() -> None:
    assert verdict(DEAR | {RUN: 4 * 86_400}) == CLEAR
    assert verdict(DEAR | {RUN: 5 * 86_400}) == finds("…5 d…")


def test_the_severity_is_high_if_a_day_of_10_instances_costs_over_1000_dollars() -> None:
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


def request_on_g5(usd_an_hour: str, limit_s: int | None) -> object:
    """The answer about a request on a g5, which has no volume that is billed."""
    rates = market(hourly_usd={"ml.g5.2xlarge": usd_an_hour})
    return verdict({"ResourceConfig.InstanceType": "ml.g5.2xlarge", RUN: limit_s}, market=rates)


def test_a_limit_of_400_hours_for_200_dollars_is_clear_and_for_200_40_dollars_it_is_found() -> None:
    assert request_on_g5("0.500", limit_s=1_440_000) == CLEAR
    assert request_on_g5("0.501", limit_s=1_440_000) == FOUND


def test_without_a_limit_a_day_for_49_92_dollars_is_clear_and_for_50_16_dollars_it_is_found() -> (
    None
):
    # 24 h at $2.08, and at $2.09.
    assert request_on_g5("2.08", limit_s=None) == CLEAR
    assert request_on_g5("2.09", limit_s=None) == FOUND
