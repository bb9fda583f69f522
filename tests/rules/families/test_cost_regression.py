from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Job, Parent, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import batch_job, market, phases, ran, series, usage
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    finds,
    given_job,
    one_host,
)

RULE = "cost-regression"
NO_STORAGE: dict[str, Any] = {"volume_gb": None}
HOUR = ran(3600, **NO_STORAGE)
"""An hour of ml.m5.xlarge; without storage it costs $0.23."""


def family(*costs: str | None, **facts: Any) -> list[AuditSummary]:
    """Completed runs at these dollars, the newest first."""
    return [
        earlier_run(day, total_usd=None if cost is None else Decimal(cost), **facts)
        for day, cost in enumerate(costs, 1)
    ]


SCATTERED = family("0.18", "0.18", "0.23", "0.28", "0.28")
STEADY = family(*["0.23"] * 5)
"""Five runs at $0.23."""
ON_4XLARGE, ON_XLARGE = {"instance_type": "ml.m5.4xlarge"}, {"instance_type": "ml.m5.xlarge"}
WEEKLY = {"instance_count": 4}


def in_order(*stretches: tuple[int, str, dict[str, Any]]) -> list[AuditSummary]:
    """Runs in their order, as (how many, dollars, facts); the result has the newest first."""
    runs = [(usd, facts) for count, usd, facts in stretches for _ in range(count)]
    days = range(1, len(runs) + 1)
    return [
        earlier_run(day, total_usd=Decimal(usd), **facts)
        for day, (usd, facts) in zip(days, reversed(runs), strict=True)
    ]


REPORTED: dict[str, Any] = {"rules_with_findings": (RULE,)}
DOUBLED = ran(7200, **NO_STORAGE)
"""Two hours: $0.46."""
BATCH = replace(DOUBLED, kind=JobKind.PROCESSING, phases=phases(("Processing", 7200)), volume_gb=30)


@given_job
def disk(run: Job, percent: float) -> Measurements:
    """The volume's use, all the time."""
    return usage(run, series(Metric.DISK, [percent] * 120), series(Metric.CPU, [90] * 120))


verdict = partial(answer, RULE)


def test_a_run_at_four_times_the_median_is_found_with_what_changed() -> None:
    # Another type for another time, on spot, with other settings.
    result = verdict(
        ran(7200, "ml.m5.2xlarge", purchase=Purchase.SPOT, fingerprint="f2"),
        earlier=family(*["0.23"] * 5, fingerprint="f1"),
        market=market(storage_usd="0"),
    )
    assert result == finds(
        "The run cost $0.92, but about $0.23 was expected (the median of 5 earlier runs). "
        "What changed: the type (ml.m5.xlarge to ml.m5.2xlarge); the purchase (on_demand to spot); "
        "the image, data or hyperparameters; and Training (1 h 1 min longer).",
        builder="fact",
        evidence={
            "above_median_usd": Decimal("0.69"),
            "changed_type": "the type (ml.m5.xlarge to ml.m5.2xlarge)",
        },
    )


def test_the_end_of_a_rise_is_no_alarm_also_where_it_had_become_the_level() -> None:
    assert (
        verdict(DOUBLED, earlier=[*family("2.00", **REPORTED), *in_order((5, "0.46", {}))]) == CLEAR
    )
    assert (
        verdict(HOUR, earlier=in_order((20, "0.23", ON_XLARGE), (6, "0.92", ON_4XLARGE | REPORTED)))
        == CLEAR
    )


def test_a_later_first_point_of_a_processing_job_is_a_change_of_its_data() -> None:
    result = verdict(
        batch_job(JobKind.PROCESSING, 7200, **NO_STORAGE),
        one_host(cores=[None] * 20 + [0.9] * 100),
        earlier=family(*["0.23"] * 5, kind="processing", first_point_s=Decimal(120)),
    )
    assert result == finds("…What changed: …its data (18 min more until its first point)…")


