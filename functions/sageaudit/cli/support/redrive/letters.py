"""What a dead letter is about, why it is there, and whether sending it again can succeed."""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sageaudit.adapters.aws.dead_letters import Received
from sageaudit.adapters.channels.catalogue import CHECKS
from sageaudit.adapters.lambda_runtime.records import FIRST_SENT, read_letter, version_of
from sageaudit.domain.job.event import job_ended
from sageaudit.errors import Malformed, RejectedEvent
from sageaudit.output.text.envelope import read_body
from sageaudit.output.text.words import counted

STREAM = "stream_gave_up"
"""Lambda's own letter, which names a place in the table's stream."""
HOPELESS = frozenset(
    {
        *("not_json", "not_an_event", "wrong_source", "not_a_job", "no_detail", "malformed"),
        *("not_terminal", "wrong_account", "wrong_region", "arn_disagrees", "account_disagrees"),
        *("malformed_audit", "malformed_notice", "not_found"),
    }
)
"""Reasons of functions that refused a message: sent again, it is refused again."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = 4_102_444_800_000
"""2100: a later time in an attribute is nonsense."""
_JOB_ARN = re.compile(r"arn:[\w-]+:sagemaker:([\w-]{1,40}):(\d{12}):")


class LetterKind(enum.StrEnum):
    """Which dead letters; the values are the command's argument."""

    FINISHED = "finished"
    UNDECIDED = "undecided"
    NOTICES = "notices"


class Fate(enum.StrEnum):
    """What becomes of a letter; the values are JSON output."""

    MOVES = "moves"
    MOVED = "moved"
    STAYS = "stays"
    FAILED = "failed"


@dataclass(slots=True)
class DeadLetter:
    """One letter. `reason` is a word, `why` a sentence; both may come from anybody.

    `channel` is "" where there is one queue only. `note` says why it does not move.
    """

    message: Received
    reason: str
    why: str
    first_sent_at: datetime
    deleted_at: datetime
    job: str | None = None
    version: int | None = None
    channel: str = ""
    fate: Fate = Fate.MOVES
    note: str = ""

    def stays(self, note: str) -> None:
        """It is not sent again, for this reason."""
        self.fate, self.note = Fate.STAYS, note


def letter_of(
    message: Received, kind: LetterKind, retention: timedelta, now: datetime
) -> DeadLetter:
    """Reads any message, also one that nobody of this stack wrote."""
    sent = _moment(message.system.get("SentTimestamp", "")) or now
    letter = DeadLetter(
        message,
        *_reason(message),
        _moment(message.attributes.get(FIRST_SENT, "")) or sent,
        # SQS counts from SentTimestamp, which it keeps when it moves a message to dead letters.
        sent + retention,
    )
    try:
        _READERS[kind](letter)
    except (Malformed, RejectedEvent, ValueError, RecursionError) as error:
        of_lambda = letter.reason == STREAM
        letter.stays("it names a place, no audit" if of_lambda else f"cannot be read: {error}")
    return letter


def _moment(ms: str) -> datetime | None:
    known = ms.isascii() and ms.isdecimal() and 0 < int(ms[:20]) < _LATEST_MS
    return _EPOCH + timedelta(milliseconds=int(ms)) if known else None


def _reason(message: Received) -> tuple[str, str]:
    given = message.attributes
    if given.get("reason"):
        return given["reason"], given.get("why", "")
    if given.get("RULE_ARN") or given.get("ERROR_CODE"):
        code = given.get("ERROR_CODE") or "EVENTBRIDGE"
        return code, f"EventBridge could not send: {given.get('ERROR_MESSAGE') or 'no message'}"
    if "DDBStreamBatchInfo" in message.body:
        return STREAM, "for 12 hours notify neither did these records nor set them aside"
    received = message.system.get("ApproximateReceiveCount", "1")
    times = counted(int(received) if received.isdecimal() else 1, "time")
    return "no_reason", f"received {times}: the function never answered"


def _read_event(letter: DeadLetter) -> None:
    """An EventBridge event, whose account and region only the function judges."""
    body = letter.message.body
    places = _JOB_ARN.findall(body[:65_536])
    accounts = {account for _, account in places}
    sender = json.loads(body)
    if isinstance(sender, dict) and isinstance(sender.get("account"), str):
        accounts.add(sender["account"])
    region = places[0][0] if places else ""
    letter.job = job_ended(body, accounts=accounts, region=region).ref.arn


def _read_keys(letter: DeadLetter) -> None:
    pk, sk, _ = read_letter(letter.message.body, sent_at=_EPOCH)
    key, letter.version = version_of(pk, sk)
    letter.job = key.arn


def _read_notice(letter: DeadLetter) -> None:
    notice = read_body(letter.message.body, CHECKS)
    letter.channel = notice.channel
    pk, _, version = notice.notice_id.rpartition("|")[0].rpartition("|")
    letter.job = pk.removeprefix("JOB#").rpartition("#")[0]
    letter.version = int(version) if version.isascii() and version.isdecimal() else None


_READERS = {
    LetterKind.FINISHED: _read_event,
    LetterKind.UNDECIDED: _read_keys,
    LetterKind.NOTICES: _read_notice,
}
