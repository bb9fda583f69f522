"""Microsoft Teams, by the address of a workflow ("When a Teams webhook request is received")."""

from __future__ import annotations

import re
from http import HTTPStatus

from sageaudit.adapters.aws import secrets
from sageaudit.adapters.channels.channel import SecretForm, WebhookChannel
from sageaudit.output.text import teams

_LABELS = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,4}"
_WORKFLOW = re.compile(
    rf"https://{_LABELS}(?:environment\.api\.powerplatform\.com|logic\.azure\.com)(?::443)?"
    r"(?:/[A-Za-z0-9_-]+)*/workflows/[A-Za-z0-9_-]+/triggers/[A-Za-z0-9_-]+/paths/invoke/?"
    r"\?(?:[A-Za-z0-9_.-]+=[A-Za-z0-9_.%~+-]*&)*sig=[A-Za-z0-9_.%~-]+(?:&[A-Za-z0-9_.%~=+-]*)*"
)
_LONGEST = 2_000
_NO_WORKFLOW = (
    "it is not of the form https://….environment.api.powerplatform.com:443/…/workflows/…/triggers/"
    "manual/paths/invoke?…&sig=…"
)


def check_workflow(url: str) -> str | None:
    """Why this is no address of a workflow, or None when it is one; says nothing of it.

    One strict form: https, hosts of Power Automate, no user, no port but 443, no dots in the path,
    no fragment. Who knows its `sig` may post.
    """
    return None if len(url) <= _LONGEST and _WORKFLOW.fullmatch(url) else _NO_WORKFLOW


class TeamsChannel(WebhookChannel):
    """A workflow answers 202 when it has taken a card, which it posts after that."""

    service = "teams"
    secret = SecretForm(
        kind="Microsoft Teams workflow URL",
        example="https://default00000000.00.environment.api.powerplatform.com:443/powerautomate/"
        "automations/direct/workflows/00000000/triggers/manual/paths/invoke?api-version=1"
        "&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=local",
        refusal=check_workflow,
    )
    permissions = secrets.PERMISSIONS
    write = staticmethod(teams.message)
    check = staticmethod(teams.check)
    as_repeat = staticmethod(teams.as_repeat)

    @staticmethod
    def accepted(status: int, word: str) -> bool:
        """202, whatever it says."""
        del word
        return status == HTTPStatus.ACCEPTED
