"""A run too short to be judged alone is judged by its family's last runs, for its own dollars."""

import inspect
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import document
from sageaudit.domain.bill.finding import Clear, Detection, Outcome, Unknown
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.judged_use import PooledRuns, pool_runs, short_run_usage
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule, Ruleset
from sageaudit.rules.judge import judge
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import START, flat, market, ran
from tests.fakes.judging import case, rule_named

POOLING = [rule for rule in catalogue.load() if rule.can_pool_runs]
GPU = "ml.g5.2xlarge"
IDLE = {"cpu": 30.0, "memory": 20.0, "gpu": 0.0, "gpu_memory": 1.0}
LOW = IDLE | {"gpu": 8.0, "gpu_memory": 20.0}
FEW = {"cpu": 5.0, "memory": 5.0, "gpu": 20.0, "gpu_memory": 5.0}
BUSY = {"cpu": 60.0, "memory": 60.0, "gpu": 95.0, "gpu_memory": 90.0}


def run(
    minutes: int, use: Mapping[str, float], instance: str = GPU, hosts: int = 1
) -> Measurements:
    """A run of this many even minutes."""
    job = ran(60 * minutes, instance, hosts)
    return flat(job, minutes, hosts=hosts, **use)


def pool(own_usage: Measurements, earlier: Sequence[Measurements]) -> PooledRuns:
    """The minutes of a short run and of these runs before it."""
    active = short_run_usage(own_usage)
    assert active is not None
    return pool_runs(active, [(f"run-{number}", usage) for number, usage in enumerate(earlier)])


def answer(
    rule: str, own_usage: Measurements, earlier: Sequence[Measurements] | None, instance: str = GPU
) -> Outcome:
    """The outcome for a run whose family had these runs before it; None: without a family."""
    job = ran(own_usage.seconds, instance, own_usage.hosts_expected or 1)
    minutes = None if earlier is None else pool(own_usage, earlier)
    [(_, outcome)] = judge(replace(case(job, own_usage), pool=minutes), [rule_named(rule)])
    return outcome


def audited(own_usage: Measurements, earlier: Sequence[Measurements]) -> Audit:
    """The audit of such a run."""
    job, minutes = ran(own_usage.seconds, GPU), pool(own_usage, earlier)
    ruleset = Ruleset(catalogue.load(), "test")
    return audit_job(
        job,
        own_usage,
        market(),
        Policy(),
        ruleset,
        now=job.ended_at or START,
        earlier_runs=(),
        pool=minutes,
    )


CASES: dict[str, tuple[str, int, dict[str, float]]] = {
    "gpu-idle": (GPU, 1, IDLE),
    "gpu-underused": (GPU, 1, LOW),
    "some-gpus-unused": ("ml.g4dn.12xlarge", 1, FEW),
    "cpu-bottleneck": (GPU, 1, {"cpu": 97, "memory": 20, "gpu": 5}),
    "cpu-underused": ("ml.m5.4xlarge", 1, {"cpu": 12, "memory": 10}),
    "serial-code": ("ml.m5.4xlarge", 1, {"cpu": 6.25, "memory": 10}),
    "poor-scaling": ("ml.m5.xlarge", 4, {"cpu": 12, "memory": 10}),
}
"""By rule: instances and an even use that it finds in a long run."""


@pytest.mark.parametrize("rule", CASES)
def test_it_finds_together_what_it_finds_in_one_long_run(rule: str) -> None:
    """8 minutes are too few alone, with 3 such runs before they are 32; and the finding says so."""
    instance, hosts, use = CASES[rule]
    short_run = run(8, use, instance, hosts)
    alone_outcome = answer(rule, short_run, [], instance)
    assert isinstance(alone_outcome, Unknown)
    assert alone_outcome.reason.endswith("minutes, the rule needs 15")
    outcome_with_one_run = answer(rule, run(3, use, instance, hosts), [short_run], instance)
    assert outcome_with_one_run == Unknown(
        "too_short", "11 active minutes, with 1 earlier run of its family; the rule needs 15"
    )
    assert alone_outcome.code == "too_short"
    together = answer(rule, short_run, [short_run] * 3, instance)
    assert isinstance(together, Detection), together
    assert "32 active minutes of this family's last 4 runs" in together.summary
    assert together.evidence["pooled_runs"] == 4
    assert together.evidence["own_active_minutes"] == 8
    long_run_outcome = answer(rule, run(32, use, instance, hosts), None, instance)
    assert isinstance(long_run_outcome, Detection)
    assert (long_run_outcome.change, long_run_outcome.best, long_run_outcome.fix) == (
        together.change,
        together.best,
        together.fix,
    )


def test_a_rule_without_required_metrics_sizes_types_by_the_minutes_of_all_runs() -> None:
    """cheaper-type judges any run, and the 8 minutes of one run are too few to size a type."""
    instance, hosts, use = CASES["cpu-underused"]
    short = run(8, use, instance, hosts)
    assert isinstance(answer("cheaper-type", short, [], instance), Unknown)
    together = answer("cheaper-type", short, [short] * 3, instance)
    assert isinstance(together, Detection), together
    assert together.evidence["pooled_runs"] == 4


def test_every_rule_that_pools_is_tried() -> None:
    """Two need no metrics: they only size types by more minutes. Two need other types."""
    assert {rule.info.name for rule in POOLING} - {"gpu-too-big", "memory-oversized"} == {
        *CASES,
        "cheaper-type",
        "old-generation",
    }


