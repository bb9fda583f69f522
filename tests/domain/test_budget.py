"""A budget's month: spend, projection, state, and which message is due."""

from datetime import date
from decimal import Decimal

import pytest

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.budget import (
    BudgetMonth,
    BudgetState,
    CoveredDays,
    SentBudgetMessages,
    Threshold,
    after_message,
    due_threshold,
    last_day_of_month,
    months_to_check,
)
from sageaudit.domain.policy.budgets import Budget
from sageaudit.structs import replace
from tests.fakes.budgets import ALL_JOBS, NOVEMBER, month_of

NEAR, PASSED, PROJECTED = Threshold.NEAR, Threshold.EXCEEDED, Threshold.PROJECTED
NOTHING_SENT = SentBudgetMessages("2026-11", ALL_JOBS.selector)


def day(number: int) -> date:
    """Returns a day of November 2026."""
    return NOVEMBER.replace(day=number)


def sent_after(*months: BudgetMonth) -> list[Threshold]:
    """Returns what the messages of these checks of one budget report."""
    past, thresholds = NOTHING_SENT, []
    for month in months:
        if (threshold := due_threshold(month, past)) is not None:
            thresholds.append(threshold)
            past = after_message(month, past)
    return thresholds


@pytest.mark.parametrize(
    ("spent", "due"),
    [(799.99, []), (800, [NEAR]), (999.99, [NEAR]), (1000, [PASSED]), (5000, [PASSED])],
)
def test_thresholds_are_reached_exactly_at_80_and_100_percent(
    spent: float, due: list[Threshold]
) -> None:
    """A job that reaches both causes one message, about the higher."""
    assert sent_after(month_of({2: spent}, today=day(2))) == due


def test_each_threshold_is_reported_once() -> None:
    """However often the budget is checked."""
    rising = [month_of({2: usd}, today=day(3)) for usd in (790, 810, 850, 990, 1010, 2000)]
    assert sent_after(*rising) == [NEAR, PASSED]


def test_a_correction_does_not_repeat_a_message() -> None:
    """A job was judged again at a lower bill, and later jobs reach the threshold again."""
    months = [month_of({2: usd}, today=day(3)) for usd in (810, 700, 820, 1000, 900, 1100)]
    assert sent_after(*months) == [NEAR, PASSED]


def test_five_whole_days_are_needed_for_a_projection() -> None:
    """The sixth day of the month is the first that has them."""
    spend = dict.fromkeys(range(1, 7), 50.0)
    assert month_of(spend, today=day(5)).projected_usd is None
    assert month_of(spend, today=day(6)).projected_usd == 50 * 30


def test_days_count_from_the_first_day_that_the_history_covers() -> None:
    """A table that was deployed in the month knows nothing of the days before."""
    spend = dict.fromkeys(range(20, 26), 10.0)
    month = month_of(spend, today=day(25), covered_since=day(20))
    assert (month.finished_days, month.projected_usd) == (5, Decimal(110))
    assert month.spend_qualifier is SpendQualifier.AT_LEAST
    assert month_of(spend, today=day(24), covered_since=day(20)).projected_usd is None


def test_days_without_jobs_are_days_too() -> None:
    """A family that ran once in nine days is projected by nine days."""
    assert month_of({3: 90.0}, today=day(10)).projected_usd == 90 + 10 * 21


def test_today_costs_at_least_what_it_has_cost() -> None:
    """A day above the average raises the projection before it ends."""
    spend = dict.fromkeys(range(1, 11), 10.0)
    assert month_of(spend | {11: 500.0}, today=day(11)).projected_usd == 100 + 500 + 19 * 10
    assert month_of(spend | {11: 2.0}, today=day(11)).projected_usd == 100 + 10 + 19 * 10


def test_february_has_28_days() -> None:
    """The projection ends with the month."""
    covered = CoveredDays(NOVEMBER, date(2026, 2, 6), date(2026, 2, 6))
    february = BudgetMonth.from_rows(ALL_JOBS, date(2026, 2, 6), covered, [])
    assert (february.first_day, february.last_day) == (date(2026, 2, 1), date(2026, 2, 28))
    assert last_day_of_month(date(2028, 2, 3)) == date(2028, 2, 29)
    assert last_day_of_month(date(2026, 12, 31)) == date(2026, 12, 31)


