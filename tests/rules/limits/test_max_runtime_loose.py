from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "max-runtime-loose"
HALF_A_DOLLAR_AN_HOUR = "ml.odd.xlarge"
FIVE_DAYS_S = 432_000
LOOSE = ran(3600, "ml.g4dn.12xlarge", max_runtime_s=FIVE_DAYS_S)
"""An hour at $4.89 an hour; 120 hours are $587."""


def family(count: int, longest_s: int, **facts: Any) -> list[AuditSummary]:
    """Earlier runs of one hour, but for the oldest one."""
    hours = [earlier_run(days) for days in range(1, count)]
    return [*hours, earlier_run(count, elapsed_s=Decimal(longest_s), **facts)]


verdict = partial(answer, RULE)


def test_a_limit_that_could_cost_hundreds_is_found() -> None:
    # Five days of $4.89 for a run of one hour; three hours would do.
    result = verdict(LOOSE)
    assert result == finds(
        "A hung run would be billed up to $586.80: the limit is 5 d, this run took 1 h.",
        fix=[("StoppingCondition.MaxRuntimeInSeconds", FIVE_DAYS_S, 10_800)],
    )


def test_it_has_no_dollars() -> None:
    """A guard-rail: nothing was spent for it."""
    result = verdict(LOOSE)
    assert result == finds(usd=None, bucket="none", severity="info", sent_to_channels=False)


def test_a_limit_of_200_dollars_is_clear_and_one_second_more_is_found() -> None:
    """1,440,000 s are 400 hours at $0.50."""
    assert verdict(ran(3600, HALF_A_DOLLAR_AN_HOUR, max_runtime_s=1_440_000)) == CLEAR
    assert verdict(ran(3600, HALF_A_DOLLAR_AN_HOUR, max_runtime_s=1_440_001)) == FOUND


def test_a_limit_of_10_times_the_run_is_loose_and_of_less_is_not() -> None:
    assert verdict(ran(200_000, HALF_A_DOLLAR_AN_HOUR, max_runtime_s=2_000_000)) == FOUND
    assert verdict(ran(200_001, HALF_A_DOLLAR_AN_HOUR, max_runtime_s=2_000_000)) == CLEAR


def test_100_hours_at_50_cents_are_50_dollars_of_1_instance_and_250_of_5() -> None:
    assert verdict(ran(3600, HALF_A_DOLLAR_AN_HOUR, 1, max_runtime_s=360_000)) == CLEAR
    assert verdict(ran(3600, HALF_A_DOLLAR_AN_HOUR, 5, max_runtime_s=360_000)) == FOUND


def test_the_suggested_limit_is_3_times_the_run_rounded_up_to_whole_hours() -> None:
    assert verdict(ran(60, "ml.g4dn.12xlarge", max_runtime_s=FIVE_DAYS_S)) == finds(fix=[1 * 3600])
    assert verdict(ran(1200, "ml.g4dn.12xlarge", max_runtime_s=FIVE_DAYS_S)) == finds(
        fix=[1 * 3600]
    )
    assert verdict(ran(1201, "ml.g4dn.12xlarge", max_runtime_s=FIVE_DAYS_S)) == finds(
        fix=[2 * 3600]
    )
    assert verdict(LOOSE) == finds(fix=[3 * 3600])
    assert verdict(ran(3601, "ml.g4dn.12xlarge", max_runtime_s=FIVE_DAYS_S)) == finds(
        fix=[4 * 3600]
    )


def test_where_no_limit_is_billed_it_does_not_apply() -> None:
    for changes, reason in (
        ({"max_runtime_s": None}, "…no MaxRuntimeInSeconds…"),
        ({"free": "built-in Debugger rule"}, "…built-in Debugger rule…"),
        ({"purchase": Purchase.TRAINING_PLAN}, "…prepaid…"),
        ({"purchase": Purchase.SERVERLESS}, "…serverless…"),
        ({"status": "Failed"}, "…complete…"),
        ({"kind": JobKind.TRANSFORM}, "…transform…"),
    ):
        assert verdict(replace(LOOSE, **changes)) == does_not_apply(reason)


def test_without_times_or_price_it_does_not_know() -> None:
    """How loose, or how expensive, is not known."""
    result = verdict(ran(3600, started_at=None, training_s=None, max_runtime_s=FIVE_DAYS_S))
    assert result == cannot_judge("times_missing")
    result = verdict(ran(3600, "ml.unpriced.xlarge", max_runtime_s=FIVE_DAYS_S))
    assert result == cannot_judge("price_unknown")
    assert verdict(ran(3600, region=None, max_runtime_s=FIVE_DAYS_S)) == cannot_judge(
        "price_unknown"
    )


def test_the_longest_of_five_runs_is_what_is_learnt() -> None:
    # Four earlier ones and this one: the longest took 6 h, three times that is 18 h.
    result = verdict(LOOSE, earlier=family(4, 21_600))
    assert result == finds(
        "A hung run would be billed up to $586.80: the limit is 5 d, the longest of 5 runs took "
        "6 h.",
        fix=[18 * 3600],
    )


def test_a_limit_of_10_times_the_longest_run_of_the_family_is_loose_and_of_less_is_not() -> None:
    # 120 h against 12 h; a second more was needed once, and the limit is right.
    result = verdict(LOOSE, earlier=family(4, 43_200))
    assert result == FOUND
    result = verdict(LOOSE, earlier=family(4, 43_201))
    assert result == CLEAR


def test_four_runs_teach_nothing_yet() -> None:
    # Three earlier ones: this run alone is compared, as without a history.
    result = verdict(LOOSE, earlier=family(3, 43_201))
    assert result == finds("…this run took 1 h…", evidence={"runs": 1})
    result = verdict(LOOSE, earlier=[])
    assert result == finds("…this run took 1 h…", evidence={"runs": 1})
    result = verdict(LOOSE, earlier=None)
    assert result == finds("…this run took 1 h…", evidence={"runs": 1})


def test_a_run_that_the_limit_cut_needed_its_time() -> None:
    # A run that failed, or that somebody stopped, does not show how long the work takes.
    result = verdict(
        LOOSE,
        earlier=family(4, 43_201, status="Stopped", reason="limit reached"),
    )
    assert result == CLEAR
    result = verdict(
        LOOSE,
        earlier=family(5, 43_201, status="Failed", reason="code error"),
    )
    assert result == FOUND


def test_the_advised_limit_gets_no_advice() -> None:
    # Also where one whole hour is still many times a run of a minute: 100 instances, $489.
    assert verdict(ran(60, "ml.g4dn.12xlarge", 100, max_runtime_s=FIVE_DAYS_S)) == finds(fix=[3600])
    assert verdict(ran(60, "ml.g4dn.12xlarge", 100, max_runtime_s=3600)) == CLEAR


def test_a_run_of_less_than_a_second_still_gets_an_hour() -> None:
    """A limit of 0 would be refused."""
    result = verdict(
        ran(1, "ml.g4dn.12xlarge", max_runtime_s=FIVE_DAYS_S, training_s=Decimal("0.4"))
    )
    assert result == finds(fix=[3600])
