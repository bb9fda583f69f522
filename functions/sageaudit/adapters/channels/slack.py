"""Slack, by an incoming webhook."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Self

from sageaudit.adapters.aws import secrets
from sageaudit.adapters.channels.channel import Connections, NoticeChannel, StoredSecret
from sageaudit.adapters.channels.webhook import Secret, Transport, Webhook
from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text import slack
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.envelope import Payload

_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com|hooks\.slack-gov\.com)(?::443)?/services(?:/[A-Za-z0-9_-]+)+"
)
_NO_WEBHOOK = "it is not of the form https://hooks.slack.com/services/T.../B.../..."


def check_webhook(url: str) -> str | None:
    """Why this is no address of a Slack webhook, or None when it is one; says nothing of it.

    One strict form: https, Slack's hosts, no user, no port but 443, no dots, queries or fragments.
    """
    return None if _WEBHOOK.fullmatch(url) else _NO_WEBHOOK


class SlackChannel(NoticeChannel):
    """Slack answers 200 with `ok` for what it posted, and an error word otherwise."""

    name = "slack"
    address = StoredSecret(
        variable="SLACK_SECRET_ID",
        stored_as="sageaudit/slack-webhook",
        service="Slack",
        kind="incoming webhook URL",
        example="https://hooks.slack.com/services/T00000000/B00000000/local",
        refusal=check_webhook,
    )
    permissions = secrets.PERMISSIONS

    def __init__(self, secret: Secret, transport: Transport) -> None:
        self._webhook = Webhook(
            self.name, secret, transport, refusal=check_webhook, accepted=_accepted
        )

    @staticmethod
    def write(document: AuditDocument, policy: Policy, notify: Notify = FIRST) -> Payload:
        """Block Kit; mentions an owner whose id the policy lists."""
        return slack.message(document, owner_ids=policy.mentions, notify=notify)

    @staticmethod
    def write_digest(card: MessageCard) -> Payload:
        """Block Kit, without a mention."""
        return slack.of_card(card)

    @staticmethod
    def check(payload: Payload) -> None:
        """Raises Malformed."""
        slack.check(payload)

    @staticmethod
    def as_repeat(payload: Payload) -> Payload:
        """Marked in the notification and in the headline."""
        return slack.as_repeat(payload)

    @classmethod
    def connect(cls, address: str, connections: Connections) -> Self:
        """`address` is the secret that holds the webhook's URL."""
        return cls(connections.secret(address), connections.transport)

    def prepare(self) -> None:
        """Reads the webhook's URL. Raises ChannelBroken or ChannelUnavailable."""
        self._webhook.prepare()

    def post(self, payload: Payload) -> None:
        """Raises a ChannelError."""
        self._webhook.post(payload)


def _accepted(status: int, word: str) -> bool:
    return status == HTTPStatus.OK and word == "ok"
