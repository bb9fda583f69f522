"""`sageaudit notify`: what a job's message would say and why, or why there would be none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.channels.channel import ChannelConnections
from sageaudit.adapters.channels.services import SERVICES, https_post
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.opened import HistorySource
from sageaudit.cli import asking, options
from sageaudit.cli.asking import HistoryChoice
from sageaudit.cli.messages import print_json, print_message
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import OWN_TOPIC, ChannelConfig, Destination, Service
from sageaudit.domain.policy.scope import DigestSchedule
from sageaudit.errors import BadUsage
from sageaudit.output.text.card import MessageCard, Payload
from sageaudit.output.text.digest import digest_card
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.workflows.notify import Notification
from sageaudit.workflows.preview import history_location, preview_digests, preview_message

_FORMS: Mapping[str, Service] = {
    "email" if service == "sns" else service: service for service in SERVICES
}
"""What a message can be looked at as, also where the policy has no such channel."""
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
    metavar="|".join(("NAME", *_FORMS)),
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
@asking.HISTORY_OPTIONS
def notify(
    job: str | None,
    path: Path | None,
    digest: bool,
    channel: str,
    raw: bool,
    send: bool,
    to: str | None,
    policy: Policy,
    where: HistoryChoice,
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
            payload = _make_payload(card, choice, policy, raw=raw)
            if send:
                _send(payload, channel, choice, to, where)
        return
    with _open(where, recorded=path is not None) as source:
        notification = preview_message(source, policy, asking.utc_now(), recording=path, job=job)
    alert, line = notification.alert, notification.job_line
    shown = line if alert is None or (line and channel in line.destination.channels) else alert
    written = _make_payload(shown.card, choice, policy, raw=raw) if shown else None
    _explain(notification, policy, channel)
    if send and written:
        _send(written, channel, choice, to, where)


def _explain(notification: Notification, policy: Policy, channel: str) -> None:
    """Says why there is a message or none, and which channels get the line about the job."""
    decision = notification.decision
    if notification.alert is None:
        print_message(f"no message: {decision.suppressed_because}")
    else:
        month = decision.month
        of_runs = f", {month.runs:,} of its family's runs count" if month else ""
        print_message(
            f"a message: {decision.kind}{f', {decision.why}' if decision.why else ''}{of_runs}"
        )
        print_message(_destination_text(notification.alert.destination, policy, channel))
    if notification.job_line:
        print_message(
            "the line about each job goes to"
            f" {', '.join(notification.job_line.destination.channels)}"
        )


def _make_payload(
    card: MessageCard, choice: ChannelConfig, policy: Policy, *, raw: bool
) -> Payload:
    """What the channel would post, which is shown. Raises MalformedData where it could not."""
    service = SERVICES[choice.service]
    payload = service.write(card, policy.mentions)
    service.check(payload)
    if raw:
        print_json(payload)
    else:
        lines = "\n".join(service.text_lines(payload)).strip()
        click.echo("\n".join(map(for_terminal, lines.split("\n"))))
    return payload


def _digests(source: HistorySource, policy: Policy, channel: str) -> list[MessageCard]:
    """The digests that a channel gets, or that of all jobs where it is only a form; says why."""
    found = preview_digests(source, policy, asking.utc_now())
    if isinstance(found, str):
        print_message(f"no digest: {found}")
        return []
    to = found.channels
    mine = [number for number in to if channel in to[number]] if channel in policy.channels else [0]
    at = policy.digest or DigestSchedule()
    written = ", and is written already" if found.is_written else ""
    print_message(
        f"the week to {found.last_day}: sent on {at.day} at {at.hour}:00 {at.timezone}{written}"
    )
    for number, route in found.routes.items():
        print_message(f"{f'route {route}' if route else 'all jobs'}: to {', '.join(to[number])}")
    for named in found.routes_without_digest:
        print_message(f"route {named}")
    return [digest_card(found.digests[number], history=history_location(source)) for number in mine]


def _choice(name: str, policy: Policy) -> ChannelConfig:
    """The channel of this name, or one that has only a form. Raises BadUsage."""
    known = {
        **{form: ChannelConfig(service) for form, service in _FORMS.items()},
        **policy.channels,
    }
    if name not in known:
        near = did_you_mean(name, sorted(known))
        raise BadUsage(f"--channel {name}: the policy has no such channel{near}")
    return known[name]


def _destination_text(to: Destination, policy: Policy, channel: str) -> str:
    """By which route the message goes, or by none; and where the channel would not get it."""
    by = "; ".join(
        f"route {number} ({policy.routes.rows[number - 1]})" for number in to.route_numbers
    )
    none = "no route matches" if policy.routes.rows else "the policy has no routes"
    names = ", ".join(to.channels)
    said = f"it goes to {names}, by {by}" if by else f"it goes to the default ({names}): {none}"
    left_out = channel in policy.channels and channel not in to.channels
    return f"{said}; not to {channel}" if left_out else said


def _open(where: HistoryChoice, *, recorded: bool) -> HistorySource:
    """The history that was named; for a recording, none."""
    named = where.history is not None or where.table is not None
    return histories.open_in_memory("") if recorded and not named else where.open()


def _send(
    payload: Payload, name: str, choice: ChannelConfig, to: str | None, where: HistoryChoice
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
    connections = ChannelConnections(session, https_post)
    connected = SERVICES[choice.service].connect(name, address, connections)
    connected.prepare()
    connected.post(payload)
    print_message(f"{name} took it, at {address}")
