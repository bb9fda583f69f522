"""Runs the checks of `sageaudit doctor`.

The deployed sweep function checks the members, since only the functions may assume their roles.
Heartbeats, or else the history, show whether their events arrive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from botocore.config import Config
from msgspec import Struct

from sageaudit.adapters.aws.accounts import AccountList, open_session
from sageaudit.adapters.aws.clients import CONFIG, aws_errors, client, parse_errors
from sageaudit.adapters.aws.stack_outputs import read_stack_outputs
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.members import TEMPLATE_VERSION
from sageaudit.errors import AwsError, SageauditError, Unavailable
from sageaudit.exits import Exit
from sageaudit.output.text.words import count_text
from sageaudit.workflows.doctor import checks
from sageaudit.workflows.doctor.checks import Check, CheckState, failed_check, not_checked, passed

_CONFIG = CONFIG.merge(Config(read_timeout=150, retries={"total_max_attempts": 1}))
"""Settings of the Lambda client. The sweep function answers within 40 seconds, plus the timeout of
its last member.
"""
_EVENTS_LOOK_BACK = timedelta(days=20)
"""Runs up to this age are read. The history stores sent events for longer: 30 days."""
_MAX_RUNS = 20
_DEPLOY_MEMBER = "deploy infra/member.yaml there: docs/organization.md"


class DoctorScope(Struct, frozen=True):
    """What is checked besides versions and prices.

    `list_accounts` lists other accounts, from a session and a region; None checks no other account.
    `check_members` also checks each account that the stack audits.
    """

    actions: Sequence[str]
    profile: str | None
    region: str | None
    history: Path | None
    table: str | None
    list_accounts: Callable[[Any, str], AccountList] | None
    stack: str | None
    check_members: bool


def check_all(scope: DoctorScope, now: datetime, warn: Callable[[str], None]) -> Iterator[Check]:
    """Yields all checks. `warn` is called if other users may write the history's file."""
    yield checks.check_versions()
    yield checks.check_prices(now.date())
    if scope.history is not None or not scope.table:
        yield from checks.check_file(scope.history, warn)
    yield from _check_aws(scope)
    if scope.stack is not None:
        yield from _check_stack(scope, scope.stack, now)


def _check_aws(scope: DoctorScope) -> Iterator[Check]:
    # Without a region or credentials, the checks that need them are not made.
    try:
        session = open_session(scope.profile, scope.region)
    except SageauditError as error:
        yield failed_check("AWS settings", error)
        return
    region_check = checks.region(session.region_name)
    yield region_check
    region = session.region_name if region_check.state is CheckState.OK else "us-east-1"
    credentials_check, own_identity = checks.check_credentials(session, region)
    yield credentials_check
    if own_identity is None or region_check.state is not CheckState.OK:
        needed = "the region" if own_identity else "credentials"
        yield not_checked("permissions", f"cannot be checked without {needed}")
        return
    probed_actions = [
        action
        for action in scope.actions
        if not action.startswith("dynamodb:") and action != "sts:AssumeRole"
    ]
    yield from checks.check_actions(probed_actions, session, region, own_identity)
    if scope.table is not None:
        yield from checks.table(scope.table, session, region)
    if scope.list_accounts is not None:
        yield from _check_accounts(scope.list_accounts, session, region)


def _check_accounts(
    list_accounts: Callable[[Any, str], AccountList], session: Any, region: str
) -> Iterator[Check]:
    try:
        account_list = list_accounts(session, region)
    except SageauditError as error:
        yield failed_check("accounts", error)
        return
    yield passed("accounts", f"{len(account_list.accounts)} to check")
    yield from checks.check_roles(account_list, session, region)


def _check_stack(scope: DoctorScope, name: str, now: datetime) -> Iterator[Check]:
    # Earlier checks report a missing region.
    with suppress(SageauditError):
        session = open_session(scope.profile, scope.region)
        if session.region_name is not None:
            yield from checks.stack(name, session, session.region_name, now)
            if scope.check_members:
                yield from check_members(name, session, session.region_name, now)
            return
    yield not_checked(f"stack {name}", "cannot be checked without a region")


