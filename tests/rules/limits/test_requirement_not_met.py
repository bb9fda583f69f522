"""What an organisation requires of jobs that ran and of requests."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from sageaudit.domain.bill.finding import Finding, Outcome, Severity
from sageaudit.domain.job.describe import parse, sanitize_answer, tags_to_store
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.policy import parse as parse_policy
from sageaudit.rules import catalogue
from sageaudit.rules.card import RollUpCase
from sageaudit.rules.judge import judge
from tests.fakes.jobs import ACCOUNT, REGION, training_answer
from tests.fakes.judging import answer, rule_named
from tests.fakes.planned import LATER, ROLE, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "requirement-not-met"
DEBUGGER_IMAGE = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
ISOLATED: dict[str, Any] = {"EnableNetworkIsolation": True}
VPC: dict[str, Any] = {"VpcConfig": "set"}
DAY = {"StoppingCondition.MaxRuntimeInSeconds": "<= 86400"}
SPOT = {"EnableManagedSpotTraining": True}
TEAM = {"Tags.team": "set"}
STAGE = {"Tags.stage": "prod"}
NETWORK = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


def required(table: Mapping[str, object], **rules: Any) -> Policy:
    """The policy with these requirements."""
    tables: dict[str, dict[str, str]] = {rule.info.name: {} for rule in catalogue.load()}
    return parse_policy({"require": dict(table), "rules": rules}, tables)


def of_job(rule: str, table: Mapping[str, object], job: Job, **rules: Any) -> Finding | Outcome:
    """The finding about a job that ran."""
    policy = required(table, **rules)
    if job.kind is JobKind.TUNING:
        [(_, outcome)] = judge(RollUpCase(job, (), policy=policy), [rule_named(rule)])
        return outcome
    return answer(rule, job, policy=policy)


def of_request(
    rule: str, table: Mapping[str, object], changes: Mapping[str, Any] | None = None, **facts: Any
) -> Finding | Outcome:
    """The finding about a request."""
    return request_answer(rule, changes, policy=required(table), **facts)


def ran(tags: Mapping[str, str] | None = None, *, stored: bool = False, **changes: Any) -> Job:
    """A training job by AWS's answer; or by one that was stored before settings were kept."""
    described = training_answer(**{"RoleArn": ROLE, **changes})
    described = {key: value for key, value in described.items() if value is not None}
    if stored:
        described = {
            key: value
            for key, value in sanitize_answer(described).items()
            if key not in {"VpcConfig", "EnableNetworkIsolation", "EnableManagedSpotTraining"}
        }
    names = required({**TEAM, **STAGE}).tag_names
    tag_presence = tags_to_store(tags or {}, names, is_complete=tags is not None)
    return parse(described, tag_presence)


def other(kind: JobKind, **changes: Any) -> Job:
    """A job of another kind by AWS's answer."""
    row, name = kind.spec, f"{kind.value}-1"
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{row.arn_word}/{name}"
    names = {row.name_key: name, row.arn_key: arn, row.status_key: "Completed"}
    times = {
        "CreationTime": "2026-05-20T10:00:00Z",
        row.start_key: "2026-05-20T10:00:00Z",
        row.end_key: "2026-05-20T11:00:00Z",
    }
    whole = {"RoleArn": ROLE, "TransformOutput": {}}
    return parse({**times, **names, **whole, **changes}, {})


def search(*definitions: Mapping[str, Any]) -> Job:
    """A tuning job with these definitions."""
    whole = [{"RoleArn": ROLE, **definition} for definition in definitions]
    if len(whole) == 1:
        return other(JobKind.TUNING, TrainingJobDefinition=whole[0])
    return other(JobKind.TUNING, TrainingJobDefinitions=whole)


verdict = partial(of_job, RULE)


def test_without_a_requirement_nothing_is_asked() -> None:
    assert verdict({}, ran()) == does_not_apply("the policy has no requirements…")


def test_a_switch_that_is_off_or_not_set_is_not_what_is_required() -> None:
    # The fix has the path, the value of today and the right one; there are no dollars.
    result = verdict(ISOLATED, ran(EnableNetworkIsolation=False))
    assert result == finds(
        "The policy's requirements are not met: EnableNetworkIsolation is false (required: true).",
        builder="fact",
        severity=Severity.MEDIUM,
        usd=None,
        fix=[("EnableNetworkIsolation", False, True)],
        evidence={"EnableNetworkIsolation": False},
    )
    assert verdict(ISOLATED, ran()) == finds(
        "…: EnableNetworkIsolation is not set (required: true).",
        evidence={"EnableNetworkIsolation": "not set"},
    )
    assert verdict(ISOLATED, ran(EnableNetworkIsolation=True)) == CLEAR
    assert verdict({"EnableManagedSpotTraining": False}, ran()) == CLEAR
    result = verdict({"EnableManagedSpotTraining": False}, ran(EnableManagedSpotTraining=True))
    assert result == FOUND


