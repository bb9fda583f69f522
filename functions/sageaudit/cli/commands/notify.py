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
from sageaudit.cli import clock, options, query_options
from sageaudit.cli.messages import print_json, print_message
from sageaudit.cli.query_options import HistoryChoice
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import (
    OWN_TOPIC,
    ChannelConfig,
    Destination,
    Service,
    is_channel_name,
)
from sageaudit.domain.policy.scope import DigestSchedule
from sageaudit.errors import BadUsage
from sageaudit.output.text.card import MessageCard, Payload
from sageaudit.output.text.digest import digest_card
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.notify import Notification
from sageaudit.workflows.preview import history_location, preview_digests, preview_message

_SERVICES_BY_NAME: Mapping[str, Service] = {
    "email" if service == "sns" else service: service for service in SERVICES
}
"""Services by the name for --channel. The policy need not have a channel of the service."""
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
    help="Job in the history; with --digest, give --preview without a job.",
)
@options.RECORDING_OPTION
@click.option("--digest", is_flag=True, help="Show the weekly digest of the last finished week.")
@click.option(
    "--channel",
    metavar="|".join(("NAME", *_SERVICES_BY_NAME)),
    default="slack",
    show_default=True,
    help="Show the message in the form of this channel of the policy, or of this service.",
)
@click.option("--raw", is_flag=True, help="Print the JSON that the channel posts.")
@click.option("--send", is_flag=True, help="Send it once to the channel's address.")
@click.option(
    "--to",
    metavar="ADDRESS",
    help="ARN of the topic, or name of the secret with the address; by default from the policy,"
    f" or for the channel {OWN_TOPIC} from the environment variable TOPIC_ARN.",
)
@options.POLICY_OPTION
@query_options.HISTORY_OPTIONS
def notify(
    job: str | None,
    path: Path | None,
    digest: bool,
    channel: str,
    raw: bool,
    send: bool,
    to: str | None,
    policy: Policy,
    history_choice: HistoryChoice,
) -> None:
    """Shows the message that a job causes, or the weekly digest.

    Whether a message would be sent is decided as in a new deployment: from the runs of the job's
    family in the history, and with --table also from the messages that were sent. If the job ended
    more than 30 days ago, the decision is that of the day on which it ended. Nothing is written;
    only --send posts.
    """
    if digest and (job or path):
        raise click.UsageError("--digest is about a week: leave out the job and the file")
    if not digest and bool(job) == bool(path):
        raise click.UsageError("name one job with --preview, or one file with --recording")
    channel_config = _channel_config(channel, policy)
    if digest:
        with history_choice.open() as source:
            cards = _digests(source, policy, channel)
        for card in cards:
            payload = _make_payload(card, channel_config, policy, raw=raw)
            if send:
                _send(payload, channel, channel_config, to, history_choice)
        return
    with _open(history_choice, recorded=path is not None) as source:
        notification = preview_message(source, policy, clock.utc_now(), recording=path, job=job)
    alert, job_line = notification.alert, notification.job_line
    wants_line = job_line is not None and channel in job_line.destination.channels
    message = job_line if alert is None or wants_line else alert
    sent = _make_payload(message.card, channel_config, policy, raw=raw) if message else None
    _explain(notification, policy, channel)
    if send and sent:
        _send(sent, channel, channel_config, to, history_choice)


def _explain(notification: Notification, policy: Policy, channel: str) -> None:
    decision = notification.alert_decision
    if notification.alert is None:
        print_message(f"no message: {decision.suppressed_because}")
    else:
        month = decision.month
        runs_text = f", {_counted_runs_text(month.runs)}" if month else ""
        news_text = f", {decision.news_text}" if decision.news_text else ""
        print_message(f"a message: {decision.kind}{news_text}{runs_text}")
        print_message(_destination_text(notification.alert.destination, policy, channel))
    if notification.job_line:
        print_message(
            "the line about each job goes to"
            f" {', '.join(notification.job_line.destination.channels)}"
        )


def _counted_runs_text(count: int) -> str:
    return f"{count_text(count, 'run')} of its family {'counts' if count == 1 else 'count'}"


