"""What a channel is: everything that differs from one way of sending a notice to another.

notify needs only `write`, digest `write_digest`; deliver needs `check`, `prepare`, `as_repeat` and
`post`; the stack needs `address` and `permissions`, `make deploy` what `address` asks for.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sageaudit.adapters.aws.clients import QUICK, client
from sageaudit.adapters.aws.secrets import SecretReader
from sageaudit.adapters.channels.webhook import Transport
from sageaudit.domain.alert.rule import FIRST, Notify
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text.card import MessageCard
from sageaudit.output.text.envelope import Payload


@dataclass(frozen=True, slots=True)
class StackTopic:
    """The stack's own topic, whose ARN deliver finds in `variable`. Such a channel is always on."""

    variable: str


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A secret that `make deploy` asks for. Such a channel is on when the CDK context says so.

    `stored_as` is the secret's name and `variable` where deliver finds it. `service` and `kind`
    describe it to a person: "Slack", "incoming webhook URL". `refusal` says why a text is not one,
    or None, and never repeats the text. `example` has the right form and leads nowhere.
    """

    variable: str
    stored_as: str
    service: str
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

    name: ClassVar[str]
    address: ClassVar[StackTopic | StoredSecret]
    permissions: ClassVar[tuple[str, ...]]
    """What `post` needs on the topic or the secret."""

    @staticmethod
    @abstractmethod
    def write(document: AuditDocument, policy: Policy, notify: Notify = FIRST) -> Payload:
        """The payload for an audit, as it was decided, within every size limit of the channel."""

    @staticmethod
    @abstractmethod
    def write_digest(card: MessageCard) -> Payload:
        """The payload of a weekly digest, within the same limits."""

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
    def connect(cls, address: str, connections: Connections) -> Self:
        """`address` is what the environment variable holds: a topic's ARN or a secret's name."""

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
