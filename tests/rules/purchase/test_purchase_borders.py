"""Just inside and just outside of SageMaker's limits for waits and warm pools."""

from decimal import Decimal

import pytest

from sageaudit.rules.purchase.warm_pool_model import best_keep_alive
from tests.fakes.jobs import ran
from tests.fakes.judging import answer
from tests.fakes.planned import KMEANS, request_answer
from tests.fakes.rule_cases import CLEAR, finds

SPOT = {"EnableManagedSpotTraining": True}
WAIT = "StoppingCondition.MaxWaitTimeInSeconds"
RUN = "StoppingCondition.MaxRuntimeInSeconds"
BUILT_IN = SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS}


@pytest.mark.parametrize(("limit_s", "wait_s"), [(86_399, 172_798), (86_401, 172_801)])
def test_a_spot_wait_is_as_long_as_the_run_and_a_day_at_most(limit_s: int, wait_s: int) -> None:
    assert request_answer("spot-wait", SPOT | {RUN: limit_s}) == finds(fix=[(WAIT, None, wait_s)])


def test_a_built_in_algorithm_without_checkpoints_waits_an_hour_and_no_second_more() -> None:
    assert request_answer("spot-wait", BUILT_IN | {WAIT: 3600}) == CLEAR
    longer = finds("…k-means…", fix=[(WAIT, 3601, 3600)])
    assert request_answer("spot-wait", BUILT_IN | {WAIT: 3601}) == longer


@pytest.mark.parametrize(("limit_s", "wait_s"), [(86_399, 172_798), (86_401, 172_801)])
def test_advised_spot_waits_as_long_as_the_run_and_a_day_at_most(limit_s: int, wait_s: int) -> None:
    job = ran(1800, "ml.g5.2xlarge", 6, max_runtime_s=limit_s)
    advised = finds(fix=["s3://<bucket>/<prefix>", True, wait_s])
    assert answer("spot-not-used", job) == advised


@pytest.mark.parametrize(("gap_s", "keep_alive_s"), [(3_599, 3_600), (3_600, 0)])
def test_a_pool_is_kept_for_an_hour_at_most(gap_s: int, keep_alive_s: int) -> None:
    """SageMaker keeps none longer, so a run that comes later finds none."""
    assert best_keep_alive([Decimal(gap_s)] * 3, start_s=Decimal(4_000)) == keep_alive_s
