from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.finding import Detection
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.resize.candidate import MAX_STEPS, CostlierStep
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job, run_summary
from tests.fakes.families import earlier_run, run_fields
from tests.fakes.jobs import HOURLY_USD, TYPES, flat, market, ran
from tests.fakes.judging import answer, outcome
from tests.fakes.rule_cases import CLEAR, cannot_judge, does_not_apply, even_use, finds

RULE = "cheaper-type"
T4 = ran(3600, "ml.g4dn.4xlarge", volume_gb=0)
"""An hour on one T4, 16 vCPUs and 64 GiB at $1.505."""
T4_HALF = ran(3600, "ml.g4dn.2xlarge", volume_gb=0)
"""The same on 8 vCPUs and 32 GiB at $0.94. ml.g4dn.xlarge has 4 and 16 GiB at $0.736."""
LITTLE = {"gpu": 92.0, "gpu_memory": 80.0, "cpu": 30.0, "memory": 10.0}
WELL_USED = {"gpu": 92.0, "gpu_memory": 80.0, "cpu": 15.0, "memory": 10.0}


def audited(run: Job, measurements: Measurements) -> Audit:
    """By every rule."""
    ruleset = catalogue.ruleset()
    policy = Policy(enabled_rules=frozenset(rule.info.name for rule in ruleset.rules))
    assert run.ended_at is not None
    return audit_job(
        run, measurements, market(), policy, ruleset, now=run.ended_at, earlier_runs=None
    )


def audited_after(earlier: list[AuditSummary], **changes: Any) -> Audit:
    """A run on the middle type, after these of its family."""
    measurements, ruleset, run = (
        flat(T4_HALF, 60, 1, **LITTLE),
        catalogue.ruleset(),
        replace(T4_HALF, **changes),
    )
    assert run.ended_at is not None
    return audit_job(
        run,
        measurements,
        market(),
        Policy(),
        ruleset,
        now=run.ended_at,
        earlier_runs=tuple(earlier),
    )


def tried(*stretches: tuple[str, int, str], count: int = 3, **facts: Any) -> list[AuditSummary]:
    """Runs as (type, seconds, dollars), this many of each, newest first."""
    return [
        earlier_run(
            day, total_usd=Decimal(usd), instance_type=name, elapsed_s=Decimal(seconds), **facts
        )
        for day, (name, seconds, usd) in enumerate((s for s in stretches for _ in range(count)), 1)
    ]


ON_TODAYS = ("ml.g4dn.4xlarge", 3600, "1.505")
HALF = ("ml.g4dn.2xlarge", 3600, "0.94")
STEP = CostlierStep(
    "ml.g4dn.2xlarge", "ml.g4dn.xlarge", Decimal("0.94"), Decimal("1.1"), 1, Purchase.ON_DEMAND
)
ADVISED = tried(ON_TODAYS, count=1, recommended_type="ml.g4dn.2xlarge")


M6I = replace(
    market(hourly_usd={"ml.m5.2xlarge": "0.46", "ml.m5.4xlarge": "0.92", "ml.m6i.2xlarge": "0.40"}),
    types={
        **TYPES,
        "ml.m6i.2xlarge": replace(TYPES["ml.m5.2xlarge"], name="ml.m6i.2xlarge", family="m6i"),
    },
)
"""A newer type of the same size for less."""
FULL_HALF = {"gpu": 92.0, "gpu_memory": 80.0, "cpu": 95.0, "memory": 90.0}


verdict = partial(answer, RULE)


def test_a_well_used_gpu_on_too_large_a_host_is_found() -> None:
    # 15% of 16 vCPUs are 2.9 with headroom, 10% of 64 GiB 7.7: 1.505 - 0.736.
    # the second best beside it
    assert verdict(T4, even_use(minutes=60, **WELL_USED)) == finds(
        "ml.g4dn.xlarge is large enough for what the run used in 1 h on 1 x ml.g4dn.4xlarge.",
        usd="0.769000",
        builder="derived",
        caution="…Averages over a minute hide short peaks…",
        ways=[["ml.g4dn.2xlarge"]],
        fix=[("ResourceConfig.InstanceType", "ml.g4dn.4xlarge", "ml.g4dn.xlarge")],
        evidence={"times_as_long": 1},
    )