def test_twice_as_full_a_volume_of_a_processing_job_is_a_change_of_its_data() -> None:
    """40% of 30 GB are 12 GB; before, 6 GB. For a training job the download shows it."""
    result = verdict(
        BATCH, disk(40), earlier=family(*["0.23"] * 5, kind="processing", disk_gb=Decimal(6))
    )
    assert result == finds("…What changed: …its data (2.0 times as much disk used)…")
    result = verdict(
        BATCH, disk(40), earlier=family(*["0.23"] * 5, kind="processing", disk_gb=Decimal(9))
    )
    assert result == finds(without="disk used")
    result = verdict(
        BATCH, disk(4), earlier=family(*["0.23"] * 5, kind="processing", disk_gb=Decimal("0.6"))
    )
    assert result == finds(without="disk used")
    result = verdict(
        replace(DOUBLED, volume_gb=30), disk(40), earlier=family(*["0.23"] * 5, disk_gb=Decimal(6))
    )
    assert result == finds(without="disk used")


def test_runs_of_another_kind_and_sums_below_a_cent_say_nothing() -> None:
    result = verdict(ran(7200, **NO_STORAGE), earlier=family(*["0.05"] * 6, kind="processing"))
    assert result == cannot_judge("no_usual_cost")
    assert verdict(ran(60, **NO_STORAGE), earlier=family(*["0.0006"] * 6)) == CLEAR


def test_more_instances_are_named() -> None:
    """One became three; and nothing else is known to have changed."""
    assert verdict(ran(3600, instances=3), earlier=STEADY) == finds(
        "…What changed: the count (1 to 3); and Training (1 min longer)."
    )


def test_an_unknown_change_is_stated() -> None:
    """A price, say."""
    result = verdict(HOUR, earlier=family(*["0.10"] * 5, phase_s={"Training": Decimal(3600)}))
    assert result == finds("…What changed: nothing known.")


def test_runs_that_are_meant_to_differ_are_not_compared() -> None:
    # Trials of a tuning job; nor is a failed run, or a free one.
    result = verdict(replace(HOUR, parent=Parent(JobKind.TUNING.spec.rollup, "arn:tuning")))
    assert result == does_not_apply("the trials of one search are meant to differ")
    assert verdict(replace(HOUR, status="Failed")) == does_not_apply("…did not complete…")
    result = verdict(replace(HOUR, free="built-in Debugger rule"))
    assert result == does_not_apply("built-in Debugger rule")


def test_a_phase_that_is_not_billed_is_no_reason() -> None:
    """An hour more in Starting costs nothing."""
    result = verdict(
        HOUR,
        earlier=family(*["0.05"] * 5, phase_s={"Starting": Decimal(1), "Training": Decimal(3590)}),
    )
    assert result == finds("…What changed: nothing known.")


def test_it_is_an_alarm_without_dollars() -> None:
    """The findings on what grew carry them."""
    assert verdict(ran(14400), earlier=STEADY) == finds(
        usd=None, severity="info", caution="….", fix=[]
    )


def test_4500_s_a_quarter_above_a_steady_median_are_found_and_one_second_less_is_not() -> None:
    """4,500 s at $0.23 an hour are $0.2875, 1.25 x $0.23."""
    assert verdict(ran(4500), earlier=STEADY, market=market(storage_usd="0")) == FOUND
    assert verdict(ran(4499), earlier=STEADY, market=market(storage_usd="0")) == CLEAR


def test_a_family_that_scatters_is_given_its_spread() -> None:
    # Median $0.23, MAD $0.05: the fence is 0.23 + 3 x 1.4826 x 0.05 = $0.45239.
    assert verdict(ran(7080), earlier=SCATTERED, market=market(storage_usd="0")) == CLEAR
    assert verdict(ran(7081), earlier=SCATTERED, market=market(storage_usd="0")) == FOUND
    result = verdict(
        ran(5400), earlier=SCATTERED, market=market(storage_usd="0"), limits={"min_spreads": 1}
    )
    assert result == FOUND


