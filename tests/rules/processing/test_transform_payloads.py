from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, said, told

RULE = "transform-payloads"
SIZE, AT_A_TIME = "MaxPayloadInMB", "MaxConcurrentTransforms"


def test_more_than_100_mb_at_a_time_is_refused() -> None:
    """The fix keeps the payload."""
    finding = told(RULE, {SIZE: 20, AT_A_TIME: 6}, kind=JobKind.TRANSFORM)
    assert (finding.found.fix[0].path, finding.found.fix[0].new) == (AT_A_TIME, 5)


def test_exactly_100_mb_are_taken() -> None:
    """A payload that is not set is 6 MB."""
    assert said(RULE, {SIZE: 20, AT_A_TIME: 5}, kind=JobKind.TRANSFORM) == Clear()
    assert said(RULE, {AT_A_TIME: 16}, kind=JobKind.TRANSFORM) == Clear()
    assert told(RULE, {AT_A_TIME: 17}, kind=JobKind.TRANSFORM)


def test_a_size_that_is_known_later_is_not_judged() -> None:
    """It may be small."""
    assert isinstance(said(RULE, {SIZE: LATER, AT_A_TIME: 50}, kind=JobKind.TRANSFORM), Unknown)
