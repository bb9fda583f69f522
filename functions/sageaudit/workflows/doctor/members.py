"""What `sageaudit doctor --members` checks: each account that a deployment audits.

The deployed function itself tries what it needs there: only it may assume the roles. Whether events
come is in the history.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from botocore.config import Config

from sageaudit.adapters.aws.clients import CONFIG, aws_errors, client, parsing
from sageaudit.adapters.aws.stack_outputs import stack_outputs
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepNotes
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.errors import AwsError, Unavailable
from sageaudit.exits import Exit
from sageaudit.output.text.words import counted
from sageaudit.workflows.doctor.checks import Check, failed, not_checked, ok

_CONFIG = CONFIG.merge(Config(read_timeout=150, retries={"total_max_attempts": 1}))
"""An answer takes up to 40 seconds, and a last member that does not answer at all."""
_RECENT = timedelta(days=20)
"""Notes of sent events are kept for 30 days."""
_MOST_RUNS = 20


def members(name: str, session: Any, region: str, now: datetime) -> Iterator[Check]:
    """One check for each account and region, and whether its events come."""
    try:
        outputs = stack_outputs(client(session, "cloudformation", region), name)
        function, table = outputs["SweepFunctionName"], outputs["TableName"]
    except KeyError as error:
        found = f"the stack {name} has no output {error.args[0]}"
        yield failed("members", found, "deploy this version, or name its stack", Exit.USAGE)
        return
    except AwsError as error:
        yield failed("members", error)
        return
    dynamodb = client(session, "dynamodb", region)
    history, notes = DynamoHistory(dynamodb, table), DynamoSweepNotes(dynamodb, table)
    count = 0
    try:
        for row in _answers(client(session, "lambda", region, _CONFIG), function):
            count += 1
            yield _checked(row)
            yield _told(history, notes, row["account"], row["region"], now)
    except AwsError as error:
        yield failed("members", error)
        return
    if not count:
        yield ok("members", "the policy names no other account")


def _answers(aws_lambda: Any, function: str) -> Iterator[dict[str, Any]]:
    """The rows of the function's answers. Raises AwsError."""
    after: str | None = ""
    while after is not None:
        with aws_errors("lambda", f"on {function}"):
            answer = aws_lambda.invoke(
                FunctionName=function, Payload=json.dumps({"members_after": after})
            )
        with parsing("lambda"):
            said = json.loads(answer["Payload"].read())
            if answer.get("FunctionError"):
                raise Unavailable(f"{function} failed: {said.get('errorMessage')}.")
            yield from said["members"]
            after = said["next"]


def _checked(row: dict[str, Any]) -> Check:
    name, lacks = f"member {row['account']} in {row['region']}", row["lacks"]
    if not lacks:
        return ok(name, "its role is assumed, and may do what an audit needs")
    advice = "deploy infra/member.yaml there: docs/organization.md"
    reason = next(iter(lacks.values()))
    return failed(name, f"lacks {', '.join(lacks)}: {reason}", advice, Exit.DENIED)


def _told(
    history: DynamoHistory, notes: DynamoSweepNotes, account: str, region: str, now: datetime
) -> Check:
    """An event came of a run that was audited and that no sweep sent, or waited for."""
    name = f"events of {account} in {region}"
    runs = list(islice(_runs(history, account, region, now), _MOST_RUNS))
    if not runs:
        return not_checked(name, f"no job was audited in {_RECENT.days} days")
    if any(notes.sent(run.key) is None for run in runs):
        return ok(name, "they come")
    found = f"none is known to have come: the sweep found {counted(len(runs), 'job')}"
    return failed(name, found, "deploy infra/member.yaml there: docs/organization.md")


def _runs(
    history: DynamoHistory, account: str, region: str, now: datetime
) -> Iterator[AuditSummary]:
    """Those that ended lately, the newest first."""
    heads = history.runs(RunQuery.of_account(account), page_size=_MOST_RUNS)
    for head in takewhile(lambda head: head.ended_at >= now - _RECENT, heads):
        if head.key.arn.split(":")[3] == region:
            yield head
