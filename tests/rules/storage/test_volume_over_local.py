from __future__ import annotations

from dataclasses import replace

from sageaudit.domain.bill.finding import Clear
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import TYPES, FixedPrices
from tests.fakes.planned import planned, said, told

RULE = "volume-over-local"
SMALL = replace(TYPES["ml.g4dn.xlarge"], local_gb=125)
ON = Market({**TYPES, SMALL.name: SMALL}, FixedPrices())
TRAINING = {"ResourceConfig.InstanceType": SMALL.name}


def test_more_than_the_local_storage_is_found() -> None:
    """It includes volume-ignored, which says the same more quietly."""
    changes = TRAINING | {"ResourceConfig.VolumeSizeInGB": 126}
    assert "125 GB" in told(RULE, changes, on=ON).found.summary
    [ignored] = [f for f in planned(changes, on=ON).findings if f.rule.name == "volume-ignored"]
    assert ignored.subsumed_by == RULE


def test_as_much_as_there_is_is_clear() -> None:
    """And so is a type whose storage is not known."""
    assert said(RULE, TRAINING | {"ResourceConfig.VolumeSizeInGB": 125}, on=ON) == Clear()
    other = {"ResourceConfig.InstanceType": "ml.g5.2xlarge", "ResourceConfig.VolumeSizeInGB": 900}
    assert said(RULE, other, on=ON) == Clear()


def test_processing_is_refused() -> None:
    """Training runs until its disk is full."""
    cluster = {"InstanceType": SMALL.name, "InstanceCount": 1, "VolumeSizeInGB": 500}
    changes = {"ProcessingResources": {"ClusterConfig": cluster}}
    assert "refuses" in told(RULE, changes, kind=JobKind.PROCESSING, on=ON).found.summary