def _make_payload(
    card: MessageCard, channel_config: ChannelConfig, policy: Policy, *, raw: bool
) -> Payload:
    # Prints the payload too. Raises MalformedData if the channel could not post it.
    service = SERVICES[channel_config.service]
    payload = service.write(card, policy.mentions)
    service.check(payload)
    if raw:
        print_json(payload)
    else:
        lines = "\n".join(service.text_lines(payload)).strip()
        click.echo("\n".join(map(for_terminal, lines.split("\n"))))
    return payload


def _digests(source: HistorySource, policy: Policy, channel: str) -> list[MessageCard]:
    # Prints why there is a digest or none. A channel's name selects the digests of its routes. A
    # service's name selects the digest of all jobs.
    preview = preview_digests(source, policy, clock.utc_now())
    if isinstance(preview, str):
        print_message(f"no digest: {preview}")
        return []
    channels = preview.channels
    digest_numbers = [0]  # the digest of all jobs
    if channel in policy.channels:
        digest_numbers = [number for number in channels if channel in channels[number]]
    schedule = policy.digest or DigestSchedule()
    written_text = ", and already written" if preview.is_written else ""
    print_message(
        f"the week to {preview.last_day}: sent on {schedule.day} at {schedule.hour}:00"
        f" {schedule.timezone}{written_text}"
    )
    for number, route in preview.routes.items():
        print_message(
            f"{f'route {route}' if route else 'all jobs'}: to {', '.join(channels[number])}"
        )
    for description in preview.routes_without_digest:
        print_message(f"route {description}")
    return [
        digest_card(preview.digests[number], history=history_location(source))
        for number in digest_numbers
    ]


def _channel_config(name: str, policy: Policy) -> ChannelConfig:
    """Returns the policy's channel, or a default channel if `name` is a service.

    Raises BadUsage for an unknown name.
    """
    configs = {
        **{
            service_name: ChannelConfig(service)
            for service_name, service in _SERVICES_BY_NAME.items()
        },
        **policy.channels,
    }
    if not is_channel_name(name):  # not repeated, since it may be an address
        raise BadUsage("--channel takes the name of a channel of the policy, not its address")
    if name not in configs:
        suggestion = did_you_mean(name, sorted(configs))
        raise BadUsage(f"--channel {name}: the policy has no such channel{suggestion}")
    return configs[name]


def _destination_text(to: Destination, policy: Policy, channel: str) -> str:
    routes_text = "; ".join(
        f"route {number} ({policy.routes.rows[number - 1]})" for number in to.route_numbers
    )
    reason = "no route matches" if policy.routes.rows else "the policy has no routes"
    names = ", ".join(to.channels)
    text = (
        f"it goes to {names}, by {routes_text}"
        if routes_text
        else f"it goes to the default ({names}): {reason}"
    )
    is_left_out = channel in policy.channels and channel not in to.channels
    return f"{text}; not to {channel}" if is_left_out else text


def _open(history_choice: HistoryChoice, *, recorded: bool) -> HistorySource:
    # For a recording without a history, opens an empty one.
    has_name = history_choice.history is not None or history_choice.table is not None
    return histories.open_in_memory("") if recorded and not has_name else history_choice.open()


def _send(
    payload: Payload,
    name: str,
    channel_config: ChannelConfig,
    to: str | None,
    history_choice: HistoryChoice,
) -> None:
    """Posts once, with the channel's own code. Raises BadUsage or a ChannelError."""
    own_address = os.environ.get("TOPIC_ARN", "").strip() if name == OWN_TOPIC else ""
    address = to or channel_config.secret or channel_config.topic_arn or own_address
    if not address:
        raise BadUsage(
            f"there is no address: give --to, or for {OWN_TOPIC} set TOPIC_ARN in the environment;"
            " the policy has the addresses of its channels"
        )
    session = open_session(history_choice.profile, history_choice.table_region)
    connections = ChannelConnections(session, https_post)
    connection = SERVICES[channel_config.service].connect(name, address, connections)
    connection.prepare()
    connection.post(payload)
    print_message(f"sent to {name} at {address}")
