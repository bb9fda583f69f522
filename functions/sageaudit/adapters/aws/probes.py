"""Harmless calls that show whether an IAM action is permitted.

They describe a job that does not exist, list one row, or read one metric ($0.00001). IAM decides
before the service handles a request. So an error about the request's content shows that the action
is permitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError

from sageaudit.adapters.aws import cloudwatch, sagemaker
from sageaudit.adapters.aws.accounts import AccountClients
from sageaudit.adapters.aws.clients import no_answer_error, translate_error
from sageaudit.adapters.prices.price_list import SERVICE, endpoint_region
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import region_partition
from sageaudit.domain.members import ASSUME_ROLE
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, NoEndpoint, Throttled

_NAME = "sageaudit-doctor"
"""No job or stack has this name."""
_SERVER_ERROR = 500
_SPECS = {kind.spec.describe_call: kind for kind in JobKind}
_LISTS = {kind.spec.list_call: kind for kind in JobKind}
_CHILDREN = {kind.spec.rollup.child_list.action: kind for kind in JobKind if kind.spec.rollup}


def check_permission(
    action: str, client_of: Callable[[str, str], Any], region: str, account: str
) -> AwsError | None:
    """Returns why an account cannot call an action in a region; None if it can.

    `client_of` returns the account's client for a service and region. Raises KeyError for an action
    without a harmless call.
    """
    service, _, operation = action.partition(":")
    endpoint = endpoint_region(region) if service == "pricing" else region
    if endpoint is None:
        return NoEndpoint(f"{region_partition(region)} has no Price List endpoint.")
    probe = _call(operation, region, account)
    try:
        getattr(client_of(service, endpoint), probe[0])(**probe[1])
    except ClientError as error:
        aws_error = translate_error(error, service)
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        is_refused = isinstance(aws_error, (AccessDenied, NoCredentials, Throttled))
        return aws_error if is_refused or status >= _SERVER_ERROR else None
    except BotoCoreError as error:
        return no_answer_error(error, service)
    except AwsError as error:
        return error
    return None


def _call(operation: str, region: str, account: str) -> tuple[str, Mapping[str, Any]]:
    """Returns the name of the client's method, and its arguments."""
    if (kind := _SPECS.get(operation)) is not None:
        return kind.spec.describe_method, {kind.spec.name_key: _NAME}
    if (kind := _LISTS.get(operation)) is not None:
        return kind.spec.list_method, {"MaxResults": 1}
    if (kind := _CHILDREN.get(operation)) is not None:
        return xform_name(operation), {kind.spec.name_key: _NAME, "MaxResults": 1}
    return _OTHER_CALLS[operation](region, account)


def _tags(region: str, account: str) -> tuple[str, Mapping[str, Any]]:
    job = f"arn:{region_partition(region)}:sagemaker:{region}:{account}:training-job/{_NAME}"
    return "list_tags", {"ResourceArn": job, "MaxResults": 50}


def _metric_data(_: str, __: str) -> tuple[str, Mapping[str, Any]]:
    now = datetime.now(UTC)
    metric = {"Namespace": "/aws/sagemaker/TrainingJobs", "MetricName": "CPUUtilization"}
    query = {"Id": "m", "MetricStat": {"Metric": metric, "Period": 3600, "Stat": "Average"}}
    return "get_metric_data", {
        "MetricDataQueries": [query],
        "StartTime": now - timedelta(hours=1),
        "EndTime": now,
    }


_OTHER_CALLS: Mapping[str, Callable[[str, str], tuple[str, Mapping[str, Any]]]] = {
    "ListTags": _tags,
    "ListMetrics": lambda *_: ("list_metrics", {"Namespace": "/aws/sagemaker/TrainingJobs"}),
    "GetMetricData": _metric_data,
    "GetProducts": lambda *_: ("get_products", {"ServiceCode": SERVICE, "MaxResults": 1}),
    "ListAccounts": lambda *_: ("list_accounts", {"MaxResults": 1}),
    "DescribeStacks": lambda *_: ("describe_stacks", {"StackName": _NAME}),
}


MEMBER_ACTIONS = tuple(
    sorted({*sagemaker.AUDIT_PERMISSIONS, *cloudwatch.PERMISSIONS, *sagemaker.LIST_PERMISSIONS})
)
"""Actions that a member account's role must permit. Prices are read in the home account."""
OWN_ACTIONS = tuple(sorted(sagemaker.LIST_PERMISSIONS))
"""Actions that are checked in further regions of the home account: its own role allows them.
"""


def missing_permissions(accounts: AccountClients, account: str, region: str) -> dict[str, AwsError]:
    """Returns the required actions that a member denies or does not answer, with the errors.

    If the member's role cannot be assumed, `sts:AssumeRole` is the only action.
    """
    try:
        accounts.client_factory("sagemaker")(account, region)
    except AwsError as error:
        return {ASSUME_ROLE: error}

    def client_of(service: str, client_region: str) -> Any:
        return accounts.client_factory(service)(account, client_region)

    actions = OWN_ACTIONS if accounts.is_own(account) else MEMBER_ACTIONS
    errors = {action: check_permission(action, client_of, region, account) for action in actions}
    return {action: error for action, error in errors.items() if error is not None}