def test_a_cheaper_run_is_clear() -> None:
    """A family at no cost too, such as one on a training plan."""
    assert verdict(ran(1800), earlier=STEADY, market=market(storage_usd="0")) == CLEAR
    result = verdict(
        ran(0, **NO_STORAGE), earlier=family(*["0"] * 5), market=market(storage_usd="0")
    )
    assert result == CLEAR


def test_4_known_runs_are_too_few() -> None:
    """Failed and unpriced ones do not count."""
    assert verdict(HOUR, earlier=None) == cannot_judge("history_unread")
    assert verdict(HOUR, earlier=STEADY[:4]) == cannot_judge("too_few_runs")
    result = verdict(HOUR, earlier=[*STEADY[:4], earlier_run(9, status="Failed")])
    assert result == cannot_judge("too_few_runs")
    result = verdict(HOUR, earlier=family("0.2", "0.2", "0.2", "0.2", None))
    assert result == cannot_judge("too_few_runs")


def test_a_lasting_step_is_named_until_it_has_stood_for_three_runs_and_posted_once() -> None:
    # The data doubled: the second and the third run are the same event, the fourth is usual.
    result = verdict(DOUBLED, earlier=in_order((20, "0.23", {})))
    assert result == finds(
        "The run cost $0.46, but about $0.23 was expected (the median of 10 earlier runs).…",
        reported_for_run=None,
    )
    result = verdict(DOUBLED, earlier=in_order((20, "0.23", {}), (1, "0.46", REPORTED)))
    assert result == finds(reported_for_run="train-1")
    result = verdict(DOUBLED, earlier=in_order((20, "0.23", {}), (2, "0.46", REPORTED)))
    assert result == finds(reported_for_run="train-1")
    assert verdict(DOUBLED, earlier=in_order((20, "0.23", {}), (3, "0.46", REPORTED))) == CLEAR
    assert verdict(DOUBLED, earlier=in_order((20, "0.23", {}), (25, "0.46", {}))) == CLEAR


def test_an_event_that_grows_from_0_368_to_0_46_dollars_a_quarter_is_posted_again() -> None:
    result = verdict(DOUBLED, earlier=in_order((20, "0.23", {}), (1, "0.368", REPORTED)))
    assert result == finds(reported_for_run=None)
    result = verdict(DOUBLED, earlier=in_order((20, "0.23", {}), (1, "0.369", REPORTED)))
    assert result == finds(reported_for_run="train-1")


def test_an_event_that_was_not_reported_is_posted() -> None:
    """The run before was not judged."""
    result = verdict(DOUBLED, earlier=in_order((20, "0.23", {}), (1, "0.46", {})))
    assert result == finds(reported_for_run=None)


def test_an_event_that_ended_is_another_one_when_it_comes_back() -> None:
    result = verdict(
        DOUBLED, earlier=in_order((20, "0.23", {}), (1, "0.46", REPORTED), (1, "0.23", {}))
    )
    assert result == finds(reported_for_run=None)


def test_the_newest_level_counts_not_half_a_year() -> None:
    """Twice as much was usual before."""
    assert verdict(DOUBLED, earlier=in_order((30, "0.46", {}), (5, "0.23", {}))) == FOUND


