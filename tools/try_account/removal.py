"""Removes what tries created, found by its names, so that it needs no memory of an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from msgspec import Struct

from infra.names import FINGERPRINT_KEY, TAG
from tools.try_account.account import PREFIX, Account, stack_name

AWS_ERRORS = (ClientError, BotoCoreError, ResponseParserError, LookupError, TypeError, ValueError)
"""What boto3 raises for a refusal, for no answer, and for an unreadable answer; and what follows
from an answer in another form than that of the local AWS."""
_DELETED = "DELETE_COMPLETE"
_STACK_LIMIT_S = 1800
_JOB_LIMIT_S = 900
_LAST_LIMIT_S = 300
"""How long what AWS still lists after its removal is looked for."""
_EVERY_S = 10
_JOB_LOGS = "/aws/sagemaker/ProcessingJobs"
"""The log group of all processing jobs of the account. Only the streams of our job are removed."""
_REMOVED = (
    *("NoSuchEntity", "NoSuchBucket", "QueueDoesNotExist", "ResourceNotFound", "NonExistent"),
    "ResourceInUse",
)
"""Parts of the error codes for what is removed already, or just being removed."""


class Kind(Struct, frozen=True):
    """A kind of resource: `find` yields ids that begin with a prefix, `delete` deletes one."""

    label: str
    find: Callable[[Account, str], Iterable[str]]
    delete: Callable[[Account, str], None]


def find_stacks(account: Account) -> tuple[list[str], list[str]]:
    """Returns the names of the stacks of which anything is left in the account and region.

    The second list has the errors of what could not be listed.
    """
    errors: dict[str, str] = {}
    names = {stack_name(name) for _, name in _find_all(account, PREFIX, errors)}
    return sorted(filter(None, names)), [f"{name}: {why}" for name, why in errors.items()]


def remove(account: Account, stack: str) -> list[str]:
    """Removes everything of one try, and returns what is left, each with the reason if known.

    Continues after errors: what can be removed is removed.
    """
    errors: dict[str, str] = {}
    announced: set[str] = set()

    def are_all_removed() -> bool | None:
        """Returns True if nothing is left, or if an error leaves something."""
        errors.clear()
        for kind in _KINDS:
            _remove_kind(account, stack, kind, announced, errors)
        return True if errors or not _find_all(account, stack, errors) else None

    if not are_all_removed():
        # DynamoDB and SQS list what they delete for up to a minute. A request that Ctrl-C cut off
        # may have created something after it was looked for.
        account.poll(are_all_removed, limit_s=_LAST_LIMIT_S, every_s=_EVERY_S)
    left = [f"{label} {name}" for label, name in _find_all(account, stack, errors)]
    known = [f"{name}: {reason}" for name, reason in errors.items()]
    return known + [name for name in left if name not in errors]


def _remove_kind(
    account: Account, stack: str, kind: Kind, announced: set[str], errors: dict[str, str]
) -> None:
    """Removes all of a kind, and adds what cannot be removed to `errors`, with the reason."""
    try:
        resource_ids = list(kind.find(account, stack))
    except AWS_ERRORS as error:
        errors[kind.label] = error_text(error)
        return
    for resource_id in resource_ids:
        name = f"{kind.label} {resource_id}"
        if name not in announced:
            account.say(f"removing {name}")
            announced.add(name)
        try:
            kind.delete(account, resource_id)
        except (*AWS_ERRORS, TimeoutError) as error:
            if not any(code in error_code(error) for code in _REMOVED):
                errors[name] = error_text(error)


def error_text(error: Exception) -> str:
    """Returns what AWS refused, or the error with its type."""
    is_of_aws = isinstance(error, ClientError | BotoCoreError | TimeoutError)
    return str(error) if is_of_aws else repr(error)


def error_code(error: Exception) -> str:
    """Returns the code of AWS's answer; empty if there was none."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def _find_all(account: Account, prefix: str, errors: dict[str, str]) -> list[tuple[str, str]]:
    """Returns label and id of everything whose name begins with a prefix.

    Adds the errors of lists that could not be read, by label.
    """
    resources: list[tuple[str, str]] = []
    for kind in _KINDS:
        try:
            resources += [(kind.label, name) for name in kind.find(account, prefix)]
        except AWS_ERRORS as error:
            errors.setdefault(kind.label, error_text(error))
    return resources


def _find_jobs(account: Account, prefix: str) -> Iterator[str]:
    rows = account.pages(
        "sagemaker",
        "list_processing_jobs",
        "ProcessingJobSummaries",
        NameContains=prefix,
    )
    yield from (row["ProcessingJobName"] for row in rows)


def _delete_job(account: Account, name: str) -> None:
    sagemaker = account.client("sagemaker")

    def status() -> str:
        return str(sagemaker.describe_processing_job(ProcessingJobName=name)["ProcessingJobStatus"])

    if status() == "InProgress":
        sagemaker.stop_processing_job(ProcessingJobName=name)
    if not account.poll(
        lambda: status() not in {"InProgress", "Stopping"} or None,
        limit_s=_JOB_LIMIT_S,
        every_s=_EVERY_S,
    ):
        raise TimeoutError(f"it did not stop within {_JOB_LIMIT_S // 60} minutes")
    sagemaker.delete_processing_job(ProcessingJobName=name)


