"""Applies the settings that concern every resource: the customer managed key, the roles, the tags.

They are applied to the finished stack, so that a new queue, role or function needs nothing.
"""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from infra.settings import Settings

KEY_PERMISSIONS = {
    "dynamodb": (
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey",
        "kms:GenerateDataKeyWithoutPlaintext",
        "kms:ReEncryptFrom",
        "kms:ReEncryptTo",
    ),
    "s3": ("kms:GenerateDataKey",),
    "secretsmanager": ("kms:Decrypt",),
    "sns": ("kms:Decrypt", "kms:GenerateDataKey"),
    "sqs": ("kms:Decrypt", "kms:GenerateDataKey"),
}
"""What each service does with the key in the name of its caller: "Authorizing use of your customer
managed key" (DynamoDB), "Key management" (SNS, SQS), "Secret encryption and decryption" (Secrets
Manager) and "Using server-side encryption with KMS keys" (S3) in the services' guides."""


def apply_settings(stack: cdk.Stack, settings: Settings) -> None:
    """Changes all resources of a finished stack as the settings require."""
    if settings.kms_key_arn is not None:
        _encrypt(stack, settings.kms_key_arn)
        _allow_key(stack, settings.kms_key_arn)
    for role in stack.node.find_all():
        if isinstance(role, iam.CfnRole):
            _limit_role(role, settings)
    for key, value in settings.all_tags.items():
        cdk.Tags.of(stack).add(key, value)


def _encrypt(stack: cdk.Stack, key_arn: str) -> None:
    """Encrypts queues, logs, topics and the table with the key. A topic with a key of its own keeps
    it.
    """
    for node in stack.node.find_all():
        match node:
            case sqs.CfnQueue():
                node.sqs_managed_sse_enabled = None
                node.kms_master_key_id = key_arn
            case sns.CfnTopic():
                node.kms_master_key_id = key_arn
            case logs.CfnLogGroup():
                node.kms_key_id = key_arn
            case dynamodb.CfnTable():
                node.sse_specification = dynamodb.CfnTable.SSESpecificationProperty(
                    sse_enabled=True, sse_type="KMS", kms_master_key_id=key_arn
                )


def _allow_key(stack: cdk.Stack, key_arn: str) -> None:
    """Lets each role use the key through the services that the role may call, and only so."""
    for policy in stack.node.find_all():
        if not isinstance(policy, iam.Policy):
            continue
        for service in _services(stack.resolve(policy.document)):
            policy.document.add_statements(
                iam.PolicyStatement(
                    actions=list(KEY_PERMISSIONS[service]),
                    resources=[key_arn],
                    # The end of a service's name differs between partitions.
                    conditions={"StringLike": {"kms:ViaService": f"{service}.{cdk.Aws.REGION}.*"}},
                )
            )


def _services(document: Any) -> list[str]:
    """Returns the services with encrypted data that a policy allows, sorted."""
    actions = [
        action
        for statement in document["Statement"]
        for action in (
            [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        )
    ]
    return sorted({action.partition(":")[0] for action in actions} & KEY_PERMISSIONS.keys())


def _limit_role(role: iam.CfnRole, settings: Settings) -> None:
    if settings.role_path != "/":
        role.path = settings.role_path
    if settings.permissions_boundary is not None:
        role.permissions_boundary = (
            f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}"
            f":policy/{settings.permissions_boundary}"
        )
