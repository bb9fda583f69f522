"""What an organisation requires, of jobs that ran and of requests."""

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.bill.finding import Finding, Outcome, Severity
from sageaudit.domain.job.describe import audited_tags, keep, parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.policy import parse as parse_policy
from sageaudit.rules import catalogue
from sageaudit.rules.card import TuningCase
from sageaudit.rules.judge import judge
from tests.fakes.jobs import ACCOUNT, REGION, training_answer
from tests.fakes.judging import answer, card
from tests.fakes.planned import LATER, ROLE, asked
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "requirement-not-met"
ISOLATED = {"EnableNetworkIsolation": True}
VPC = {"VpcConfig": "set"}
DAY = {"StoppingCondition.MaxRuntimeInSeconds": "<= 86400"}
SPOT = {"EnableManagedSpotTraining": True}
TEAM = {"Tags.team": "set"}
STAGE = {"Tags.stage": "prod"}
NETWORK = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


def required(table: Mapping[str, object], **rules: Any) -> Policy:
    """The policy of a `[require]`."""
    known: dict[str, dict[str, str]] = {rule.name.name: {} for rule in catalogue.load()}
    return parse_policy({"require": dict(table), "rules": rules}, known)


def of_job(rule: str, table: Mapping[str, object], job: Job, **rules: Any) -> Finding | Outcome:
    """What is said of a job that ran."""
    policy = required(table, **rules)
    if job.kind is JobKind.TUNING:
        [(_, said)] = judge(TuningCase(job, (), policy=policy), [card(rule)])
        return said
    return answer(rule, job, policy=policy)


def of_request(
    rule: str, table: Mapping[str, object], changes: Mapping[str, Any] | None = None, **more: Any
) -> Finding | Outcome:
    """What is said of a request."""
    return asked(rule, changes, policy=required(table), **more)


def ran(tags: Mapping[str, str] | None = None, *, stored: bool = False, **changes: Any) -> Job:
    """A training job by AWS's answer; or by one that was stored before settings were kept."""
    described = training_answer(**{"RoleArn": ROLE, **changes})
    described = {key: value for key, value in described.items() if value is not None}
    if stored:
        described = {
            key: value
            for key, value in keep(described).items()
            if key not in {"VpcConfig", "EnableNetworkIsolation", "EnableManagedSpotTraining"}
        }
    names = required({**TEAM, **STAGE}).tags_read
    kept = audited_tags(tags or {}, names, all_read=tags is not None)
    return parse(described, kept)


def other(kind: JobKind, **changes: Any) -> Job:
    """A job of another kind by AWS's answer."""
    row, name = kind.row, f"{kind.value}-1"
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{row.arn_word}/{name}"
    named = {row.name_key: name, row.arn_key: arn, row.status_key: "Completed"}
    times = {"CreationTime": "2026-05-20T10:00:00Z", row.start_key: "2026-05-20T10:00:00Z",
             row.end_key: "2026-05-20T11:00:00Z"}  # fmt: skip
    whole = {"RoleArn": ROLE, "TransformOutput": {}}
    return parse({**times, **named, **whole, **changes}, {})


def search(*definitions: Mapping[str, Any]) -> Job:
    """A tuning job with these definitions."""
    whole = [{"RoleArn": ROLE, **one} for one in definitions]
    if len(whole) == 1:
        return other(JobKind.TUNING, TrainingJobDefinition=whole[0])
    return other(JobKind.TUNING, TrainingJobDefinitions=whole)


