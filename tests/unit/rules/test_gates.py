from __future__ import annotations

from dataclasses import replace

import pytest

from sageaudit.domain.bill.finding import Clear, Found, NotApplicable, Outcome, Unknown
from sageaudit.domain.job.job import InstanceGroup
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Metric, Missing, measure
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase, JobCase
from sageaudit.rules.judge import RULE_FAILED, judge
from tests.fakes.jobs import TYPES, flat, job, phases, ran, series, usage
from tests.fakes.judging import case, outcome, unknown

RULES = [rule.name.name for rule in catalogue.load() if rule.scope in {JobCase, FamilyCase}]
CATALOGUE = """SA101 download-dominates, SA102 replicated-input, SA103 upload-dominates, \
SA104 slow-start, SA105 image-pull-heavy, SA201 gpu-idle, SA202 gpu-underused, \
SA203 cpu-bottleneck, SA204 some-gpus-unused, SA205 cpu-underused, SA206 memory-oversized, \
SA207 serial-code, SA208 gpu-memory-growth, SA209 uneven-hosts, SA210 idle-start, \
SA211 idle-tail, SA212 gpu-starved, SA213 poor-scaling, SA301 old-generation, \
SA302 gpu-too-big, SA303 trainium-candidate, SA304 mixed-precision-candidate, \
SA305 training-compiler-on, SA401 spot-not-used, SA402 spot-without-checkpoint, \
SA403 spot-interrupted-much, SA404 warm-pool-idle, SA405 commitment-candidate, \
SA501 volume-oversized, SA502 volume-ignored, SA601 max-runtime-loose, SA602 failed-spend, \
SA603 limit-hit, SA604 retry-storm, SA605 no-owner, SA606 network-isolation-off, \
SA701 metric-plateau, SA702 duplicate-run, SA703 cost-regression, SA704 short-experiment, \
SA705 subset-first, SA706 custom-rule-cost, SA707 profile-me, SA708 debugger-said, \
SA801 transform-serial, SA802 transform-single-record, SA803 processing-upload-at-end, \
SA901 tuning-no-early-stop, SA902 tuning-plateau, SA903 tuning-failed-trials, \
SA904 tuning-strategy"""
HOUR = ran(3600, "ml.m5.4xlarge")


def test_every_rule_is_found_in_the_order_of_their_ids() -> None:
    """One file each; the folder is the register."""
    found = [f"{rule.name.id} {rule.name.name}" for rule in catalogue.load()]
    assert found == CATALOGUE.split(", ")


def test_guard_rails_stay_out_of_chat() -> None:
    """They have no dollars, and would be said again and again."""
    quiet = {r.name.name for r in catalogue.load() if not r.name.in_chat}
    assert quiet == {
        "custom-rule-cost",
        "debugger-said",
        "max-runtime-loose",
        "network-isolation-off",
        "profile-me",
    }


def test_only_one_rule_waits_for_the_policy() -> None:
    """It is for regulated accounts."""
    assert [r.name.name for r in catalogue.load() if not r.on] == ["network-isolation-off"]


def test_a_rule_subsumes_only_rules_that_are() -> None:
    """A mistyped name would tell one story twice; no two rules swallow each other."""
    names = {rule.name.name: rule.name.subsumes for rule in catalogue.load()}
    for name, subsumed in names.items():
        assert subsumed <= set(names)
        assert name not in subsumed
        assert not [other for other in subsumed if name in names[other]]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("status", ["InProgress", "Stopping"])
def test_no_rule_judges_a_job_that_has_not_ended(rule: str, status: str) -> None:
    """Its numbers still move."""
    assert unknown(rule, job(status=status, billable_s=None)) == "job_not_finished"


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_can_be_switched_off(rule: str) -> None:
    """The policy's word is the reason."""
    answer = outcome(rule, job(), off=True)
    assert answer == NotApplicable("switched off by the policy")


