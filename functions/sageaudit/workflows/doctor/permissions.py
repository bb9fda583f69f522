"""The IAM actions that each command calls, and the smallest policy that allows them.

The resources follow AWS's service authorization reference. IAM cannot limit lists of jobs, metrics,
prices, organizations or bills to a resource. sts:GetCallerIdentity needs no permission.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from sageaudit.adapters.aws import accounts, cloudwatch, sagemaker, secrets, sqs, stack_outputs
from sageaudit.adapters.aws.probes import MEMBER_ACTIONS
from sageaudit.adapters.billing import cost_explorer
from sageaudit.adapters.channels import services
from sageaudit.adapters.history.dynamo import history as dynamo_history
from sageaudit.adapters.history.dynamo.table_writes import TableWrites, write_grants
from sageaudit.adapters.prices import price_list
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import region_partition
from sageaudit.domain.policy.routes import CHANNEL_SECRETS

# Options with which a command needs more actions.
TABLE = "--table"
ROLE = "--role"
ORGANIZATION = "--organization"
COVERAGE = "--coverage"
STACK_OPTION = "--stack"
MEMBERS_OPTION = "--members"
SEND = "--send"
FROM_HISTORY = "--from-history"
ACCOUNT_SETTINGS = "lambda:GetAccountSettings"
STACK_CHECKS = (
    *stack_outputs.CLI_PERMISSIONS,
    "dynamodb:Query",
    ACCOUNT_SETTINGS,
    "sns:ListSubscriptionsByTopic",
    "sqs:GetQueueAttributes",
    *secrets.PERMISSIONS,
)
MEMBER_CHECKS = ("lambda:InvokeFunction", *dynamo_history.READ_PERMISSIONS)
"""The additional actions of `doctor --stack NAME --members`."""
_DESCRIBES = tuple(f"sagemaker:{kind.spec.describe_call}" for kind in JobKind)
_CHILDREN = sagemaker.CHILDREN_PERMISSIONS
_READ = (*cloudwatch.PERMISSIONS, *price_list.PERMISSIONS)
_JOB = (*sagemaker.AUDIT_PERMISSIONS, *_CHILDREN, *_READ)
_UNSCOPED_ACTIONS = {*sagemaker.LIST_PERMISSIONS, *sagemaker.UNSCOPED_ACTIONS}
_TABLE = {TABLE: dynamo_history.READ_PERMISSIONS}


class CommandActions(Struct, frozen=True):
    """The IAM actions that a command calls.

    Every call needs `required_actions`. `with_option` has the additional actions by option, and
    `writes` what the command then writes to a table.
    """

    required_actions: tuple[str, ...] = ()
    with_option: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    writes: Mapping[str, TableWrites] = field(default_factory=dict)

    def option_actions(self, option: str) -> tuple[str, ...]:
        """Returns the additional actions of an option."""
        return (*self.with_option.get(option, ()), *self.writes.get(option, ()))

    def actions(self, options: Iterable[str]) -> set[str]:
        """Returns all actions that the command calls with these options."""
        return {
            *self.required_actions,
            *(action for option in options for action in self.option_actions(option)),
        }


READ_ONLY_COMMANDS: Mapping[str, CommandActions] = {
    "audit": CommandActions(_JOB),
    "record": CommandActions(_JOB),
    "scan": CommandActions(
        (*sagemaker.AUDIT_PERMISSIONS, *sagemaker.LIST_PERMISSIONS, *_READ),
        {
            ROLE: accounts.PERMISSIONS,
            ORGANIZATION: accounts.LIST_PERMISSIONS,
            COVERAGE: cost_explorer.CLI_PERMISSIONS,
        },
    ),
    "what-if": CommandActions((*_DESCRIBES, *_CHILDREN, *_READ)),
    **{
        name: CommandActions((), _TABLE)
        for name in (
            *("account", "budgets", "by", "changes", "check", "export", "history", "reconcile"),
            *("savings", "mcp", "show", "top"),
        )
    },
    "demo": CommandActions(),
    "prices": CommandActions(),
    "rules": CommandActions(),
    "pack": CommandActions(),
    "report": CommandActions((), {**_TABLE, COVERAGE: cost_explorer.CLI_PERMISSIONS}),
    "doctor": CommandActions((), {STACK_OPTION: STACK_CHECKS, MEMBERS_OPTION: MEMBER_CHECKS}),
}
"""The actions of the commands that change nothing in AWS.

