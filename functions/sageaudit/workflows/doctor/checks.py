"""The checks of `sageaudit doctor`. Each is one line, with the next step if it failed."""

from __future__ import annotations

import enum
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
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
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.moments import FIRST_DAY, LAST_DAY
from sageaudit.domain.policy.routes import OWN_TOPIC
from sageaudit.domain.sweep import drop_abandoned_lists, last_read_at, list_states
from sageaudit.errors import (
    AwsError,
    BadSettings,
    NoEndpoint,
    NoHistory,
    SageauditError,
    TableNotFound,
    Unavailable,
    UnreadableItem,
)
from sageaudit.exits import Exit, exit_for
from sageaudit.output.text.words import count_text
from sageaudit.ports import Decisions, History
from sageaudit.workflows.doctor import permissions
from sageaudit.workflows.redrive import DEAD_LETTER_OUTPUTS

_OLD_PRICES_DAYS = 180
SILENT_SWEEP_AFTER = timedelta(hours=1)
"""After this time without an attempt to read a list, sweeps no longer run: they run every 15
minutes. Our choice."""
LATE_LIST_AFTER = timedelta(hours=3)
"""A list that was last read before this time is late, although sweeps run. Our choice."""
_MAX_NAMED_ITEMS = 20
_ABSENT_RUN = JobKey("doctor", datetime(2017, 11, 1, tzinfo=UTC))
_COSTS = "ce:GetCostAndUsage"
_SQS_PREFIX = "sqs:"
_ALLOW_NEXT_STEP = "allow it: `sageaudit doctor --policy` prints the policy"


class CheckState(enum.StrEnum):
    """How a check ended. JSON output has these values."""

    OK = "ok"
    FAILED = "failed"
    NOT_CHECKED = "not_checked"


class Check(Struct, frozen=True):
    """One line of the output of `doctor`.

    `found` is the result, and `next` what to do about it. `code` is the exit code of a failed
    check.
    """

    name: str
    state: CheckState
    found: str
    next: str | None = None
    code: Exit = Exit.DONE


def passed(name: str, detail: str) -> Check:
    """Returns a check that passed."""
    return Check(name, CheckState.OK, detail)


def failed_check(
    name: str, error: SageauditError | str, next_step: str | None = None, code: Exit = Exit.FAILURE
) -> Check:
    """Returns a check that failed. `code` is used only if `error` is a text."""
    if isinstance(error, SageauditError):
        code = exit_for(error)
    return Check(name, CheckState.FAILED, str(error).rstrip("."), next_step, code)


def not_checked(name: str, detail: str, next_step: str | None = None) -> Check:
    """Returns a check that could not be made. This is not a failure."""
    return Check(name, CheckState.NOT_CHECKED, detail, next_step)


def check_versions() -> Check:
    """Returns a check with the versions of sageaudit, Python and boto3."""
    parts = ", ".join(f"{name} {version(name)}" for name in ("boto3", "botocore"))
    version_text = f"sageaudit {__version__}, Python {platform.python_version()}, {parts}"
    return passed("versions", version_text)


def check_prices(today: date) -> Check:
    """Returns a check with the date and age of the packaged prices."""
    as_of = packaged.packaged_prices().as_of
    age = (today - date.fromisoformat(as_of)).days
    age_text = f"packaged tables of {as_of}, {age} days old"
    remedy = "a newer sageaudit may have newer ones" if age > _OLD_PRICES_DAYS else None
    return Check("prices", CheckState.OK, age_text, remedy)


def check_file(path: Path | None, warn: Callable[[str], None]) -> Iterator[Check]:
    """Yields the checks that the history's file is of this version, readable and writable."""
    name = f"history {path or histories.default_path()}"
    try:
        with histories.open_history(path, None, None, None, warn=warn) as opened:
            yield _check_writable(name, Path(opened.name))
            yield _check_stored_items(name, opened.history, opened.decisions, with_documents=True)
    except NoHistory as error:
        if path is None:
            yield Check(name, CheckState.OK, "not there yet", "`sageaudit scan` makes it")
        else:
            yield failed_check(name, error, "make it with `sageaudit scan --history FILE`")
    except SageauditError as error:
        yield failed_check(name, error)


def _check_writable(name: str, path: Path) -> Check:
    if not (os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)):
        remedy = "`scan` and `audit` cannot add to it: change its mode, or its folder's"
        return failed_check(name, "it can be read, but not written", remedy, Exit.DENIED)
    return passed(name, "readable and writable, of this version")


