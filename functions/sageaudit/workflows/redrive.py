"""Reads dead letters, finds the job and reason of each, and sends letters again."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.aws.sqs import BATCH_SIZE, DeadLetterQueue, ReceivedMessage, SqsQueue
from sageaudit.adapters.aws.stack_outputs import (
    QUEUE_URL_PREFIX,
    outputs_by_channel,
    read_stack_outputs,
)
from sageaudit.adapters.lambda_runtime.records import (
    FIRST_SENT_ATTRIBUTE,
    notice_labels,
    parse_change_keys,
)
from sageaudit.domain.job.ref import AccountRegion, parse_job_end_event
from sageaudit.domain.members import parse_heartbeat
from sageaudit.errors import AwsError, BadUsage, MalformedData, RejectedEvent
from sageaudit.output.text.card import parse_notice
from sageaudit.output.text.words import count_text

STREAM_ABANDONED = "stream_abandoned"
"""The reason of a letter that Lambda itself wrote. It names a place in the table's stream."""
NOT_RETRYABLE = frozenset(
    {
        *("not_json", "not_an_event", "wrong_source", "not_a_job", "no_detail", "malformed"),
        *("not_terminal", "wrong_account", "wrong_region", "arn_disagrees", "account_disagrees"),
        "region_disagrees",
        *("malformed_audit", "malformed_notice", "not_found"),
    }
)
"""Reasons for which a function would refuse the message again."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_TIMESTAMP_MS = 4_102_444_800_000
"""The beginning of 2100 in Unix milliseconds. A later time in an attribute is invalid."""


class LetterKind(enum.StrEnum):
    """The kinds of dead letters. The values are the command's argument."""

    FINISHED = "finished"
    UNDECIDED = "undecided"
    NOTICES = "notices"


class LetterStatus(enum.StrEnum):
    """What happens to a letter. JSON output has these values."""

    MOVES = "moves"
    MOVED = "moved"
    STAYS = "stays"
    FAILED = "failed"


class DeadLetter(Struct):
    """One dead letter. `reason` is a word, `explanation` a sentence; both are untrusted text.

    `subject` is the ARN of the job that the letter is about, or names its digest or budget.
    `channel` is "" if the letter's kind has only one queue. `note` says why the letter is not sent.
    """

    message: ReceivedMessage
    reason: str
    explanation: str
    first_sent_at: datetime
    deleted_at: datetime
    subject: str | None = None
    version: int | None = None
    channel: str = ""
    status: LetterStatus = LetterStatus.MOVES
    note: str = ""

    def keep(self, note: str) -> None:
        """Marks the letter as not to be sent again. `note` is the reason."""
        self.status, self.note = LetterStatus.STAYS, note


def parse_letter(
    message: ReceivedMessage, kind: LetterKind, retention: timedelta, now: datetime
) -> DeadLetter:
    """Parses any message, even one that this stack did not write."""
    sent_at = _moment(message.system_attributes.get("SentTimestamp", "")) or now
    letter = DeadLetter(
        message,
        *_reason(message),
        _moment(message.attributes.get(FIRST_SENT_ATTRIBUTE, "")) or sent_at,
        # SQS counts from SentTimestamp, which it keeps when it moves a message to dead letters.
        sent_at + retention,
    )
    try:
        _READ_BY_KIND[kind](letter)
    except (MalformedData, RejectedEvent, ValueError, RecursionError) as error:
        is_from_lambda = letter.reason == STREAM_ABANDONED
        letter.keep(
            "it names a place in the stream, not an audit"
            if is_from_lambda
            else f"cannot be read: {error}"
        )
    return letter


def _moment(ms: str) -> datetime | None:
    is_valid = ms.isascii() and ms.isdecimal() and 0 < int(ms[:20]) < _MAX_TIMESTAMP_MS
    return _EPOCH + timedelta(milliseconds=int(ms)) if is_valid else None


def _reason(message: ReceivedMessage) -> tuple[str, str]:
    attributes = message.attributes
    if attributes.get("reason"):
        return attributes["reason"], attributes.get("why", "")
    if attributes.get("RULE_ARN") or attributes.get("ERROR_CODE"):
        code = attributes.get("ERROR_CODE") or "EVENTBRIDGE"
        return (
            code,
            f"EventBridge could not deliver it: {attributes.get('ERROR_MESSAGE') or 'no message'}",
        )
    if "DDBStreamBatchInfo" in message.body:
        return (
            STREAM_ABANDONED,
            "for 12 hours notify neither handled these records nor set them aside",
        )
    receive_count = message.system_attributes.get("ApproximateReceiveCount", "1")
    times = count_text(int(receive_count) if receive_count.isdecimal() else 1, "time")
    return "no_reason", f"received {times}, and the function never answered"


