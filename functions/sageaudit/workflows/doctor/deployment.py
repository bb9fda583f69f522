"""The IAM policies of a deployment: for who runs `make deploy`, and for CloudFormation's role.

CloudFormation's role has the actions that the resource schemas name (their handlers in the answer
of `aws cloudformation describe-type`) for the properties that the template sets. Resources follow
AWS's service authorization reference: all names begin with the stack's name, except dashboards and
event source mappings, whose names AWS chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sageaudit.domain.job.ref import region_partition
from sageaudit.workflows.doctor.permissions import DEFAULT_STACK, PolicyScope, make_statement

DEPLOY, EXECUTION = "deploy", "execution"
DEPLOYMENT_POLICIES = (DEPLOY, EXECUTION)
"""The policies that `doctor --policy` prints in addition to those of commands."""
DEFAULT_QUALIFIER = "hnb659fds"
"""The qualifier of the CDK's bootstrap, if cdk.json has no other one."""
_MAX_PREFIX = 20
"""Characters of a stack's name that CloudFormation keeps at least in a generated name of 64."""
_Condition = Mapping[str, Mapping[str, Sequence[str]]]


class Grant(Struct, frozen=True):
    """Actions on resources, which may have a condition.

    `resources`: ARNs without `arn:` and partition, with names of `_names` in braces; the same names
    may be in `condition`. Without resources, a grant is for `*`.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...] = ()
    condition: _Condition | None = None

    def statement(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Returns the IAM statement, with these names."""
        arns = [f"arn:{{partition}}:{resource}".format(**names) for resource in self.resources]
        statement = make_statement([*self.actions], *(arns or ["*"]))
        if self.condition is None:
            return statement
        condition = {
            operator: {
                key: [value.format(**names) for value in values] for key, values in keys.items()
            }
            for operator, keys in self.condition.items()
        }
        return {**statement, "Condition": condition}


def _actions(service: str, *verbs: str) -> tuple[str, ...]:
    return tuple(f"{service}:{verb}" for verb in verbs)


def _passed_to(*services: str) -> _Condition:
    # The end of a service's name differs between partitions.
    return {
        "StringLike": {"iam:PassedToService": [f"{service}.amazonaws.*" for service in services]}
    }


_TAG = ("TagResource", "UntagResource", "ListTagsForResource")
_VERSION = ("ssm:{region}:*:parameter/cdk-bootstrap/{qualifier}/version",)
_ROLES = ("iam::*:role/{prefix}-*", "iam::*:role/*/{prefix}-*")
"""The roles of the stack, without and with a path."""
_MEMBER_ROLES = ("iam::*:role/{member_prefix}-*", "iam::*:role/*/{member_prefix}-*")
_MAKE_ROLES = _actions(
    "iam",
    *("CreateRole", "DeleteRole", "GetRole", "UpdateRole", "UpdateRoleDescription"),
    *("UpdateAssumeRolePolicy", "TagRole", "UntagRole"),
    *("PutRolePermissionsBoundary", "DeleteRolePermissionsBoundary"),
    *("GetRolePolicy", "PutRolePolicy", "DeleteRolePolicy", "ListRolePolicies"),
    "ListAttachedRolePolicies",
)
_MAKE_RULES = _actions(
    "events",
    *("PutRule", "DeleteRule", "DescribeRule", "PutTargets", "RemoveTargets", "ListTargetsByRule"),
    *_TAG,
)
_MAKE_SCHEDULES = _actions(
    "scheduler",
    *("CreateSchedule", "DeleteSchedule", "GetSchedule", "UpdateSchedule"),
    *("CreateScheduleGroup", "DeleteScheduleGroup", "GetScheduleGroup"),
    *_TAG,
)