def test_the_type_holds_all_that_was_used_and_20_percent_more() -> None:
    # Of 4 vCPUs 4.0, and 4.4, which takes 1.09 times as long; of 16 GiB 16.0, and 16.1.
    result = verdict(T4, even_use(minutes=60, **WELL_USED | {"cpu": 20.83, "memory": 10}))
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(T4, even_use(minutes=60, **WELL_USED | {"cpu": 23, "memory": 10}))
    assert result == finds(fix=["ml.g4dn.2xlarge"])
    result = verdict(T4, even_use(minutes=60, **WELL_USED | {"cpu": 15, "memory": 20.83}))
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(T4, even_use(minutes=60, **WELL_USED | {"cpu": 15, "memory": 21}))
    assert result == finds(fix=["ml.g4dn.2xlarge"])


def test_an_instance_used_to_95_percent_is_clear() -> None:
    assert verdict(T4, even_use(minutes=60, gpu=95, gpu_memory=95, cpu=95, memory=95)) == CLEAR


def test_what_must_shrink_and_was_not_recorded_is_unknown() -> None:
    """Every cheaper T4 has less memory."""
    assert verdict(T4, even_use(minutes=60, gpu=92, gpu_memory=80, cpu=15)) == cannot_judge(
        "not_recorded"
    )


def test_what_does_not_shrink_needs_no_metric_at_all() -> None:
    # A type with as many vCPUs, GiB and GPUs that costs less by the hour.
    result = verdict(ran(3600, "ml.m5.2xlarge", volume_gb=0), market=M6I)
    assert result == finds(
        "ml.m6i.2xlarge is large enough for what the run used on 1 x ml.m5.2xlarge.", usd="0.060000"
    )


def test_the_slow_end_is_counted_and_the_range_shown() -> None:
    # Four T4 at 20% on one: 4.89 less 1.6 times 0.736, or once.
    result = verdict(
        ran(3600, "ml.g4dn.12xlarge", volume_gb=0),
        even_use(minutes=60, gpu=20, gpu_memory=5, cpu=5, memory=5),
    )
    assert result == finds(
        change=SetType("ml.g4dn.xlarge", Decimal("1.6")), best=SetType("ml.g4dn.xlarge", Decimal(1))
    )


def test_a_type_that_is_given_stays() -> None:
    """Prepaid, or one of several."""
    result = verdict(
        replace(T4, purchase=Purchase.TRAINING_PLAN), even_use(minutes=60, **WELL_USED)
    )
    assert result == does_not_apply("…prepaid…")
    result = verdict(
        replace(T4, groups=(InstanceGroup("ml.g4dn.4xlarge", 1), InstanceGroup("ml.m5.large", 1))),
        even_use(minutes=60, **WELL_USED),
    )
    assert result == does_not_apply("…several types…")


def test_without_a_region_there_is_no_price_and_no_answer() -> None:
    # The reason is a reason, not a sentence about figures.
    result = verdict(replace(T4, region=None), even_use(minutes=60, **WELL_USED))
    assert result == cannot_judge("not_replayable: the region is not known, and so is no price")