class _EveryAccount(Struct, frozen=True):
    """Implements AuditedScope: only the function knows its own accounts and regions."""

    def includes_account(self, account: str) -> bool:  # noqa: ARG002 - the port's name
        return True

    def includes(self, account_region: AccountRegion) -> bool:  # noqa: ARG002 - the port's name
        return True


def _read_event(letter: DeadLetter) -> None:
    body = letter.message.body
    if parse_heartbeat(body) is None:
        letter.subject = parse_job_end_event(body, _EveryAccount()).ref.arn


def _read_keys(letter: DeadLetter) -> None:
    labels = notice_labels(*parse_change_keys(letter.message.body))
    letter.subject, letter.version = _subject(labels), labels.get("version")


def _subject(labels: Mapping[str, str]) -> str:
    """Returns the job's ARN, or text such as `budget 2026-08 tag team=vision`."""
    if "digest" in labels:
        return f"digest to {labels['digest']}"
    if "budget" in labels:
        return " ".join(("budget", *filter(None, labels["budget"].split("#", 2))))
    return labels["job"]


def _read_notice(letter: DeadLetter) -> None:
    notice = parse_notice(letter.message.body)
    letter.channel = notice.channel
    pk, _, version = notice.notice_id.rpartition("|")[0].rpartition("|")
    arn = pk.removeprefix("JOB#").rpartition("#")[0]
    letter.subject = arn if arn.startswith("arn:") else pk
    letter.version = int(version) if version.isascii() and version.isdecimal() else None


_READ_BY_KIND = {
    LetterKind.FINISHED: _read_event,
    LetterKind.UNDECIDED: _read_keys,
    LetterKind.NOTICES: _read_notice,
}


DEAD_LETTER_OUTPUTS = {
    LetterKind.FINISHED: "FinishedJobsDeadLettersUrl",
    LetterKind.UNDECIDED: "UndecidedAuditsUrl",
    LetterKind.NOTICES: "NoticesDeadLettersUrl",
}
WORK_QUEUE_OUTPUTS = {
    LetterKind.FINISHED: "FinishedJobsQueueUrl",
    LetterKind.UNDECIDED: "DecisionsQueueUrl",
}
"""The stack's outputs with the URLs of work queues. Notices have a queue for each
channel instead.
"""
HIDDEN_S = 900
"""How long a letter is hidden from other receivers while it is read and moved (our choice).

If this process dies, its letters become visible again after this time.
"""
MAX_BYTES = 200_000_000
"""The maximum size of message bodies in memory. The next run reads the remaining letters."""
_MAX_EMPTY_RECEIVES = 3


class RedriveQueues(Struct, frozen=True):
    """The queues of one kind. For notices, `work_queues` has the channel as key, otherwise ""."""

    dead_letters: DeadLetterQueue
    work_queues: Mapping[str, SqsQueue]


def read_queue_outputs(session: Any, stack: str, *needed_outputs: str) -> dict[str, str]:
    """Returns the outputs of a stack of this version, in the session's region.

    Raises ResourceNotFound, BadUsage or AwsError.
    """
    region = session.region_name
    if region is None:
        raise BadUsage("no region: give --region, or set one for your profile")
    outputs = read_stack_outputs(client(session, "cloudformation", region), stack)
    for name in needed_outputs:
        if name not in outputs:
            raise BadUsage(f"the stack {stack} has no output {name}: deploy this version")
    return outputs


