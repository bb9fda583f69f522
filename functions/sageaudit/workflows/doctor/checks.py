"""The checks of `sageaudit doctor`: each is one line with what to do next."""

from __future__ import annotations

import enum
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit import __version__
from sageaudit.adapters.aws.accounts import AccountList, Identity, identity
from sageaudit.adapters.aws.clients import CONFIG, aws_errors, client, known_regions
from sageaudit.adapters.aws.probes import check_permission
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.aws.sqs import DeadLetterQueue
from sageaudit.adapters.aws.stack_outputs import (
    AUDITS_AT_ONCE,
    CHANNEL,
    outputs_by_channel,
    read_stack_outputs,
)
from sageaudit.adapters.channels.services import SERVICES
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.policy.routes import OWN_TOPIC
from sageaudit.domain.sweep import MAX_UNTRIED_TIME, drop_abandoned_lists
from sageaudit.errors import (
    AwsError,
    BadSettings,
    NoHistory,
    SageauditError,
    TableNotFound,
    Unavailable,
)
from sageaudit.exits import Exit, exit_for
from sageaudit.output.text.words import count_text
from sageaudit.workflows.doctor import permissions
from sageaudit.workflows.redrive import DEAD_LETTER_OUTPUTS

_OLD_PRICES_DAYS = 180
_NOBODY = JobKey("doctor", datetime(2017, 11, 1, tzinfo=UTC))
_COSTS = "ce:GetCostAndUsage"
_SQS_PREFIX = "sqs:"
_ALLOW_NEXT_STEP = "allow it: `sageaudit doctor --policy` prints the policy"


class CheckState(enum.StrEnum):
    """How a check ended; the values are JSON output."""

    OK = "ok"
    FAILED = "failed"
    NOT_CHECKED = "not_checked"


class Check(Struct, frozen=True):
    """One line. `next` is what to do about it; `code` is the exit code of a failed check."""

    name: str
    state: CheckState
    found: str
    next: str | None = None
    code: Exit = Exit.DONE


def passed(name: str, detail: str) -> Check:
    """A check that passed."""
    return Check(name, CheckState.OK, detail)


def failed(
    name: str, error: SageauditError | str, next_step: str | None = None, code: Exit = Exit.FAILURE
) -> Check:
    """A check that did not pass; `code` is for a sentence, as an error has its own."""
    if isinstance(error, SageauditError):
        code = exit_for(error)
    return Check(name, CheckState.FAILED, str(error).rstrip("."), next_step, code)


def not_checked(name: str, detail: str, next_step: str | None = None) -> Check:
    """A check that could not be made, which is not a failure."""
    return Check(name, CheckState.NOT_CHECKED, detail, next_step)


def versions() -> Check:
    """The versions of this tool and of what it runs on."""
    parts = ", ".join(f"{name} {version(name)}" for name in ("boto3", "botocore"))
    found = f"sageaudit {__version__}, Python {platform.python_version()}, {parts}"
    return passed("versions", found)


def prices(today: date) -> Check:
    """The packaged price tables and their age."""
    as_of = packaged.packaged_prices().as_of
    age = (today - date.fromisoformat(as_of)).days
    found = f"packaged tables of {as_of}, {age} days old"
    remedy = "a newer sageaudit may have newer ones" if age > _OLD_PRICES_DAYS else None
    return Check("prices", CheckState.OK, found, remedy)


def file(path: Path | None, warn: Callable[[str], None]) -> Check:
    """Checks that the history's file exists, has this version, and is readable and writable."""
    name = f"history {path or histories.default_path()}"
    try:
        with histories.open_history(path, None, None, None, warn=warn) as opened:
            place = Path(opened.name)
    except NoHistory as error:
        if path is None:
            return Check(name, CheckState.OK, "not there yet", "`sageaudit scan` makes it")
        return failed(name, error, "make it with `sageaudit scan --history FILE`")
    except SageauditError as error:
        return failed(name, error)
    if not (os.access(place, os.W_OK) and os.access(place.absolute().parent, os.W_OK)):
        remedy = "`scan` and `audit` cannot add to it: change its mode, or its folder's"
        return failed(name, "it can be read, but not written", remedy, Exit.DENIED)
    return passed(name, "readable and writable, of this version")


def region(name: str | None) -> Check:
    """Checks the region that the other checks use."""
    if name is None:
        return failed("region", "none", "give --region, or set one for your profile", Exit.USAGE)
    if name not in known_regions():
        remedy = "a region looks like eu-west-1"
        return failed("region", f"{name} is not a region of SageMaker", remedy, Exit.USAGE)
    return passed("region", name)


