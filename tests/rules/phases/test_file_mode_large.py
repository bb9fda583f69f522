from functools import partial

from tests.fakes.planned import LATER, request_answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, finds

RULE = "file-mode-large"
FILE = {"AlgorithmSpecification.TrainingInputMode": "File"}
SIZE = "ResourceConfig.VolumeSizeInGB"


verdict = partial(request_answer, RULE)


def test_file_mode_on_1000_gb_is_found_and_on_999_gb_it_is_clear() -> None:
    assert verdict(FILE | {SIZE: 1000}) == finds(paths=["InputDataConfig[train].InputMode"])
    assert verdict(FILE | {SIZE: 999}) == CLEAR


def test_fast_file_copies_nothing() -> None:
    """Whatever the size."""
    result = verdict({"AlgorithmSpecification.TrainingInputMode": "FastFile", SIZE: 4000})
    assert result == CLEAR


def test_a_mode_that_is_known_later_is_not_judged() -> None:
    """It may be FastFile."""
    result = verdict({"AlgorithmSpecification.TrainingInputMode": LATER, SIZE: 4000})
    assert result == cannot_judge("…")
