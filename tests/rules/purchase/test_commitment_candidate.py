from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace
from tests.fakes.accounts import account_detection, account_outcome
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "commitment-candidate"
TWO_DOLLARS_AN_HOUR = Policy(commitment_usd_per_hour=Decimal(2))
"""The plan that the policy asks about."""


def day(number: int, usd: object = 48, hours: int = 24, **changes: Any) -> AuditSummary:
    """A run of `hours` hours that ended this many days before START; $48 a day are $2 an hour."""
    seconds = Decimal(hours * 3600)
    plain: dict[str, Any] = {
        "ended_at": START - timedelta(days=number),
        "total_usd": None if usd is None else Decimal(str(usd)),
        "elapsed_s": seconds,
        "billable_s": seconds,
    }
    return earlier_run(**plain | changes)


def month(**changes: Any) -> list[AuditSummary]:
    """Thirty days in which something ran all the time, the newest first."""
    return [day(number=number, **changes) for number in range(30)]


def steady(runs: list[AuditSummary]) -> Decimal:
    """USD an hour, by the finding's evidence, to the cent."""
    low = replace(TWO_DOLLARS_AN_HOUR, commitment_usd_per_hour=Decimal("0.01"))
    usd = account_detection(RULE, runs, policy=low).evidence["steady_usd_per_hour"]
    assert isinstance(usd, Decimal)
    return round(usd, 2)


verdict = partial(account_outcome, RULE)


def test_hours_as_steady_as_the_plan_are_found() -> None:
    # 30 days at $72 a day are $3 an hour; the plan asks for $2.
    assert verdict(month(usd=72), policy=TWO_DOLLARS_AN_HOUR) == finds(
        "In 80% of the hours of 30 days, on-demand jobs cost at least $3.00 an hour after all "
        "other fixes: compare a Savings Plan of $2.00 an hour.",
        builder="possible",
        change=None,
        fix=[],
        caution="…discount depends on…",
        evidence={"runs_counted": 30},
    )


def test_48_dollars_a_day_are_the_plans_2_an_hour_and_found_and_a_cent_less_is_clear() -> None:
    assert verdict(month(usd=48), policy=TWO_DOLLARS_AN_HOUR) == FOUND
    assert verdict(month(usd="47.99"), policy=TWO_DOLLARS_AN_HOUR) == CLEAR


def test_24_of_30_days_at_the_plans_rate_are_80_percent_and_found_and_23_are_clear() -> None:
    # 576 of 720 hours; 23 days are 552 of them.
    assert verdict(month()[:24], policy=TWO_DOLLARS_AN_HOUR) == FOUND
    assert verdict(month()[:23], policy=TWO_DOLLARS_AN_HOUR) == CLEAR
    assert (
        verdict(month()[:23], policy=TWO_DOLLARS_AN_HOUR, limits={"min_hours_percent": 70}) == FOUND
    )


def test_a_peak_is_not_steady() -> None:
    """Eight hours a day at any price leave sixteen empty."""
    assert verdict(month(usd=4800, hours=8), policy=TWO_DOLLARS_AN_HOUR) == CLEAR


def test_only_on_demand_hours_count() -> None:
    """Spot has its own discount, a training plan is paid already."""
    assert verdict(month(purchase=Purchase.SPOT), policy=TWO_DOLLARS_AN_HOUR) == CLEAR
    assert verdict(month(purchase=Purchase.TRAINING_PLAN), policy=TWO_DOLLARS_AN_HOUR) == CLEAR
    assert verdict(month(purchase=Purchase.SERVERLESS), policy=TWO_DOLLARS_AN_HOUR) == CLEAR


def test_the_evidence_counts_what_is_unknown() -> None:
    """On demand only."""
    result = verdict(
        [*month(), day(number=3, usd=None), day(number=3, usd=None, purchase=Purchase.SPOT)],
        policy=TWO_DOLLARS_AN_HOUR,
    )
    assert result == finds(evidence={"runs_of_unknown_cost": 1})


def test_30_days_of_history_are_enough_and_29_are_too_short() -> None:
    assert verdict(month(), policy=TWO_DOLLARS_AN_HOUR, days=29) == cannot_judge("too_short")
    assert verdict(month(), policy=TWO_DOLLARS_AN_HOUR, days=30) == FOUND


def test_without_a_plans_rate_or_with_a_plan_it_says_nothing() -> None:
    # What a plan covers already is not known here.
    assert verdict(month(), policy=Policy()) == does_not_apply("…[commitment] usd_per_hour…")
    result = verdict(
        month(), policy=replace(TWO_DOLLARS_AN_HOUR, discounts=Discounts(savings_plan=True))
    )
    assert result == does_not_apply("…Savings Plan…")


def test_spot_advice_is_to_be_decided_first() -> None:
    """Of $3 an hour $2 may move to spot."""
    result = verdict(
        [*month(usd=48, rules_with_findings=("spot-not-used",)), *month(usd=24)],
        policy=TWO_DOLLARS_AN_HOUR,
    )
    assert result == finds(
        caution="Without the runs that managed spot may suit, the steady spend is $1.00 an hour: "
        "decide on spot…",
        evidence={"steady_without_spot_candidates_usd_per_hour": Decimal("1.0000")},
    )
    assert verdict(month(), policy=TWO_DOLLARS_AN_HOUR) == finds(without="spot")


def test_runs_that_nothing_could_judge_are_neither_steady_nor_clear() -> None:
    # What they would cost without their waste may be as much as they did, or nothing.
    result = verdict(month(judged=Judged.NO, avoidable_usd=None), policy=TWO_DOLLARS_AN_HOUR)
    assert result == cannot_judge("runs_not_judged")
    assert (
        verdict(month(usd=24, judged=Judged.NO, avoidable_usd=None), policy=TWO_DOLLARS_AN_HOUR)
        == CLEAR
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"avoidable_usd": Decimal(24)},
        {"lost_usd": Decimal(24)},
        {"avoidable_usd": Decimal(14), "lost_usd": Decimal(10)},
    ],
)
def test_what_other_findings_save_is_taken_off_first(changes: dict[str, Any]) -> None:
    """$24 of $72 a day: $2 of $3 an hour are left."""
    assert steady(month(usd=72, **changes)) == Decimal("2.00")


def test_a_retained_warm_pool_is_taken_off() -> None:
    """Six hours retained beside 24 that ran: a fifth of $60 a day, $2 an hour are left."""
    pooled = month(usd=60, retained_s=Decimal(6 * 3600))
    assert steady(pooled) == Decimal("2.00")


def test_training_processing_and_transform_add_up() -> None:
    """$1 + $0.5 + $0.5 an hour; another kind of job is not covered."""
    mixed = [
        *month(usd=24),
        *month(usd=12, kind="processing"),
        *month(usd=12, kind="transform"),
        *month(usd=99, kind="tuning"),
    ]
    assert steady(mixed) == Decimal("2.00")


@pytest.mark.parametrize(
    "unknown",
    [
        {"usd": None},
        {"avoidable_usd": None},
        {"lost_usd": None},
        {"elapsed_s": None},
        {"elapsed_s": Decimal(0)},
    ],
)
def test_runs_of_unknown_cost_or_time_are_left_out(unknown: dict[str, Any]) -> None:
    """Never 0, never guessed: beside $2 an hour they add nothing; a time of 0 s has no hours."""
    assert steady([*month(), *month(**unknown)]) == Decimal("2.00")
