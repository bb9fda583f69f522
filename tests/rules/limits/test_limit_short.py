from decimal import Decimal
from functools import partial

from tests.fakes.families import earlier_run
from tests.fakes.planned import request_answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, finds

RULE = "limit-short"
RUN = "StoppingCondition.MaxRuntimeInSeconds"


verdict = partial(request_answer, RULE)


def test_a_limit_of_3600_s_is_found_if_a_run_took_4000_s() -> None:
    # The fix is one and a half times that run, in whole ten minutes.
    result = verdict(
        {RUN: 3600},
        earlier=[
            earlier_run(day, elapsed_s=Decimal(seconds)) for day, seconds in ((1, 4000), (2, 3500))
        ],
    )
    assert result == finds("…1 h 7 min…", fix=[6000])


def test_a_limit_of_3600_s_is_enough_if_the_longest_run_took_3600_s() -> None:
    """It completed in this time."""
    longest = earlier_run(1, elapsed_s=Decimal(3600))
    assert verdict({RUN: 3600}, earlier=[longest]) == CLEAR


def test_older_runs_and_runs_elsewhere_do_not_count() -> None:
    # Only the last three completed ones on the same instances.
    result = verdict(
        {RUN: 3600},
        earlier=[
            *([earlier_run(day) for day in (1, 2, 3)] + [earlier_run(4, elapsed_s=Decimal(9000))]),
            earlier_run(1, elapsed_s=Decimal(9000), instance_type="ml.m5.large"),
        ],
    )
    assert result == CLEAR


def test_without_runs_it_is_not_judged() -> None:
    """Nor without a history."""
    assert verdict(earlier=[]) == cannot_judge("too_few_runs")
    assert verdict() == cannot_judge("history_unread")