def test_of_a_network_only_that_there_is_one_is_asked() -> None:
    assert verdict(VPC, ran()) == finds(
        "…: VpcConfig is not set (required: set).", fix=[("VpcConfig", None, "<your value>")]
    )
    assert verdict(VPC, ran(VpcConfig=NETWORK)) == CLEAR
    result = verdict({"VpcConfig": "not set"}, ran(VpcConfig=NETWORK))
    assert result == finds(
        "…: VpcConfig is set (required: not set).", fix=[("VpcConfig", "set", None)]
    )


def test_a_limit_of_exactly_a_day_is_a_day_and_one_second_more_is_more() -> None:
    assert verdict(DAY, ran(StoppingCondition={"MaxRuntimeInSeconds": 86_400})) == CLEAR
    result = verdict(DAY, ran(StoppingCondition={"MaxRuntimeInSeconds": 86_401}))
    assert result == finds(
        "…: StoppingCondition.MaxRuntimeInSeconds is 86401 (required: at most 86400).",
        fix=[("StoppingCondition.MaxRuntimeInSeconds", 86_401, 86_400)],
    )


def test_without_a_limit_awss_own_holds_one_day() -> None:
    assert verdict(DAY, ran(StoppingCondition={})) == CLEAR
    result = verdict(
        {"StoppingCondition.MaxRuntimeInSeconds": "<= 3600"}, ran(StoppingCondition={})
    )
    assert result == FOUND


def test_what_is_not_set_is_within_an_upper_limit_and_reaches_no_lower_one() -> None:
    assert verdict({"ResourceConfig.KeepAlivePeriodInSeconds": "<= 600"}, ran()) == CLEAR
    assert verdict({"RetryStrategy.MaximumRetryAttempts": ">= 1"}, ran()) == FOUND


def test_a_word_is_compared_as_it_is() -> None:
    result = verdict(
        {"OutputDataConfig.CompressionType": "NONE"},
        ran(OutputDataConfig={"CompressionType": "GZIP"}),
    )
    assert result == finds(fix=[("OutputDataConfig.CompressionType", "GZIP", "NONE")])
    result = verdict({"OutputDataConfig.CompressionType": "!= NONE"}, ran(OutputDataConfig={}))
    assert result == CLEAR


def test_a_tag_with_a_value_is_set_an_empty_one_or_one_of_spaces_is_not() -> None:
    assert verdict(TEAM, ran({"team": "vision"})) == CLEAR
    assert verdict(TEAM, ran({"team": "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"})) == CLEAR
    assert verdict(TEAM, ran({"Team": "vision"})) == finds(
        "…: the tag team is not set (required: set).",
        fix=[("Tags[team].Value", None, "<your value>")],
    )
    assert verdict(TEAM, ran({"team": ""})) == FOUND
    assert verdict(TEAM, ran({"team": "  "})) == FOUND


def test_a_tag_may_have_to_have_one_value() -> None:
    assert verdict(STAGE, ran({"stage": "prod"})) == CLEAR
    assert verdict(STAGE, ran({"stage": "dev"})) == finds(
        "…: the tag stage is dev (required: prod).", fix=[("Tags[stage].Value", "dev", "prod")]
    )
    assert verdict(STAGE, ran({})) == finds("…: the tag stage is not set (required: prod).")


def test_what_a_stored_answer_does_not_hold_is_unknown_and_never_a_finding() -> None:
    assert verdict(ISOLATED, ran(stored=True)) == cannot_judge(
        "setting_unknown: EnableNetworkIsolation: its stored answer does not have it"
    )
    assert verdict(ISOLATED, ran(RoleArn=None)) == cannot_judge("setting_unknown…")
    assert verdict(TEAM, ran()) == cannot_judge(
        "setting_unknown: Tags[team].Value: not all of its tags were read"
    )


def test_what_is_known_to_be_wrong_is_said_beside_what_is_not_known() -> None:
    result = verdict(
        ISOLATED | DAY, ran(stored=True, StoppingCondition={"MaxRuntimeInSeconds": 86_401})
    )
    assert result == finds(
        "…: StoppingCondition.MaxRuntimeInSeconds is 86401 (required: at most 86400).",
        caution="…EnableNetworkIsolation: its stored answer does not have it.",
    )


def test_all_that_is_not_met_stands_in_one_sentence() -> None:
    assert verdict(ISOLATED | VPC | TEAM, ran({})) == finds(
        "…: EnableNetworkIsolation is not set (required: true); VpcConfig is not set "
        "(required: set); the tag team is not set (required: set).",
        paths=["EnableNetworkIsolation", "VpcConfig", "Tags[team].Value"],
    )


def test_a_processing_job_has_its_network_under_networkconfig_and_never_runs_on_spot() -> None:
    result = verdict(ISOLATED | VPC | SPOT, other(JobKind.PROCESSING))
    assert result == finds(
        "…: NetworkConfig.EnableNetworkIsolation is not set (required: true); "
        "NetworkConfig.VpcConfig is not set (required: set)."
    )
    result = verdict(
        ISOLATED | VPC,
        other(
            JobKind.PROCESSING, NetworkConfig={"EnableNetworkIsolation": True, "VpcConfig": NETWORK}
        ),
    )
    assert result == CLEAR


