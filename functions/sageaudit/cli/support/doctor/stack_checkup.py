"""What `sageaudit doctor --stack` checks: dead letters, who gets alarms, the last sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.adapters.aws.dead_letters import DeadLetterQueue
from sageaudit.adapters.aws.stack_outputs import stack_outputs
from sageaudit.adapters.history.dynamo.keys import SWEEP_LIST_PREFIX, SWEEP_PK
from sageaudit.adapters.history.dynamo.table import PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.moments import read_moment
from sageaudit.cli.exits import Exit, exit_of
from sageaudit.cli.support.doctor.checkup import Check, State, failed, ok
from sageaudit.cli.support.redrive.moving import DEAD_LETTERS
from sageaudit.errors import AwsError
from sageaudit.output.text.words import counted

_SWEEP = "sweep"
_DEAD = {
    **{kind.value: output for kind, output in DEAD_LETTERS.items()},
    _SWEEP: "SweepDeadLettersUrl",
}
"""Outputs of the stack, by the word of `sageaudit redrive`, which sends no sweep again."""
_LATE = timedelta(hours=3)
"""A sweep every 15 minutes that is so long ago has failed more than once: our choice."""
_PENDING = "PendingConfirmation"


def checks(stack: str, session: Any, region: str, now: datetime) -> Iterator[Check]:
    """The lines about one stack. Each error is a line, too."""
    try:
        outputs = stack_outputs(client(session, "cloudformation", region), stack)
    except AwsError as error:
        yield failed(f"stack {stack}", error, None, exit_of(error))
        return
    wanted = (*_DEAD.values(), "AlarmsTopicArn", "TableName")
    missing = [name for name in wanted if name not in outputs]
    if missing:
        found, advice = f"it has no output {missing[0]}", "deploy this version, or name its stack"
        yield failed(f"stack {stack}", found, advice, Exit.USAGE)
        return
    yield ok(f"stack {stack}", f"in {region}")
    asked: dict[str, Callable[[], Check]] = {
        f"dead letters, {kind}": partial(_dead, session, region, kind, outputs[output])
        for kind, output in _DEAD.items()
    }
    asked["alarms"] = partial(_told, session, region, outputs["AlarmsTopicArn"])
    asked["sweep"] = partial(_swept, session, region, outputs["TableName"], now)
    for name, check in asked.items():
        try:
            yield check()
        except AwsError as error:
            yield failed(name, error, None, exit_of(error))


def _dead(session: Any, region: str, kind: str, url: str) -> Check:
    name = f"dead letters, {kind}"
    depth = DeadLetterQueue(client(session, "sqs", region), url).depth()
    letters = depth.visible + depth.hidden
    if not letters:
        return ok(name, "none")
    advice = f"`sageaudit redrive {kind} --dry-run` shows why"
    if kind == _SWEEP:
        advice = "docs/runbook.md#dead-letters says how to read and delete them"
    return failed(name, f"about {counted(letters, 'letter')}", advice, Exit.FAILURE)


def _told(session: Any, region: str, topic: str) -> Check:
    with aws_errors("sns", topic):
        pages = client(session, "sns", region).get_paginator("list_subscriptions_by_topic")
        known = [one for page in pages.paginate(TopicArn=topic) for one in page["Subscriptions"]]
    told = [one for one in known if one["SubscriptionArn"].startswith("arn:")]
    waiting = sum(one["SubscriptionArn"] == _PENDING for one in known)
    unconfirmed = f", {waiting} not confirmed yet" if waiting else ""
    if not told:
        advice = "`make deploy` asks where alarms go; each new address must confirm"
        return failed("alarms", f"nobody gets them{unconfirmed}", advice, Exit.FAILURE)
    protocols = ", ".join(sorted({one["Protocol"] for one in told}))
    return ok("alarms", f"they go to {counted(len(told), 'subscriber')} ({protocols}){unconfirmed}")


def _swept(session: Any, region: str, table: str, now: datetime) -> Check:
    with aws_errors("dynamodb", table):
        items = client(session, "dynamodb", region).query(
            TableName=table,
            KeyConditionExpression=f"{PARTITION_KEY} = :pk AND begins_with({SORT_KEY}, :list)",
            ExpressionAttributeValues={":pk": {"S": SWEEP_PK}, ":list": {"S": SWEEP_LIST_PREFIX}},
        )["Items"]
    until = list(_swept_until(items))
    if not until:
        advice = "it runs every 15 minutes; look at the log of the sweep function"
        return Check("sweep", State.NOT_CHECKED, "no sweep has ended yet", advice)
    oldest = min(until)
    at, lists = f"{oldest.astimezone(UTC):%Y-%m-%d %H:%M} UTC", counted(len(until), "list")
    if now - oldest > _LATE:
        advice = 'see "Sweep silent" in docs/runbook.md'
        found = f"no sweep has looked for jobs that ended after {at}"
        return failed("sweep", found, advice, Exit.FAILURE)
    return ok("sweep", f"has looked for all jobs that ended up to {at}, in {lists}")


def _swept_until(items: Iterable[Mapping[str, Any]]) -> Iterator[datetime]:
    """How far each list was swept; one that is not tried any more is of an account that left."""
    states = [(_moment(item, "watermark"), _moment(item, "tried_at")) for item in items]
    newest = max((tried for _, tried in states if tried), default=None)
    for watermark, tried in states:
        left = newest is not None and tried is not None and newest - tried > _LATE
        if watermark is not None and not left:
            yield watermark


def _moment(item: Mapping[str, Any], name: str) -> datetime | None:
    try:
        return read_moment(item[name]["S"])
    except (KeyError, TypeError, ValueError):
        return None
