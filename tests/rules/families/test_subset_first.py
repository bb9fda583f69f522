from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Found, Unknown
from sageaudit.domain.job.job import Job, Parent, ParentKind
from sageaudit.domain.usage.measurements import Measurements, RawSeries
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, ran, usage
from tests.fakes.judging import found, not_applicable, outcome, priced

RULE = "subset-first"
TWO_HOURS = ran(7200, "ml.g5.2xlarge")


def tries(count: int, settings: int, **facts: Any) -> list[EarlierRun]:
    """So many runs of the last ten days, with so many fingerprints."""
    return [
        earlier_run(1 + number % 10, fingerprint=f"f{number % settings}", **facts)
        for number in range(count)
    ]


TEN = tries(10, 10)


def learns_until(minute: int, of: Job = TWO_HOURS) -> Measurements:
    """A loss that falls by a twentieth each minute, and then stays to the end."""
    minutes = int((of.elapsed_s or 0) // 60)
    values = tuple(2.0 * 0.95 ** min(n, minute) for n in range(minutes))
    return usage(of, RawSeries("train", "validation:loss", START, 60, values))


def test_an_early_last_gain_in_an_exploring_family_is_found() -> None:
    """Its last gain came in 20 of 120 minutes."""
    what = found(RULE, TWO_HOURS, learns_until(20), earlier=TEN)
    assert what.summary == (
        "validation:loss made its last gain after 20 min of 2 h, in one of 11 runs with 10 "
        "settings: try settings on a part of the data."
    )
    assert what.evidence["last_gain_s"] == 1200


def test_it_has_no_dollars() -> None:
    """How much data is enough is not known."""
    finding = priced(RULE, TWO_HOURS, learns_until(20), earlier=TEN)
    assert finding.found.bucket is Bucket.POSSIBLE
    assert (finding.saving_usd, finding.severity.value) == (None, "info")
    assert finding.found.caution is not None


def test_exactly_a_fifth_of_training_is_early() -> None:
    """24 of 120 minutes; 25 are not."""
    assert isinstance(outcome(RULE, TWO_HOURS, learns_until(24), earlier=TEN), Found)
    assert outcome(RULE, TWO_HOURS, learns_until(25), earlier=TEN) == Clear()


def test_a_try_under_half_an_hour_is_cheap() -> None:
    """Exactly 30 minutes are judged."""
    for seconds, judged in ((1800, True), (1799, False)):
        run = ran(seconds, "ml.g5.2xlarge")
        answer = outcome(RULE, run, learns_until(3, run), earlier=TEN)
        assert isinstance(answer, Found) is judged


def test_nine_tries_are_no_series() -> None:
    """Nor are ten of which one is too old, or failed."""
    early = learns_until(20)
    assert outcome(RULE, TWO_HOURS, early, earlier=TEN[:-1]) == Clear()
    old = earlier_run(15, fingerprint="f11")
    assert outcome(RULE, TWO_HOURS, early, earlier=[*TEN[:-1], old]) == Clear()
    ever = outcome(RULE, TWO_HOURS, early, earlier=[*TEN[:-1], old], limits={"within_days": 1e6})
    assert isinstance(ever, Found)
    failed = earlier_run(2, fingerprint="f11", status="Failed")
    assert outcome(RULE, TWO_HOURS, early, earlier=[*TEN[:-1], failed]) == Clear()


def test_a_family_of_the_same_settings_does_not_explore() -> None:
    """A daily retraining: 4 settings in 10 runs are few, 5 are enough."""
    early = learns_until(20)
    assert outcome(RULE, TWO_HOURS, early, earlier=tries(10, 4)) == Clear()
    assert isinstance(outcome(RULE, TWO_HOURS, early, earlier=tries(10, 5)), Found)


@pytest.mark.parametrize(
    ("run", "of", "earlier", "code"),
    [
        (TWO_HOURS, learns_until(20), None, "history_unread"),
        (TWO_HOURS, learns_until(20), [earlier_run(1)] * 10, "fingerprint_missing"),
        (replace(TWO_HOURS, metric_names=("loss",)), None, TEN, "metric_missing"),
    ],
)
def test_what_is_not_known_is_unknown(
    run: Job, of: Measurements | None, earlier: list[EarlierRun] | None, code: str
) -> None:
    """Neither clear nor found."""
    answer = outcome(RULE, run, of, earlier=earlier)
    assert isinstance(answer, Unknown)
    assert answer.code == code


def test_without_a_time_no_run_is_earlier() -> None:
    """It never came to run."""
    never = replace(TWO_HOURS, started_at=None, created_at=None)
    assert outcome(RULE, never, learns_until(20), earlier=TEN) == Clear()


def test_the_trials_of_a_tuning_job_are_not_its_concern() -> None:
    """Nor is a failed run."""
    child = replace(TWO_HOURS, parent=Parent(ParentKind.TUNING, "arn:tuning"))
    assert not_applicable(RULE, child) == "its tuning job decides what is tried"
    assert "did not complete" in not_applicable(RULE, replace(TWO_HOURS, status="Failed"))