@pytest.mark.parametrize("rule", RULES)
def test_no_job_rule_speaks_of_a_tuning_job(rule: str) -> None:
    """It has no instances of its own."""
    assert isinstance(outcome(rule, job(kind=JobKind.TUNING, groups=())), NotApplicable)


def test_missing_metrics_are_unknown() -> None:
    """Never a finding and never clear, with the adapter's code and reason."""
    denied = Missing("metric_denied", "cloudwatch:GetMetricData is not permitted")
    answer = outcome("cpu-underused", HOUR, measure(HOUR, (), TYPES, absent=denied))
    assert isinstance(answer, Unknown)
    assert answer.code == "metric_denied"
    assert "cloudwatch:GetMetricData" in answer.reason


def test_one_metric_of_two_is_not_enough() -> None:
    """CPU alone does not tell whether the memory is needed."""
    assert unknown("cpu-underused", HOUR, flat(HOUR, 60, cpu=5)) == "metric_missing"


def test_fifteen_active_minutes_are_enough_and_fourteen_are_not() -> None:
    """Fewer points are an accident."""
    for minutes, judged in ((15, True), (14, False)):
        run = ran(60 * minutes, "ml.m5.4xlarge")
        answer = outcome("cpu-underused", run, flat(run, minutes, cpu=5, memory=5))
        assert isinstance(answer, Found) is judged
        assert judged or (isinstance(answer, Unknown) and answer.code == "too_short")


def test_idle_minutes_are_not_active_ones() -> None:
    """Ten idle minutes and ten busy ones are ten active minutes."""
    run = ran(1200, "ml.m5.4xlarge")
    of = usage(run, series(Metric.CPU, [0] * 10 + [160] * 10), series(Metric.MEMORY, [5] * 20))
    assert unknown("cpu-underused", run, of) == "too_short"


def test_seventy_percent_of_the_points_are_enough_and_less_is_not() -> None:
    """42 and 41 of 60 minutes."""
    assert isinstance(outcome("cpu-underused", HOUR, flat(HOUR, 42, cpu=5, memory=5)), Found)
    assert unknown("cpu-underused", HOUR, flat(HOUR, 41, cpu=5, memory=5)) == "coverage_low"


def test_a_missing_host_counts_as_missing_points() -> None:
    """Two of three hosts are 67 %."""
    run = ran(3600, "ml.m5.4xlarge", 3)
    of = flat(run, 60, hosts=2, cpu=5, memory=5)
    assert unknown("cpu-underused", run, of) == "coverage_low"


def test_hosts_without_a_map_are_unknown() -> None:
    """A mixed cluster's GPU figures belong to nobody knows which type."""
    groups = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 1))
    run = ran(3600, groups=groups)
    of = usage(run, series(Metric.CPU, [40] * 60), series(Metric.GPU, [5] * 60))
    assert unknown("gpu-underused", run, of) == "hosts_unmapped"


def test_the_policys_threshold_replaces_the_rules_own() -> None:
    """By its key."""
    run = ran(3600, "ml.m5.4xlarge")
    of = flat(run, 60, cpu=30, memory=30)
    assert isinstance(outcome("cpu-underused", run, of), Found)
    assert outcome("cpu-underused", run, of, limits={"cpu_p95_below": 30}) == Clear()


def test_a_download_is_judged_without_metrics() -> None:
    """Phases suffice: nothing missing there makes it unknown."""
    run = job(phases=phases(("Downloading", 5400), ("Training", 5400)))
    assert isinstance(outcome("download-dominates", run), Found)


def test_a_rule_that_raises_is_unknown_and_stops_no_other() -> None:
    """It is reported by its name; the rest of the catalogue judges on."""

    def raises(_: JobCase) -> Outcome:
        raise ZeroDivisionError

    [first, *others] = catalogue.load()
    hour = case(HOUR, flat(HOUR, 60))
    broken = judge(hour, [replace(first, check=raises, not_applicable=()), *others])
    whole = judge(hour, catalogue.load())
    assert broken[0] == (first.name, Unknown(RULE_FAILED, "the rule failed with ZeroDivisionError"))
    assert broken[1:] == whole[1:]
