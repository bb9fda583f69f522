"""A Lambda function with this project's settings, and a role that may only write its own log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64


class HandlerFunction(Construct):
    """One handler of the shared asset, with its role and its log group."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        code: lambda_.Code,
        name: str,
        timeout: cdk.Duration,
        memory_mib: int,
        environment: Mapping[str, str],
        is_traced: bool = False,
        role_name: str | None = None,
    ) -> None:
        """Creates the function. `role_name`: only for a role that other accounts trust."""
        super().__init__(scope, construct_id)
        self.timeout = timeout
        self.log_group = logs.LogGroup(
            self,
            "Log",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            role_name=role_name,
        )
        self.allow(("logs:CreateLogStream", "logs:PutLogEvents"), self.log_group.log_group_arn)
        self.role_arn = self._role.role_arn
        self.function = lambda_.Function(
            self,
            "Function",
            code=code,
            handler=f"{name}.handler.handler",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            role=self._role,
            log_group=self.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            tracing=lambda_.Tracing.ACTIVE if is_traced else None,
            timeout=timeout,
            memory_size=memory_mib,
            # audit and notify send messages that must wait to themselves, and count how often.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
            environment={
                "POWERTOOLS_SERVICE_NAME": name,
                "POWERTOOLS_METRICS_NAMESPACE": cdk.Aws.STACK_NAME,
                "POWERTOOLS_LOG_LEVEL": "INFO",
                **environment,
            },
        )

    def allow(
        self, actions: Sequence[str], *resources: str, conditions: Mapping[str, Any] | None = None
    ) -> None:
        """Allows this function `actions` on exactly these `resources`, under `conditions`."""
        self._role.add_to_policy(
            iam.PolicyStatement(
                actions=list(actions),
                resources=list(resources),
                conditions=conditions and dict(conditions),
            )
        )