def _check_stored_items(
    name: str, history: History, decisions: Decisions, *, with_documents: bool
) -> Check:
    """Reads every decision, sum and row, and names those that cannot be read.

    `with_documents`: also reads every audit's document, which in a table costs a request each.
    """
    name, item_count, unreadable = f"{name}, stored items", len(decisions.decisions()), []
    sums = [row for scope in Scope for row in history.daily_sums(scope, FIRST_DAY, LAST_DAY)]
    rules = {rule for row in sums for rule in row.sums.rules}
    queries: list[RunQuery[Any]] = [
        *map(RunQuery.for_day, sorted({row.day for row in sums})),
        *map(RunQuery.for_rule, sorted(rules)),
    ]
    for row in (row for query in queries for row in history.runs(query)):
        item_count += 1
        if with_documents and isinstance(row, AuditSummary):
            try:
                history.audit(row.key)
            except UnreadableItem as error:
                unreadable.append(error)
    unreadable += history.take_unreadable()
    if not unreadable:
        return passed(name, f"all {item_count + len(sums):,} can be read")
    named = "; ".join(str(item) for item in unreadable[:_MAX_NAMED_ITEMS])
    more_count = len(unreadable) - _MAX_NAMED_ITEMS
    return failed_check(name, named + (f"; and {more_count} more" if more_count > 0 else ""))


def region(name: str | None) -> Check:
    """Checks the region that the other checks use."""
    if name is None:
        return failed_check(
            "region", "none", "give --region, or set one for your profile", Exit.USAGE
        )
    if name not in known_regions():
        remedy = "a region looks like eu-west-1"
        return failed_check("region", f"{name} is not a region of SageMaker", remedy, Exit.USAGE)
    return passed("region", name)


def check_credentials(session: Any, region_name: str) -> tuple[Check, Identity | None]:
    """Checks the credentials. Also returns their account and ARN, or None if the check failed."""
    try:
        own_identity = identity(session, region_name)
    except AwsError as error:
        remedy = "check the network, and HTTPS_PROXY and AWS_CA_BUNDLE behind a proxy"
        is_network_error = isinstance(error, Unavailable)
        return failed_check("credentials", error, remedy if is_network_error else None), None
    return passed(
        "credentials", f"{own_identity.arn}, account {own_identity.account}"
    ), own_identity


def check_actions(
    names: Sequence[str], session: Any, region_name: str, own_identity: Identity
) -> Iterator[Check]:
    """Yields a check of each IAM action. The check is a harmless call, if the action has one."""
    for name in names:
        if name == _COSTS:
            yield not_checked(
                name, "a check costs $0.01", "try it with `sageaudit scan --coverage`"
            )
        elif name.startswith(_SQS_PREFIX):
            remedy = "try it with `sageaudit redrive notices --dry-run`"
            yield not_checked(name, "a check could change a queue", remedy)
        elif error := check_permission(
            name, partial(client, session), region_name, own_identity.account
        ):
            if isinstance(error, NoEndpoint):
                yield not_checked(name, str(error).rstrip("."))
            else:
                yield failed_check(name, error, _next_step(error))
        else:
            yield passed(name, "permitted")


def _next_step(error: AwsError) -> str:
    return _ALLOW_NEXT_STEP if exit_for(error) is Exit.DENIED else "try again later"


def check_roles(account_list: AccountList, session: Any, region_name: str) -> Iterator[Check]:
    """Yields a check of each other account: its role can be assumed and allows a scan."""
    clients = account_list.make_clients(session, region_name)
    if account_list.role is None:
        return
    for account in account_list.account_names:
        name = f"{account_list.role.name} in {account}"
        if account == account_list.own_identity.account:
            yield passed(f"account {account}", "your own: it needs no role")
            continue
        try:
            clients.client_factory("sagemaker")(account, region_name)
        except AwsError as error:
            yield failed_check(name, error, "correct the role's trust policy")
            continue

        def client_for(service: str, region: str, account: str = account) -> Any:
            return clients.client_factory(service)(account, region)

        probed_actions = permissions.ACCOUNT_ACTIONS
        missing = {
            action: refusal
            for action in probed_actions
            if (refusal := check_permission(action, client_for, region_name, account))
        }
        if missing:
            code = exit_for(next(iter(missing.values())))
            remedy = "docs/permissions.md has the policy of the role"
            yield failed_check(name, f"not permitted: {', '.join(missing)}", remedy, code)
        else:
            yield passed(name, "it can be assumed, and allows what a scan needs")


