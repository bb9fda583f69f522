from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from tests.fakes.planned import said, told

RULE = "keep-alive-cost"
KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
DEAR = {"ResourceConfig.InstanceType": "ml.g4dn.12xlarge"}


def test_the_whole_period_is_priced() -> None:
    """Six hours at $4.89."""
    finding = told(RULE, DEAR | {KEEP: 21_600})
    assert "$29.34" in finding.found.summary
    assert finding.severity.value == "low"
    assert finding.alone_usd is None


def test_five_dollars_are_not_worth_a_line() -> None:
    """An hour is $4.89."""
    assert said(RULE, DEAR | {KEEP: 3600}) == Clear()
    assert said(RULE, DEAR) == Clear()


def test_without_a_rate_nothing_is_said() -> None:
    """The region is not known."""
    assert isinstance(said(RULE, DEAR | {KEEP: 3600}, region=None), Unknown)