def credentials(session: Any, region_name: str) -> tuple[Check, Identity | None]:
    """Checks the credentials, and returns whose they are."""
    try:
        own = identity(session, region_name)
    except AwsError as error:
        remedy = "check the network, and HTTPS_PROXY and AWS_CA_BUNDLE behind a proxy"
        lost = isinstance(error, Unavailable)
        return failed("credentials", error, remedy if lost else None), None
    return passed("credentials", f"{own.arn}, account {own.account}"), own


def actions(names: Sequence[str], session: Any, region_name: str, own: Identity) -> Iterator[Check]:
    """One check for each IAM action, by a harmless call if there is one."""
    for name in names:
        if name == _COSTS:
            yield not_checked(name, "asking costs $0.01", "try it with `sageaudit scan --coverage`")
        elif name.startswith(_SQS_PREFIX):
            remedy = "try it with `sageaudit redrive notices --dry-run`"
            yield not_checked(name, "asking could change a queue", remedy)
        elif error := check_permission(name, partial(client, session), region_name, own.account):
            yield failed(name, error, _next_step(error))
        else:
            yield passed(name, "permitted")


def _next_step(error: AwsError) -> str:
    return _ALLOW_NEXT_STEP if exit_for(error) is Exit.DENIED else "try again later"


def roles(listed: AccountList, session: Any, region_name: str) -> Iterator[Check]:
    """Checks for each other account that its role can be assumed and allows a scan."""
    clients = listed.make_clients(session, region_name)
    if listed.role is None:
        return
    for account in listed.account_names:
        name = f"{listed.role.name} in {account}"
        if account == listed.own_identity.account:
            yield passed(f"account {account}", "your own: no role is assumed")
            continue
        try:
            clients.client_factory("sagemaker")(account, region_name)
        except AwsError as error:
            yield failed(name, error, "correct the role's trust policy")
            continue

        def client_for(service: str, region: str, account: str = account) -> Any:
            return clients.client_factory(service)(account, region)

        names = permissions.ACCOUNT_ACTIONS
        missing = {
            one: refused
            for one in names
            if (refused := check_permission(one, client_for, region_name, account))
        }
        if missing:
            code = exit_for(next(iter(missing.values())))
            remedy = "docs/permissions.md has the policy of the role"
            yield failed(name, f"not possible: {', '.join(missing)}", remedy, code)
        else:
            yield passed(name, "assumed, and may do what a scan needs")


def table(name: str, session: Any, region: str) -> Iterator[Check]:
    """Checks that the table exists, is sageaudit's, and is readable by key and by index."""
    where = f"table {name}"
    history = DynamoHistory(client(session, "dynamodb", region, CONFIG), name)
    by_name = history.runs(RunQuery.for_name(_NOBODY.arn), page_size=1)
    calls: dict[str, Callable[[], object]] = {
        "dynamodb:GetItem": lambda: history.summary(_NOBODY),
        "dynamodb:Query": lambda: next(by_name, None),
    }
    for action, call in calls.items():
        try:
            call()
        except TableNotFound as error:
            yield failed(where, error, "the stack's output TableName has its name")
            return
        except AwsError as error:
            yield failed(f"{where}, {action}", error, _next_step(error))
        else:
            yield passed(f"{where}, {action}", "permitted")


_DEAD = {
    **{kind.value: output for kind, output in DEAD_LETTER_OUTPUTS.items()},
    "sweep": "SweepDeadLettersUrl",
    "digest": "DigestDeadLettersUrl",
}
"""Outputs of the stack, by name. `sageaudit redrive` has no sweep or digest."""
_PENDING = "PendingConfirmation"


def stack(name: str, session: Any, region: str, now: datetime) -> Iterator[Check]:
    """The checks of one stack. An error is a failed check."""
    try:
        outputs = read_stack_outputs(client(session, "cloudformation", region), name)
    except AwsError as error:
        yield failed(f"stack {name}", error)
        return
    wanted = (*_DEAD.values(), "AlarmsTopicArn", "TableName")
    missing = [output for output in wanted if output not in outputs]
    if missing:
        found, remedy = f"it has no output {missing[0]}", "deploy this version, or name its stack"
        yield failed(f"stack {name}", found, remedy, Exit.USAGE)
        return
    yield passed(f"stack {name}", f"in {region}")
    checks: dict[str, Callable[[], Check]] = {
        f"dead letters, {kind}": partial(_dead, session, region, kind, outputs[output])
        for kind, output in _DEAD.items()
    }
    for channel, what in outputs_by_channel(outputs, CHANNEL).items():
        checks[f"channel {channel}"] = partial(_channel, session, region, channel, what)
    checks["alarms"] = partial(_check_alarm_subscribers, session, region, outputs["AlarmsTopicArn"])
    if at_once := outputs.get(AUDITS_AT_ONCE):
        checks["executions"] = partial(_executions, session, region, int(at_once))
    checks["sweep"] = partial(_check_last_sweep, session, region, outputs["TableName"], now)
    for line, check in checks.items():
        try:
            yield check()
        except AwsError as error:
            yield failed(line, error)