def table(name: str, session: Any, region: str) -> Iterator[Check]:
    """Yields the checks that the table exists, is sageaudit's, and can be read by key and index."""
    check_name = f"table {name}"
    history = DynamoHistory(client(session, "dynamodb", region, CONFIG), name)
    empty_list = history.runs(RunQuery.for_name(_ABSENT_RUN.arn), page_size=1)
    calls: dict[str, Callable[[], object]] = {
        "dynamodb:GetItem": lambda: history.summary(_ABSENT_RUN),
        "dynamodb:Query": lambda: next(empty_list, None),
    }
    for action, call in calls.items():
        try:
            call()
        except TableNotFound as error:
            yield failed_check(check_name, error, "the stack's output TableName has its name")
            return
        except AwsError as error:
            yield failed_check(f"{check_name}, {action}", error, _next_step(error))
        else:
            yield passed(f"{check_name}, {action}", "permitted")
    with suppress(AwsError):  # reported above
        yield _check_stored_items(check_name, history, history, with_documents=False)


_DEAD_LETTER_QUEUES = {
    **{kind.value: output for kind, output in DEAD_LETTER_OUTPUTS.items()},
    "sweep": "SweepDeadLettersUrl",
    "watch": "WatchDeadLettersUrl",
    "digest": "DigestDeadLettersUrl",
}
"""The stack's outputs with the URLs of dead-letter queues, by kind of letter.

`sageaudit redrive` cannot send letters of sweep, watch and digest again.
"""
_PENDING = "PendingConfirmation"


def stack(name: str, session: Any, region: str, now: datetime) -> Iterator[Check]:
    """Yields the checks of one stack. An AwsError becomes a failed check."""
    try:
        outputs = read_stack_outputs(client(session, "cloudformation", region), name)
    except AwsError as error:
        yield failed_check(f"stack {name}", error)
        return
    needed_outputs = (*_DEAD_LETTER_QUEUES.values(), "AlarmsTopicArn", "TableName")
    missing = [output for output in needed_outputs if output not in outputs]
    if missing:
        problem, remedy = f"it has no output {missing[0]}", "deploy this version, or name its stack"
        yield failed_check(f"stack {name}", problem, remedy, Exit.USAGE)
        return
    yield passed(f"stack {name}", f"in {region}")
    checks: dict[str, Callable[[], Check]] = {
        f"dead letters, {kind}": partial(
            _check_dead_letters, session, region, kind, outputs[output]
        )
        for kind, output in _DEAD_LETTER_QUEUES.items()
    }
    for channel, service_and_address in outputs_by_channel(outputs, CHANNEL).items():
        checks[f"channel {channel}"] = partial(
            _check_channel, session, region, channel, service_and_address
        )
    checks["alarms"] = partial(_check_alarm_subscribers, session, region, outputs["AlarmsTopicArn"])
    if audits_at_once := outputs.get(AUDITS_AT_ONCE):
        checks["executions"] = partial(_check_concurrency, session, region, int(audits_at_once))
    checks["sweep"] = partial(_check_last_sweep, session, region, outputs["TableName"], now)
    for line, check in checks.items():
        try:
            yield check()
        except AwsError as error:
            yield failed_check(line, error)


def _check_dead_letters(session: Any, region: str, kind: str, url: str) -> Check:
    name = f"dead letters, {kind}"
    depth = DeadLetterQueue(client(session, "sqs", region), url).depth()
    letter_count = depth.visible + depth.in_flight
    if not letter_count:
        return passed(name, "none")
    remedy = "docs/runbook.md#dead-letters says how to read and delete them"
    if kind in DEAD_LETTER_OUTPUTS:
        remedy = f"`sageaudit redrive {kind} --dry-run` shows why"
    return failed_check(name, f"about {count_text(letter_count, 'letter')}", remedy)


def _check_alarm_subscribers(session: Any, region: str, topic: str) -> Check:
    subscribers, has_subscriber = _subscribers(session, region, topic)
    if not has_subscriber:
        remedy = "`make deploy` asks where alarms go; each new address must confirm"
        return failed_check("alarms", f"they have no subscriber{subscribers}", remedy)
    return passed("alarms", f"they go to {subscribers}")