def _find_stacks(account: Account, prefix: str) -> Iterator[str]:
    for row in account.pages("cloudformation", "list_stacks", "StackSummaries"):
        if row["StackName"].startswith(prefix) and row["StackStatus"] != _DELETED:
            yield row["StackName"]


def _delete_stack(account: Account, name: str) -> None:
    formation = account.client("cloudformation")
    [stack] = formation.describe_stacks(StackName=name)["Stacks"]
    formation.delete_stack(StackName=name)

    def ended() -> str | None:
        # By its id, since a deleted stack has no name.
        [row] = formation.describe_stacks(StackName=stack["StackId"])["Stacks"]
        return None if row["StackStatus"].endswith("_PROGRESS") else str(row["StackStatus"])

    state = account.poll(ended, limit_s=_STACK_LIMIT_S, every_s=_EVERY_S)
    if state != _DELETED:
        raise TimeoutError(f"it is in the state {state or 'DELETE_IN_PROGRESS'}")


def _find_tables(account: Account, prefix: str) -> Iterator[str]:
    names = account.pages("dynamodb", "list_tables", "TableNames")
    yield from (name for name in names if name.startswith(prefix))


def _find_log_groups(account: Account, prefix: str) -> Iterator[str]:
    rows = account.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=prefix)
    yield from (row["logGroupName"] for row in rows)


def _find_log_streams(account: Account, prefix: str) -> Iterator[str]:
    try:
        rows = account.pages(
            "logs",
            "describe_log_streams",
            "logStreams",
            logGroupName=_JOB_LOGS,
            logStreamNamePrefix=prefix,
        )
        yield from (row["logStreamName"] for row in rows)
    except ClientError as error:
        if "ResourceNotFound" not in error_code(error):  # no job has ever logged
            raise


def _find_secrets(account: Account, prefix: str) -> Iterator[str]:
    """Yields the stack's name in the tag of the fingerprint key.

    The key of another deployment has another tag, and stays.
    """
    filters = [{"Key": "name", "Values": [FINGERPRINT_KEY]}]
    for row in account.pages("secretsmanager", "list_secrets", "SecretList", Filters=filters):
        tags = {tag["Key"]: tag["Value"] for tag in row.get("Tags", ())}
        if row["Name"] == FINGERPRINT_KEY and tags.get(TAG, "").startswith(prefix):
            yield tags[TAG]


def _delete_secret(account: Account, _: str) -> None:
    account.client("secretsmanager").delete_secret(
        SecretId=FINGERPRINT_KEY, ForceDeleteWithoutRecovery=True
    )


def _find_queues(account: Account, prefix: str) -> Iterator[str]:
    urls = account.pages("sqs", "list_queues", "QueueUrls", QueueNamePrefix=prefix)
    yield from (url.rpartition("/")[2] for url in urls)


def _delete_queue(account: Account, name: str) -> None:
    sqs = account.client("sqs")
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])


def _find_buckets(account: Account, prefix: str) -> Iterator[str]:
    for row in account.client("s3").list_buckets()["Buckets"]:
        name: str = row["Name"]
        if name.startswith(prefix.lower()) and name.endswith(f"-{account.region}"):
            yield name


def _delete_bucket(account: Account, name: str) -> None:
    s3 = account.client("s3")
    for row in account.pages("s3", "list_objects_v2", "Contents", Bucket=name):
        s3.delete_object(Bucket=name, Key=row["Key"])
    s3.delete_bucket(Bucket=name)


def _find_roles(account: Account, prefix: str) -> Iterator[str]:
    for row in account.pages("iam", "list_roles", "Roles"):
        name: str = row["RoleName"]
        if name.startswith(prefix) and name.endswith(f"-{account.region}-job"):
            yield name


def _delete_role(account: Account, name: str) -> None:
    iam = account.client("iam")
    for policy in account.pages("iam", "list_role_policies", "PolicyNames", RoleName=name):
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    iam.delete_role(RoleName=name)


_KINDS = (
    Kind("the job", _find_jobs, _delete_job),
    Kind("the stack", _find_stacks, _delete_stack),
    Kind(
        "the table",
        _find_tables,
        lambda account, name: account.client("dynamodb").delete_table(TableName=name),
    ),
    Kind(
        "the log group",
        _find_log_groups,
        lambda account, name: account.client("logs").delete_log_group(logGroupName=name),
    ),
    Kind(
        "the job's log",
        _find_log_streams,
        lambda account, name: account.client("logs").delete_log_stream(
            logGroupName=_JOB_LOGS, logStreamName=name
        ),
    ),
    Kind("the fingerprint key of", _find_secrets, _delete_secret),
    Kind("the queue", _find_queues, _delete_queue),
    Kind("the bucket", _find_buckets, _delete_bucket),
    Kind("the role", _find_roles, _delete_role),
)
"""In this order: the stack uses the bucket, the secret and the log groups until it is deleted."""