def _dead(session: Any, region: str, kind: str, url: str) -> Check:
    name = f"dead letters, {kind}"
    depth = DeadLetterQueue(client(session, "sqs", region), url).depth()
    letters = depth.visible + depth.in_flight
    if not letters:
        return passed(name, "none")
    remedy = "docs/runbook.md#dead-letters says how to read and delete them"
    if kind in DEAD_LETTER_OUTPUTS:
        remedy = f"`sageaudit redrive {kind} --dry-run` shows why"
    return failed(name, f"about {count_text(letters, 'letter')}", remedy)


def _check_alarm_subscribers(session: Any, region: str, topic: str) -> Check:
    who, has_subscriber = _subscribers(session, region, topic)
    if not has_subscriber:
        remedy = "`make deploy` asks where alarms go; each new address must confirm"
        return failed("alarms", f"nobody gets them{who}", remedy)
    return passed("alarms", f"they go to {who}")


def _subscribers(session: Any, region: str, topic: str) -> tuple[str, bool]:
    """The subscribers of a topic, in words, and whether there are any."""
    with aws_errors("sns", topic):
        pages = client(session, "sns", region).get_paginator("list_subscriptions_by_topic")
        rows = [row for page in pages.paginate(TopicArn=topic) for row in page["Subscriptions"]]
    confirmed = [row for row in rows if row["SubscriptionArn"].startswith("arn:")]
    waiting = sum(row["SubscriptionArn"] == _PENDING for row in rows)
    unconfirmed = f", {waiting} not confirmed yet" if waiting else ""
    protocols = ", ".join(sorted({row["Protocol"] for row in confirmed}))
    text = f"{count_text(len(confirmed), 'subscriber')} ({protocols})" if confirmed else ""
    return f"{text}{unconfirmed}", bool(confirmed)


def _channel(session: Any, region: str, name: str, what: str) -> Check:
    """Checks that a channel's secret exists and is valid, or that its topic has a subscriber."""
    line, (word, _, address) = f"channel {name}", what.partition(" ")
    service = next((value for key, value in SERVICES.items() if key == word), None)
    if service is None:
        return not_checked(line, f"{word} is not known to this version")
    if service.secret_format is None:
        who, has_subscriber = _subscribers(session, address.split(":")[3] or region, address)
        if has_subscriber:
            return passed(line, f"the topic has {who}")
        remedy = f"subscribe somebody to {address}"
        if name == OWN_TOPIC:  # whoever reads chat needs no mail
            return Check(line, CheckState.OK, f"nobody gets the stack's own topic{who}", remedy)
        return failed(line, f"nobody gets the topic{who}", remedy)
    store = f'`make deploy ARGS="--secret-file {name}=FILE"` stores it'
    try:
        text = SecretReader(
            client(session, "secretsmanager", region), address, time.monotonic
        ).value()
    except BadSettings as error:
        return failed(line, error, store)
    if reason := service.secret_format.invalid_reason(text):
        return failed(
            line, f"the secret {address} holds no {service.secret_format.kind}: {reason}", store
        )
    return passed(line, f"the secret {address} holds a {service.secret_format.kind}")


def _executions(session: Any, region: str, audits_at_once: int) -> Check:
    """Checks that the audits need at most half of the account's concurrency."""
    with aws_errors("lambda"):
        limits = client(session, "lambda", region).get_account_settings()["AccountLimit"]
    limit = int(limits["UnreservedConcurrentExecutions"])
    found = f"{audits_at_once} audits at once, of {limit} functions that may run in this account"
    if limit < 2 * audits_at_once:
        remedy = "ask for a higher quota, or set audits_at_once lower: docs/before-you-deploy.md"
        return failed("executions", found, remedy)
    return passed("executions", found)


def _check_last_sweep(session: Any, region: str, table: str, now: datetime) -> Check:
    notes = DynamoSweepStore(client(session, "dynamodb", region), table)
    until = [state.watermark for state in drop_abandoned_lists(notes.all_list_states()).values()]
    if not until:
        remedy = "it runs every 15 minutes; look at the log of the sweep function"
        return not_checked("sweep", "no sweep has ended yet", remedy)
    oldest = min(until)
    at, lists = f"{oldest.astimezone(UTC):%Y-%m-%d %H:%M} UTC", count_text(len(until), "list")
    if now - oldest > MAX_UNTRIED_TIME:
        remedy = 'see "Sweep silent" in docs/runbook.md'
        found = f"no sweep has looked for jobs that ended after {at}"
        return failed("sweep", found, remedy)
    return passed("sweep", f"has looked for all jobs that ended up to {at}, in {lists}")
