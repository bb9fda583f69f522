"""What a channel is: everything that differs from one way of sending a notice to another.

notify needs only `write`; deliver needs `check`, `prepare`, `as_repeat` and `post`; the stack needs
`permissions`, `make deploy` what `secret` asks for. Which channels there are, the policy says.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sageaudit.adapters.aws.clients import QUICK, client
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.channels.webhook import Secret, Transport, Webhook
from sageaudit.domain.policy.routes import Service
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.envelope import NOBODY, Payload


@dataclass(frozen=True, slots=True)
class SecretForm:
    """What the secret of a channel holds.

    `kind` describes it to a person: "Slack incoming webhook URL". `refusal` says why a text is not
    one, or None, and never repeats the text. `example` has the right form and leads nowhere.
    """

    kind: str
    example: str
    refusal: Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Connections:
    """What a channel is connected with: the boto3 session, and how a webhook is posted to."""

    session: Any
    transport: Transport

    def secret(self, secret_id: str) -> SecretReader:
        """A reader of one secret."""
        store = client(self.session, "secretsmanager", config=QUICK)
        return SecretReader(store, secret_id, time.monotonic)


class NoticeChannel(ABC):
    """One way to send notices. An instance is connected to one address and posts to it."""

    service: ClassVar[Service]
    secret: ClassVar[SecretForm | None] = None
    """None where the address is a topic's ARN."""
    permissions: ClassVar[tuple[str, ...]]
    """What `post` needs on the topic or the secret."""

    @staticmethod
    @abstractmethod
    def write(card: MessageCard, owner_ids: Mapping[str, str] = NOBODY) -> Payload:
        """The payload for a card, within every size limit of the service.

        `owner_ids`: by owner, whom to mention where that is Slack.
        """

    @staticmethod
    @abstractmethod
    def check(payload: Payload) -> None:
        """Raises Malformed, and nothing else, for a payload that cannot be posted or marked."""

    @staticmethod
    @abstractmethod
    def as_repeat(payload: Payload) -> Payload:
        """The payload with `envelope.REPEAT` where it is read first, within the size limits again.

        Works on every payload that `check` takes.
        """

    @classmethod
    @abstractmethod
    def connect(cls, name: str, address: str, connections: Connections) -> Self:
        """The channel of this name; `address` is a topic's ARN or the name of a secret."""

    @abstractmethod
    def prepare(self) -> None:
        """Reads what `post` needs, so that a claim is only taken when there is an address.

        Raises ChannelBroken or ChannelUnavailable.
        """

    @abstractmethod
    def post(self, payload: Payload) -> None:
        """Posts once. Raises a ChannelError.

        Only what surely did not reach the service is RateLimited, ChannelUnavailable or
        ChannelBroken (permanent); every doubt is MaybeSent or UnexpectedAnswer.
        """


class WebhookChannel(NoticeChannel):
    """A channel whose secret is the address that JSON is posted to."""

    secret: ClassVar[SecretForm]

    def __init__(self, name: str, secret: Secret, transport: Transport) -> None:
        self._webhook = Webhook(
            name, secret, transport, refusal=self.secret.refusal, accepted=self.accepted
        )

    @staticmethod
    @abstractmethod
    def accepted(status: int, word: str) -> bool:
        """Whether this answer means that the payload was posted."""

    @classmethod
    def connect(cls, name: str, address: str, connections: Connections) -> Self:
        """`address` is the secret that holds the webhook's URL."""
        return cls(name, connections.secret(address), connections.transport)

    def prepare(self) -> None:
        """Reads the webhook's URL. Raises ChannelBroken or ChannelUnavailable."""
        self._webhook.prepare()

    def post(self, payload: Payload) -> None:
        """Raises a ChannelError."""
        self._webhook.post(payload)
