from functools import partial

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge

RULE = "transform-split"
MULTI = {"BatchStrategy": "MultiRecord"}
SPLIT = "TransformInput.SplitType"


verdict = partial(request_answer, RULE, kind=JobKind.TRANSFORM)


def test_several_records_need_a_split() -> None:
    """None is none."""
    assert verdict(MULTI | {SPLIT: None}) == FOUND
    assert verdict(MULTI | {SPLIT: "None"}) == FOUND


def test_a_split_or_single_records_are_clear() -> None:
    """One record a request needs no split."""
    assert verdict(MULTI) == CLEAR
    assert verdict({SPLIT: None}) == CLEAR


def test_a_split_that_aws_refuses_is_not_judged_again_nor_one_that_is_known_later() -> None:
    assert verdict(MULTI | {SPLIT: "Newline"}, kind=JobKind.TRANSFORM) == cannot_judge("…")
    assert verdict(MULTI | {SPLIT: LATER}, kind=JobKind.TRANSFORM) == cannot_judge("…")