def find_queues(session: Any, stack: str, kind: LetterKind) -> RedriveQueues:
    """Returns a deployed stack's queues. Raises ResourceNotFound, BadUsage or AwsError."""
    needed_outputs = (
        DEAD_LETTER_OUTPUTS[kind],
        WORK_QUEUE_OUTPUTS.get(kind, DEAD_LETTER_OUTPUTS[kind]),
    )
    outputs, region = read_queue_outputs(session, stack, *needed_outputs), session.region_name
    is_notices = kind is LetterKind.NOTICES
    work_queue_urls = (
        outputs_by_channel(outputs, QUEUE_URL_PREFIX)
        if is_notices
        else {"": outputs[WORK_QUEUE_OUTPUTS[kind]]}
    )
    sqs = client(session, "sqs", region)
    return RedriveQueues(
        DeadLetterQueue(sqs, outputs[DEAD_LETTER_OUTPUTS[kind]]),
        {channel: SqsQueue(sqs, url) for channel, url in work_queue_urls.items()},
    )


def receive_letters(
    queue: DeadLetterQueue, kind: LetterKind, now: datetime
) -> tuple[list[DeadLetter], bool]:
    """Receives letters until no new one arrives, and returns them. Raises AwsError.

    The second value is True if MAX_BYTES were received before the queue was empty. A letter that
    was received twice is listed once, with the newest receipt handle.
    """
    retention = timedelta(seconds=queue.depth().retention_s)
    letters: dict[str, DeadLetter] = {}
    size = empty_receives = 0
    while size < MAX_BYTES:
        messages = queue.receive(visibility_timeout_s=HIDDEN_S)
        new_messages = [message for message in messages if message.message_id not in letters]
        letters |= {
            message.message_id: parse_letter(message, kind, retention, now) for message in messages
        }
        size += sum(len(message.body) for message in new_messages)
        empty_receives = 0 if new_messages else empty_receives + 1
        if empty_receives == _MAX_EMPTY_RECEIVES or (not messages and not queue.depth().visible):
            return list(letters.values()), False
    return list(letters.values()), True


def plan_redrive(
    letters: Iterable[DeadLetter], queues: RedriveQueues, reason: str | None, limit: int | None
) -> list[DeadLetter]:
    """Returns the letters with this reason, oldest first, with their status.

    None means any reason, or no limit. At most `limit` letters are sent.
    """
    selected = [letter for letter in letters if reason in (None, letter.reason)]
    selected.sort(key=lambda letter: (letter.first_sent_at, letter.message.message_id))
    remaining = limit
    for letter in selected:
        if letter.status is not LetterStatus.MOVES:
            continue
        if letter.reason in NOT_RETRYABLE and reason is None:
            letter.keep("it would be refused again; --reason sends it anyway")
        elif letter.channel not in queues.work_queues:
            letter.keep(f"the stack has no queue for {letter.channel}")
        elif remaining == 0:
            letter.keep("above --limit")
        elif remaining is not None:
            remaining -= 1
    return selected


def move_letters(letters: Sequence[DeadLetter], queues: RedriveQueues) -> AwsError | None:
    """Sends letters, ten at a time, and deletes each letter that was sent.

    Returns the error that stopped it, or None. If the process dies before a letter is deleted, the
    functions still handle it once.
    """
    for channel, queue in queues.work_queues.items():
        moving_letters = [
            letter
            for letter in letters
            if letter.status is LetterStatus.MOVES and letter.channel == channel
        ]
        for start in range(0, len(moving_letters), BATCH_SIZE):
            try:
                _move_batch(moving_letters[start : start + BATCH_SIZE], queue, queues.dead_letters)
            except AwsError as error:
                for letter in letters:
                    if letter.status is LetterStatus.MOVES:
                        letter.keep("not reached: run the command again")
                return error
    return None


def _move_batch(
    batch: Sequence[DeadLetter], queue: SqsQueue, dead_letters: DeadLetterQueue
) -> None:
    try:
        refusal_by_index = queue.send_batch([letter.message.body for letter in batch])
    except AwsError as error:
        for letter in batch:
            letter.status, letter.note = LetterStatus.FAILED, str(error)
        raise
    for index, code in refusal_by_index.items():
        batch[index].status, batch[index].note = LetterStatus.FAILED, f"SQS refused it: {code}"
    sent_letters = [letter for letter in batch if letter.status is LetterStatus.MOVES]
    for letter in sent_letters:
        letter.status, letter.note = (
            LetterStatus.MOVED,
            "sent but not deleted: it may be sent twice",
        )
    if sent_letters:
        undeleted_indexes = dead_letters.delete(
            [letter.message.receipt_handle for letter in sent_letters]
        )
        for index, letter in enumerate(sent_letters):
            if index not in undeleted_indexes:
                letter.note = ""
