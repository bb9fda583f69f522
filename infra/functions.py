"""A Lambda function with this project's settings, and a role that may only write its own log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.settings import Network, Settings

_ARCHITECTURES = {
    "arm64": lambda_.Architecture.ARM_64,
    "x86_64": lambda_.Architecture.X86_64,
}
MANAGE_INTERFACES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda does with the function's role to connect it to a VPC: "Giving Lambda functions access
to resources in an Amazon VPC" in Lambda's developer guide."""


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
        settings: Settings,
        role_name: str | None = None,
    ) -> None:
        """Creates the function. `role_name`: only for a role that other accounts trust."""
        super().__init__(scope, construct_id)
        self.timeout = timeout
        self.log_group = logs.LogGroup(
            self,
            "Log",
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        log_group = cast("logs.CfnLogGroup", self.log_group.node.default_child)
        log_group.retention_in_days = settings.log_retention_days
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
            runtime=lambda_.Runtime(f"python{settings.python}", lambda_.RuntimeFamily.PYTHON),
            architecture=_ARCHITECTURES[settings.architecture],
            role=self._role,
            log_group=self.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            tracing=lambda_.Tracing.ACTIVE if settings.tracing else None,
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
        if settings.network is not None:
            self._connect(settings.network)

    def _connect(self, network: Network) -> None:
        """Connects the function to a VPC, and lets Lambda manage its network interfaces.

        The code of the function may not: the interfaces of other owners are in the same subnets.
        """
        function = cast("lambda_.CfnFunction", self.function.node.default_child)
        function.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(network.subnet_ids),
            security_group_ids=list(network.security_group_ids),
        )
        self.allow(MANAGE_INTERFACES, "*")
        # Not the function's ARN, as the function is created after its policy.
        own_functions = cdk.Stack.of(self).format_arn(
            service="lambda",
            resource="function",
            resource_name=f"{cdk.Aws.STACK_NAME}-*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        self._role.add_to_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                actions=list(MANAGE_INTERFACES),
                resources=["*"],
                conditions={"ArnLike": {"lambda:SourceFunctionArn": own_functions}},
            )
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
