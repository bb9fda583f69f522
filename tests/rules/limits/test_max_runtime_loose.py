from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Found
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "max-runtime-loose"
HALF_A_DOLLAR = "ml.odd.xlarge"
DAYS_5 = 432_000


def test_a_limit_that_could_cost_hundreds_is_found() -> None:
    """Five days of $4.89 for a run of one hour; three hours would do."""
    what = found(RULE, ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5))
    assert what.summary == (
        "A hung run would be billed up to $587: the limit is 5 d, this run took 1 h."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (
        "StoppingCondition.MaxRuntimeInSeconds", DAYS_5, 10_800,
    )  # fmt: skip


def test_it_has_no_dollars() -> None:
    """A guard-rail: nothing was spent for it."""
    finding = priced(RULE, ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5))
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.NONE)
    assert finding.severity.value == "info"
    assert finding.rule.in_chat is False


def test_exactly_200_dollars_do_not_hurt() -> None:
    """400 hours at $0.50; one second more does."""
    assert outcome(RULE, ran(3600, HALF_A_DOLLAR, max_runtime_s=1_440_000)) == Clear()
    assert isinstance(outcome(RULE, ran(3600, HALF_A_DOLLAR, max_runtime_s=1_440_001)), Found)


def test_exactly_ten_times_the_run_is_loose() -> None:
    """One second of run more is not."""
    assert isinstance(outcome(RULE, ran(200_000, HALF_A_DOLLAR, max_runtime_s=2_000_000)), Found)
    assert outcome(RULE, ran(200_001, HALF_A_DOLLAR, max_runtime_s=2_000_000)) == Clear()


def test_all_instances_are_exposed() -> None:
    """100 hours at $0.50 are $50; of five instances $250."""
    assert outcome(RULE, ran(3600, HALF_A_DOLLAR, 1, max_runtime_s=360_000)) == Clear()
    assert isinstance(outcome(RULE, ran(3600, HALF_A_DOLLAR, 5, max_runtime_s=360_000)), Found)


@pytest.mark.parametrize(("ran_s", "hours"), [(60, 1), (1200, 1), (1201, 2), (3600, 3), (3601, 4)])
def test_the_suggested_limit_is_three_runs_in_whole_hours(ran_s: int, hours: int) -> None:
    """Rounded up."""
    what = found(RULE, ran(ran_s, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5))
    assert what.fix[0].new == hours * 3600


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"max_runtime_s": None}, "no MaxRuntimeInSeconds"),
        ({"free": "built-in Debugger rule"}, "built-in Debugger rule"),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"status": "Failed"}, "complete"),
        ({"kind": JobKind.TRANSFORM}, "transform"),
    ],
)
def test_where_no_limit_is_billed_it_does_not_apply(changes: dict[str, Any], why: str) -> None:
    """And why."""
    run = ran(3600, "ml.g4dn.12xlarge", **{"max_runtime_s": DAYS_5, **changes})
    assert why in not_applicable(RULE, run)


def test_without_times_or_price_it_does_not_know() -> None:
    """How loose, or how expensive, is not known."""
    timeless = ran(3600, started_at=None, training_s=None, max_runtime_s=DAYS_5)
    assert unknown(RULE, timeless) == "times_missing"
    assert unknown(RULE, ran(3600, "ml.unpriced.xlarge", max_runtime_s=DAYS_5)) == "price_unknown"
    assert unknown(RULE, ran(3600, region=None, max_runtime_s=DAYS_5)) == "price_unknown"


def family(count: int, longest_s: int, **facts: Any) -> list[EarlierRun]:
    """Earlier runs of one hour, but for the oldest one."""
    hours = [earlier_run(days) for days in range(1, count)]
    return [*hours, earlier_run(count, elapsed_s=Decimal(longest_s), **facts)]


def test_the_longest_of_five_runs_is_what_is_learnt() -> None:
    """Four earlier ones and this one: the longest took 6 h, three times that is 18 h."""
    what = found(RULE, ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5),
                 earlier=family(4, 21_600))  # fmt: skip
    assert what.summary == (
        "A hung run would be billed up to $587: the limit is 5 d, the longest of 5 runs took 6 h."
    )
    assert what.fix[0].new == 18 * 3600


def test_exactly_ten_times_the_familys_longest_is_loose() -> None:
    """120 h against 12 h; a second more was needed once, and the limit is right."""
    run = ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)
    assert isinstance(outcome(RULE, run, earlier=family(4, 43_200)), Found)
    assert outcome(RULE, run, earlier=family(4, 43_201)) == Clear()


def test_four_runs_teach_nothing_yet() -> None:
    """Three earlier ones: this run alone is compared, as without a history."""
    run = ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)
    for earlier in (family(3, 43_201), [], None):
        what = found(RULE, run, earlier=earlier)
        assert "this run took 1 h" in what.summary
        assert what.evidence["runs"] == 1


def test_a_run_that_the_limit_cut_needed_its_time() -> None:
    """A run that failed, or that somebody stopped, does not show how long the work takes."""
    run = ran(3600, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5)
    cut = family(4, 43_201, status="Stopped", reason_class="limit reached")
    assert outcome(RULE, run, earlier=cut) == Clear()
    hung = family(5, 43_201, status="Failed", reason_class="code error")
    assert isinstance(outcome(RULE, run, earlier=hung), Found)


def test_the_advised_limit_gets_no_advice() -> None:
    """Also where one whole hour is still many times a run of a minute: 100 instances, $489."""
    run = ran(60, "ml.g4dn.12xlarge", 100, max_runtime_s=DAYS_5)
    new = found(RULE, run).fix[0].new
    assert new == 3600
    assert outcome(RULE, ran(60, "ml.g4dn.12xlarge", 100, max_runtime_s=3600)) == Clear()


def test_a_run_of_less_than_a_second_still_gets_an_hour() -> None:
    """A limit of 0 would be refused."""
    blink = ran(1, "ml.g4dn.12xlarge", max_runtime_s=DAYS_5, training_s=Decimal("0.4"))
    assert found(RULE, blink).fix[0].new == 3600
