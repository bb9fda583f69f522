"""`sageaudit notify`: what a job's message would say and why, or why there would be none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path

import click
from msgspec import Struct

from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.channels.channel import Connections
from sageaudit.adapters.channels.services import SERVICES, https_post
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.opened import BesideTable, HistorySource
from sageaudit.cli import asking, options
from sageaudit.cli.asking import HistoryOptions
from sageaudit.cli.messages import echo_json, say
from sageaudit.domain.alert.alert import Alert, ChannelHour, PastAlerts
from sageaudit.domain.alert.rule import LOOK_BACK
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.digest import DigestTimes
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import OWN_TOPIC, ChannelChoice, Destination, Service
from sageaudit.errors import BadRecording, BadUsage, JobNotFound
from sageaudit.output.text import teams
from sageaudit.output.text.card import MessageCard, Payload
from sageaudit.output.text.digest import digest_card
from sageaudit.output.text.links import OWN_HISTORY, HistoryPlace
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import time_of
from sageaudit.ports import History
from sageaudit.queries.names import Wanted, find
from sageaudit.workflows import digest as weekly
from sageaudit.workflows.audit.stored import whole_audit
from sageaudit.workflows.notify import run as notifying
from sageaudit.workflows.notify.run import Notification, NotifyDependencies
from sageaudit.workflows.recordings.run import audit_recordings

_FORMS: Mapping[str, Service] = {"slack": "slack", "email": "sns", "teams": "teams"}
"""What a message can be looked at as, also where the policy has no such channel."""
_LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")
_EPILOG = """\b
Examples:
  sageaudit notify --preview my-training-job
  sageaudit notify --recording job.json --channel email
  sageaudit notify --preview my-training-job --table NAME --channel ml-platform --send
  sageaudit notify --digest --preview --table NAME --channel teams"""


@click.command(epilog=_EPILOG)
@click.option(
    "--preview",
    "job",
    is_flag=False,
    flag_value="",
    metavar="[ARN|NAME]",
    help="A job of the history; none with --digest.",
)
@options.RECORDING
@click.option("--digest", is_flag=True, help="The weekly digest of the newest week that is over.")
@click.option(
    "--channel",
    metavar="NAME|slack|email|teams",
    default="slack",
    show_default=True,
    help="Channel of the policy to write for, or a service to see its form.",
)
@click.option("--raw", is_flag=True, help="Print the JSON that the channel posts.")
@click.option("--send", is_flag=True, help="Send it, once, to the address of the channel.")
@click.option(
    "--to",
    metavar="ADDRESS",
    help="Topic's ARN, or name of the secret with the address; by default that of the policy, for"
    " sns that of TOPIC_ARN in the environment.",
)
@options.POLICY
@asking.WHERE
def notify(
    job: str | None,
    path: Path | None,
    digest: bool,
    channel: str,
    raw: bool,
    send: bool,
    to: str | None,
    policy: Policy,
    where: HistoryOptions,
) -> None:
    """Shows the message that a job causes, or the weekly digest.

    It is decided as after an installation, by the runs of the job's family in the history, and with
    --table by the messages that were sent. A job that ended more than 30 days ago is decided about
    as at its end. Nothing is written; only --send posts.
    """
    if digest and (job or path):
        raise click.UsageError("--digest is about a week: name no job, and no file")
    if not digest and bool(job) == bool(path):
        raise click.UsageError("name one job with --preview, or one file with --recording")
    choice = _choice(channel, policy)
    if digest:
        with where.open() as source:
            cards = _digests(source, policy, channel)
        for card in cards:
            payload = _written(card, choice, policy, raw=raw)
            if send:
                _send(payload, channel, choice, to, where)
        return
    with _opened(where, recorded=path is not None) as source:
        history = BesideTable(source.history)
        if path is not None:
            head = _recorded(path, policy, history, source)
        else:
            head = find(source.history, Wanted(job or ""))
        notification = _notification(head, history, source, policy)
    alert, line = notification.alert, notification.line
    shown = line if alert is None or (line and channel in line.to.channels) else alert
    written = _written(shown.card, choice, policy, raw=raw) if shown else None
    _say_why(notification, policy, channel)
    if send and written:
        _send(written, channel, choice, to, where)


def _say_why(notification: Notification, policy: Policy, channel: str) -> None:
    """Says why there is a message or none, and which channels get the line about the job."""
    decision = notification.decision
    if notification.alert is None:
        say(f"no message: {decision.suppressed_because}")
    else:
        month = decision.month
        of_runs = f", {month.runs:,} of its family's runs count" if month else ""
        say(f"a message: {decision.kind}{f', {decision.why}' if decision.why else ''}{of_runs}")
        say(_goes_to(notification.alert.to, policy, channel))
    if notification.line:
        say(f"the line about each job goes to {', '.join(notification.line.to.channels)}")


def _written(card: MessageCard, choice: ChannelChoice, policy: Policy, *, raw: bool) -> Payload:
    """What the channel would post, which is shown. Raises Malformed where it could not."""
    payload = SERVICES[choice.service].write(card, policy.mentions)
    SERVICES[choice.service].check(payload)
    _show(payload, raw=raw)
    return payload


def _digests(source: HistorySource, policy: Policy, channel: str) -> list[MessageCard]:
    """The digests that a channel gets, or that of all jobs where it is only a form; says why."""
    now, table = asking.now(), _Previewed(source)
    if never := weekly.why_no_digest(policy):
        say(f"no digest: {never}")
        return []
    deps = weekly.DigestDependencies(source.history, table, source.decisions, policy, {})
    week = weekly.week_of(policy, now)
    found = weekly.read_digests(deps, week, source.decisions.decisions(), now)
    routes, left_out = weekly.digest_routes(policy)
    to = {number: route.to if route else policy.routes.default for number, route in routes.items()}
    mine = [number for number in to if channel in to[number]] if channel in policy.channels else [0]
    at = policy.digest or DigestTimes()
    written = ", and is written already" if table.has_digest(week[1]) else ""
    say(f"the week to {week[1]}: sent on {at.day} at {at.hour}:00 {at.timezone}{written}")
    for number, route in routes.items():
        say(f"{f'route {route}' if route else 'all jobs'}: to {', '.join(to[number])}")
    for named in left_out:
        say(f"route {named}")
    return [digest_card(found[number], place=_place(source)) for number in mine]


def _choice(name: str, policy: Policy) -> ChannelChoice:
    """The channel of this name, or one that has only a form. Raises BadUsage."""
    known = {
        **{form: ChannelChoice(service) for form, service in _FORMS.items()},
        **policy.channels,
    }
    if name not in known:
        near = did_you_mean(name, sorted(known))
        raise BadUsage(f"--channel {name}: the policy has no such channel{near}")
    return known[name]


def _goes_to(to: Destination, policy: Policy, channel: str) -> str:
    """By which route the message goes, or by none; and where the channel would not get it."""
    by = "; ".join(f"route {number} ({policy.routes.rows[number - 1]})" for number in to.routes)
    none = "no route matches" if policy.routes.rows else "the policy has no routes"
    names = ", ".join(to.channels)
    said = f"it goes to {names}, by {by}" if by else f"it goes to the default ({names}): {none}"
    left_out = channel in policy.channels and channel not in to.channels
    return f"{said}; not to {channel}" if left_out else said


class _Previewed(Struct, frozen=True):
    """An alert ledger that reads what was sent, and keeps nothing."""

    source: HistorySource

    def past(self, key: JobKey, group: str) -> PastAlerts:
        """What a table has; a file has no alerts."""
        table = self._table()
        return table.past(key, group) if table else PastAlerts(keys.job_pk(key), group)

    def alerts(self, group: str) -> Sequence[Alert]:
        """Those of the group alone."""
        table = self._table()
        return table.alerts(group) if table else ()

    def has_digest(self, last_day: date) -> bool:
        """Whether the table has it."""
        table = self._table()
        return bool(table and table.has_digest(last_day))

    def _table(self) -> DynamoAlertLedger | None:
        if self.source.session is None:
            return None
        return DynamoAlertLedger(client(self.source.session, "dynamodb"), self.source.name)

    def has_line(self, key: JobKey) -> bool:
        """False: the line is shown again."""
        del key
        return False

    def hour(self, channel: str, began_at: datetime) -> ChannelHour:
        """As if it were the first message of the hour."""
        return ChannelHour(channel, began_at)

    def write(self, *_: object, **__: object) -> bool:
        """Keeps nothing."""
        return True

    write_digest = write

    def notice(self, pk: str, sk: str) -> tuple[str, str] | None:
        """None: there are no notices."""
        del pk, sk
        return None


def _place(source: HistorySource) -> HistoryPlace:
    """The history for the commands of a message, wherever they are pasted."""
    if source.session is not None:
        return HistoryPlace.of_table(source.name, source.session.region_name)
    default = not source.name or source.name == str(histories.default_path())
    return OWN_HISTORY if default else HistoryPlace(("--history", source.name))


@contextmanager
def _opened(where: HistoryOptions, *, recorded: bool) -> Iterator[HistorySource]:
    """The history that was named; for a recording, none."""
    named = where.history is not None or where.table is not None
    with histories.in_memory("") if recorded and not named else where.open() as source:
        yield source


def _recorded(path: Path, policy: Policy, history: History, source: HistorySource) -> AuditSummary:
    """The head of a recorded run, which is audited beside the history."""
    [audited] = audit_recordings([path], policy, history, lasts=bool(source.name))
    if isinstance(audited, BadRecording):
        raise audited
    job = audited["job"]
    created_at = time_of(job["created_at"] or job["started_at"])
    head = history.head(JobKey(job["arn"], created_at)) if job["arn"] and created_at else None
    if head is None:
        raise BadUsage(f"{path}: a message needs the job's ARN and its time of creation")
    return head


def _notification(
    head: AuditSummary, history: History, source: HistorySource, policy: Policy
) -> Notification:
    """What `notify` would do about the run, which is not written."""
    document = whole_audit(history, head.key, head.version)
    if document is None:
        raise JobNotFound(f"the stored audit of {head.job} cannot be read: audit it again")
    deps = NotifyDependencies(
        history=history,
        ledger=_Previewed(source),
        decisions=source.decisions,
        policy=policy,
        writers=dict.fromkeys(policy.channels, _write_nothing),
        place=_place(source),
    )
    now = asking.now()
    now = head.ended_at if head.ended_at <= now - LOOK_BACK else now
    return notifying.notify(head.key, head.version, document, deps, now=now)


def _write_nothing(card: MessageCard, mentions: Mapping[str, str]) -> Payload:
    """No payload: the card is written for the one channel that is shown."""
    del card, mentions
    return {}


def _show(payload: Payload, *, raw: bool) -> None:
    """The texts of what is posted, with the words of its links."""
    if raw:
        echo_json(payload)
        return
    texts = [f"Subject: {payload['subject']}", ""] if "subject" in payload else []
    texts += [
        payload.get("message", ""),
        *(one["text"]["text"] for one in payload.get("blocks", ())),
        *(teams.shown(payload) if "attachments" in payload else ()),
    ]
    for line in "\n".join(texts).strip().split("\n"):
        click.echo(terminal(_LINK.sub(r"\1", line)))


def _send(
    payload: Payload, name: str, choice: ChannelChoice, to: str | None, where: HistoryOptions
) -> None:
    """Posts once by the channel's own code. Raises BadUsage or a ChannelError."""
    own = os.environ.get("TOPIC_ARN", "").strip() if name == OWN_TOPIC else ""
    address = to or choice.secret or choice.topic_arn or own
    if not address:
        raise BadUsage(
            f"where to? give --to, or set TOPIC_ARN in the environment for {OWN_TOPIC}; the policy"
            " has the addresses of its channels"
        )
    session = open_session(where.profile, where.table_region)
    connections = Connections(session, https_post)
    connected = SERVICES[choice.service].connect(name, address, connections)
    connected.prepare()
    connected.post(payload)
    say(f"{name} took it, at {address}")