@pytest.mark.parametrize(
    "rule", [rule for rule in POOLING if rule.required_metrics], ids=lambda r: r.info.name
)
def test_a_rule_that_pools_says_whose_minutes_they_are(rule: Rule) -> None:
    """Its sentences take minutes from `case.minutes_text`, never as if they were the run's."""
    source = inspect.getsource(inspect.getmodule(rule.check))  # type: ignore[arg-type]
    assert "case.minutes_text(" in source
    assert "duration_min(" not in source


@pytest.mark.parametrize("rule", ["gpu-idle", "gpu-underused"])
def test_a_busy_run_is_never_blamed_for_idle_ones(rule: str) -> None:
    """Nor is it called healthy by minutes of others: it stays unjudged."""
    outcome = answer(rule, run(8, BUSY), [run(8, IDLE)] * 5)
    assert not isinstance(outcome, Detection)
    low = answer("gpu-underused", run(8, BUSY), [run(8, IDLE)] * 5)
    assert low == Unknown(
        "unlike_family", "its 8 active minutes differ from those of its family's last runs"
    )


def test_an_idle_run_is_not_excused_by_busy_ones() -> None:
    """It is as unknown as before."""
    outcome = answer("gpu-underused", run(5, LOW), [run(14, BUSY)] * 3)
    assert isinstance(outcome, Unknown)
    assert outcome.code == "unlike_family"


def test_busy_runs_are_clear_together() -> None:
    """A family of short healthy runs is judged, and healthy."""
    assert answer("gpu-underused", run(8, BUSY), [run(8, BUSY)] * 3) == Clear()
    audit = audited(run(8, BUSY), [run(8, BUSY)] * 3)
    assert audit.judgement.judged.value == "yes"
    assert audit.judgement.not_judged == ()
    assert audit.savings.avoidable_usd is not None


def test_a_run_is_sized_by_what_any_of_them_used() -> None:
    """A peak of an earlier run, and one of its own, keep it from a type that is too small."""
    small, large = IDLE | {"memory": 10.0}, IDLE | {"memory": 95.0}
    quiet = answer("gpu-idle", run(8, small), [run(8, small)] * 3)
    of_others = answer("gpu-idle", run(8, small), [run(8, large), *[run(8, small)] * 2])
    of_own = answer("gpu-idle", run(3, large), [run(14, small)] * 3)
    assert isinstance(quiet, Detection)
    assert quiet.change is not None
    for use in (of_others, of_own):
        assert isinstance(use, Detection)
        assert use.change != quiet.change


uses = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([3, 30, 70, 97]),
        "memory": st.integers(5, 100),
        "gpu": st.sampled_from([0, 3, 8, 20, 60, 95]),
        "gpu_memory": st.integers(0, 100),
    }
)
short = st.integers(1, 14)


@settings(max_examples=60, deadline=None)
@given(uses, short, st.lists(st.tuples(short, uses), min_size=1, max_size=6))
def test_no_run_is_blamed_for_what_it_would_not_be_blamed_for_alone(
    own: dict[str, int], minutes: int, others: list[tuple[int, dict[str, int]]]
) -> None:
    """If an hour of its own use is clear, its few minutes are no finding in any family."""
    long_run, own_run = run(60, own), run(minutes, own)
    for rule in POOLING:
        if rule.required_metrics and answer(rule.info.name, long_run, None) == Clear():
            outcome = answer(rule.info.name, own_run, [run(m, use) for m, use in others])
            assert not isinstance(outcome, Detection), rule.info.name


@settings(max_examples=40, deadline=None)
@given(uses, short, st.lists(st.tuples(short, uses), max_size=6))
def test_each_run_counts_its_own_dollars_only(
    own: dict[str, int], minutes: int, others: list[tuple[int, dict[str, int]]]
) -> None:
    """Its bill, phases, idle hours and all other rules are as without the family's minutes."""
    own_run, earlier = run(minutes, own), [run(m, use) for m, use in others]
    with_family, without_family = audited(own_run, earlier), audited(own_run, [])
    assert with_family.bill == without_family.bill
    total = with_family.bill.total_usd
    counted = (with_family.savings.avoidable_usd, with_family.savings.lost_usd)
    assert sum(usd or 0 for usd in counted) <= (total or 0)
    pooling = {rule.info.name for rule in POOLING}
    for (name, outcome), (_, before) in zip(
        with_family.outcomes, without_family.outcomes, strict=True
    ):
        assert name.name in pooling or outcome == before
    capacity, capacity_alone = with_family.idle_capacity, without_family.idle_capacity
    assert (capacity and (capacity.paid, capacity.worked)) == (
        capacity_alone and (capacity_alone.paid, capacity_alone.worked)
    )


def test_the_document_names_the_runs() -> None:
    """With how many minutes; None if a run was judged alone or not at all."""
    pooled_document = document(audited(run(8, LOW), [run(8, LOW)] * 2))
    pooled = pooled_document["audit"]["pool"]
    assert pooled is not None
    assert (pooled["runs"], pooled["active_minutes"], pooled["own_active_minutes"]) == (3, 24, 8)
    assert pooled["earlier_runs"] == ["run-0", "run-1"]
    assert pooled_document["judged"] == "yes"
    document_alone = document(audited(run(8, LOW), []))
    assert document_alone["audit"]["pool"] is None
    assert document_alone["judged"] == "no"
    [reason] = document_alone["not_judged"]
    assert reason == (
        "Its own code ran for only 8 min: at least 15 min are needed to judge its use. "
        "Shorter runs are judged together with the last runs of their family on the same "
        "instances, if these have that much in total."
    )
    [reason] = document(audited(run(3, LOW), [run(8, LOW)]))["not_judged"]
    assert reason == (
        "Its own code ran for only 3 min: at least 15 min are needed to judge its use. With the "
        "last run of its family on the same instances it has 11 min; from 15 min on they are "
        "judged together."
    )
