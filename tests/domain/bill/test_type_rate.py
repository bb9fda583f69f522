from decimal import Decimal

import pytest

from sageaudit.domain.job.job import InstanceGroup
from sageaudit.domain.prices.market import Market
from sageaudit.domain.resize.type_choice import cluster_usd_per_hour, saving_share_of_cpu_type
from tests.fakes.jobs import FixedPrices, gpu_type, instance_type, job, market, not_none

DEAR = gpu_type("ml.p4d.24xlarge", 96, 1152, 8, "A100")
SMALL = (
    gpu_type("ml.g4dn.xlarge", 4, 16, 1, "T4"),
    gpu_type("ml.g5.xlarge", 4, 16, 1, "A10G"),
    gpu_type("ml.g5.12xlarge", 48, 192, 4, "A10G"),
    instance_type("ml.trn1.2xlarge", 8, 32, accelerator="neuron"),
    instance_type("ml.c5.large", 2, 4),
    instance_type("ml.m5.large", 2, 8),
    instance_type("ml.m5.24xlarge", 96, 384),
)
RATES = {
    "ml.p4d.24xlarge": "37.688",
    "ml.g4dn.xlarge": "0.736",
    "ml.g5.xlarge": "1.408",
    "ml.g5.12xlarge": "7.09",
    "ml.trn1.2xlarge": "1.545",
    "ml.c5.large": "0.10",
    "ml.m5.large": "0.115",
    "ml.m5.24xlarge": "5.53",
}
HERE = Market({kind.name: kind for kind in (DEAR, *SMALL)}, FixedPrices(RATES))


def test_all_instances_of_all_groups_are_billed_by_the_hour() -> None:
    """2 x $0.23 + $1.515. Unknown if one rate is unknown, without groups, or without a region."""
    groups = (InstanceGroup("ml.m5.xlarge", 2), InstanceGroup("ml.g5.2xlarge", 1))
    assert cluster_usd_per_hour(job(groups=groups), market()) == Decimal("1.975")
    unpriced = (*groups, InstanceGroup("ml.unpriced.xlarge", 1))
    assert cluster_usd_per_hour(job(groups=unpriced), market()) is None
    assert cluster_usd_per_hour(job(groups=()), market()) is None
    assert cluster_usd_per_hour(job(region=None), market()) is None


@pytest.mark.parametrize(
    ("cores", "memory_gib", "beside_usd"),
    [
        # with a fifth above: one c5.large; an m5.large for its memory; several of the cheapest
        (1.25, 3, "0.10"),
        (1.25, 6, "0.115"),
        (1.25, 230, "4.025"),
        (40, 3, "2.40"),
    ],
)
def test_cpu_types_hold_the_cores_and_the_memory(
    cores: float, memory_gib: float, beside_usd: str
) -> None:
    """For each of two hosts, as many instances as needed; the share that is left of $75.376 an
    hour.
    """
    on_two = job(groups=(InstanceGroup(DEAR.name, 2),))
    share = not_none(saving_share_of_cpu_type(on_two, HERE, cores, memory_gib))
    assert share == 1 - 2 * Decimal(beside_usd) / Decimal("75.376")
    assert saving_share_of_cpu_type(on_two, market(), cores, memory_gib) is None
