from __future__ import annotations

from sageaudit.domain.bill.finding import Clear, Unknown
from tests.fakes.planned import LATER, said, told

RULE = "file-mode-large"
FILE = {"AlgorithmSpecification.TrainingInputMode": "File"}
SIZE = "ResourceConfig.VolumeSizeInGB"


def test_file_mode_on_a_terabyte_is_found() -> None:
    """From 1,000 GB on."""
    assert told(RULE, FILE | {SIZE: 1000}).found.fix[0].path == "InputDataConfig[train].InputMode"
    assert said(RULE, FILE | {SIZE: 999}) == Clear()


def test_fast_file_copies_nothing() -> None:
    """Whatever the size."""
    assert said(RULE, {SIZE: 4000}) == Clear()


def test_a_mode_that_is_known_later_is_not_judged() -> None:
    """It may be FastFile."""
    later = {"AlgorithmSpecification.TrainingInputMode": LATER, SIZE: 4000}
    assert isinstance(said(RULE, later), Unknown)
