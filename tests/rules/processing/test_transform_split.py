from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, said, told

RULE = "transform-split"
MULTI = {"BatchStrategy": "MultiRecord"}
SPLIT = "TransformInput.SplitType"


def test_several_records_need_a_split() -> None:
    """None is none."""
    assert told(RULE, MULTI | {SPLIT: None}, kind=JobKind.TRANSFORM)
    assert told(RULE, MULTI | {SPLIT: "None"}, kind=JobKind.TRANSFORM)


def test_a_split_or_single_records_are_clear() -> None:
    """One record a request needs no split."""
    assert said(RULE, MULTI, kind=JobKind.TRANSFORM) == Clear()
    assert said(RULE, {SPLIT: None}, kind=JobKind.TRANSFORM) == Clear()


def test_a_split_that_aws_refuses_is_not_judged_again() -> None:
    """The value itself is reported; nor one that is known later."""
    for value in ("Newline", LATER):
        answer = said(RULE, MULTI | {SPLIT: value}, kind=JobKind.TRANSFORM)
        assert isinstance(answer, Unknown)
