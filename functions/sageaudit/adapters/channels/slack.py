"""Slack, by an incoming webhook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from sageaudit.adapters.aws import secrets
from sageaudit.adapters.channels.channel import SecretForm, WebhookChannel
from sageaudit.output.text import slack
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.envelope import NOBODY, Payload

_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com|hooks\.slack-gov\.com)(?::443)?/services(?:/[A-Za-z0-9_-]+)+"
)
_NO_WEBHOOK = "it is not of the form https://hooks.slack.com/services/T.../B.../..."


def check_webhook(url: str) -> str | None:
    """Why this is no address of a Slack webhook, or None when it is one; says nothing of it.

    One strict form: https, Slack's hosts, no user, no port but 443, no dots, queries or fragments.
    """
    return None if _WEBHOOK.fullmatch(url) else _NO_WEBHOOK


class SlackChannel(WebhookChannel):
    """Slack answers 200 with `ok` for what it posted, and an error word otherwise."""

    service = "slack"
    secret = SecretForm(
        kind="Slack incoming webhook URL",
        example="https://hooks.slack.com/services/T00000000/B00000000/local",
        refusal=check_webhook,
    )
    permissions = secrets.PERMISSIONS

    @staticmethod
    def write(card: MessageCard, owner_ids: Mapping[str, str] = NOBODY) -> Payload:
        """Block Kit; mentions an owner whose id the policy lists."""
        return slack.message(card, owner_ids)

    @staticmethod
    def check(payload: Payload) -> None:
        """Raises Malformed."""
        slack.check(payload)

    @staticmethod
    def as_repeat(payload: Payload) -> Payload:
        """Marked in the notification and in the headline."""
        return slack.as_repeat(payload)

    @staticmethod
    def accepted(status: int, word: str) -> bool:
        """200 with `ok`."""
        return status == HTTPStatus.OK and word == "ok"