test_jobs = cases(
    RULE,
    "Without a requirement nothing is asked.",
    row("not applicable: nothing is required…", {}, ran()),
    "A switch that is off, or not set, is not what is required.",
    # The fix has the path, the value of today and the right one; there are no dollars.
    row(finds("The policy's requirements are not met: EnableNetworkIsolation is false (required: "
        "true).", builder="fact", severity=Severity.MEDIUM, usd=None,
        fix=[("EnableNetworkIsolation", False, True)], evidence={"EnableNetworkIsolation": False}),
        ISOLATED, ran(EnableNetworkIsolation=False)),
    row(finds("…: EnableNetworkIsolation is not set (required: true).",
        evidence={"EnableNetworkIsolation": "not set"}), ISOLATED, ran()),
    row(CLEAR, ISOLATED, ran(EnableNetworkIsolation=True)),
    row(CLEAR, {"EnableManagedSpotTraining": False}, ran()),
    row(FOUND, {"EnableManagedSpotTraining": False}, ran(EnableManagedSpotTraining=True)),
    "Of a network only that there is one is asked.",
    row(finds("…: VpcConfig is not set (required: set).",
        fix=[("VpcConfig", None, "<your value>")]), VPC, ran()),
    row(CLEAR, VPC, ran(VpcConfig=NETWORK)),
    row(finds("…: VpcConfig is set (required: not set).", fix=[("VpcConfig", "set", None)]),
        {"VpcConfig": "not set"}, ran(VpcConfig=NETWORK)),
    "A limit of exactly a day is a day, and one second more is more.",
    row(CLEAR, DAY, ran(StoppingCondition={"MaxRuntimeInSeconds": 86_400})),
    row(finds("…: StoppingCondition.MaxRuntimeInSeconds is 86401 (required: at most 86400).",
        fix=[("StoppingCondition.MaxRuntimeInSeconds", 86_401, 86_400)]), DAY,
        ran(StoppingCondition={"MaxRuntimeInSeconds": 86_401})),
    "Without a limit AWS's own holds: one day.",
    row(CLEAR, DAY, ran(StoppingCondition={})),
    row(FOUND, {"StoppingCondition.MaxRuntimeInSeconds": "<= 3600"}, ran(StoppingCondition={})),
    "What is not set is within an upper limit, and reaches no lower one.",
    row(CLEAR, {"ResourceConfig.KeepAlivePeriodInSeconds": "<= 600"}, ran()),
    row(FOUND, {"RetryStrategy.MaximumRetryAttempts": ">= 1"}, ran()),
    "A word is compared as it is.",
    row(finds(fix=[("OutputDataConfig.CompressionType", "GZIP", "NONE")]),
        {"OutputDataConfig.CompressionType": "NONE"},
        ran(OutputDataConfig={"CompressionType": "GZIP"})),
    row(CLEAR, {"OutputDataConfig.CompressionType": "!= NONE"}, ran(OutputDataConfig={})),
    "A tag with a value is set; an empty one, or one of spaces, is not.",
    row(CLEAR, TEAM, ran({"team": "vision"})),
    row(CLEAR, TEAM, ran({"team": "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"})),
    row(finds("…: the tag team is not set (required: set).",
        fix=[("Tags[team].Value", None, "<your value>")]), TEAM, ran({"Team": "vision"})),
    row(FOUND, TEAM, ran({"team": ""})),
    row(FOUND, TEAM, ran({"team": "  "})),
    "A tag may have to have one value.",
    row(CLEAR, STAGE, ran({"stage": "prod"})),
    row(finds("…: the tag stage is dev (required: prod).",
        fix=[("Tags[stage].Value", "dev", "prod")]), STAGE, ran({"stage": "dev"})),
    row(finds("…: the tag stage is not set (required: prod)."), STAGE, ran({})),
    "What a stored answer does not hold is unknown, and never a finding.",
    row("unknown: setting_unknown: EnableNetworkIsolation: its stored answer does not say",
        ISOLATED, ran(stored=True)),
    row("unknown: setting_unknown…", ISOLATED, ran(RoleArn=None)),
    row("unknown: setting_unknown: Tags[team].Value: not all of its tags were read", TEAM, ran()),
    "What is known to be wrong is said beside what is not known.",
    row(finds("…: StoppingCondition.MaxRuntimeInSeconds is 86401 (required: at most 86400).",
        caution="…EnableNetworkIsolation: its stored answer does not say."), ISOLATED | DAY,
        ran(stored=True, StoppingCondition={"MaxRuntimeInSeconds": 86_401})),
    "All that is not met stands in one sentence.",
    row(finds("…: EnableNetworkIsolation is not set (required: true); VpcConfig is not set "
        "(required: set); the tag team is not set (required: set).",
        paths=["EnableNetworkIsolation", "VpcConfig", "Tags[team].Value"]),
        ISOLATED | VPC | TEAM, ran({})),
    "A processing job has its network under NetworkConfig, and never runs on spot.",
    row(finds("…: NetworkConfig.EnableNetworkIsolation is not set (required: true); "
        "NetworkConfig.VpcConfig is not set (required: set)."), ISOLATED | VPC | SPOT,
        other(JobKind.PROCESSING)),
    row(CLEAR, ISOLATED | VPC, other(JobKind.PROCESSING,
        NetworkConfig={"EnableNetworkIsolation": True, "VpcConfig": NETWORK})),
    "A transform job has neither network nor limit.",
    row("not applicable: it has none of the settings…", ISOLATED | VPC | SPOT | DAY,
        other(JobKind.TRANSFORM)),
    row(finds("…: TransformOutput.KmsKeyId is not set (required: set)."),
        {"OutputDataConfig.KmsKeyId": "set"}, other(JobKind.TRANSFORM)),
    "A tuning job is asked for each of its definitions, and its training jobs are not.",
    row(finds("…: TrainingJobDefinition.EnableManagedSpotTraining is not set (required: true)."),
        SPOT, search({})),
    row(finds("…: TrainingJobDefinitions[1].EnableManagedSpotTraining is false (required: true)."),
        SPOT, search(SPOT, {"EnableManagedSpotTraining": False})),
    "Spot needs its longest wait, without which AWS refuses the request.",
    row(finds("…", fix=[True, "<at least MaxRuntimeInSeconds>"]), SPOT, ran()),
    row(CLEAR, VPC, search({"VpcConfig": NETWORK}, {"VpcConfig": NETWORK})),
    row("unknown: setting_unknown…", SPOT, other(JobKind.TUNING)),
    row("not applicable: its tuning job is asked", SPOT, ran(
        TuningJobArn=f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/s")),
    "AWS's own Debugger job is nobody's to change.",
    row("not applicable: built-in Debugger rule", ISOLATED, other(JobKind.PROCESSING,
        AppSpecification={"ImageUri":
        "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"})),
    ask=of_job,
)  # fmt: skip

test_requests = cases(
    RULE,
    "A request is asked before it runs.",
    row(finds("…: EnableNetworkIsolation is not set (required: true); the tag team is "
        "not set (required: set).", severity=Severity.MEDIUM), ISOLATED | TEAM),
    row(CLEAR, ISOLATED | TEAM, {"EnableNetworkIsolation": True,
        "Tags": [{"Key": "team", "Value": "vision"}]}),
    row(finds("…: the tag team is not set (required: set)."), TEAM,
        {"Tags": [{"Key": "team", "Value": ""}]}),
    row(FOUND, DAY, {"StoppingCondition.MaxRuntimeInSeconds": 200_000}),
    row(CLEAR, DAY, {"StoppingCondition": None}),
    "What gets its value later is unknown.",
    row("unknown: setting_unknown: EnableNetworkIsolation: it is not known yet (known after apply)",
        ISOLATED, {"EnableNetworkIsolation": LATER}),
    row("unknown: setting_unknown…", VPC, {"VpcConfig": LATER}),
    row("unknown: setting_unknown…", TEAM, {"Tags": LATER}),
    row("unknown: setting_unknown…", TEAM, {"Tags": [{"Key": "team", "Value": LATER}]}),
    row("unknown: setting_unknown…", TEAM, {"Tags": [{"Key": LATER, "Value": "vision"}]}),
    row(FOUND, TEAM, {"Tags": [{"Key": "stage", "Value": LATER}]}),
    "A network whose subnets come later is a network.",
    row(CLEAR, VPC, {"VpcConfig": {"Subnets": LATER, "SecurityGroupIds": ["sg-1"]}}),
    "Each kind has its own paths.",
    row(finds(paths=["NetworkConfig.EnableNetworkIsolation"]), ISOLATED | SPOT,
        kind=JobKind.PROCESSING),
    row("not applicable: …", ISOLATED | SPOT, kind=JobKind.TRANSFORM),
    row(finds(paths=["TrainingJobDefinition.EnableNetworkIsolation"]), ISOLATED,
        kind=JobKind.TUNING),
    row("unknown: setting_unknown…", ISOLATED, {"TrainingJobDefinition": LATER},
        kind=JobKind.TUNING),
    ask=of_request,
)  # fmt: skip


def test_the_policy_sets_another_severity() -> None:
    """In place of medium."""
    rules = {RULE: {"severity": "high"}}
    said = asked(RULE, policy=required(ISOLATED, **rules))
    assert isinstance(said, Finding)
    assert said.severity is Severity.HIGH


def test_a_jobs_own_tag_does_not_accept_it() -> None:
    """Else nobody would be held to it; the policy can, for a family."""
    assert not card(RULE).tag_accepts
