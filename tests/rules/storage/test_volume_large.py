from decimal import Decimal
from functools import partial

from tests.fakes.planned import request_answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, finds

RULE = "volume-large"
DAY = {
    "StoppingCondition.MaxRuntimeInSeconds": 86_400,
    "ResourceConfig.InstanceType": "ml.m5.xlarge",
}
"""24 h at $0.23 are $5.52."""
SIZE = "ResourceConfig.VolumeSizeInGB"


verdict = partial(request_answer, RULE)


def test_a_volume_of_9_03_dollars_a_day_is_clear() -> None:
    # 2,000 GB x $0.14 x 24 h / 744 h. Cheap volumes beside dear instances are clear too.
    assert verdict(DAY | {SIZE: 2000}) == CLEAR
    assert verdict(DAY | {SIZE: 3000, "ResourceConfig.InstanceType": "ml.m5.4xlarge"}) == CLEAR


def test_without_a_price_it_is_not_judged() -> None:
    """The region is not known."""
    assert verdict(DAY | {SIZE: 8000}, region=None) == cannot_judge("…")


def test_volumes_that_cost_more_than_the_instances_are_found() -> None:
    # 8,000 GB for a day of May at $0.14 a month: $36.13, beside $5.52.
    assert verdict(DAY | {SIZE: 8000}) == finds(
        "…$36.13…$5.52…", evidence={"volumes_usd": Decimal("36.129032")}
    )
