from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.bill.change import SetType
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.bill.resize import resize
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import TYPES, flat, market, ran
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "cheaper-type"
T4 = ran(3600, "ml.g4dn.4xlarge", volume_gb=0)
WELL_USED = {"gpu": 92.0, "gpu_memory": 80.0, "cpu": 15.0, "memory": 10.0}


def test_a_well_used_gpu_on_too_large_a_host_is_found() -> None:
    """15% of 16 vCPUs are 2.9 with headroom, 10% of 64 GiB 7.7: 1.505 - 0.736."""
    finding = priced(RULE, T4, flat(T4, 60, hosts=1, **WELL_USED))
    what = finding.found
    assert what.summary == (
        "ml.g4dn.xlarge is large enough for what 1 x ml.g4dn.4xlarge used over 1 h."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.InstanceType", "ml.g4dn.4xlarge", "ml.g4dn.xlarge",
    )  # fmt: skip
    assert usd(finding.saving_usd) == "0.769000"
    assert (what.confidence, what.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)
    assert "Means of a minute hide short peaks" in (what.caution or "")
    assert what.evidence["times_as_long"] == 1
    # the second best beside it
    assert [[one.new for one in way] for way in what.alternatives] == [["ml.g4dn.2xlarge"]]


@pytest.mark.parametrize(
    ("cpu", "memory", "to"),
    [
        # with a fifth above: 4.0 of 4 vCPUs, and 4.03; 16 GiB of 16, and 16.1
        (20.83, 10, "ml.g4dn.xlarge"),
        (21, 10, "ml.g4dn.2xlarge"),
        (15, 20.83, "ml.g4dn.xlarge"),
        (15, 21, "ml.g4dn.2xlarge"),
    ],
)
def test_the_type_holds_all_that_was_used(cpu: float, memory: float, to: str) -> None:
    """At the line and just above it."""
    of = flat(T4, 60, hosts=1, **WELL_USED | {"cpu": cpu, "memory": memory})
    assert [fix.new for fix in found(RULE, T4, of).fix] == [to]


def test_a_full_instance_is_clear() -> None:
    """95% of everything."""
    assert outcome(RULE, T4, flat(T4, 60, gpu=95, gpu_memory=95, cpu=95, memory=95)) == Clear()


def test_what_must_shrink_and_was_not_recorded_is_unknown() -> None:
    """Every cheaper T4 has less memory."""
    of = flat(T4, 60, gpu=92, gpu_memory=80, cpu=15)
    assert unknown(RULE, T4, of) == "not_recorded"


def test_what_does_not_shrink_needs_no_metric_at_all() -> None:
    """A type with as many vCPUs, GiB and GPUs that costs less by the hour."""
    twin = replace(TYPES["ml.m5.2xlarge"], name="ml.m6i.2xlarge", family="m6i")
    usd_by_name = {"ml.m5.2xlarge": "0.46", twin.name: "0.40"}
    on = replace(market(hourly_usd=usd_by_name), types={**TYPES, twin.name: twin})
    run = ran(3600, "ml.m5.2xlarge", volume_gb=0)
    finding = priced(RULE, run, on=on)
    assert (
        finding.found.summary == "ml.m6i.2xlarge is large enough for what 1 x ml.m5.2xlarge used."
    )
    assert usd(finding.saving_usd) == "0.060000"


def test_the_slow_end_is_counted_and_the_range_shown() -> None:
    """Four T4 at 20% on one: 4.89 less 1.6 times 0.736, or once."""
    run = ran(3600, "ml.g4dn.12xlarge", volume_gb=0)
    what = found(RULE, run, flat(run, 60, gpu=20, gpu_memory=5, cpu=5, memory=5))
    assert what.change == SetType("ml.g4dn.xlarge", Decimal("1.6"))
    assert what.best == SetType("ml.g4dn.xlarge", Decimal(1))


def test_an_old_type_with_a_newer_one_is_left_to_old_generation() -> None:
    """One story, told once."""
    kinds = {**TYPES, "ml.g4dn.4xlarge": replace(TYPES["ml.g4dn.4xlarge"], legacy=True)}
    on = replace(market(), types=kinds)
    answer = outcome(RULE, T4, flat(T4, 60, hosts=1, **WELL_USED), on=on)
    assert "old-generation" in str(answer)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        (
            {"groups": (InstanceGroup("ml.g4dn.4xlarge", 1), InstanceGroup("ml.m5.large", 1))},
            "several types",
        ),
    ],
)
def test_a_type_that_is_given_stays(changes: dict[str, object], why: str) -> None:
    """Prepaid, or one of several."""
    run = replace(T4, **changes)  # type: ignore[arg-type]
    assert why in not_applicable(RULE, run, flat(T4, 60, hosts=1, **WELL_USED))


def test_without_a_region_there_is_no_price_and_no_answer() -> None:
    """The reason is a reason, not a sentence about figures."""
    run = replace(T4, region=None)
    answer = outcome(RULE, run, flat(T4, 60, hosts=1, **WELL_USED))
    assert answer == Unknown("not_replayable", "the region is not known, and so is no price")


def test_a_job_that_never_started_has_nothing_to_move() -> None:
    """It cost nothing."""
    run = replace(T4, status="Failed", started_at=None, training_s=None, billable_s=None, phases=())
    assert "started" in not_applicable(RULE, run)


def audited(run: Job, of: Measurements) -> Audit:
    """By every rule."""
    ruleset = catalogue.ruleset()
    policy = Policy(rules_on=frozenset(rule.name.name for rule in ruleset.rules))
    assert run.ended_at is not None
    return audit_job(run, of, market(), policy, ruleset, now=run.ended_at, earlier=None)


def test_a_rule_that_names_the_reason_speaks_instead() -> None:
    """A little used GPU: gpu-underused has the same type and dollars."""
    audit = audited(T4, flat(T4, 60, gpu=10, gpu_memory=10, cpu=15, memory=10))
    shown = {one.rule.name for one in audit.savings.findings if not one.subsumed_by}
    assert "gpu-underused" in shown
    assert RULE not in shown
    answers = {name.name: answer for name, answer in audit.outcomes}
    assert isinstance(answers[RULE], Found)


shares = st.floats(0, 100)
PRICED = sorted({"ml.m5.xlarge", "ml.m5.4xlarge", "ml.g4dn.4xlarge", "ml.g4dn.12xlarge"})


@given(
    name=st.sampled_from(PRICED),
    use=st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("cpu", "memory", "gpu", "gpu_memory"), shares)
    ),
    hosts=st.integers(1, 3),
    distribution=st.sampled_from((None, "ddp")),
)
def test_no_certain_saving_is_left_uncounted(
    name: str, use: dict[str, float], hosts: int, distribution: str | None
) -> None:
    """Avoidable and lost are never below the best that what-if certainly saves: none is exempt."""
    run = ran(3600, name, hosts, volume_gb=0, hints=Hints(distribution=distribution))
    kind = TYPES[name]
    of = flat(run, 60, hosts, **{w: v for w, v in use.items() if kind.gpus or "gpu" not in w})
    savings = audited(run, of).savings
    done = resize(run, of, market())
    best = max((done.saves(other) or Decimal(0) for other in done.certain), default=Decimal(0))
    known = (savings.avoidable_usd or Decimal(0)) + (savings.lost_usd or Decimal(0))
    assert known >= best
