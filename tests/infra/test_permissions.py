"""Who may touch what: each role's actions and resources, exactly."""

from typing import Any

import pytest

from infra.left_out import called_actions
from infra.names import POLL_QUEUE, POLL_STREAM, SEND_MESSAGES
from infra.template import POLICY
from sageaudit.adapters.aws.stack_outputs import pascal_case
from sageaudit.adapters.files.policy_file import load_policy
from tests.infra.reading import OTHER_ROLE, of_type, only_resource, statements, text

ROLES = ("Audit", "Notify", "Deliver", "SweepRole", "WatchRole", "DigestRole")
"""Of the functions. Those of the schedules invoke sweep, watch and digest."""
SCHEDULED = ("Sweep", "Watch", "Digest")
JOBS = {
    f"arn:${{AWS::Partition}}:sagemaker:${{AWS::Region}}:${{AWS::AccountId}}:{kind}/*"
    for kind in (
        *("training-job", "processing-job", "transform-job"),
        *("hyper-parameter-tuning-job", "automl-job"),
    )
}
SECRET = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:"
SCHEDULER = "arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}"
TABLE = "${HistoryTable.Arn}"
CHANNELS = load_policy(POLICY).channels
NOTICES = {f"${{NoticesQueue{pascal_case(name)}.Arn}}" for name in CHANNELS}
INDEXES_OF = {
    "Audit": {"by-family"},
    "Notify": {"by-family"},
    "SweepRole": {"due"},
    "WatchRole": {"by-family"},
    "DigestRole": {"by-account", "by-day", "by-family", "by-owner"},
}
REPORTS = "arn:${AWS::Partition}:s3:::local-reports/sageaudit/*"
LISTS = {
    "sagemaker:ListTrainingJobs",
    "sagemaker:ListProcessingJobs",
    "sagemaker:ListTransformJobs",
    "sagemaker:ListHyperParameterTuningJobs",
    "sagemaker:ListAutoMLJobs",
}
ON_THE_TABLE = {
    "Audit": {"DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"},
    "Notify": {"ConditionCheckItem", "GetItem", "PutItem", "Query"},
    "Deliver": {"GetItem", "PutItem", "UpdateItem"},
    "SweepRole": {"DeleteItem", "DescribeTable", "GetItem", "PutItem", "Query", "UpdateItem"},
    "WatchRole": {"GetItem", "PutItem", "Query", "UpdateItem"},
    "DigestRole": {"GetItem", "PutItem", "Query"},
}
READING_VERBS = ("Describe", "Get", "List")


def test_there_are_no_other_roles(template: dict[str, Any]) -> None:
    """One for each function, and the schedules', which invoke theirs and nothing else.

    None has a managed policy: AWS's hold wildcards.
    """
    roles = of_type(template, "AWS::IAM::Role")
    trusted = [
        statement["Principal"]["Service"]
        for role in roles.values()
        for statement in role["AssumeRolePolicyDocument"]["Statement"]
    ]
    services = ["lambda.amazonaws.com"] * len(ROLES) + ["scheduler.amazonaws.com"] * len(SCHEDULED)
    assert sorted(trusted) == services
    assert not [role for role in roles.values() if "ManagedPolicyArns" in role]
    for name in SCHEDULED:
        role = only_resource(template, "AWS::IAM::Role", f"{name}ScheduleRole")
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        condition = statement["Condition"]["StringEquals"]
        assert {key: text(value) for key, value in condition.items()} == {
            "aws:SourceAccount": "${AWS::AccountId}",
            "aws:SourceArn": f"{SCHEDULER}:schedule-group/${{AWS::StackName}}",
        }
        schedule = only_resource(template, "AWS::Scheduler::Schedule", f"{name}Schedule")
        group = only_resource(template, "AWS::Scheduler::ScheduleGroup")
        assert text(group["Name"]) == "${AWS::StackName}"
        assert schedule["GroupName"] == {"Ref": "Schedules"}
        assert set(statements(template, f"{name}ScheduleRole")) == {
            ("lambda:InvokeFunction", f"${{{name}Function.Arn}}"),
            ("sqs:SendMessage", f"${{{name}ScheduleDeadLetters.Arn}}"),
        }


def test_all_that_our_code_calls_is_granted_and_nothing_else(
    template: dict[str, Any], quiet_template: dict[str, Any]
) -> None:
    """PERMISSIONS stand beside the calls; the rest is what Lambda itself does for a function."""
    lambdas_own = {*POLL_QUEUE, *POLL_STREAM, *SEND_MESSAGES}
    lambdas_own |= {"logs:CreateLogStream", "logs:PutLogEvents"}
    granted = {
        action
        for variant in (template, quiet_template)
        for role in ROLES
        for action, _ in statements(variant, role)
    }
    assert granted == called_actions() | lambdas_own


def test_only_metrics_prices_and_lists_are_unscoped(template: dict[str, Any]) -> None:
    """CloudWatch, the Price List and SageMaker's lists have no resources to name."""
    unscoped = {s for role in ROLES for s in statements(template, role) if s[1] == "*"}
    assert unscoped == {
        ("cloudwatch:GetMetricData", "*"),
        ("cloudwatch:ListMetrics", "*"),
        ("pricing:GetProducts", "*"),
        ("sagemaker:ListCandidatesForAutoMLJob", "*"),
        *((action, "*") for action in LISTS),
    }
    assert {action for action, _ in statements(template, "SweepRole")} >= LISTS
    assert not [
        action
        for role in ROLES
        if role != "SweepRole"
        for action, _ in statements(template, role)
        if action in LISTS
    ]


