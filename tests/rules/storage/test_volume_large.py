from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from tests.fakes.planned import said, told

RULE = "volume-large"
DAY = {"StoppingCondition.MaxRuntimeInSeconds": 86_400}
SIZE = "ResourceConfig.VolumeSizeInGB"


def test_volumes_that_cost_more_than_the_instances_are_found() -> None:
    """8,000 GB for a day of May at $0.14 a month: $36.13, beside $5.52."""
    finding = told(RULE, DAY | {SIZE: 8000})
    assert "$36.13" in finding.found.summary
    assert "$5.52" in finding.found.summary


def test_ten_dollars_are_not_worth_a_line() -> None:
    """2,000 GB are $9.03; and cheap volumes beside dear instances are as they should be."""
    assert said(RULE, DAY | {SIZE: 2000}) == Clear()
    dear = {SIZE: 3000, "ResourceConfig.InstanceType": "ml.m5.4xlarge"}
    assert said(RULE, DAY | dear) == Clear()


def test_without_a_price_it_is_not_judged() -> None:
    """The region is not known."""
    assert isinstance(said(RULE, DAY | {SIZE: 8000}, region=None), Unknown)
