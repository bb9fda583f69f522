"""What holds of every rule that judges requests, and how rules of runs judge them."""

from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import NotApplicable, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.rules import catalogue
from sageaudit.rules.card import RequestCase
from tests.fakes.families import earlier_run
from tests.fakes.jobs import TYPES, FixedPrices, instance_type
from tests.fakes.planned import LATER, REQUESTED, asked, planned, said
from tests.fakes.request import known
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULES = {rule.name.name: rule for rule in catalogue.load() if rule.before_run is not None}
OLD = instance_type("ml.m4.xlarge", 4, 16, legacy=True, successors=("ml.m5.xlarge",))
RATES = FixedPrices(hourly_usd={**FixedPrices().hourly_usd, OLD.name: "0.24"})
WITH_OLD = Market({**TYPES, OLD.name: OLD}, RATES)
RUN = "StoppingCondition.MaxRuntimeInSeconds"


def test_rules_of_requests_judge_nothing_else() -> None:
    """Their cards say so: no rule of a run needs what only a request has."""
    only = {rule.name.name for rule in catalogue.load() if rule.scope is RequestCase}
    assert only <= set(RULES)
    assert len(set(RULES) - only) == 8


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
    for kind in RULES[name].kinds & set(REQUESTED):
        answers = {n.name: answer for n, answer in planned(kind=kind, policy=policy).outcomes}
        assert answers[name] == NotApplicable("switched off by the policy")


def test_a_healthy_request_of_each_kind_has_no_finding() -> None:
    """Nor a rule that fails."""
    for kind in REQUESTED:
        found = planned(kind=kind)
        assert found.findings == ()
        assert not [o for _, o in found.outcomes if getattr(o, "code", "") == "rule_failed"]


DAY = {RUN: 86_400}
ONE_OLD = {"ResourceConfig.InstanceType": OLD.name, "ResourceConfig.VolumeSizeInGB": 0, **DAY}
SPOT = {"EnableManagedSpotTraining": True, "StoppingCondition.MaxWaitTimeInSeconds": 99_000}
COPIED = {"AlgorithmSpecification.TrainingInputMode": "File", "ResourceConfig.InstanceCount": 2}
FIVE = [earlier_run(day) for day in range(1, 6)]
SEARCH = "HyperParameterTuningJobConfig"
LIMITS = {"MaxNumberOfTrainingJobs": 10, "MaxParallelTrainingJobs": 2}
NO_STOP = {f"{SEARCH}.ResourceLimits": LIMITS, f"{SEARCH}.TrainingJobEarlyStoppingType": None}

test_cases = cases(
    "old-generation",
    "An old type is priced at the limit, and by the family's runs: a cent an hour.",
    row(finds("It asks for 1 x ml.m4.xlarge…", alone="0.240000", severity="medium"), ONE_OLD,
        on=WITH_OLD),
    row(finds(alone="0.010000", severity="low"), ONE_OLD, on=WITH_OLD,
        earlier=[earlier_run(1, instance_type=OLD.name)]),
    "Spot without checkpoints is found from an hour on. The limit is how long it may run.",
    row(CLEAR, SPOT | {RUN: 3600}, rule="spot-without-checkpoint"),
    row(finds("…May run 2 h…"), SPOT | {RUN: 7200}, rule="spot-without-checkpoint"),
    row("unknown: …", SPOT | {RUN: 7200, "CheckpointConfig": {"S3Uri": LATER}},
        rule="spot-without-checkpoint"),
    "Spot is offered by the family's runs only: its limit does not say how long it will run.",
    row("unknown: …", DAY, rule="spot-not-used"),
    row(FOUND, DAY, rule="spot-not-used",
        earlier=[earlier_run(day, total_usd=Decimal(5)) for day in (1, 2)]),
    "A loose limit is found by the family's longest run. From $10 on, once five are known.",
    row(finds("…longest of 5 runs…"), {RUN: 200_000}, rule="max-runtime-loose", earlier=FIVE),
    row(CLEAR, {RUN: 100_000}, rule="max-runtime-loose", earlier=FIVE),
    row("unknown: …", {RUN: 200_000}, rule="max-runtime-loose", earlier=FIVE[:4]),
    "Replicated input needs no phases. With a sampler FastFile is the fix, without one shards.",
    row(finds(fix=["ShardedByS3Key"]), COPIED, rule="replicated-input"),
    row(finds(fix=["FastFile"]), rule="replicated-input",
        changes=COPIED | {"HyperParameters": {"sagemaker_torch_distributed_enabled": "true"}}),
    "A search is judged by its settings: early stopping from ten trials on, three rounds.",
    row(FOUND, NO_STOP, rule="tuning-no-early-stop", kind=JobKind.TUNING),
    row(CLEAR, NO_STOP, rule="tuning-strategy", kind=JobKind.TUNING),
    row(finds("…will run 10 trials…"), rule="tuning-strategy", kind=JobKind.TUNING,
        changes={f"{SEARCH}.ResourceLimits": LIMITS | {"MaxParallelTrainingJobs": 10}}),
    ask=asked,
)  # fmt: skip