`doctor` reports denied calls, so it needs no actions without an option.
"""

WRITING_COMMANDS: Mapping[str, CommandActions] = {
    "advice": CommandActions((), _TABLE, {TABLE: dynamo_history.SAVE_DECISION_WRITES}),
    "notify": CommandActions(
        (),
        {
            TABLE: dynamo_history.READ_PERMISSIONS,
            SEND: (*secrets.PERMISSIONS, *services.PERMISSIONS),
        },
    ),
    "backfill": CommandActions(
        (
            *stack_outputs.CLI_PERMISSIONS,
            *sagemaker.LIST_PERMISSIONS,
            *sagemaker.COUNT_PERMISSIONS,
            *dynamo_history.READ_PERMISSIONS,
            *sqs.SEND_PERMISSIONS,
            *sqs.DEPTH_PERMISSIONS,
        ),
        {
            ROLE: accounts.PERMISSIONS,
            ORGANIZATION: accounts.LIST_PERMISSIONS,
            FROM_HISTORY: ("dynamodb:GetItem",),
        },
        {FROM_HISTORY: dynamo_history.RECORD_WRITES},
    ),
    "redrive": CommandActions(
        (*stack_outputs.CLI_PERMISSIONS, *sqs.CLI_PERMISSIONS, *sqs.SEND_PERMISSIONS)
    ),
}
"""The actions of the commands that change something in AWS. `doctor` checks them only if named."""
ALL_COMMANDS: Mapping[str, CommandActions] = {**READ_ONLY_COMMANDS, **WRITING_COMMANDS}
DEFAULT_STACK = "SageAudit"
"""The default name of a stack; the names of its queues begin with this name."""


ACCOUNT_ACTIONS = MEMBER_ACTIONS
"""The actions of the role of `scan --role`. Prices are read with the user's own credentials."""


def actions_of_commands(commands: Iterable[str], options: Iterable[str]) -> list[str]:
    """Returns the actions of all these commands, in alphabetical order."""
    option_names = tuple(options)
    return sorted(
        {action for name in commands for action in ALL_COMMANDS[name].actions(option_names)}
    )


def writes_of_commands(commands: Iterable[str], options: Iterable[str]) -> list[TableWrites]:
    """Returns what all these commands write to a table."""
    option_names = tuple(options)
    return [
        writes
        for name in commands
        for option, writes in ALL_COMMANDS[name].writes.items()
        if option in option_names
    ]


class PolicyScope(Struct, frozen=True):
    """The resources to which a policy is limited. None means an unknown resource."""

    region: str | None = None
    table: str | None = None
    role: str | None = None
    stack: str | None = None

    def resources(self, action: str) -> tuple[str, ...]:
        """Returns the ARNs to which an action is limited, or `*` if IAM cannot limit it."""
        partition = region_partition(self.region or "us-east-1")
        region_and_account = f"{self.region or '*'}:*"
        if action.startswith("sagemaker:") and action not in _UNSCOPED_ACTIONS:
            jobs = f"arn:{partition}:sagemaker:{region_and_account}"
            return tuple(f"{jobs}:{kind.spec.arn_word}/*" for kind in JobKind)
        stack = self.stack or DEFAULT_STACK
        if action in stack_outputs.CLI_PERMISSIONS:
            return (f"arn:{partition}:cloudformation:{region_and_account}:stack/{stack}/*",)
        service = action.partition(":")[0]
        if service == "lambda" and action != ACCOUNT_SETTINGS:
            return (f"arn:{partition}:lambda:{region_and_account}:function:{stack}-*",)
        if service in {"sns", "sqs"}:
            return (f"arn:{partition}:{service}:{region_and_account}:{stack}-*",)
        if action in secrets.PERMISSIONS:
            return (
                f"arn:{partition}:secretsmanager:{region_and_account}:secret:{CHANNEL_SECRETS}*",
            )
        if action.startswith("dynamodb:"):
            table = f"arn:{partition}:dynamodb:{region_and_account}:table/{self.table or '*'}"
            if action in dynamo_history.INDEX_PERMISSIONS or action == "dynamodb:GetItem":
                return (table, f"{table}/index/*")
            return (table,)
        if action in accounts.PERMISSIONS:
            return (f"arn:{partition}:iam::*:role/{self.role or '*'}",)
        return ("*",)


def make_policy(
    allowed_actions: Iterable[str], scope: PolicyScope, writes: Iterable[TableWrites] = ()
) -> dict[str, Any]:
    """Returns the smallest identity policy that allows these actions, as an IAM document.

    Of the actions in `writes`, it allows only these writes.
    """
    grants = [*write_grants(writes)]
    written = {action for actions, _ in grants for action in actions}
    actions_by_resources: dict[tuple[str, ...], list[str]] = {}
    for action in sorted({*allowed_actions} - written):
        actions_by_resources.setdefault(scope.resources(action), []).append(action)
    statements = [
        make_statement(actions, *resources) for resources, actions in actions_by_resources.items()
    ]
    statements += [
        {**make_statement(actions, *scope.resources(actions[0])), "Condition": condition}
        for actions, condition in grants
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def make_statement(actions: list[str], *resources: str) -> dict[str, Any]:
    """Returns a statement that allows these actions on these resources."""
    return {
        "Effect": "Allow",
        "Action": actions,
        "Resource": resources[0] if len(resources) == 1 else [*resources],
    }
