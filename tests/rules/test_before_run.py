"""What holds of every rule that judges requests, and how rules of runs judge them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Clear, NotApplicable, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.rules import catalogue
from sageaudit.rules.card import RequestCase
from tests.fakes.families import earlier_run
from tests.fakes.jobs import TYPES, FixedPrices, instance_type
from tests.fakes.planned import LATER, planned, said, told
from tests.fakes.request import known

RULES = {rule.name.name: rule for rule in catalogue.load() if rule.before_run is not None}
OLD = instance_type("ml.m4.xlarge", 4, 16, legacy=True, successors=("ml.m5.xlarge",))
RATES = FixedPrices(hourly_usd={**FixedPrices().hourly_usd, OLD.name: "0.24"})
WITH_OLD = Market({**TYPES, OLD.name: OLD}, RATES)
RUN = "StoppingCondition.MaxRuntimeInSeconds"


def test_rules_of_requests_judge_nothing_else() -> None:
    """Their cards say so: no rule of a run needs what only a request has."""
    only = {rule.name.name for rule in catalogue.load() if rule.scope is RequestCase}
    assert only <= set(RULES)
    assert len(set(RULES) - only) >= 10


@pytest.mark.parametrize("name", RULES)
def test_what_a_rule_reads_is_a_parameter_of_aws(name: str) -> None:
    """Of a request of one of its kinds, or of a trial inside a tuning job."""
    for path in RULES[name].reads:
        plain = path.replace("[]", "[x]")
        trial = f"TrainingJobDefinition.{plain}"
        kinds = [kind for kind in JobKind if known(kind, plain) or known(JobKind.TUNING, trial)]
        assert kinds, path


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.reads])
def test_a_rule_does_not_judge_what_is_known_later(name: str) -> None:
    """The first parameter that it reads is not known."""
    for kind in RULES[name].kinds:
        own = [path for path in RULES[name].reads if "[]" not in path and known(kind, path)]
        if own:
            answer = said(name, {own[0]: LATER}, kind=kind)
            assert isinstance(answer, Unknown)
            assert answer.code == "not_known_yet"


@pytest.mark.parametrize("name", RULES)
def test_a_rule_can_be_switched_off(name: str) -> None:
    """As for runs."""
    policy = Policy(rules_off=frozenset({name}))
    for kind in RULES[name].kinds:
        answers = {n.name: answer for n, answer in planned(kind=kind, policy=policy).outcomes}
        assert answers[name] == NotApplicable("switched off by the policy")


def test_a_healthy_request_of_each_kind_has_no_finding() -> None:
    """Nor a rule that fails."""
    for kind in JobKind:
        found = planned(kind=kind)
        assert found.findings == ()
        assert not [o for _, o in found.outcomes if getattr(o, "code", "") == "rule_failed"]


def test_an_old_type_is_priced_at_the_limit_and_by_the_family() -> None:
    """Up to a cent an hour for a day; a run of the family takes an hour."""
    day = {"ResourceConfig.InstanceType": OLD.name, RUN: 86_400, "ResourceConfig.VolumeSizeInGB": 0}
    finding = told("old-generation", day, on=WITH_OLD)
    assert finding.found.summary.startswith("It asks for 1 x ml.m4.xlarge")
    assert finding.alone_usd == Decimal("0.24")
    assert finding.severity.value == "medium"
    runs = [earlier_run(1, instance_type=OLD.name)]
    known_run = told("old-generation", day, on=WITH_OLD, earlier=runs)
    assert known_run.alone_usd == Decimal("0.01")
    assert known_run.severity.value == "low"


def test_spot_without_checkpoints_is_found_from_an_hour_on() -> None:
    """The limit is how long it may run."""
    spot = {"EnableManagedSpotTraining": True, "StoppingCondition.MaxWaitTimeInSeconds": 99_000}
    assert said("spot-without-checkpoint", spot | {RUN: 3600}) == Clear()
    assert "May run 2 h" in told("spot-without-checkpoint", spot | {RUN: 7200}).found.summary
    kept = {"CheckpointConfig": {"S3Uri": LATER}}
    assert isinstance(said("spot-without-checkpoint", spot | {RUN: 7200} | kept), Unknown)


def test_spot_is_offered_by_the_familys_runs_only() -> None:
    """How long a request will run is not known from its limit."""
    assert isinstance(said("spot-not-used", {RUN: 86_400}), Unknown)
    dear = [earlier_run(day, total_usd=Decimal(5)) for day in (1, 2)]
    assert told("spot-not-used", {RUN: 86_400}, earlier=dear)


def test_a_loose_limit_is_found_by_the_familys_longest_run() -> None:
    """From $10 on, once five runs are known."""
    runs = [earlier_run(day) for day in range(1, 6)]
    assert (
        "longest of 5 runs" in told("max-runtime-loose", {RUN: 200_000}, earlier=runs).found.summary
    )
    assert said("max-runtime-loose", {RUN: 100_000}, earlier=runs) == Clear()
    assert isinstance(said("max-runtime-loose", {RUN: 200_000}, earlier=runs[:4]), Unknown)


def replicated(**more: Any) -> dict[str, Any]:
    """Two instances that copy the training channel."""
    return {"AlgorithmSpecification.TrainingInputMode": "File",
            "ResourceConfig.InstanceCount": 2, **more}  # fmt: skip


def test_replicated_input_needs_no_phases() -> None:
    """With a sampler FastFile is the fix, without one shards."""
    plain = told("replicated-input", replicated())
    assert plain.found.fix[0].new == "ShardedByS3Key"
    sampled = replicated(HyperParameters={"sagemaker_torch_distributed_enabled": "true"})
    assert told("replicated-input", sampled).found.fix[0].new == "FastFile"


def test_an_ignored_volume_is_a_remark_in_requests() -> None:
    """The rule is off for runs, where it would be noise."""
    nvme = {"ResourceConfig.InstanceType": "ml.g5.2xlarge", "ResourceConfig.VolumeSizeInGB": 100}
    assert told("volume-ignored", nvme).severity.value == "info"


def test_a_container_with_a_network_waits_for_the_policy() -> None:
    """The rule is off, for requests too; AWS's default is a network."""
    assert isinstance(said("network-isolation-off"), NotApplicable)
    policy = Policy(rules_on=frozenset({"network-isolation-off"}))
    assert told("network-isolation-off", policy=policy)


