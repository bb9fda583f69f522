from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, NotApplicable, Unknown
from sageaudit.domain.job.job import InstanceGroup, Job, Parent, ParentKind, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, market, phases
from tests.fakes.judging import found, not_applicable, outcome

RULE = "slow-start"


def short(waits_s: int = 150, works_s: int = 300, **changes: Any) -> Job:
    """Requested `waits_s` before START, on one ml.m5.xlarge at $0.23 with 30 GB."""
    plain: dict[str, Any] = {
        "created_at": START - timedelta(seconds=waits_s),
        "ended_at": START + timedelta(seconds=works_s),
        "phases": phases(("Starting", -waits_s), ("Training", works_s)),
        "training_s": Decimal(works_s),
        "billable_s": Decimal(works_s),
        "channels": (),
    }
    return job("ml.m5.xlarge", **plain | changes)


def series_of(
    number: int = 4, gap_s: int = 600, waits_s: int = 150, works_s: int = 300, **facts: Any
) -> list[EarlierRun]:
    """Runs like it, each ended `gap_s` before the next one was requested; newest first."""
    runs, requested_at = [], short().created_at
    assert requested_at is not None
    for _ in range(number):
        ended_at = requested_at - timedelta(seconds=gap_s)
        requested_at = ended_at - timedelta(seconds=waits_s + works_s)
        plain: dict[str, Any] = {
            "ended_at": ended_at,
            "elapsed_s": Decimal(works_s),
            "phase_s": {"Starting": Decimal(waits_s), "Training": Decimal(works_s)},
        }
        runs.append(earlier_run(**plain | facts))
    return runs


def test_short_runs_that_wait_long_are_found() -> None:
    """2.5 minutes for 5, every 10 minutes: minutes saved and dollars retained."""
    what = found(RULE, short(), earlier=series_of())
    assert what.summary == (
        "5 runs each waited 2 min 30 s (median) for 5 min of billed time: a warm pool saves at "
        "most that wait and costs about $0.04 a run."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == ("ResourceConfig.KeepAlivePeriodInSeconds", None, 660)
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.NONE)


def test_it_never_has_positive_dollars() -> None:
    """Ten retained minutes: 600 s x $0.23 / h, and 30 GB x 600 s of a month of 744 h x $0.14."""
    what = found(RULE, short(), earlier=series_of())
    assert what.change is None
    assert "buys time, not money" in (what.caution or "")
    by_hand = Decimal(600) / 3600 * (Decimal("0.23") + Decimal(30) / 744 * Decimal("0.14"))
    assert what.evidence["retained_usd_a_run"] == round(by_hand, 4) == Decimal("0.0393")
    assert what.evidence["minutes_saved_a_run"] == Decimal("2.5")


def test_an_unknown_rate_is_said() -> None:
    """Never 0."""
    what = found(RULE, short(), earlier=series_of(), on=market(hourly_usd={}))
    assert "costs an unknown sum a run" in what.summary
    assert what.evidence["retained_usd_a_run"] is None


def test_exactly_half_of_the_billed_time_is_long() -> None:
    """150 of 300 s; one second less is not, here or in the family."""
    assert isinstance(outcome(RULE, short(150), earlier=series_of(waits_s=150)), Found)
    assert outcome(RULE, short(149), earlier=series_of(waits_s=150)) == Clear()
    assert outcome(RULE, short(150), earlier=series_of(waits_s=149)) == Clear()


def test_exactly_a_minute_is_not_long() -> None:
    """One second more is."""
    assert outcome(RULE, short(60, 100), earlier=series_of(waits_s=60, works_s=100)) == Clear()
    answer = outcome(RULE, short(61, 100), earlier=series_of(waits_s=61, works_s=100))
    assert isinstance(answer, Found)


def test_waiting_for_capacity_is_waiting() -> None:
    """Pending counts with Starting."""
    split = phases(("Starting", -30), ("Pending", -120), ("Training", 300))
    assert found(RULE, short(phases=split), earlier=series_of()).evidence["waited_s"] == 150


def test_exactly_half_an_hour_is_no_short_run() -> None:
    """From there managed spot is advised, which keeps no pool."""
    assert "30 minutes or longer" in not_applicable(RULE, short(1800, 1800))
    answer = outcome(
        RULE, short(1799, 1799), earlier=series_of(waits_s=1799, works_s=1799, gap_s=60)
    )
    assert isinstance(answer, Found)


