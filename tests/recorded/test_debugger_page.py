from __future__ import annotations

import pytest

from docs.build_debugger import PAGE, Verdict, explained, page, verdicts
from sageaudit.domain.bill.finding import Found


def test_the_page_is_fresh() -> None:
    """`make docs` writes it from the recordings and the rules."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_recording_that_carries_debuggers_words_is_compared() -> None:
    """18, in each of the six rules that are restated."""
    jobs = {one.recording for one in verdicts()}
    assert len(jobs) == 18
    assert len(verdicts()) == 6 * len(jobs)


@pytest.mark.parametrize(
    "one",
    [one for one in verdicts() if one.agrees is False],
    ids=lambda one: f"{one.recording} {one.rule}",
)
def test_every_disagreement_is_explained(one: Verdict) -> None:
    """In a few words."""
    assert one.because


def test_every_explanation_has_its_disagreement() -> None:
    """One that is left over explains what is no more."""
    differ = {(one.recording, one.rule) for one in verdicts() if one.agrees is False}
    assert explained() == differ


def test_where_minute_means_exist_low_gpus_are_seen_alike() -> None:
    """Of each job with GPU points Debugger and gpu-underused say the same."""
    low = [one for one in verdicts() if one.rule == "LowGPUUtilization" and one.triggered]
    usage = [one for one in low if isinstance(one.ungated["gpu-underused"], Found)]
    assert len(usage) == 8
    assert {one.because for one in low if one not in usage} == {
        "the recording has no series, so our rules answer unknown, never clear"
    }