def test_the_digest_writes_its_reports_alone(
    template: dict[str, Any], quiet_template: dict[str, Any]
) -> None:
    """Reports only under its prefix of the policy's bucket, and only where it names one."""
    granted = set(statements(template, "DigestRole"))
    assert {s for s in granted if s[0].startswith("s3:")} == {("s3:PutObject", REPORTS)}
    assert not [s for s in statements(quiet_template, "DigestRole") if s[0].startswith("s3:")]


@pytest.mark.parametrize("service", ["sagemaker", "iam", "s3", "cloudwatch"])
def test_nothing_outside_this_stack_is_written(template: dict[str, Any], service: str) -> None:
    """An auditor only looks; but for the digest's reports, in a bucket that the policy names."""
    actions = {a for role in ROLES for a, on in statements(template, role) if on != REPORTS}
    verbs = {a.partition(":")[2] for a in actions if a.startswith(f"{service}:")}
    assert all(verb.startswith(READING_VERBS) for verb in verbs)


def test_no_action_is_a_pattern(template: dict[str, Any]) -> None:
    """Each is written out."""
    assert not [a for role in ROLES for a, _ in statements(template, role) if "*" in a]


TOUCHED = {
    "Audit": {
        "sagemaker": {"*", *JOBS},
        "cloudwatch": {"*"},
        "pricing": {"*"},
        "dynamodb": {TABLE, f"{TABLE}/index/by-family"},
        "sqs": {"${TriggerFinishedJobs.Arn}", "${TriggerFinishedJobsDeadLetters.Arn}"},
        "secretsmanager": {f"{SECRET}sageaudit/fingerprint-key-??????"},
        "logs": {"${AuditLog.Arn}"},
    },
    "Notify": {
        "dynamodb": {TABLE, f"{TABLE}/index/by-family", "${HistoryTable.StreamArn}"},
        "sqs": {*NOTICES, "${NoticesDecisions.Arn}", "${NoticesUndecidedAudits.Arn}"},
        "logs": {"${NotifyLog.Arn}"},
    },
    "Deliver": {
        "dynamodb": {TABLE},
        "sns": {"${NoticesTopic}"},
        "sqs": {*NOTICES, "${NoticesNoticesDeadLetters.Arn}"},
        "secretsmanager": {
            f"{SECRET}{channel.secret}-??????" for channel in CHANNELS.values() if channel.secret
        },
        "logs": {"${DeliverLog.Arn}"},
    },
    "SweepRole": {
        "sagemaker": {"*"},
        "dynamodb": {TABLE, f"{TABLE}/index/due"},
        "sqs": {"${TriggerFinishedJobs.Arn}", "${SweepScheduleDeadLetters.Arn}"},
        "logs": {"${SweepLog.Arn}"},
    },
    "WatchRole": {
        "sagemaker": {*JOBS},
        "cloudwatch": {"*"},
        "pricing": {"*"},
        "dynamodb": {TABLE, f"{TABLE}/index/by-family"},
        "sqs": {"${WatchScheduleDeadLetters.Arn}"},
        "logs": {"${WatchLog.Arn}"},
    },
    "DigestRole": {
        "dynamodb": {TABLE, *(f"{TABLE}/index/{index}" for index in INDEXES_OF["DigestRole"])},
        "sqs": {"${DigestScheduleDeadLetters.Arn}"},
        "s3": {REPORTS},
        "logs": {"${DigestLog.Arn}"},
    },
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_touches_what_its_function_needs(template: dict[str, Any], role: str) -> None:
    """`audit` and `watch` describe jobs, and only `deliver` knows channels and their secrets."""
    touched: dict[str, set[str]] = {}
    for action, resource in statements(template, role):
        touched.setdefault(action.partition(":")[0], set()).add(resource)
    assert touched == TOUCHED[role]


@pytest.mark.parametrize("role", ROLES)
def test_the_table_is_open_as_far_as_a_function_needs_it(
    template: dict[str, Any], role: str
) -> None:
    """Families are asked for by the functions that compare runs, what is due by the sweep."""
    granted = list(statements(template, role))
    on_table = {a.removeprefix("dynamodb:") for a, resource in granted if resource == TABLE}
    on_indexes = {(a, resource) for a, resource in granted if "/index/" in resource}
    assert on_table == ON_THE_TABLE[role]
    indexes = {f"{TABLE}/index/{name}" for name in INDEXES_OF.get(role, ())}
    assert on_indexes == {("dynamodb:Query", index) for index in indexes}


def test_a_queues_consumer_cannot_send_where_it_need_not(template: dict[str, Any]) -> None:
    """Sending is granted queue by queue."""
    sending = {
        role: {r for a, r in statements(template, role) if a == "sqs:SendMessage"} for role in ROLES
    }
    assert sending == {
        "Audit": {"${TriggerFinishedJobs.Arn}", "${TriggerFinishedJobsDeadLetters.Arn}"},
        "Notify": {*NOTICES, "${NoticesDecisions.Arn}", "${NoticesUndecidedAudits.Arn}"},
        "Deliver": {"${NoticesNoticesDeadLetters.Arn}"},
        "SweepRole": {"${TriggerFinishedJobs.Arn}", "${SweepScheduleDeadLetters.Arn}"},
        "WatchRole": {"${WatchScheduleDeadLetters.Arn}"},
        "DigestRole": {"${DigestScheduleDeadLetters.Arn}"},
    }


def test_a_further_account_is_read_through_its_role_only(
    template: dict[str, Any], quiet_template: dict[str, Any]
) -> None:
    """The role of the policy, and none by default."""
    for role in ("Audit", "SweepRole", "WatchRole"):
        assert not [a for a, _ in statements(template, role) if a.startswith("sts:")]
        assumed = [s for s in statements(quiet_template, role) if s[0].startswith("sts:")]
        assert assumed == [("sts:AssumeRole", OTHER_ROLE)]