def test_retired_switches_are_found() -> None:
    """Training Compiler and custom Debugger rules."""
    compiler = {"HyperParameters": {"sagemaker_training_compiler_enabled": "true"}}
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-trcomp-training:1.11"
    compiler |= {"AlgorithmSpecification.TrainingImage": image}  # type: ignore[dict-item]
    assert told("training-compiler-on", compiler).severity.value == "medium"
    rule = {"RuleConfigurationName": "mine", "RuleEvaluatorImage": "i",
            "InstanceType": "ml.m5.xlarge"}  # fmt: skip
    custom = told("custom-rule-cost", {"DebugRuleConfigurations": [rule]})
    assert "will run beside it" in custom.found.summary


def test_a_search_is_judged_by_its_settings() -> None:
    """Early stopping from ten trials on; Bayesian search needs three rounds."""
    config, tuning = "HyperParameterTuningJobConfig", {"kind": JobKind.TUNING}
    limits = {"MaxNumberOfTrainingJobs": 10, "MaxParallelTrainingJobs": 2}
    off = {f"{config}.ResourceLimits": limits, f"{config}.TrainingJobEarlyStoppingType": None}
    assert told("tuning-no-early-stop", off, **tuning)
    assert said("tuning-strategy", off, **tuning) == Clear()
    wide = {f"{config}.ResourceLimits": limits | {"MaxParallelTrainingJobs": 10}}
    assert "will run 10 trials" in told("tuning-strategy", wide, **tuning).found.summary