_DEPLOY = (
    Grant(
        ("sts:AssumeRole",),
        tuple(
            f"iam::*:role/cdk-{{qualifier}}-{role}-role-*-{{region}}"
            for role in ("deploy", "file-publishing", "lookup")
        ),
    ),
    Grant(("ssm:GetParameter",), _VERSION),
    Grant(("cloudformation:DescribeStacks",), ("cloudformation:{region}:*:stack/{stack}/*",)),
    Grant(
        _actions(
            "secretsmanager",
            *("CreateSecret", "DescribeSecret", "PutSecretValue", "TagResource", "UpdateSecret"),
        ),
        ("secretsmanager:{region}:*:secret:sageaudit/*",),
    ),
    # Secrets Manager uses a key of the deployment in the name of its caller.
    Grant(
        ("kms:Decrypt", "kms:GenerateDataKey"),
        ("kms:{region}:*:key/*",),
        {"StringLike": {"kms:ViaService": ["secretsmanager.*"]}},
    ),
    Grant(
        _actions("sns", "ListSubscriptionsByTopic", "Subscribe"),
        ("sns:{region}:*:{prefix}-*",),
    ),
    Grant(
        _actions(
            "dynamodb",
            *("DescribeTable", "UpdateTable", "TagResource"),
            *("DescribeContinuousBackups", "UpdateContinuousBackups"),
            *("DescribeTimeToLive", "UpdateTimeToLive"),
        ),
        ("dynamodb:{region}:*:table/{table}",),
    ),
)
"""The calls of `make deploy`, and the roles that the CDK CLI assumes."""

_DEPLOY_MEMBERS = (
    Grant(
        _actions("cloudformation", "CreateStack", "UpdateStack", "DeleteStack", "DescribeStacks"),
        ("cloudformation:*:*:stack/{stack}-member/*",),
    ),
    Grant(_MAKE_ROLES, _MEMBER_ROLES),
    Grant(("iam:PassRole",), _MEMBER_ROLES, _passed_to("events", "scheduler")),
    Grant(_MAKE_RULES, ("events:*:*:rule/{prefix}-*",)),
    Grant(
        _MAKE_SCHEDULES,
        ("scheduler:*:*:schedule-group/{stack}-*", "scheduler:*:*:schedule/{stack}-*/*"),
    ),
)
"""The stacks of `infra/member.yaml` in further regions. `make deploy` creates them in the name of
its caller, as these regions need not be bootstrapped."""

