"""Measures what an account adds to a sweep, and simulates sweeps: `python -m tools.bench sweeps`.

The CPU times of a member's client and of a request are measured with the real SDK against an
endpoint in this process. `tests/fakes/large_organization.py` simulates sweeps with twice these
times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock
from urllib.parse import parse_qs

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.httpsession import URLLib3Session

from local import ACCOUNT, REGION
from local.requests import http_answer
from sageaudit.adapters.aws.accounts import AccountClients
from sageaudit.adapters.aws.sagemaker import PacedJobPages
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.domain.sweep import JobList
from tests.fakes.capacity import item_bytes
from tests.fakes.large_organization import CLIENT_CPU_S, REQUEST_CPU_S, LargeOrganization
from tools.bench.measure import Row

ACCOUNTS = (1, 30, 300, 1_000)
_BYTES_PER_WRITE_UNIT, _BYTES_PER_READ_UNIT = 1024, 2 * 4096
_SAMPLES = 50
_ROLE_ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><AssumedRoleUser><AssumedRoleId>A:s</AssumedRoleId><Arn>{}</Arn></AssumedRoleUser>
<Credentials><AccessKeyId>testing</AccessKeyId><SecretAccessKey>testing</SecretAccessKey>
<SessionToken>testing</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""


def member_units() -> dict[str, float]:
    """Returns the DynamoDB units that one more account and region adds to a sweep and its watch.

    A Query is charged for the sum of its items, so it has a part of a unit.
    """
    organization = LargeOrganization(1, 1)
    organization.round()
    [(account_region, swept)] = organization.store.regions.items()
    client = mock.Mock()
    DynamoSweepStore(client, "history").save_swept_region(account_region, swept)
    size = item_bytes(client.put_item.call_args.kwargs["Item"])
    return {
        "write units": -(-size // _BYTES_PER_WRITE_UNIT),
        "read units": 2 * size / _BYTES_PER_READ_UNIT,
    }


def _answer(self: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
    """Answers AssumeRole with a member's role, and the lists of jobs without jobs."""
    del self
    target = request.headers.get("X-Amz-Target")
    if target is None:
        [role_arn] = parse_qs(request.body)["RoleArn"]
        return http_answer(request.url, 200, _ROLE_ANSWER.format(role_arn).encode())
    name = target.decode() if isinstance(target, bytes) else target
    kind = next(kind for kind in JobKind if name.endswith(kind.spec.list_call))
    return http_answer(request.url, 200, {kind.spec.list_key: []})


def _read_lists(client_for: Callable[[str, str], Any], account: str) -> None:
    now = datetime.now(UTC)
    pages = PacedJobPages(client_for, time.monotonic, lambda _: None)
    for kind in JobKind:
        period = {"created_after": now - timedelta(hours=3), "created_before": now}
        list(pages.pages(JobList(account, REGION, kind), **period))


def measure_sdk() -> tuple[float, float]:
    """Returns the CPU seconds of a member's role and client, and of a request for an empty list."""
    accounts = [f"{number:012}" for number in range(1, _SAMPLES + 2)]
    members = MemberAccounts(dict.fromkeys(accounts, "sageaudit-read"))
    session = boto3.Session("testing", "testing", region_name=REGION)
    client_for = AccountClients.for_members(session, ACCOUNT, members, time.time).client_factory(
        "sagemaker"
    )
    with mock.patch.object(URLLib3Session, "send", _answer):
        _read_lists(client_for, accounts.pop())
        began_s = time.process_time()
        for account in accounts:
            client_for(account, REGION)
        created_s = time.process_time()
        for account in accounts:
            _read_lists(client_for, account)
        listed_s = time.process_time()
    per_list = _SAMPLES * len(JobKind)
    return (created_s - began_s) / _SAMPLES, (listed_s - created_s) / per_list


def rows() -> Iterator[Row]:
    """Yields the CPU time of the SDK, then the seconds of sweeps."""
    client_s, list_s = measure_sdk()
    yield Row.of_count(
        "a member's client", 1000 * client_s, "CPU ms", goal=f"below {CLIENT_CPU_S} s"
    )
    yield Row.of_count(
        "a list without jobs", 1000 * list_s, "CPU ms", goal=f"below {REQUEST_CPU_S} s"
    )
    for count in ACCOUNTS:
        sweep_s = LargeOrganization(count, 1).round().sweep_s
        yield Row.of_count(f"a sweep of {count:,} accounts", sweep_s, "s", goal="below 510")
    for unit, number in member_units().items():
        yield Row.of_count(f"{unit} of an account and region", number, "a sweep")