def test_a_gap_of_an_hour_is_bridged_and_more_is_not() -> None:
    """The longest keep-alive; a family of one run a day gets no such advice."""
    assert found(RULE, short(), earlier=series_of(gap_s=3600)).fix[0].new == 3600
    assert outcome(RULE, short(), earlier=series_of(gap_s=3601)) == Clear()


def test_the_keep_alive_is_in_whole_minutes() -> None:
    """Just above the gap; runs that follow at once need one minute."""
    assert found(RULE, short(), earlier=series_of(gap_s=659)).fix[0].new == 660
    assert found(RULE, short(), earlier=series_of(gap_s=660)).fix[0].new == 720
    assert found(RULE, short(), earlier=series_of(gap_s=0)).fix[0].new == 60


def test_half_of_the_runs_must_follow_in_time() -> None:
    """Two gaps of four; then the pool waits its 660 s in vain for the others."""
    first = series_of(2)
    later = series_of(4)[2:]
    apart = [replace(run, ended_at=run.ended_at - timedelta(days=1)) for run in later]
    apart[1] = replace(apart[1], ended_at=apart[1].ended_at - timedelta(days=1))
    what = found(RULE, short(), earlier=[*first, *apart])
    assert (what.evidence["served_percent"], what.evidence["retained_s_a_run"]) == (50, 630)
    lone = [replace(first[1], ended_at=first[1].ended_at - timedelta(hours=12)), *apart]
    assert outcome(RULE, short(), earlier=[first[0], *lone]) == Clear()


def test_runs_side_by_side_cannot_take_over() -> None:
    """Each was requested while the one before still ran."""
    assert outcome(RULE, short(), earlier=series_of(gap_s=-100)) == Clear()


def test_four_earlier_runs_are_enough_and_three_are_not() -> None:
    """And without a history nothing is known."""
    assert isinstance(outcome(RULE, short(), earlier=series_of(4)), Found)
    for earlier, code in ((series_of(3), "too_few_runs"), (None, "history_unread")):
        answer = outcome(RULE, short(), earlier=earlier)
        assert isinstance(answer, Unknown)
        assert answer.code == code


@pytest.mark.parametrize(
    "changes",
    [
        {"instance_type": "ml.m5.large"},
        {"instance_count": 2},
        {"instance_type": None},
        {"status": "Failed"},
        {"elapsed_s": None},
        {"phase_s": {}},
    ],
)
def test_only_runs_like_it_count(changes: dict[str, Any]) -> None:
    """Other instances match no pool; failed runs and those without times do not count."""
    answer = outcome(RULE, short(), earlier=series_of(**changes))
    assert isinstance(answer, Unknown)
    assert answer.code == "too_few_runs"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"purchase": Purchase.SPOT}, "spot"),
        ({"purchase": Purchase.TRAINING_PLAN}, "training plan"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        (
            {"groups": (InstanceGroup("ml.m5.xlarge", 1), InstanceGroup("ml.m5.large", 1))},
            "instance groups",
        ),
        ({"warm_pool": WarmPool("InUse", 600, None)}, "keeps a warm pool"),
        ({"status": "Failed"}, "did not complete"),
        ({"parent": Parent(ParentKind.TUNING, "arn")}, "tuning job starts it"),
        ({"kind": JobKind.PROCESSING}, "processing"),
    ],
)
def test_jobs_without_a_pool_to_have_are_not_its_concern(changes: dict[str, Any], why: str) -> None:
    """SageMaker refuses it, or it is there already: the advised job among them."""
    assert why in not_applicable(RULE, short(**changes))


def test_a_family_that_kept_a_pool_once_gets_no_advice_back() -> None:
    """Advice to drop an idle pool is not followed by advice to keep one."""
    runs = series_of(5)
    runs[4] = earlier_run(5, retained_s=Decimal(600))
    answer = outcome(RULE, short(), earlier=runs)
    assert answer == NotApplicable("an earlier run of its family kept a warm pool")


@pytest.mark.parametrize(
    "changes",
    [
        {"created_at": None},
        {"ended_at": None},
        {"training_s": Decimal(0)},
        {"phases": (replace(short().phases[0], seconds=None), short().phases[1])},
    ],
)
def test_unknown_times_are_unknown(changes: dict[str, Any]) -> None:
    """Never clear, and 0 billed seconds do not raise."""
    answer = outcome(RULE, short(**changes), earlier=series_of())
    assert isinstance(answer, Unknown)
    assert answer.code == "times_missing"
