"""Who may touch what: each role's actions and resources, exactly."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import pytest

from infra.names import HAND_ON, POLL_QUEUE, POLL_STREAM
from infra.template import POLICY
from sageaudit import adapters
from sageaudit.adapters.aws.stack_outputs import in_words
from sageaudit.adapters.files.policy_file import load
from tests.infra.reading import OTHER_ROLE, of_type, one, statements

ROLES = ("Audit", "Notify", "Deliver", "SweepRole")
"""Of the functions. The schedule's own role invokes the sweep."""
JOBS = {
    f"arn:${{AWS::Partition}}:sagemaker:${{AWS::Region}}:${{AWS::AccountId}}:{kind}/*"
    for kind in ("training-job", "processing-job", "transform-job", "hyper-parameter-tuning-job")
}
SECRET = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:"
TABLE = "${HistoryTable.Arn}"
CHANNELS = load(POLICY).channels
NOTICES = {f"${{NoticesQueue{in_words(name)}.Arn}}" for name in CHANNELS}
INDEX_OF = {
    "Audit": f"{TABLE}/index/by-family",
    "Notify": f"{TABLE}/index/by-family",
    "SweepRole": f"{TABLE}/index/due",
}
LISTS = {
    "sagemaker:ListTrainingJobs",
    "sagemaker:ListProcessingJobs",
    "sagemaker:ListTransformJobs",
    "sagemaker:ListHyperParameterTuningJobs",
}
ON_THE_TABLE = {
    "Audit": {"BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"},
    "Notify": {"ConditionCheckItem", "GetItem", "PutItem", "Query"},
    "Deliver": {"GetItem", "PutItem", "UpdateItem"},
    "SweepRole": {"DescribeTable", "GetItem", "PutItem"},
}
READING_VERBS = ("Describe", "Get", "List")


def test_there_are_no_other_roles(template: dict[str, Any]) -> None:
    """One for each function, and the schedule's, which invokes the sweep and nothing else.

    None has a managed policy: AWS's hold wildcards.
    """
    roles = of_type(template, "AWS::IAM::Role")
    trusted = [
        statement["Principal"]["Service"]
        for role in roles.values()
        for statement in role["AssumeRolePolicyDocument"]["Statement"]
    ]
    assert sorted(trusted) == ["lambda.amazonaws.com"] * len(ROLES) + ["scheduler.amazonaws.com"]
    assert not [role for role in roles.values() if "ManagedPolicyArns" in role]
    role = one(template, "AWS::IAM::Role", "SweepScheduleRole")
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }
    assert set(statements(template, "SweepScheduleRole")) == {
        ("lambda:InvokeFunction", "${SweepFunction.Arn}"),
        ("sqs:SendMessage", "${SweepScheduleDeadLetters.Arn}"),
    }


def test_all_that_our_code_calls_is_granted_and_nothing_else(
    template: dict[str, Any], quiet_template: dict[str, Any]
) -> None:
    """PERMISSIONS stand beside the calls; the rest is what Lambda itself does for a function."""
    called: set[str] = set()
    for module in pkgutil.walk_packages(adapters.__path__, f"{adapters.__name__}."):
        called |= set(getattr(import_module(module.name), "PERMISSIONS", ()))
    lambdas_own = {*POLL_QUEUE, *POLL_STREAM, *HAND_ON}
    lambdas_own |= {"logs:CreateLogStream", "logs:PutLogEvents"}
    granted = {
        action
        for variant in (template, quiet_template)
        for role in ROLES
        for action, _ in statements(variant, role)
    }
    assert granted == called | lambdas_own


def test_only_metrics_prices_and_lists_are_unscoped(template: dict[str, Any]) -> None:
    """CloudWatch, the Price List and SageMaker's lists have no resources to name."""
    unscoped = {s for role in ROLES for s in statements(template, role) if s[1] == "*"}
    assert unscoped == {
        ("cloudwatch:GetMetricData", "*"),
        ("cloudwatch:ListMetrics", "*"),
        ("pricing:GetProducts", "*"),
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


@pytest.mark.parametrize("service", ["sagemaker", "iam", "s3", "cloudwatch"])
def test_nothing_outside_this_stack_is_written(template: dict[str, Any], service: str) -> None:
    """An auditor only looks."""
    actions = {a for role in ROLES for a, _ in statements(template, role)}
    verbs = {a.partition(":")[2] for a in actions if a.startswith(f"{service}:")}
    assert all(verb.startswith(READING_VERBS) for verb in verbs)


def test_no_action_is_a_pattern(template: dict[str, Any]) -> None:
    """Each is written out."""
    assert not [a for role in ROLES for a, _ in statements(template, role) if "*" in a]


TOUCHED = {
    "Audit": {
        "sagemaker": JOBS,
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
            f"{SECRET}{one.secret}-??????" for one in CHANNELS.values() if one.secret
        },
        "logs": {"${DeliverLog.Arn}"},
    },
    "SweepRole": {
        "sagemaker": {"*"},
        "dynamodb": {TABLE, f"{TABLE}/index/due"},
        "sqs": {"${TriggerFinishedJobs.Arn}", "${SweepScheduleDeadLetters.Arn}"},
        "logs": {"${SweepLog.Arn}"},
    },
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_touches_what_its_function_needs(template: dict[str, Any], role: str) -> None:
    """Only `audit` describes jobs, and only `deliver` knows channels and their secrets."""
    touched: dict[str, set[str]] = {}
    for action, resource in statements(template, role):
        touched.setdefault(action.partition(":")[0], set()).add(resource)
    assert touched == TOUCHED[role]


@pytest.mark.parametrize("role", ROLES)
def test_the_table_is_open_as_far_as_a_function_needs_it(
    template: dict[str, Any], role: str
) -> None:
    """Families are asked for by the function that compares runs, what is due by the sweep."""
    granted = list(statements(template, role))
    on_table = {a.removeprefix("dynamodb:") for a, resource in granted if resource == TABLE}
    on_indexes = {(a, resource) for a, resource in granted if "/index/" in resource}
    assert on_table == ON_THE_TABLE[role]
    index = INDEX_OF.get(role)
    assert on_indexes == ({("dynamodb:Query", index)} if index else set())


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
    }


def test_a_further_account_is_read_through_its_role_only(
    template: dict[str, Any], quiet_template: dict[str, Any]
) -> None:
    """The role of the policy, and none by default."""
    for role in ("Audit", "SweepRole"):
        assert not [a for a, _ in statements(template, role) if a.startswith("sts:")]
        assumed = [s for s in statements(quiet_template, role) if s[0].startswith("sts:")]
        assert assumed == [("sts:AssumeRole", OTHER_ROLE)]
