"""Reads dead letters, finds what each is about and why it is there, and sends them again."""

from __future__ import annotations

import enum
import json
import re
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
from sageaudit.domain.job.ref import parse_job_end_event
from sageaudit.errors import AwsError, BadUsage, MalformedData, RejectedEvent
from sageaudit.output.text.card import parse_notice
from sageaudit.output.text.words import count_text

STREAM_ABANDONED = "stream_gave_up"
"""The reason of Lambda's own letter, which names a place in the table's stream."""
NOT_RETRYABLE = frozenset(
    {
        *("not_json", "not_an_event", "wrong_source", "not_a_job", "no_detail", "malformed"),
        *("not_terminal", "wrong_account", "wrong_region", "arn_disagrees", "account_disagrees"),
        "region_disagrees",
        *("malformed_audit", "malformed_notice", "not_found"),
    }
)
"""Reasons for which a function refuses a message every time it is sent."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = 4_102_444_800_000
"""2100: a later time in an attribute is nonsense."""
_JOB_ARN = re.compile(r"arn:[\w-]+:sagemaker:([\w-]{1,40}):(\d{12}):")


class LetterKind(enum.StrEnum):
    """The kinds of dead letters; the values are the command's argument."""

    FINISHED = "finished"
    UNDECIDED = "undecided"
    NOTICES = "notices"


class LetterStatus(enum.StrEnum):
    """What becomes of a letter; the values are JSON output."""

    MOVES = "moves"
    MOVED = "moved"
    STAYS = "stays"
    FAILED = "failed"


class DeadLetter(Struct):
    """One letter. `reason` is a word, `why` a sentence; both are untrusted text.

    `channel` is "" if there is only one queue. `note` says why it does not move.
    """

    message: ReceivedMessage
    reason: str
    why: str
    first_sent_at: datetime
    deleted_at: datetime
    job: str | None = None
    version: int | None = None
    channel: str = ""
    fate: LetterStatus = LetterStatus.MOVES
    note: str = ""

    def stays(self, note: str) -> None:
        """Marks it as not sent again, with the reason."""
        self.fate, self.note = LetterStatus.STAYS, note


def parse_letter(
    message: ReceivedMessage, kind: LetterKind, retention: timedelta, now: datetime
) -> DeadLetter:
    """Parses any message, even one that this stack did not write."""
    sent = _moment(message.system_attributes.get("SentTimestamp", "")) or now
    letter = DeadLetter(
        message,
        *_reason(message),
        _moment(message.attributes.get(FIRST_SENT_ATTRIBUTE, "")) or sent,
        # SQS counts from SentTimestamp, which it keeps when it moves a message to dead letters.
        sent + retention,
    )
    try:
        _READERS[kind](letter)
    except (MalformedData, RejectedEvent, ValueError, RecursionError) as error:
        is_from_lambda = letter.reason == STREAM_ABANDONED
        letter.stays("it names a place, no audit" if is_from_lambda else f"cannot be read: {error}")
    return letter


def _moment(ms: str) -> datetime | None:
    is_valid = ms.isascii() and ms.isdecimal() and 0 < int(ms[:20]) < _LATEST_MS
    return _EPOCH + timedelta(milliseconds=int(ms)) if is_valid else None


def _reason(message: ReceivedMessage) -> tuple[str, str]:
    attrs = message.attributes
    if attrs.get("reason"):
        return attrs["reason"], attrs.get("why", "")
    if attrs.get("RULE_ARN") or attrs.get("ERROR_CODE"):
        code = attrs.get("ERROR_CODE") or "EVENTBRIDGE"
        return code, f"EventBridge could not send: {attrs.get('ERROR_MESSAGE') or 'no message'}"
    if "DDBStreamBatchInfo" in message.body:
        return STREAM_ABANDONED, "for 12 hours notify neither did these records nor set them aside"
    received = message.system_attributes.get("ApproximateReceiveCount", "1")
    times = count_text(int(received) if received.isdecimal() else 1, "time")
    return "no_reason", f"received {times}: the function never answered"


def _read_event(letter: DeadLetter) -> None:
    # only the function checks the account and region
    body = letter.message.body
    places = _JOB_ARN.findall(body[:65_536])
    accounts = {account for _, account in places}
    sender = json.loads(body)
    if isinstance(sender, dict) and isinstance(sender.get("account"), str):
        accounts.add(sender["account"])
    regions = {places[0][0]} if places else set()
    letter.job = parse_job_end_event(body, accounts=accounts, regions=regions).ref.arn


def _read_keys(letter: DeadLetter) -> None:
    about = notice_labels(*parse_change_keys(letter.message.body))
    letter.job, letter.version = about.get("job") or about["digest"], about.get("version")


def _read_notice(letter: DeadLetter) -> None:
    notice = parse_notice(letter.message.body)
    letter.channel = notice.channel
    pk, _, version = notice.notice_id.rpartition("|")[0].rpartition("|")
    letter.job = pk.removeprefix("JOB#").rpartition("#")[0] or pk
    letter.version = int(version) if version.isascii() and version.isdecimal() else None