def check_members(name: str, session: Any, region: str, now: datetime) -> Iterator[Check]:
    """Checks the role of each member account and region, and whether the member's events arrive."""
    try:
        outputs = read_stack_outputs(client(session, "cloudformation", region), name)
        function, table = outputs["SweepFunctionName"], outputs["TableName"]
    except KeyError as error:
        problem = f"the stack {name} has no output {error.args[0]}"
        yield failed_check("members", problem, "deploy this version, or name its stack", Exit.USAGE)
        return
    except AwsError as error:
        yield failed_check("members", error)
        return
    dynamodb = client(session, "dynamodb", region)
    history, sweep_store = DynamoHistory(dynamodb, table), DynamoSweepStore(dynamodb, table)
    count = 0
    try:
        for row in _member_rows(client(session, "lambda", region, _CONFIG), function):
            count += 1
            yield from _check_member_row(row)
            if row["is_audited"]:
                yield _check_events_arrive(history, sweep_store, row, now)
    except AwsError as error:
        yield failed_check("members", error)
        return
    if not count:
        yield passed("members", "there is no other account or region")


def _member_rows(aws_lambda: Any, function: str) -> Iterator[dict[str, Any]]:
    """Yields the rows about members that the sweep function returns. Raises AwsError."""
    continue_after: str | None = ""
    while continue_after is not None:
        with aws_errors("lambda", f"on {function}"):
            answer = aws_lambda.invoke(
                FunctionName=function, Payload=json.dumps({"continue_after": continue_after})
            )
        with parse_errors("lambda"):
            answer_body = json.loads(answer["Payload"].read())
            if answer.get("FunctionError"):
                raise Unavailable(f"{function} failed: {answer_body.get('errorMessage')}.")
            yield from answer_body["members"]
            continue_after = answer_body["next"]


def _check_member_row(row: dict[str, Any]) -> Iterator[Check]:
    name, missing = f"member {row['account']} in {row['region']}", row["missing_permissions"]
    if not row["is_audited"]:
        problem = "its events arrive, but the policy does not include this account and region"
        yield failed_check(
            name, problem, "add it to policy.toml, or remove infra/member.yaml there"
        )
    elif row["is_gone"]:
        problem = f"gone: its last event arrived at {row['last_seen_at']}, and it denies access"
        yield failed_check(name, problem, "if it has not left, deploy infra/member.yaml there")
    elif missing:
        reason = next(iter(missing.values()))
        waiting_text = _waiting_text(row["waiting_events"])
        problem = f"not permitted: {', '.join(missing)}: {reason}{waiting_text}"
        yield failed_check(name, problem, _DEPLOY_MEMBER, Exit.DENIED)
    else:
        yield passed(name, "its role can be assumed, and allows what an audit needs")
    version = row["template_version"]
    if row["is_audited"] and version is not None and version != TEMPLATE_VERSION:
        problem = f"it has version {version} of infra/member.yaml; this one is {TEMPLATE_VERSION}"
        remedy = "update the StackSet: docs/update-and-remove.md"
        if version > TEMPLATE_VERSION:
            remedy = "update sageaudit here, and at home: docs/update-and-remove.md"
        yield failed_check(f"template of {row['account']} in {row['region']}", problem, remedy)


def _waiting_text(count: int) -> str:
    if not count:
        return ""
    return f"; {count_text(count, 'event')} will be audited when it can be read"


def _check_events_arrive(
    history: DynamoHistory, sweep_store: DynamoSweepStore, row: dict[str, Any], now: datetime
) -> Check:
    """Checks the heartbeat. Without one, it checks the events of the newest runs.

    If the sweep sent all of these, none arrived from AWS.
    """
    account, region = row["account"], row["region"]
    name = f"events of {account} in {region}"
    if row["template_version"] is not None:
        seen_text = f"the last one arrived at {row['last_seen_at']}"
        return (
            failed_check(name, seen_text, _DEPLOY_MEMBER)
            if row["is_silent"]
            else passed(name, seen_text)
        )
    runs = list(islice(_runs(history, account, region, now), _MAX_RUNS))
    if not runs:
        return not_checked(
            name, f"no heartbeat arrived, and no job in {_EVENTS_LOOK_BACK.days} days"
        )
    if any(sweep_store.event_record(run.key) is None for run in runs):
        return passed(name, "they arrive")
    problem = f"no event is known to have arrived: the sweep found {count_text(len(runs), 'job')}"
    return failed_check(name, problem, _DEPLOY_MEMBER)


def _runs(
    history: DynamoHistory, account: str, region: str, now: datetime
) -> Iterator[AuditSummary]:
    summaries = history.runs(RunQuery.for_account(account), page_size=_MAX_RUNS)
    for summary in takewhile(
        lambda summary: summary.ended_at >= now - _EVENTS_LOOK_BACK, summaries
    ):
        if summary.key.arn.split(":")[3] == region:
            yield summary
