"""Slack, by an incoming webhook."""

from __future__ import annotations

import re
from http import HTTPStatus

from sageaudit.adapters.aws import secrets
from sageaudit.adapters.channels.channel import SecretForm, WebhookChannel
from sageaudit.output.text import slack

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
    write = staticmethod(slack.message)
    check = staticmethod(slack.check)
    as_repeat = staticmethod(slack.as_repeat)

    @staticmethod
    def accepted(status: int, word: str) -> bool:
        """200 with `ok`."""
        return status == HTTPStatus.OK and word == "ok"
