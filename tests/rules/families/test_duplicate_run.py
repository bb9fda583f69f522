from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, ran
from tests.fakes.judging import answer, savings_of, usd
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "duplicate-run"
RUN = ran(3600, fingerprint="f1", is_data_pinned=True)
"""An hour at $0.23 and a volume of 30 GB at $0.14 a month."""


def same_run(days_ago: int = 3, **facts: Any) -> AuditSummary:
    """A success of $0.23 with the run's fingerprint on pinned data."""
    return earlier_run(days_ago, **{"fingerprint": "f1", "is_data_pinned": True} | facts)


NIGHTLY = replace(RUN, ended_at=START)
GOES_ON = "train-1"


verdict = partial(answer, RULE)


def test_a_run_that_completed_before_is_found() -> None:
    """The newest of those that are the same."""
    result = verdict(RUN, earlier=[earlier_run(1, fingerprint="f2"), same_run(3), same_run(9)])
    assert result == finds(
        "train-3 had already completed with the same image, data, entry point and "
        "hyperparameters; it cost $0.23.",
        builder="possible",
        caution="The code is compared only…",
        evidence={"same_runs": 2},
    )


def test_the_saving_is_the_whole_run() -> None:
    # An hour of $0.23 and 30 GB of a May of 744 hours: 30 x 0.14 / 744 = $0.005645.
    assert verdict(RUN, earlier=[same_run()]) == finds(
        usd=usd(Decimal("0.23") + Decimal(30) * Decimal("0.14") / 744)
    )


def test_other_settings_are_another_run() -> None:
    """And the first run of a family is its first."""
    assert verdict(RUN, earlier=[earlier_run(1, fingerprint="f2")]) == CLEAR
    assert verdict(RUN, earlier=[]) == CLEAR


def test_runs_at_a_steady_cadence_are_a_schedule_said_once_and_without_dollars() -> None:
    # A night each; a gap of a weekend is one of five.
    result = verdict(NIGHTLY, earlier=[same_run(day) for day in (1, 2, 3)])
    assert result == finds(
        "4 runs, about 24 h apart like a schedule, had the same image, data addresses, entry "
        "point and hyperparameters.",
        builder="fact",
        usd=None,
        reported_for_run=None,
    )
    result = verdict(NIGHTLY, earlier=[same_run(day) for day in (1, 2, 3, 4)])
    assert result == finds("5 runs, about…", reported_for_run=GOES_ON)
    result = verdict(NIGHTLY, earlier=[same_run(day) for day in (1, 2, 5, 6, 7)])
    assert result == finds("6 runs, about 24 h…")
    assert verdict(NIGHTLY, earlier=[same_run(1), same_run(2)]) == finds(builder="possible")
    assert verdict(NIGHTLY, earlier=[same_run(day) for day in (1, 4, 5)]) == finds(
        builder="possible"
    )
    result = verdict(
        NIGHTLY, earlier=[same_run(day) for day in (1, 2, 3)], limits={"min_scheduled_runs": 5}
    )
    assert result == finds(builder="possible")


def test_a_run_that_gave_nothing_is_repeated_for_a_reason() -> None:
    """It failed, or left no model."""
    assert verdict(RUN, earlier=[same_run(status="Failed")]) == CLEAR
    assert verdict(RUN, earlier=[same_run(has_artifact=False)]) == CLEAR


def test_a_run_30_days_ago_is_near_and_31_days_ago_it_is_not() -> None:
    """Nor is one that ended after this one began."""
    assert verdict(RUN, earlier=[same_run(30)]) == FOUND
    assert verdict(RUN, earlier=[same_run(31)]) == CLEAR
    assert verdict(RUN, earlier=[same_run(-1)]) == CLEAR


def test_an_unpriced_run_is_named_without_dollars() -> None:
    """Its cost is not known."""
    assert verdict(RUN, earlier=[same_run(total_usd=None)]) == finds(
        "train-3 had already completed with…"
    )


def test_a_run_that_failed_itself_is_not_judged() -> None:
    # It is lost as a whole; a built-in Debugger rule is free.
    assert verdict(replace(RUN, status="Failed")) == does_not_apply("…did not complete…")
    result = verdict(
        replace(RUN, kind=JobKind.PROCESSING, free="built-in Debugger rule"), earlier=[same_run()]
    )
    assert result == does_not_apply("built-in Debugger rule")


def test_data_at_a_moving_prefix_is_not_the_same() -> None:
    """A daily job reads other objects."""
    result = verdict(replace(RUN, is_data_pinned=False), earlier=[same_run(is_data_pinned=False)])
    assert result == cannot_judge("data_may_have_changed")
    assert verdict(RUN, earlier=[same_run(is_data_pinned=False)]) == cannot_judge(
        "data_may_have_changed"
    )
    result = verdict(replace(RUN, is_data_pinned=None), earlier=[same_run(is_data_pinned=None)])
    assert result == cannot_judge("data_may_have_changed")
    assert verdict(RUN, earlier=[same_run(is_data_pinned=None)]) == cannot_judge(
        "data_may_have_changed"
    )


def test_without_a_fingerprint_or_history_it_is_unknown() -> None:
    """Runs are not compared then."""
    result = verdict(replace(RUN, fingerprint=None), earlier=[same_run()])
    assert result == cannot_judge("fingerprint_missing")
    assert verdict(RUN, earlier=None) == cannot_judge("history_unread")
    result = verdict(replace(RUN, started_at=None, created_at=None), earlier=[same_run()])
    assert result == cannot_judge("times_missing")


def test_a_guess_leaves_the_dollars_to_what_own_runs_show() -> None:
    """The whole run may be a repeat; that spot saves 60% of it, two own runs have shown."""
    run = ran(7200, "ml.g5.2xlarge", volume_gb=0, fingerprint="f1", is_data_pinned=True)
    spot: dict[str, Any] = {"purchase": Purchase.SPOT, "billable_s": Decimal(1440)}
    spot_runs = [same_run(3, total_usd=Decimal(3)), *(same_run(day, **spot) for day in (4, 5))]
    earlier = [replace(run, instance_type="ml.g5.2xlarge") for run in spot_runs]
    savings = savings_of((RULE, "spot-not-used"), run, earlier=earlier)
    shares = {finding.rule.name: usd(finding.saving_usd) for finding in savings.findings}
    assert shares == {"spot-not-used": "1.818000", RULE: "1.212000"}
    assert usd(savings.possible_usd) == "3.030000"