def test_what_the_familys_runs_took_on_a_type_replaces_the_assumption() -> None:
    # 1.505 - 1.5 x 0.736 is less than the 2xlarge saves (0.565); 1.505 - 1.3 x 0.7357 is 0.54859.
    result = verdict(
        T4,
        even_use(minutes=60, **WELL_USED),
        earlier=tried(ON_TODAYS, ("ml.g4dn.xlarge", 5400, "1.104")),
    )
    assert result == finds(fix=["ml.g4dn.2xlarge"])
    result = verdict(
        T4,
        even_use(minutes=60, **WELL_USED),
        market=market(hourly_usd={"ml.g4dn.4xlarge": "1.505", "ml.g4dn.xlarge": "0.7357"}),
        earlier=tried(ON_TODAYS, ("ml.g4dn.xlarge", 4680, "0.9564")),
    )
    assert result == finds(
        usd="0.548590",
        change=SetType("ml.g4dn.xlarge", Decimal("1.3")),
        caution="On ml.g4dn.xlarge, the family's runs took 1.30 times as long (medians of 3 and "
        "4 runs).",
    )


def test_a_type_on_which_the_runs_were_faster_is_counted_as_no_faster() -> None:
    """The data may have been less."""
    result = verdict(
        T4,
        even_use(minutes=60, **WELL_USED),
        earlier=tried(ON_TODAYS, ("ml.g4dn.xlarge", 1800, "0.368")),
    )
    assert result == finds(
        usd="0.769000",
        change=SetType("ml.g4dn.xlarge"),
        best=SetType("ml.g4dn.xlarge", Decimal("0.5")),
    )


def test_a_type_that_is_dearer_by_the_hour_and_was_cheaper_by_the_run_is_worth_a_trial() -> None:
    # a third of the time at twice the price: 0.94 - 1.505 / 3
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **FULL_HALF),
        earlier=tried(("ml.g4dn.2xlarge", 3600, "0.94"), ("ml.g4dn.4xlarge", 1200, "0.5017")),
    )
    assert result == finds(
        "Runs of its family cost less on ml.g4dn.4xlarge than on ml.g4dn.2xlarge.",
        bucket="possible",
        usd="0.438333",
        change=SetType("ml.g4dn.4xlarge", Decimal(1) / 3, needs_trial=True),
        caution="On ml.g4dn.4xlarge, the family's runs took 0.33 times as long (medians of 3 and 4 "
        "runs). They cost $0.50, not $0.94; the data may differ.",
    )


def test_so_is_the_way_back_to_an_old_generation_where_the_runs_fit_and_cost_less() -> None:
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **FULL_HALF),
        earlier=tried(("ml.g4dn.2xlarge", 3600, "0.94"), ("ml.g4dn.4xlarge", 1200, "0.5017")),
        market=replace(
            market(),
            types={**TYPES, "ml.g4dn.4xlarge": replace(TYPES["ml.g4dn.4xlarge"], is_legacy=True)},
        ),
    )
    assert result == finds(bucket="possible", usd="0.438333", fix=["ml.g4dn.4xlarge"])


def test_it_is_said_beside_a_certain_saving() -> None:
    """0.46 less 0.92 / 3, and less 0.40."""
    result = verdict(
        ran(3600, "ml.m5.2xlarge", volume_gb=0),
        even_use(minutes=60, cpu=50, memory=50),
        earlier=tried(("ml.m5.2xlarge", 3600, "0.46"), ("ml.m5.4xlarge", 1200, "0.3067")),
        market=M6I,
    )
    assert result == finds(
        fix=["ml.m6i.2xlarge"],
        usd="0.060000",
        caution="…Going back to ml.m5.4xlarge is "
        "worth a trial (about $0.15 per run). On ml.m5.4xlarge, the family's runs took 0.33 "
        "times as "
        "long (medians of 3 and 4 runs). They cost $0.31, not $0.46; the data may differ.",
    )


def test_too_few_runs_or_unlike_ones_are_no_measure() -> None:
    """Two; on spot; on two hosts; of another kind."""
    result = verdict(
        T4,
        even_use(minutes=60, **WELL_USED),
        earlier=tried(ON_TODAYS, ("ml.g4dn.xlarge", 7000, "1.431"), count=2),
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])
    for runs in (
        {"purchase": Purchase.SPOT},
        {"instance_count": 2},
        {"kind": "processing"},
        {"status": "Stopped"},
    ):
        result = verdict(
            T4,
            even_use(minutes=60, **WELL_USED),
            earlier=[*tried(ON_TODAYS), *tried(("ml.g4dn.xlarge", 7000, "1.431"), **runs)],
        )
        assert result == finds(fix=["ml.g4dn.xlarge"])


