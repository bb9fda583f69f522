"""Just inside and just outside of SageMaker's limits for waits and warm pools."""

from decimal import Decimal

import pytest

from sageaudit.rules.purchase.warm_pool_model import best_keep_alive
from tests.fakes.jobs import ran
from tests.fakes.planned import KMEANS, asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

SPOT = {"EnableManagedSpotTraining": True}
WAIT, RUN = "StoppingCondition.MaxWaitTimeInSeconds", "StoppingCondition.MaxRuntimeInSeconds"
BUILT_IN = SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS}

test_spot_wait = cases(
    "spot-wait",
    "The fix adds as long again to the run, and a day at most.",
    row(finds(fix=[(WAIT, None, 172_798)]), SPOT | {RUN: 86_399}),
    row(finds(fix=[(WAIT, None, 172_801)]), SPOT | {RUN: 86_401}),
    "A built in algorithm waits an hour without checkpoints, and no second more.",
    row(CLEAR, BUILT_IN | {WAIT: 3600}),
    row(finds("…k-means…", fix=[(WAIT, 3601, 3600)]), BUILT_IN | {WAIT: 3601}),
    ask=asked,
)
test_spot_not_used = cases(
    "spot-not-used",
    "The fix adds as long again to the run's limit, and a day at most.",
    *(
        row(
            finds(fix=["s3://<bucket>/<prefix>", True, wait_s]),
            ran(1800, "ml.g5.2xlarge", 6, max_runtime_s=limit_s),
        )
        for limit_s, wait_s in ((86_399, 172_798), (86_401, 172_801))
    ),
)


@pytest.mark.parametrize(("gap_s", "keep_alive_s"), [(3_599, 3_600), (3_600, 0)])
def test_a_pool_is_kept_for_an_hour_at_most(gap_s: int, keep_alive_s: int) -> None:
    """SageMaker keeps none longer, so a run that comes later finds none."""
    assert best_keep_alive([Decimal(gap_s)] * 3, start_s=Decimal(4_000)) == keep_alive_s
