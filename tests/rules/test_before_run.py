"""Conventions of every rule that judges requests, and how rules about runs judge them."""

from decimal import Decimal
from functools import partial

import pytest

from sageaudit.domain.bill.finding import NotApplicable, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.rules import catalogue
from sageaudit.rules.card import RequestCase
from tests.fakes.families import earlier_run
from tests.fakes.jobs import TYPES, FixedPrices, instance_type
from tests.fakes.planned import LATER, REQUESTED, checked_request, request_answer
from tests.fakes.request import has_parameter
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds

RULES = {rule.info.name: rule for rule in catalogue.load() if rule.request_severity is not None}
OLD = instance_type("ml.m4.xlarge", 4, 16, is_legacy=True, successors=("ml.m5.xlarge",))
RATES = FixedPrices(hourly_usd={**FixedPrices().hourly_usd, OLD.name: "0.24"})
WITH_OLD = Market({**TYPES, OLD.name: OLD}, RATES)
RUN = "StoppingCondition.MaxRuntimeInSeconds"


def test_rules_of_requests_judge_nothing_else() -> None:
    """Their cards say so: no rule of a run needs what only a request has."""
    only = {rule.info.name for rule in catalogue.load() if rule.scope is RequestCase}
    assert only <= set(RULES)
    assert len(set(RULES) - only) == 8


@pytest.mark.parametrize("name", RULES)
def test_what_a_rule_reads_is_a_parameter_of_aws(name: str) -> None:
    """Of a request of one of its kinds, or of a trial inside a tuning job."""
    for path in RULES[name].required_parameters:
        plain = path.replace("[]", "[x]")
        trial = f"TrainingJobDefinition.{plain}"
        kinds = [
            kind
            for kind in JobKind
            if has_parameter(kind, plain) or has_parameter(JobKind.TUNING, trial)
        ]
        assert kinds, path


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.required_parameters])
def test_a_rule_does_not_judge_what_is_known_later(name: str) -> None:
    """The first parameter that it reads is not known."""
    for kind in RULES[name].kinds:
        own_parameters = [
            path
            for path in RULES[name].required_parameters
            if "[]" not in path and has_parameter(kind, path)
        ]
        if own_parameters:
            answer = request_answer(name, {own_parameters[0]: LATER}, kind=kind)
            assert isinstance(answer, Unknown)
            assert answer.code == "not_known_yet"


@pytest.mark.parametrize("name", RULES)
def test_a_rule_can_be_switched_off(name: str) -> None:
    """As for runs."""
    policy = Policy(disabled_rules=frozenset({name}))
    for kind in RULES[name].kinds & set(REQUESTED):
        answers = {
            n.name: answer for n, answer in checked_request(kind=kind, policy=policy).outcomes
        }
        assert answers[name] == NotApplicable("the policy disables it")


def test_a_healthy_request_of_each_kind_has_no_finding() -> None:
    """Nor a rule that fails."""
    for kind in REQUESTED:
        findings = checked_request(kind=kind)
        assert findings.findings == ()
        assert not [o for _, o in findings.outcomes if getattr(o, "code", "") == "rule_failed"]


DAY = {RUN: 86_400}
ONE_OLD = {"ResourceConfig.InstanceType": OLD.name, "ResourceConfig.VolumeSizeInGB": 0, **DAY}
SPOT = {"EnableManagedSpotTraining": True, "StoppingCondition.MaxWaitTimeInSeconds": 99_000}
COPIED = {"AlgorithmSpecification.TrainingInputMode": "File", "ResourceConfig.InstanceCount": 2}
FIVE = [earlier_run(day) for day in range(1, 6)]
SEARCH = "HyperParameterTuningJobConfig"
LIMITS = {"MaxNumberOfTrainingJobs": 10, "MaxParallelTrainingJobs": 2}
NO_STOP = {f"{SEARCH}.ResourceLimits": LIMITS, f"{SEARCH}.TrainingJobEarlyStoppingType": None}

verdict = partial(request_answer, "old-generation")


def test_an_old_type_is_priced_at_the_limit_and_by_the_familys_runs_a_cent_an_hour() -> None:
    assert verdict(ONE_OLD, market=WITH_OLD) == finds(
        "It asks for 1 x ml.m4.xlarge…", alone="0.240000", severity="medium"
    )
    result = verdict(ONE_OLD, market=WITH_OLD, earlier=[earlier_run(1, instance_type=OLD.name)])
    assert result == finds(alone="0.010000", severity="low")


def test_spot_without_checkpoints_is_found_from_an_hour_on() -> None:
    """The limit is how long it may run."""
    assert request_answer("spot-without-checkpoint", SPOT | {RUN: 3600}) == CLEAR
    assert request_answer("spot-without-checkpoint", SPOT | {RUN: 7200}) == finds(
        "The run may take 2 h…"
    )
    result = request_answer(
        "spot-without-checkpoint", SPOT | {RUN: 7200, "CheckpointConfig": {"S3Uri": LATER}}
    )
    assert result == cannot_judge("…")


def test_spot_is_offered_by_the_familys_runs_only() -> None:
    """Its limit does not say how long it will run."""
    assert request_answer("spot-not-used", DAY) == cannot_judge("…")
    result = request_answer(
        "spot-not-used", DAY, earlier=[earlier_run(day, total_usd=Decimal(5)) for day in (1, 2)]
    )
    assert result == FOUND


def test_a_loose_limit_is_found_by_the_familys_longest_run() -> None:
    """From $10 on, once five are known."""
    assert request_answer("max-runtime-loose", {RUN: 200_000}, earlier=FIVE) == finds(
        "…longest of 5 runs…"
    )
    assert request_answer("max-runtime-loose", {RUN: 100_000}, earlier=FIVE) == CLEAR
    assert request_answer("max-runtime-loose", {RUN: 200_000}, earlier=FIVE[:4]) == cannot_judge(
        "…"
    )


def test_replicated_input_needs_no_phases() -> None:
    """With a sampler FastFile is the fix, without one shards."""
    assert request_answer("replicated-input", COPIED) == finds(fix=["ShardedByS3Key"])
    result = request_answer(
        "replicated-input",
        changes=COPIED | {"HyperParameters": {"sagemaker_torch_distributed_enabled": "true"}},
    )
    assert result == finds(fix=["FastFile"])


def test_a_search_is_judged_by_its_settings() -> None:
    """Early stopping from ten trials on, three rounds."""
    assert request_answer("tuning-no-early-stop", NO_STOP, kind=JobKind.TUNING) == FOUND
    assert request_answer("tuning-strategy", NO_STOP, kind=JobKind.TUNING) == CLEAR
    result = request_answer(
        "tuning-strategy",
        kind=JobKind.TUNING,
        changes={f"{SEARCH}.ResourceLimits": LIMITS | {"MaxParallelTrainingJobs": 10}},
    )
    assert result == finds("…will run 10 trials…")