_READERS = {
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
"""The stack's outputs with the queues' URLs; each notice channel has its own queue."""
HIDDEN_S = 900
"""How long a letter is hidden from others while it is read, shown and moved: our choice. If this
process dies, its letters become visible again after this time."""
MAX_BYTES = 200_000_000
"""The most bytes of bodies in memory; the remaining letters are for the next run."""
_EMPTY_ANSWERS = 3


class RedriveQueues(Struct, frozen=True):
    """The queues of one kind; `work_queues` is by channel for notices, under "" otherwise."""

    dead_letters: DeadLetterQueue
    work_queues: Mapping[str, SqsQueue]


def read_queue_outputs(session: Any, stack: str, *needed: str) -> dict[str, str]:
    """The outputs of a deployed stack of this version, in the session's region.

    Raises ResourceNotFound, BadUsage or AwsError.
    """
    region = session.region_name
    if region is None:
        raise BadUsage("no region: give --region, or set one for your profile")
    outputs = read_stack_outputs(client(session, "cloudformation", region), stack)
    for name in needed:
        if name not in outputs:
            raise BadUsage(f"the stack {stack} has no output {name}: deploy this version")
    return outputs


def find_queues(session: Any, stack: str, kind: LetterKind) -> RedriveQueues:
    """The queues of a deployed stack. Raises ResourceNotFound, BadUsage or AwsError."""
    needed = (DEAD_LETTER_OUTPUTS[kind], WORK_QUEUE_OUTPUTS.get(kind, DEAD_LETTER_OUTPUTS[kind]))
    outputs, region = read_queue_outputs(session, stack, *needed), session.region_name
    is_notices = kind is LetterKind.NOTICES
    work = (
        outputs_by_channel(outputs, QUEUE_URL_PREFIX)
        if is_notices
        else {"": outputs[WORK_QUEUE_OUTPUTS[kind]]}
    )
    sqs = client(session, "sqs", region)
    return RedriveQueues(
        DeadLetterQueue(sqs, outputs[DEAD_LETTER_OUTPUTS[kind]]),
        {channel: SqsQueue(sqs, url) for channel, url in work.items()},
    )


def receive_letters(
    queue: DeadLetterQueue, kind: LetterKind, now: datetime
) -> tuple[list[DeadLetter], bool]:
    """Receives until no new letter arrives; True if it stopped before the queue was empty.

    One received twice is one letter, with the newest receipt handle. Raises AwsError.
    """
    retention = timedelta(seconds=queue.depth().retention_s)
    letters: dict[str, DeadLetter] = {}
    size = nothing_new = 0
    while size < MAX_BYTES:
        messages = queue.receive(visibility_timeout_s=HIDDEN_S)
        new = [message for message in messages if message.message_id not in letters]
        letters |= {row.message_id: parse_letter(row, kind, retention, now) for row in messages}
        size += sum(len(message.body) for message in new)
        nothing_new = 0 if new else nothing_new + 1
        if nothing_new == _EMPTY_ANSWERS or (not messages and not queue.depth().visible):
            return list(letters.values()), False
    return list(letters.values()), True


def plan_redrive(
    letters: Iterable[DeadLetter], queues: RedriveQueues, reason: str | None, limit: int | None
) -> list[DeadLetter]:
    """Returns the letters with this reason (None: any), the oldest first, with their status.

    At most `limit` letters move.
    """
    selected = [letter for letter in letters if reason in (None, letter.reason)]
    selected.sort(key=lambda letter: (letter.first_sent_at, letter.message.message_id))
    remaining = limit
    for letter in selected:
        if letter.fate is not LetterStatus.MOVES:
            continue
        if letter.reason in NOT_RETRYABLE and reason is None:
            letter.stays("it would be refused again; --reason sends it all the same")
        elif letter.channel not in queues.work_queues:
            letter.stays(f"{letter.channel} is not set up")
        elif remaining == 0:
            letter.stays("over --limit")
        elif remaining is not None:
            remaining -= 1
    return selected


def move_letters(letters: Sequence[DeadLetter], queues: RedriveQueues) -> AwsError | None:
    """Sends, then deletes, ten letters at a time. Returns the error that ended it, if any.

    A process that dies in between leaves a letter and its copy; the functions handle them once.
    """
    for channel, queue in queues.work_queues.items():
        moving = [
            one for one in letters if one.fate is LetterStatus.MOVES and one.channel == channel
        ]
        for start in range(0, len(moving), BATCH_SIZE):
            try:
                _move_batch(moving[start : start + BATCH_SIZE], queue, queues.dead_letters)
            except AwsError as error:
                for letter in letters:
                    if letter.fate is LetterStatus.MOVES:
                        letter.stays("not reached: run the command again")
                return error
    return None


def _move_batch(batch: Sequence[DeadLetter], queue: SqsQueue, dead: DeadLetterQueue) -> None:
    try:
        refused = queue.send_batch([letter.message.body for letter in batch])
    except AwsError as error:
        for letter in batch:
            letter.fate, letter.note = LetterStatus.FAILED, str(error)
        raise
    for place, code in refused.items():
        batch[place].fate, batch[place].note = LetterStatus.FAILED, f"SQS refused it: {code}"
    sent = [letter for letter in batch if letter.fate is LetterStatus.MOVES]
    for letter in sent:
        letter.fate, letter.note = LetterStatus.MOVED, "sent, and still here: it may come twice"
    if sent:
        not_deleted = dead.delete([letter.message.receipt_handle for letter in sent])
        for place, letter in enumerate(sent):
            if place not in not_deleted:
                letter.note = ""