def test_runs_of_the_same_settings_go_first_where_they_are_enough_on_both_types() -> None:
    result = verdict(
        replace(T4, fingerprint="same"),
        even_use(minutes=60, **WELL_USED),
        earlier=[
            *tried(ON_TODAYS, ("ml.g4dn.xlarge", 3960, "0.8096"), fingerprint="same"),
            *tried(("ml.g4dn.xlarge", 7000, "1.431"), fingerprint="other"),
        ],
    )
    assert result == finds(change=SetType("ml.g4dn.xlarge", Decimal("1.1")))


def test_the_type_that_the_family_was_advised_is_kept_while_it_saves_nearly_as_much() -> None:
    # 1.505 less 0.805 is 91% of 1.505 less 0.736, and less 0.815 is 89.7%.
    result = verdict(
        T4,
        even_use(minutes=60, **WELL_USED),
        earlier=ADVISED,
        market=market(hourly_usd=HOURLY_USD | {"ml.g4dn.2xlarge": "0.805"}),
    )
    assert result == finds(fix=["ml.g4dn.2xlarge"], usd="0.700000", ways=[["ml.g4dn.xlarge"]])
    result = verdict(
        T4,
        even_use(minutes=60, **WELL_USED),
        earlier=ADVISED,
        market=market(hourly_usd=HOURLY_USD | {"ml.g4dn.2xlarge": "0.815"}),
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(
        T4,
        even_use(minutes=60, **WELL_USED),
        earlier=tried(
            ("ml.g4dn.2xlarge", 3600, "0.9"), count=1, recommended_type="ml.g4dn.2xlarge"
        ),
        market=market(hourly_usd=HOURLY_USD | {"ml.g4dn.2xlarge": "0.805"}),
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])


def test_after_a_step_to_a_smaller_type_that_cost_more_no_smaller_one_is_advised() -> None:
    """But the larger one is."""
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **LITTLE),
        earlier=tried(("ml.g4dn.2xlarge", 3600, "0.94"), ("ml.g4dn.4xlarge", 3600, "1.505")),
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **LITTLE),
        earlier=tried(("ml.g4dn.2xlarge", 3600, "0.94"), ("ml.g4dn.4xlarge", 1800, "0.7525")),
    )
    assert result == finds(fix=["ml.g4dn.4xlarge"], bucket="possible")
    # the very first run there, after three on the larger type, and after two
    result = verdict(
        T4_HALF, even_use(minutes=60, **LITTLE), earlier=tried(("ml.g4dn.4xlarge", 1800, "0.7525"))
    )
    assert result == CLEAR
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **LITTLE),
        earlier=tried(("ml.g4dn.4xlarge", 1800, "0.7525"), count=2),
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])


def test_such_a_step_is_known_for_as_long_as_the_family_has_runs() -> None:
    """Such a step is known for as long as the family has runs, and until they say otherwise."""
    # The runs of the step are long gone: a run of today's family kept it, and so no run is moved to
    # that type or a smaller one. Nor for runs of another count, or where it is shown to pay by now.
    assert (
        verdict(
            T4_HALF, even_use(minutes=60, **LITTLE), earlier=tried(HALF, costlier_steps=(STEP,))
        )
        == CLEAR
    )
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **LITTLE),
        earlier=[*tried(HALF), *tried(HALF, costlier_steps=(STEP,))],
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **LITTLE),
        earlier=tried(HALF, costlier_steps=(replace(STEP, instance_count=2),)),
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **LITTLE),
        earlier=tried(HALF, ("ml.g4dn.xlarge", 3600, "0.736"), costlier_steps=(STEP,)),
    )
    assert result == finds(fix=["ml.g4dn.xlarge"])
    result = verdict(
        T4_HALF,
        even_use(minutes=60, **LITTLE),
        earlier=tried(HALF, ("ml.g4dn.xlarge", 7200, "1.472"), costlier_steps=(STEP,)),
    )
    assert result == CLEAR