def test_a_projection_that_passes_the_budget_is_reported_once() -> None:
    """Also if it falls below and passes again; then 80% and 100% follow."""
    spend = dict.fromkeys(range(1, 6), 40.0)
    months = [
        month_of(spend, today=day(6)),
        month_of(spend, today=day(12)),
        month_of(spend | {12: 200.0}, today=day(13)),
        month_of(spend | {12: 700.0}, today=day(13)),
        month_of(spend | {12: 900.0}, today=day(13)),
    ]
    assert [PROJECTED in month.reached for month in months] == [True, False, False, True, False]
    assert sent_after(*months) == [PROJECTED, NEAR, PASSED]


def test_nothing_is_projected_once_the_budget_is_exceeded() -> None:
    """Its message was the last of the month."""
    spend = dict.fromkeys(range(1, 6), 300.0)
    assert sent_after(month_of(spend, today=day(4)), month_of(spend, today=day(20))) == [PASSED]


def test_80_percent_and_a_projection_are_one_message() -> None:
    """The card shows both."""
    month = month_of(dict.fromkeys(range(1, 10), 90.0), today=day(10))
    assert month.reached.keys() == {NEAR, PROJECTED}
    assert sent_after(month, month) == [NEAR]


def test_a_projection_exactly_at_the_budget_does_not_pass_it() -> None:
    """As the words say."""
    month = month_of(dict.fromkeys(range(1, 6), 50.0), today=day(6))
    assert replace(month, budget=replace(ALL_JOBS, usd_per_month=Decimal(1500))).reached == {}
    assert replace(month, budget=replace(ALL_JOBS, usd_per_month=Decimal(1499))).reached


def test_a_raised_budget_can_reach_its_thresholds_again() -> None:
    """Only those that the spend is below now."""
    raised = replace(ALL_JOBS, usd_per_month=Decimal(1200))
    months = [
        month_of({2: 850}, today=day(3)),
        month_of({2: 900}, today=day(4), budget=raised),
        month_of({2: 970}, today=day(5), budget=raised),
        month_of({2: 1200}, today=day(5), budget=raised),
    ]
    assert sent_after(*months) == [NEAR, NEAR, PASSED]


def test_a_budget_that_was_raised_a_little_repeats_nothing() -> None:
    """It is still above 80%."""
    raised = replace(ALL_JOBS, usd_per_month=Decimal(1001))
    months = [month_of({2: 850}, today=day(3)), month_of({2: 860}, today=day(4), budget=raised)]
    assert sent_after(*months) == [NEAR]


def test_a_lowered_budget_reports_what_it_reaches_now() -> None:
    """And not what was reported before."""
    lowered = replace(ALL_JOBS, usd_per_month=Decimal(500))
    months = [month_of({2: 850}, today=day(3)), month_of({2: 850}, today=day(4), budget=lowered)]
    assert sent_after(*months) == [NEAR, PASSED]


def test_a_new_name_is_the_same_budget() -> None:
    """What it selects identifies it."""
    assert replace(ALL_JOBS, name="x").selector == ALL_JOBS.selector == ("", "")
    assert Budget("x", Decimal(1), tag=("team", "a")).selector == ("tag", "team=a")


def test_a_bill_without_a_price_can_pass_but_never_be_within() -> None:
    """The known part is a lower bound."""
    unknown = month_of({2: 100.0, 3: None}, today=day(4))
    assert unknown.state is BudgetState.UNKNOWN
    assert unknown.spend_qualifier is SpendQualifier.AT_LEAST
    assert month_of({2: 1100.0, 3: None}, today=day(4)).state is BudgetState.EXCEEDED


def test_spend_is_unknown_if_no_bill_is_known() -> None:
    """It is not 0, and nothing is due."""
    month = month_of({2: None}, today=day(9))
    assert (month.spent_usd, month.spent_percent, month.projected_usd) == (None, None, None)
    assert (month.state, sent_after(month)) == (BudgetState.UNKNOWN, [])


def test_a_month_that_the_history_does_not_cover_is_unknown() -> None:
    """No job was seen, and none could be."""
    month = month_of({}, today=date(2026, 12, 5), covered_since=date(2026, 12, 3))
    assert (month.covered_since, month.covered_until, month.spent_usd) == (None, None, None)
    assert (month.finished_days, month.state) == (0, BudgetState.UNKNOWN)


