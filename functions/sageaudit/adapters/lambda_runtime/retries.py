"""What becomes of a record that was not done: when it comes back, and when it is given up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from sageaudit.adapters.aws.sqs import LONGEST_VISIBILITY_S, SqsQueue
from sageaudit.adapters.lambda_runtime.message import FIRST_SENT, SqsMessage
from sageaudit.adapters.lambda_runtime.stream import Change
from sageaudit.domain.alert.backoff import GIVE_UP_AFTER, doubled_s
from sageaudit.ports import Queue

R_contra = TypeVar("R_contra", contravariant=True)

GIVEN_UP = "GivenUp"
"""The metric for messages that did not succeed before they were too old."""
SET_ASIDE = "SetAside"
"""The metric for changes of the table that are decided later, from a queue."""
FIRST_WAIT_S = 60
LONGEST_WAIT_S = 3_600
"""Failures hide a message from one minute to one hour, twice as long each time: our choice."""
_SHORTEST_PART = 0.8
"""Of a wait, so that what failed together does not come back together: our choice."""
_IN_HAND_S = 900
"""SQS counts 12 hours of invisibility from the receive: the longest that a function may run."""


class Retries(Protocol[R_contra]):
    """Where records go that were not done."""

    def reject(self, record: R_contra, code: str, why: str) -> None:
        """Sends a record away that no retry helps."""

    def again(self, record: R_contra, why: str, wait_s: int | None = None) -> str | None:
        """Has a record come back after `wait_s`, or after a time of this object's choice.

        None then; the metric to count where it was sent elsewhere and does not come back here.
        """


class QueueRetries:
    """For messages of queues: hidden for a time, and dead letters once they are too old.

    `queues` are those whose messages arrive; `dead_letters` is that of all of them.
    """

    def __init__(
        self,
        queues: Sequence[SqsQueue],
        dead_letters: Queue,
        clock: Callable[[], datetime],
    ) -> None:
        self._queues = {queue.name: queue for queue in queues}
        self._dead_letters = dead_letters
        self._clock = clock

    def reject(self, record: SqsMessage, code: str, why: str) -> None:
        """A dead letter with its reason. Raises AwsError."""
        sent_first = {FIRST_SENT: str(record.first_sent_ms)} if record.first_sent_ms else {}
        attributes = {"reason": code, "why": why, **sent_first}
        self._dead_letters.send(record.letter, attributes=attributes)

    def gives_up(self, record: SqsMessage) -> bool:
        """Whether the message is too old to come back."""
        return record.age_s(self._clock()) >= GIVE_UP_AFTER.total_seconds()

    def again(self, record: SqsMessage, why: str, wait_s: int | None = None) -> str | None:
        """Hides the message, or gives it up. Raises AwsError."""
        if self.gives_up(record):
            self.reject(record, "gave_up", why)
            return GIVEN_UP
        if wait_s is None:
            wait_s = longer_each_time_s(record)
        if queue := self._queues.get(record.queue_name):
            longest_s = LONGEST_VISIBILITY_S - _IN_HAND_S
            queue.change_visibility(record.receipt_handle, min(wait_s, longest_s))
        return None


def longer_each_time_s(record: SqsMessage) -> int:
    """How long a message that failed is hidden: 80 to 100 percent of its time, by its own id."""
    longest_s = doubled_s(FIRST_WAIT_S, record.received - 1, LONGEST_WAIT_S)
    digest = hashlib.sha256(f"{record.identifier} {record.received}".encode()).digest()
    drawn = digest[0] / 255
    return round(longest_s * (_SHORTEST_PART + (1 - _SHORTEST_PART) * drawn))


class StreamRetries:
    """For changes of the table: their keys go to a queue, so that none of them holds its shard."""

    def __init__(self, decisions: Queue, undecided: Queue) -> None:
        self._decisions = decisions
        self._undecided = undecided

    def reject(self, record: Change, code: str, why: str) -> None:
        """An undecided audit with its reason. Raises AwsError."""
        self._undecided.send(record.letter, attributes={"reason": code, "why": why})

    def again(self, record: Change, why: str, wait_s: int | None = None) -> str | None:
        """Its keys, to be decided later. Raises AwsError: the stream then repeats the record."""
        del wait_s
        self._decisions.send(record.letter, delay_s=FIRST_WAIT_S, attributes={"why": why})
        return SET_ASIDE
