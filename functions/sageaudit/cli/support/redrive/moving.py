"""Reads all dead letters of a queue, decides which are sent again, and sends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.aws.dead_letters import DeadLetterQueue
from sageaudit.adapters.aws.sqs import BATCH, SqsQueue
from sageaudit.adapters.aws.stack_outputs import stack_outputs
from sageaudit.adapters.channels.catalogue import CHANNELS
from sageaudit.cli.support.redrive.letters import (
    HOPELESS,
    DeadLetter,
    Fate,
    LetterKind,
    letter_of,
)
from sageaudit.errors import AwsError, BadUsage

DEAD_LETTERS = {
    LetterKind.FINISHED: "FinishedJobsDeadLettersUrl",
    LetterKind.UNDECIDED: "UndecidedAuditsUrl",
    LetterKind.NOTICES: "NoticesDeadLettersUrl",
}
_WORK = {
    LetterKind.FINISHED: "FinishedJobsQueueUrl",
    LetterKind.UNDECIDED: "DecisionsQueueUrl",
    LetterKind.NOTICES: "NoticesQueueUrl",
}
"""The stack's outputs with the queues' URLs; for notices, the channel follows."""
HOLD_S = 900
"""How long a letter is hidden from others while it is read, shown and moved: our choice. If this
process dies, its letters are visible again after as long."""
MOST_BYTES = 200_000_000
"""Of bodies in memory; the letters after that are for the next run."""
_EMPTY_ANSWERS = 3


@dataclass(frozen=True, slots=True)
class RedriveQueues:
    """`work` is by channel for notices, under "" otherwise."""

    dead_letters: DeadLetterQueue
    work: Mapping[str, SqsQueue]


def queues_of(session: Any, stack: str, kind: LetterKind) -> RedriveQueues:
    """The queues of a deployed stack. Raises ResourceNotFound, BadUsage or AwsError."""
    region = session.region_name
    if region is None:
        raise BadUsage("no region: give --region, or set one for your profile")
    outputs = stack_outputs(client(session, "cloudformation", region), stack)
    work = {"": _WORK[kind]}
    if kind is LetterKind.NOTICES:
        every = {channel.name: f"{_WORK[kind]}{channel.name.capitalize()}" for channel in CHANNELS}
        work = {channel: name for channel, name in every.items() if name in outputs}
    for name in (DEAD_LETTERS[kind], *work.values()):
        if name not in outputs:
            raise BadUsage(f"the stack {stack} has no output {name}: deploy this version")
    sqs = client(session, "sqs", region)
    return RedriveQueues(
        DeadLetterQueue(sqs, outputs[DEAD_LETTERS[kind]]),
        {channel: SqsQueue(sqs, outputs[name]) for channel, name in work.items()},
    )


def read(queue: DeadLetterQueue, kind: LetterKind, now: datetime) -> tuple[list[DeadLetter], bool]:
    """Receives until no new letter comes; True where reading ended before the queue did.

    One that comes twice is one letter, with the newest receipt handle. Raises AwsError.
    """
    retention = timedelta(seconds=queue.depth().retention_s)
    letters: dict[str, DeadLetter] = {}
    size = nothing_new = 0
    while size < MOST_BYTES:
        messages = queue.receive(hidden_s=HOLD_S)
        new = [one for one in messages if one.message_id not in letters]
        letters |= {one.message_id: letter_of(one, kind, retention, now) for one in messages}
        size += sum(len(one.body) for one in new)
        nothing_new = 0 if new else nothing_new + 1
        if nothing_new == _EMPTY_ANSWERS or (not messages and not queue.depth().visible):
            return list(letters.values()), False
    return list(letters.values()), True


def planned(
    letters: Iterable[DeadLetter], queues: RedriveQueues, reason: str | None, limit: int | None
) -> list[DeadLetter]:
    """The letters of this reason (None: of any), the oldest first, each with its fate.

    At most `limit` move.
    """
    asked = [letter for letter in letters if reason in (None, letter.reason)]
    asked.sort(key=lambda letter: (letter.first_sent_at, letter.message.message_id))
    left = limit
    for letter in asked:
        if letter.fate is not Fate.MOVES:
            continue
        if letter.reason in HOPELESS and reason is None:
            letter.stays("it would be refused again; --reason sends it all the same")
        elif letter.channel not in queues.work:
            letter.stays(f"{letter.channel} is not set up")
        elif left == 0:
            letter.stays("over --limit")
        elif left is not None:
            left -= 1
    return asked


def move(letters: Sequence[DeadLetter], queues: RedriveQueues) -> AwsError | None:
    """Sends, then deletes, ten at a time; each letter gets its fate. The error that ended it.

    Who dies between the two leaves a letter and its copy: the functions take both for one.
    """
    for channel, queue in queues.work.items():
        moving = [one for one in letters if one.fate is Fate.MOVES and one.channel == channel]
        for start in range(0, len(moving), BATCH):
            try:
                _move_batch(moving[start : start + BATCH], queue, queues.dead_letters)
            except AwsError as error:
                for letter in letters:
                    if letter.fate is Fate.MOVES:
                        letter.stays("not reached: run the command again")
                return error
    return None


def _move_batch(batch: Sequence[DeadLetter], queue: SqsQueue, dead: DeadLetterQueue) -> None:
    try:
        refused = queue.send_all([letter.message.body for letter in batch])
    except AwsError as error:
        for letter in batch:
            letter.fate, letter.note = Fate.FAILED, str(error)
        raise
    for place, code in refused.items():
        batch[place].fate, batch[place].note = Fate.FAILED, f"SQS refused it: {code}"
    sent = [letter for letter in batch if letter.fate is Fate.MOVES]
    for letter in sent:
        letter.fate, letter.note = Fate.MOVED, "sent, and still here: it may come twice"
    if sent:
        kept = dead.delete([letter.message.receipt_handle for letter in sent])
        for place, letter in enumerate(sent):
            if place not in kept:
                letter.note = ""