def test_advice_that_is_undone_is_named_at_its_first_runs() -> None:
    """The cheaper type was usual by then."""
    result = verdict(
        ran(3600, "ml.m5.4xlarge", **NO_STORAGE),
        earlier=in_order((30, "0.92", ON_4XLARGE), (8, "0.23", ON_XLARGE)),
    )
    assert result == finds(
        "The run cost $0.92, but about $0.23 was expected (the median of 8 earlier runs). "
        "What changed: the type (ml.m5.xlarge to ml.m5.4xlarge)…"
    )
    result = verdict(
        ran(3600, "ml.m5.4xlarge", **NO_STORAGE),
        earlier=in_order((30, "0.92", ON_4XLARGE), (8, "0.23", ON_XLARGE), (2, "0.92", ON_4XLARGE)),
    )
    assert result == FOUND
    result = verdict(
        ran(3600, "ml.m5.4xlarge", **NO_STORAGE),
        earlier=in_order((30, "0.92", ON_4XLARGE), (8, "0.23", ON_XLARGE), (3, "0.92", ON_4XLARGE)),
    )
    assert result == CLEAR
    result = verdict(
        ran(3600, "ml.m5.4xlarge", **NO_STORAGE),
        earlier=in_order(
            (30, "0.92", ON_4XLARGE),
            *[(6, "0.23", ON_XLARGE), (2, "0.92", ON_4XLARGE | REPORTED)] * 2,
            (6, "0.23", ON_XLARGE),
        ),
    )
    assert result == finds(reported_for_run=None)


def test_a_cheaper_type_is_no_event_and_its_own_level_soon() -> None:
    """Two hours of it are twice the usual."""
    assert verdict(HOUR, earlier=in_order((30, "0.92", ON_4XLARGE))) == CLEAR
    assert (
        verdict(DOUBLED, earlier=in_order((30, "0.92", ON_4XLARGE), (3, "0.23", ON_XLARGE)))
        == FOUND
    )


def test_runs_on_other_instances_that_come_back_have_each_other() -> None:
    """One each week, on four hosts."""
    result = verdict(
        ran(3600, instances=4, **NO_STORAGE),
        earlier=in_order((6, "0.23", {}), (1, "0.92", WEEKLY), (6, "0.23", {})),
    )
    assert result == FOUND
    result = verdict(
        ran(3600, instances=4, **NO_STORAGE),
        earlier=in_order(*[(6, "0.23", {}), (1, "0.92", WEEKLY)] * 3, (6, "0.23", {})),
    )
    assert result == CLEAR
    assert verdict(HOUR, earlier=in_order(*[(6, "0.23", {}), (1, "0.92", WEEKLY)] * 3)) == CLEAR


def test_one_dear_run_is_no_level_and_neither_is_one_cheap_run() -> None:
    result = verdict(DOUBLED, earlier=in_order((9, "0.23", {}), (1, "0.92", {}), (2, "0.23", {})))
    assert result == FOUND
    result = verdict(DOUBLED, earlier=in_order((9, "0.23", {}), (1, "0.02", {}), (2, "0.23", {})))
    assert result == FOUND


def test_slow_growth_is_not_an_event() -> None:
    """Two percent more with each run."""
    result = verdict(
        ran(3600, **NO_STORAGE),
        earlier=[
            earlier_run(day, total_usd=Decimal("0.23") / Decimal("1.02") ** day)
            for day in range(1, 40)
        ],
    )
    assert result == CLEAR


def test_a_family_without_three_alike_in_a_row_has_no_usual_cost() -> None:
    result = verdict(
        DOUBLED, earlier=[earlier_run(day, instance_type=f"ml.m{day}.large") for day in range(1, 8)]
    )
    assert result == cannot_judge("no_usual_cost")


def test_a_run_of_unknown_cost_is_unknown() -> None:
    """Its type has no price."""
    assert verdict(ran(3600, "ml.unpriced.xlarge"), earlier=STEADY) == cannot_judge("bill_unknown")


def test_a_first_point_a_minute_and_half_as_late_again_is_a_change_of_the_data() -> None:
    """After 3 minutes instead of 120 s; 121 s are less than a minute apart."""
    batch = batch_job(JobKind.PROCESSING, 7200, **NO_STORAGE)
    first_after_3_min = one_host(cores=[None] * 3 + [0.9] * 117)

    def after(first_point_s: int) -> object:
        runs = family(*["0.23"] * 5, kind="processing", first_point_s=Decimal(first_point_s))
        return verdict(batch, first_after_3_min, earlier=runs)

    assert after(120) == finds("…its data (1 min more until its first point)…")
    assert after(121) == finds(without="first point")