def test_a_month_has_no_jobs_only_if_the_history_covers_all_of_it() -> None:
    """A job may have ended on a day before."""
    assert month_of({}, today=day(25), covered_since=day(20)).state is BudgetState.UNKNOWN
    assert month_of({}, today=day(25)).state is BudgetState.NO_JOBS


def test_spend_and_projection_are_as_of_the_last_covered_day() -> None:
    """$100 a day until the 5th are $3,000 in 30 days, whenever the file is read."""
    spend = dict.fromkeys(range(1, 6), 100.0)
    budget = replace(ALL_JOBS, usd_per_month=Decimal(5000))
    month = month_of(spend, today=day(25), budget=budget, covered_until=day(5))
    assert (month.as_of, month.covered_until) == (day(6), day(5))
    assert (month.spent_usd, month.projected_usd) == (500, 3000)
    assert month.spend_qualifier is SpendQualifier.AT_LEAST
    assert month.state is BudgetState.UNKNOWN


def test_days_after_the_month_do_not_matter() -> None:
    """The history covers the whole month."""
    december = date(2026, 12, 20)
    month = month_of({2: 100.0}, today=december, covered_until=date(2026, 12, 1))
    assert (month.is_over, month.covered_until) == (True, day(30))
    assert (month.spend_qualifier, month.state) == (SpendQualifier.EXACT, BudgetState.WITHIN)
    behind = month_of({2: 100.0}, today=december, covered_until=day(29))
    assert (behind.is_over, behind.spend_qualifier) == (False, SpendQualifier.AT_LEAST)


def test_a_history_that_ends_before_the_month_covers_none_of_it() -> None:
    """Nothing is known of its spend, and nothing is projected."""
    month = month_of({}, today=day(7), covered_until=date(2026, 10, 27))
    assert (month.covered_since, month.covered_until, month.spent_usd) == (None, None, None)
    assert (month.projected_usd, month.state) == (None, BudgetState.UNKNOWN)


def test_sums_that_cannot_be_read_make_the_spend_a_lower_bound() -> None:
    """It may lack them."""
    covered = CoveredDays(NOVEMBER, day(9), day(9))
    month = BudgetMonth.from_rows(ALL_JOBS, NOVEMBER, covered, [], has_unreadable=True)
    assert month.spend_qualifier is SpendQualifier.AT_LEAST
    assert month.state is BudgetState.UNKNOWN


def test_an_upper_bound_may_be_lower_also_if_another_bill_lacks_a_price() -> None:
    """Nobody knows which of the two is larger."""
    month = month_of({2: 1250.0, 3: None}, today=day(4), upper_bounds=1)
    assert month.spend_qualifier is SpendQualifier.ABOUT
    assert month.may_be_lower


@pytest.mark.parametrize(
    ("spend", "today", "state"),
    [
        ({}, 9, BudgetState.NO_JOBS),
        ({2: 100.0}, 9, BudgetState.WITHIN),
        ({2: 850.0}, 3, BudgetState.NEAR),
        ({2: 400.0}, 9, BudgetState.PROJECTED),
        ({2: 1000.0}, 9, BudgetState.EXCEEDED),
    ],
)
def test_a_month_has_a_state(
    spend: dict[int, float | None], today: int, state: BudgetState
) -> None:
    """The list shows it."""
    assert month_of(spend, today=day(today)).state is state


def test_a_month_that_is_over_has_no_projection() -> None:
    """All its days are whole days."""
    month = month_of({2: 600.0}, today=date(2026, 12, 3))
    assert (month.is_over, month.finished_days, month.projected_usd) == (True, 30, None)
    assert month.state is BudgetState.WITHIN


@pytest.mark.parametrize(
    ("today", "installed_on", "days"),
    [
        (date(2026, 12, 1), NOVEMBER, [day(30), date(2026, 12, 1)]),
        (date(2026, 12, 2), NOVEMBER, [date(2026, 12, 2)]),
        (date(2026, 12, 1), date(2026, 12, 1), [date(2026, 12, 1)]),
        (date(2026, 12, 1), None, [date(2026, 12, 1)]),
        (date(2027, 1, 1), NOVEMBER, [date(2026, 12, 31), date(2027, 1, 1)]),
    ],
)
def test_the_last_month_is_checked_for_one_more_day(
    today: date, installed_on: date | None, days: list[date]
) -> None:
    """Unless the deployment is younger: nobody needs messages about old spend."""
    assert months_to_check(today, installed_on) == days