def test_a_job_that_never_started_has_nothing_to_move() -> None:
    """It cost nothing."""
    result = verdict(
        replace(T4, status="Failed", started_at=None, training_s=None, billable_s=None, phases=())
    )
    assert result == does_not_apply("…started…")


def test_a_run_is_stored_with_the_type_that_it_was_advised() -> None:
    """One of the findings that remain; none if nothing names a type."""
    recommended, clear = (
        run_summary(audited(T4, flat(T4, 60, 1, **use))).recommended_type
        for use in (WELL_USED, dict.fromkeys(WELL_USED, 95.0))
    )
    assert (recommended, clear) == ("ml.g4dn.xlarge", None)


def test_an_old_type_with_a_newer_one_is_left_to_old_generation() -> None:
    """The same waste is reported once."""
    kinds = {**TYPES, "ml.g4dn.4xlarge": replace(TYPES["ml.g4dn.4xlarge"], is_legacy=True)}
    catalogue_market = replace(market(), types=kinds)
    answer = outcome(RULE, T4, flat(T4, 60, hosts=1, **WELL_USED), market=catalogue_market)
    assert "old-generation" in str(answer)


def test_a_rule_that_names_the_reason_speaks_instead() -> None:
    """A little used GPU: gpu-underused has the same type and dollars."""
    audit = audited(T4, flat(T4, 60, gpu=10, gpu_memory=10, cpu=15, memory=10))
    rules_shown = {
        finding.rule.name for finding in audit.savings.findings if not finding.subsumed_by
    }
    assert "gpu-underused" in rules_shown
    assert RULE not in rules_shown
    answers = {name.name: answer for name, answer in audit.outcomes}
    assert isinstance(answers[RULE], Detection)


def test_each_run_keeps_the_steps_of_the_runs_before_it() -> None:
    """Sixty runs on, of which no more than fifty are read, the first step is still known."""
    dear = ("ml.g4dn.xlarge", 7200, "1.472")
    runs = tried(dear, HALF)
    for _ in range(60):
        audit = audited_after(runs)
        facts = run_summary(audit)
        runs = [earlier_run(1, total_usd=Decimal("0.94"), **run_fields(facts)), *runs][:50]
    assert not any(run.instance_type == "ml.g4dn.xlarge" for run in runs)
    [step] = facts.costlier_steps or ()
    assert (step.to_type, step.to_usd) == ("ml.g4dn.xlarge", Decimal("1.472"))


def test_a_run_on_several_types_keeps_what_it_says_nothing_of() -> None:
    """The next run of the family reads it there."""
    groups = (InstanceGroup("ml.g4dn.2xlarge", 1, "a"), InstanceGroup("ml.m5.xlarge", 1, "b"))
    earlier = tried(HALF, costlier_steps=(STEP,))
    assert run_summary(audited_after(earlier, groups=groups)).costlier_steps == (STEP,)


def test_a_run_keeps_eight_steps_at_most() -> None:
    """The newest: what is stored of it stays small."""
    steps = tuple(replace(STEP, to_type=f"ml.type{number}.large") for number in range(20))
    facts = run_summary(audited_after(tried(HALF, costlier_steps=steps)))
    assert facts.costlier_steps == steps[:MAX_STEPS]


def test_without_a_history_no_step_is_known() -> None:
    """Else an audit of a file would say that there was none."""
    assert run_summary(audited(T4_HALF, flat(T4_HALF, 60, 1, **LITTLE))).costlier_steps is None
