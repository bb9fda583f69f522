from __future__ import annotations

from sageaudit.domain.bill.finding import Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked, said
from tests.fakes.rule_cases import CLEAR, FOUND, cases, row

RULE = "transform-split"
MULTI = {"BatchStrategy": "MultiRecord"}
SPLIT = "TransformInput.SplitType"


test_cases = cases(
    RULE,
    "Several records need a split. None is none.",
    row(FOUND, MULTI | {SPLIT: None}),
    row(FOUND, MULTI | {SPLIT: "None"}),
    "A split or single records are clear. One record a request needs no split.",
    row(CLEAR, MULTI),
    row(CLEAR, {SPLIT: None}),
    ask=asked,kind=JobKind.TRANSFORM,
)  # fmt: skip


def test_a_split_that_aws_refuses_is_not_judged_again() -> None:
    """The value itself is reported; nor one that is known later."""
    for value in ("Newline", LATER):
        answer = said(RULE, MULTI | {SPLIT: value}, kind=JobKind.TRANSFORM)
        assert isinstance(answer, Unknown)