_EXECUTION = (
    Grant(
        ("ssm:GetParameters", "s3:GetObject", "s3:GetObjectVersion"),
        (*_VERSION, "s3:::cdk-{qualifier}-assets-*/*"),
    ),
    Grant(
        (
            *_actions("dynamodb", "CreateTable", "DeleteTable", "DescribeTable", "UpdateTable"),
            *_actions("dynamodb", "DescribeTimeToLive", "UpdateTimeToLive"),
            *_actions("dynamodb", "DescribeContinuousBackups", "UpdateContinuousBackups"),
            *_actions("dynamodb", "DescribeContributorInsights", "GetResourcePolicy"),
            *_actions("dynamodb", "DescribeKinesisStreamingDestination", "ListTagsOfResource"),
            *_actions("dynamodb", "TagResource", "UntagResource"),
            *_actions("sns", "CreateTopic", "DeleteTopic"),
            *_actions("sns", "GetTopicAttributes", "SetTopicAttributes"),
            *_actions("sns", "GetDataProtectionPolicy", "ListSubscriptionsByTopic", *_TAG),
            *_actions("sqs", "CreateQueue", "DeleteQueue", "GetQueueUrl", "ListQueueTags"),
            *_actions("sqs", "GetQueueAttributes", "SetQueueAttributes", "TagQueue", "UntagQueue"),
        ),
        (
            "dynamodb:{region}:*:table/{prefix}-*",
            "sns:{region}:*:{prefix}-*",
            "sqs:{region}:*:{prefix}-*",
        ),
    ),
    Grant(
        (
            *_actions("events", "CreateEventBus", "DeleteEventBus", "DescribeEventBus"),
            "events:UpdateEventBus",
            *_MAKE_RULES,
        ),
        (
            "events:{region}:*:event-bus/{stack}",
            "events:{region}:*:rule/{prefix}-*",
            "events:{region}:*:rule/{stack}/*",
        ),
    ),
    Grant(
        _MAKE_SCHEDULES,
        ("scheduler:{region}:*:schedule-group/{stack}", "scheduler:{region}:*:schedule/{stack}/*"),
    ),
    Grant(
        _actions(
            "cloudwatch",
            *("PutMetricAlarm", "DeleteAlarms"),
            *("PutDashboard", "GetDashboard", "DeleteDashboards"),
            *_TAG,
        ),
        ("cloudwatch:{region}:*:alarm:{prefix}-*", "cloudwatch::*:dashboard/*"),
    ),
    Grant(
        _actions(
            "logs",
            *("CreateLogGroup", "DeleteLogGroup", "PutRetentionPolicy", "DeleteRetentionPolicy"),
            *("AssociateKmsKey", "DisassociateKmsKey"),
            *("GetDataProtectionPolicy", "DeleteDataProtectionPolicy"),
            *_TAG,
        ),
        ("logs:{region}:*:log-group:{prefix}-*",),
    ),
    Grant(
        _actions(
            "lambda",
            *("CreateFunction", "DeleteFunction", "GetFunction"),
            *("UpdateFunctionCode", "UpdateFunctionConfiguration"),
            *("GetFunctionCodeSigningConfig", "GetFunctionScalingConfig"),
            *("GetFunctionRecursionConfig", "PutFunctionRecursionConfig"),
            "GetRuntimeManagementConfig",
            *("GetFunctionEventInvokeConfig", "PutFunctionEventInvokeConfig"),
            *("UpdateFunctionEventInvokeConfig", "DeleteFunctionEventInvokeConfig"),
            *("ListTags", "TagResource", "UntagResource"),
        ),
        ("lambda:{region}:*:function:{prefix}-*", "lambda:{region}:*:event-source-mapping:*"),
    ),
    Grant(
        tuple(f"lambda:{verb}EventSourceMapping" for verb in ("Create", "Delete", "Get", "Update")),
        condition={
            "ArnLike": {
                "lambda:FunctionArn": ["arn:{partition}:lambda:{region}:*:function:{prefix}-*"]
            }
        },
    ),
    # Whoever may write a role's inline policies gains nothing from managed ones.
    Grant((*_MAKE_ROLES, "iam:AttachRolePolicy", "iam:DetachRolePolicy"), _ROLES),
    Grant(("iam:PassRole",), _ROLES, _passed_to("lambda", "scheduler")),
    Grant(
        _actions(
            "iam",
            *("CreatePolicy", "DeletePolicy", "GetPolicy", "ListEntitiesForPolicy"),
            *("CreatePolicyVersion", "DeletePolicyVersion", "GetPolicyVersion"),
            "ListPolicyVersions",
        ),
        ("iam::*:policy/{prefix}-*",),
    ),
    Grant(
        _actions(
            "kms",
            *("CreateGrant", "RevokeGrant", "Decrypt", "DescribeKey", "Encrypt"),
            *("GenerateDataKey*", "ReEncrypt*"),
        ),
        ("kms:{region}:*:key/*",),
        {"StringLike": {"kms:ViaService": ["dynamodb.*", "lambda.*", "s3.*"]}},
    ),
    Grant(
        (
            *_actions("ec2", "DescribeNetworkInterfaces", "DescribeSecurityGroups"),
            *_actions("ec2", "DescribeSubnets", "DescribeVpcs"),
            "cloudwatch:DescribeAlarms",
            *_actions("events", "PutPermission", "RemovePermission"),
            *_actions("logs", "DescribeIndexPolicies", "DescribeLogGroups"),
            "logs:DescribeResourcePolicies",
            *_actions("logs", "PutQueryDefinition", "DescribeQueryDefinitions"),
            "logs:DeleteQueryDefinition",
        )
    ),
)
"""What CloudFormation does to create, update and delete the stack with any of its settings."""


def deployment_grants(kind: str, *, has_members: bool = False) -> tuple[Grant, ...]:
    """Returns the grants of one of `DEPLOYMENT_POLICIES`.

    `has_members`: whether the policy has further regions, in which `make deploy` creates stacks.
    """
    if kind == EXECUTION:
        return _EXECUTION
    return (*_DEPLOY, *_DEPLOY_MEMBERS) if has_members else _DEPLOY


def make_deployment_policy(
    grants: Iterable[Grant], scope: PolicyScope, qualifier: str = DEFAULT_QUALIFIER
) -> dict[str, Any]:
    """Returns an identity policy with these grants, as an IAM document."""
    names = _names(scope, qualifier)
    return {"Version": "2012-10-17", "Statement": [grant.statement(names) for grant in grants]}


def _names(scope: PolicyScope, qualifier: str) -> dict[str, str]:
    stack = scope.stack or DEFAULT_STACK
    return {
        "partition": region_partition(scope.region or "us-east-1"),
        "region": scope.region or "*",
        "stack": stack,
        "prefix": _prefix(stack),
        "member_prefix": _prefix(f"{stack}-member"),
        "table": scope.table or f"{_prefix(stack)}-*",
        "qualifier": qualifier,
    }


def _prefix(stack: str) -> str:
    """Returns the start of generated names, in which CloudFormation shortens a long stack name."""
    return stack if len(stack) <= _MAX_PREFIX else f"{stack[:_MAX_PREFIX]}*"
