from functools import partial

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace
from tests.fakes.jobs import TYPES, FixedPrices
from tests.fakes.planned import request_answer
from tests.fakes.rule_cases import CLEAR, finds

RULE = "volume-over-local"
SMALL = replace(TYPES["ml.g4dn.xlarge"], local_gb=125)
MARKET = Market({**TYPES, SMALL.name: SMALL}, FixedPrices())
TRAINING = {"ResourceConfig.InstanceType": SMALL.name}


verdict = partial(request_answer, RULE, market=MARKET)


def test_125_gb_on_125_gb_of_local_storage_are_clear() -> None:
    """And so is a type whose storage is not known."""
    assert verdict(TRAINING | {"ResourceConfig.VolumeSizeInGB": 125}) == CLEAR
    result = verdict(
        {"ResourceConfig.InstanceType": "ml.g5.2xlarge", "ResourceConfig.VolumeSizeInGB": 900}
    )
    assert result == CLEAR


def test_126_gb_on_125_gb_of_local_storage_are_found() -> None:
    assert verdict(TRAINING | {"ResourceConfig.VolumeSizeInGB": 126}) == finds("…125 GB…")


def test_processing_is_refused() -> None:
    """Training runs until its disk is full."""
    result = verdict(
        {
            "ProcessingResources": {
                "ClusterConfig": {
                    "InstanceType": SMALL.name,
                    "InstanceCount": 1,
                    "VolumeSizeInGB": 500,
                }
            }
        },
        kind=JobKind.PROCESSING,
    )
    assert result == finds("…refuses…")