def _subscribers(session: Any, region: str, topic: str) -> tuple[str, bool]:
    """Returns the topic's subscribers as text, and whether any is confirmed."""
    with aws_errors("sns", topic):
        pages = client(session, "sns", region).get_paginator("list_subscriptions_by_topic")
        rows = [row for page in pages.paginate(TopicArn=topic) for row in page["Subscriptions"]]
    confirmed = [row for row in rows if row["SubscriptionArn"].startswith("arn:")]
    pending_count = sum(row["SubscriptionArn"] == _PENDING for row in rows)
    unconfirmed_text = f", {pending_count} not confirmed yet" if pending_count else ""
    protocols = ", ".join(sorted({row["Protocol"] for row in confirmed}))
    text = f"{count_text(len(confirmed), 'subscriber')} ({protocols})" if confirmed else ""
    return f"{text}{unconfirmed_text}", bool(confirmed)


def _check_channel(session: Any, region: str, name: str, service_and_address: str) -> Check:
    """Checks that a channel's secret is valid, or that its topic has a subscriber.

    `service_and_address`: a service's name and an address, with a space between them.
    """
    check_name, (service_name, _, address) = f"channel {name}", service_and_address.partition(" ")
    service = next((value for key, value in SERVICES.items() if key == service_name), None)
    if service is None:
        return not_checked(check_name, f"{service_name} is not known to this version")
    if service.secret_format is None:
        subscribers, has_subscriber = _subscribers(
            session, address.split(":")[3] or region, address
        )
        if has_subscriber:
            return passed(check_name, f"the topic has {subscribers}")
        remedy = f"add a subscriber to {address}"
        if name == OWN_TOPIC:  # chat channels get the messages anyway
            return Check(
                check_name,
                CheckState.OK,
                f"the stack's own topic has no subscriber{subscribers}",
                remedy,
            )
        return failed_check(check_name, f"the topic has no subscriber{subscribers}", remedy)
    store_step = f'`make deploy ARGS="--secret-file {name}=FILE"` stores it'
    try:
        secret = SecretReader(
            client(session, "secretsmanager", region), address, time.monotonic
        ).value()
    except BadSettings as error:
        return failed_check(check_name, error, store_step)
    if reason := service.secret_format.invalid_reason(secret):
        return failed_check(
            check_name,
            f"the secret {address} holds no {service.secret_format.kind}: {reason}",
            store_step,
        )
    return passed(check_name, f"the secret {address} holds a {service.secret_format.kind}")


def _check_concurrency(session: Any, region: str, audits_at_once: int) -> Check:
    """Checks that the audits need at most half of the account's Lambda concurrency."""
    with aws_errors("lambda"):
        limits = client(session, "lambda", region).get_account_settings()["AccountLimit"]
    limit = int(limits["UnreservedConcurrentExecutions"])
    concurrency_text = (
        f"{audits_at_once} audits at once; this account may run {limit} functions at once"
    )
    if limit < 2 * audits_at_once:
        remedy = "ask for a higher quota, or set audits_at_once lower: docs/before-you-deploy.md"
        return failed_check("executions", concurrency_text, remedy)
    return passed("executions", concurrency_text)


def _check_last_sweep(session: Any, region: str, table: str, now: datetime) -> Check:
    sweep_store = DynamoSweepStore(client(session, "dynamodb", region), table)
    states = drop_abandoned_lists(list_states(sweep_store.swept_regions()))
    if not states:
        remedy = "it runs every 15 minutes; look at the log of the sweep function"
        return not_checked("sweep", "no sweep has ended yet", remedy)
    last_tried_at = max(state.tried_at or state.began_at for state in states.values())
    if now - last_tried_at > SILENT_SWEEP_AFTER:
        problem = f"the last sweep was at {_minute_text(last_tried_at)}"
        return failed_check("sweep", problem, 'see "Sweep silent" in docs/runbook.md')
    oldest, oldest_read_at = min(
        ((job_list, last_read_at(state, job_list.kind)) for job_list, state in states.items()),
        key=lambda list_and_moment: list_and_moment[1],
    )
    count = count_text(len(states), "list")
    if now - oldest_read_at > LATE_LIST_AFTER:
        place = f"{oldest.kind} jobs of {oldest.account_region}"
        problem = f"of {count}, that of the {place} was last read at {_minute_text(oldest_read_at)}"
        return failed_check("sweep", problem, 'see "Lists late" in docs/runbook.md')
    return passed("sweep", f"it has read {count} since {_minute_text(oldest_read_at)}")


def _minute_text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
