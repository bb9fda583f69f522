from functools import partial

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import TYPES, FixedPrices, instance_type
from tests.fakes.planned import request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds

RULE = "transform-one-request"
AT_A_TIME, TYPE = "MaxConcurrentTransforms", "TransformResources.InstanceType"
BIG = instance_type("ml.m5.8xlarge", 32, 128)
MARKET = Market({**TYPES, BIG.name: BIG}, FixedPrices())
LARGE = {TYPE: "ml.m5.8xlarge"}


verdict = partial(request_answer, RULE, market=MARKET)


def test_one_request_at_a_time_on_32_vcpus_is_found() -> None:
    """As many as fit into 100 MB are offered."""
    assert verdict(LARGE | {AT_A_TIME: 1}, kind=JobKind.TRANSFORM) == finds(fix=[16])
    assert verdict(LARGE | {AT_A_TIME: None}, kind=JobKind.TRANSFORM) == FOUND


def test_two_requests_at_a_time_or_16_vcpus_are_clear() -> None:
    # ml.m5.4xlarge has 16 vCPUs; ml.g4dn.12xlarge has 48, and GPUs, which count otherwise.
    assert verdict(LARGE | {AT_A_TIME: 2}, kind=JobKind.TRANSFORM) == CLEAR
    assert verdict({TYPE: "ml.m5.4xlarge", AT_A_TIME: 1}, kind=JobKind.TRANSFORM) == CLEAR
    assert verdict({TYPE: "ml.g4dn.12xlarge", AT_A_TIME: 1}, kind=JobKind.TRANSFORM) == CLEAR


def test_a_type_outside_the_catalogue_is_not_judged() -> None:
    """How many vCPUs it has is not known."""
    result = verdict({TYPE: "ml.m9.8xlarge", AT_A_TIME: 1}, kind=JobKind.TRANSFORM)
    assert result == cannot_judge("…")
