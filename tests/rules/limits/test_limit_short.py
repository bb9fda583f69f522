from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.finding import Clear, Unknown
from tests.fakes.families import earlier_run
from tests.fakes.planned import said, told

RULE = "limit-short"
RUN = "StoppingCondition.MaxRuntimeInSeconds"


def test_a_limit_below_one_of_the_last_runs_is_found() -> None:
    """The fix is one and a half times that run, in whole ten minutes."""
    runs = [earlier_run(day, elapsed_s=Decimal(seconds)) for day, seconds in ((1, 4000), (2, 3500))]
    finding = told(RULE, {RUN: 3600}, earlier=runs)
    assert "1 h 6 min" in finding.found.summary
    assert finding.found.fix[0].new == 6000


def test_as_long_as_the_longest_is_enough() -> None:
    """It completed in this time."""
    assert said(RULE, {RUN: 3600}, earlier=[earlier_run(1)]) == Clear()


def test_older_runs_and_runs_elsewhere_do_not_count() -> None:
    """Only the last three completed ones on the same instances."""
    old = [earlier_run(day) for day in (1, 2, 3)] + [earlier_run(4, elapsed_s=Decimal(9000))]
    other = earlier_run(1, elapsed_s=Decimal(9000), instance_type="ml.m5.large")
    assert said(RULE, {RUN: 3600}, earlier=[*old, other]) == Clear()


def test_without_runs_it_is_not_judged() -> None:
    """Nor without a history."""
    assert isinstance(said(RULE, earlier=[]), Unknown)
    assert isinstance(said(RULE), Unknown)
