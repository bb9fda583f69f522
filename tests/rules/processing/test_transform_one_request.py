from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import TYPES, FixedPrices, instance_type
from tests.fakes.planned import said, told

RULE = "transform-one-request"
AT_A_TIME, TYPE = "MaxConcurrentTransforms", "TransformResources.InstanceType"
BIG = instance_type("ml.m5.8xlarge", 32, 128)
ON = Market({**TYPES, BIG.name: BIG}, FixedPrices())
LARGE = {TYPE: "ml.m5.8xlarge"}


def test_one_request_for_many_cores_is_found() -> None:
    """As many as fit into 100 MB are offered."""
    finding = told(RULE, LARGE | {AT_A_TIME: 1}, kind=JobKind.TRANSFORM, on=ON)
    assert finding.found.fix[0].new == 16
    assert told(RULE, LARGE | {AT_A_TIME: None}, kind=JobKind.TRANSFORM, on=ON)


def test_several_requests_or_fewer_cores_are_clear() -> None:
    """16 vCPUs are below the threshold, and a GPU counts otherwise."""
    assert said(RULE, LARGE | {AT_A_TIME: 2}, kind=JobKind.TRANSFORM, on=ON) == Clear()
    small = {TYPE: "ml.m5.4xlarge", AT_A_TIME: 1}
    assert said(RULE, small, kind=JobKind.TRANSFORM, on=ON) == Clear()
    gpu = {TYPE: "ml.g4dn.12xlarge", AT_A_TIME: 1}
    assert said(RULE, gpu, kind=JobKind.TRANSFORM, on=ON) == Clear()


def test_a_type_outside_the_catalogue_is_not_judged() -> None:
    """How many vCPUs it has is not known."""
    odd = {TYPE: "ml.m9.8xlarge", AT_A_TIME: 1}
    assert isinstance(said(RULE, odd, kind=JobKind.TRANSFORM), Unknown)