def test_a_transform_job_has_neither_network_nor_limit() -> None:
    result = verdict(ISOLATED | VPC | SPOT | DAY, other(JobKind.TRANSFORM))
    assert result == does_not_apply("this kind of job has none of the required settings")
    result = verdict({"OutputDataConfig.KmsKeyId": "set"}, other(JobKind.TRANSFORM))
    assert result == finds("…: TransformOutput.KmsKeyId is not set (required: set).")


def test_a_tuning_job_is_asked_for_each_of_its_definitions() -> None:
    """A tuning job is asked for each of its definitions, and its training jobs are not."""
    assert verdict(SPOT, search({})) == finds(
        "…: TrainingJobDefinition.EnableManagedSpotTraining is not set (required: true)."
    )
    result = verdict(SPOT, search(SPOT, {"EnableManagedSpotTraining": False}))
    assert result == finds(
        "…: TrainingJobDefinitions[1].EnableManagedSpotTraining is false (required: true)."
    )


def test_spot_needs_its_longest_wait_without_which_aws_refuses_the_request() -> None:
    assert verdict(SPOT, ran()) == finds("…", fix=[True, "<at least MaxRuntimeInSeconds>"])
    assert verdict(VPC, search({"VpcConfig": NETWORK}, {"VpcConfig": NETWORK})) == CLEAR
    assert verdict(SPOT, other(JobKind.TUNING)) == cannot_judge("setting_unknown…")
    result = verdict(
        SPOT, ran(TuningJobArn=f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/s")
    )
    assert result == does_not_apply("its tuning job is checked instead")


def test_awss_own_debugger_job_is_nobodys_to_change() -> None:
    result = verdict(
        ISOLATED,
        other(
            JobKind.PROCESSING,
            AppSpecification={"ImageUri": DEBUGGER_IMAGE},
        ),
    )
    assert result == does_not_apply("built-in Debugger rule")


request_verdict = partial(of_request, RULE)


def test_a_request_is_asked_before_it_runs() -> None:
    assert request_verdict(ISOLATED | TEAM) == finds(
        "…: EnableNetworkIsolation is not set (required: true); the tag team is "
        "not set (required: set).",
        severity=Severity.MEDIUM,
    )
    result = request_verdict(
        ISOLATED | TEAM,
        {"EnableNetworkIsolation": True, "Tags": [{"Key": "team", "Value": "vision"}]},
    )
    assert result == CLEAR
    result = request_verdict(TEAM, {"Tags": [{"Key": "team", "Value": ""}]})
    assert result == finds("…: the tag team is not set (required: set).")
    assert request_verdict(DAY, {"StoppingCondition.MaxRuntimeInSeconds": 200_000}) == FOUND
    assert request_verdict(DAY, {"StoppingCondition": None}) == CLEAR


def test_what_gets_its_value_later_is_unknown() -> None:
    result = request_verdict(ISOLATED, {"EnableNetworkIsolation": LATER})
    assert result == cannot_judge(
        "setting_unknown: EnableNetworkIsolation: it is not known yet (known after apply)"
    )
    assert request_verdict(VPC, {"VpcConfig": LATER}) == cannot_judge("setting_unknown…")
    assert request_verdict(TEAM, {"Tags": LATER}) == cannot_judge("setting_unknown…")
    result = request_verdict(TEAM, {"Tags": [{"Key": "team", "Value": LATER}]})
    assert result == cannot_judge("setting_unknown…")
    result = request_verdict(TEAM, {"Tags": [{"Key": LATER, "Value": "vision"}]})
    assert result == cannot_judge("setting_unknown…")
    assert request_verdict(TEAM, {"Tags": [{"Key": "stage", "Value": LATER}]}) == FOUND


def test_a_network_whose_subnets_come_later_is_a_network() -> None:
    assert (
        request_verdict(VPC, {"VpcConfig": {"Subnets": LATER, "SecurityGroupIds": ["sg-1"]}})
        == CLEAR
    )


def test_each_kind_has_its_own_paths() -> None:
    assert request_verdict(ISOLATED | SPOT, kind=JobKind.PROCESSING) == finds(
        paths=["NetworkConfig.EnableNetworkIsolation"]
    )
    assert request_verdict(ISOLATED | SPOT, kind=JobKind.TRANSFORM) == does_not_apply("…")
    assert request_verdict(ISOLATED, kind=JobKind.TUNING) == finds(
        paths=["TrainingJobDefinition.EnableNetworkIsolation"]
    )
    result = request_verdict(ISOLATED, {"TrainingJobDefinition": LATER}, kind=JobKind.TUNING)
    assert result == cannot_judge("setting_unknown…")


def test_the_policy_sets_another_severity() -> None:
    """In place of medium."""
    rules = {RULE: {"severity": "high"}}
    finding = request_answer(RULE, policy=required(ISOLATED, **rules))
    assert isinstance(finding, Finding)
    assert finding.severity is Severity.HIGH


def test_a_jobs_own_tag_does_not_accept_it() -> None:
    """Else the requirement would bind nobody. The policy can accept it for a family."""
    assert not rule_named(RULE).can_tag_accept
