"""What a dead letter is about, why it is there, and whether sending it again can succeed."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.adapters.aws.dead_letters import Received
from sageaudit.adapters.channels.catalogue import CHECKS
from sageaudit.adapters.history.dynamo.stream_position import StreamPosition
from sageaudit.adapters.lambda_runtime.decision import read_decision
from sageaudit.adapters.lambda_runtime.message import FIRST_SENT
from sageaudit.domain.job.event import job_ended
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import Malformed, RejectedEvent
from sageaudit.output.text.envelope import read_body
from sageaudit.output.text.words import counted

NO_REASON = "no_reason"
STREAM = "stream_gave_up"
HOPELESS = frozenset(
    {
        *("not_json", "not_an_event", "wrong_source", "not_a_job", "no_detail", "malformed"),
        *("not_terminal", "wrong_account", "wrong_region", "arn_disagrees", "account_disagrees"),
        *("malformed_audit", "no_audit", "malformed_notice"),
    }
)
"""Reasons of functions that refused a message: sent again, it is refused again."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = 4_102_444_800_000
"""2100: a later time in an attribute is nonsense."""
_JOB_ARN = re.compile(r"arn:[\w-]+:sagemaker:([\w-]{1,40}):(\d{12}):")
_STREAM_ARN = re.compile(
    r"arn:aws[\w-]*:dynamodb:(?P<region>[\w-]{1,40}):\d{12}:table/(?P<table>[\w.-]{3,255})/stream/[\w.:-]{1,64}"
)
_SHARD = re.compile(r"[\w-]{28,65}")
_SEQUENCE = re.compile(r"\d{21,40}")


class Kind(enum.StrEnum):
    """Which dead letters; the values are the command's argument."""

    FINISHED = "finished"
    UNDECIDED = "undecided"
    NOTICES = "notices"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a letter is about. `refusal` says why its body cannot be read, else None."""

    job: JobRef | None = None
    version: int | None = None
    notice_id: str | None = None
    channel: str | None = None
    position: StreamPosition | None = None
    refusal: str | None = None

    @property
    def words(self) -> str:
        """In a few words; the kind of job would take the room of its name."""
        if self.job is not None:
            version = "" if self.version is None else f" v{self.version}"
            return f"{self.job.name}{version}"
        if self.position is not None:
            return "audits by position"
        return "(unreadable)" if self.notice_id is None else self.notice_id


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter. `reason` is a word, `why` a sentence; both may come from anybody."""

    message: Received
    subject: Subject
    reason: str
    why: str
    first_sent_at: datetime
    deleted_at: datetime
    received: int

    @property
    def hopeless(self) -> bool:
        """Whether sending it again ends in the same refusal."""
        return self.subject.refusal is not None or self.reason in HOPELESS


def read_letter(message: Received, kind: Kind, retention: timedelta, now: datetime) -> DeadLetter:
    """Reads any message, also one that nobody of this stack wrote."""
    sent = _moment(message.system.get("SentTimestamp", "")) or now
    received = message.system.get("ApproximateReceiveCount", "1")
    times = int(received) if received.isdecimal() else 1
    reason, why = _reason(message, times)
    return DeadLetter(
        message,
        _SUBJECTS[kind](message.body),
        reason,
        why,
        _moment(message.attributes.get(FIRST_SENT, "")) or sent,
        # SQS counts from SentTimestamp, which it keeps when it moves a message to dead letters.
        sent + retention,
        times,
    )


def _moment(ms: str) -> datetime | None:
    known = ms.isascii() and ms.isdecimal() and 0 < int(ms[:20]) < _LATEST_MS
    return _EPOCH + timedelta(milliseconds=int(ms)) if known else None


def _reason(message: Received, times: int) -> tuple[str, str]:
    given = message.attributes
    if given.get("reason"):
        return given["reason"], given.get("why", "")
    if given.get("RULE_ARN") or given.get("ERROR_CODE"):
        ended = given.get("EXHAUSTED_RETRY_CONDITION")
        tries = f"; its retries ended: {ended}" if ended else ""
        said = given.get("ERROR_MESSAGE") or "no message"
        code = given.get("ERROR_CODE") or "EVENTBRIDGE"
        return code, f"EventBridge could not send: {said}{tries}"
    failed = _failed_batch(message.body)
    if failed is not None:
        context = failed.get("requestContext")
        context = context if isinstance(context, dict) else {}
        times_said, ended_by = context.get("approximateInvokeCount"), context.get("condition")
        return STREAM, f"notify failed {times_said} times ({ended_by}); it names places in a stream"
    source = message.system.get("DeadLetterQueueSourceArn", "").rpartition(":")[2]
    where = f" from {source}" if source else ""
    return NO_REASON, f"received {counted(times, 'time')}{where}: the function never answered"


def _event(body: str) -> Subject:
    """An EventBridge event, whose account and region only the function judges."""
    places = _JOB_ARN.findall(body[:65_536])
    accounts = {account for _, account in places}
    region = places[0][0] if places else ""
    try:
        sender = json.loads(body)
        if isinstance(sender, dict) and isinstance(sender.get("account"), str):
            accounts.add(sender["account"])
        return Subject(job_ended(body, accounts=accounts, region=region).ref)
    except RejectedEvent as error:
        return Subject(refusal=str(error))
    except (ValueError, RecursionError):
        return Subject(refusal="the body is not JSON")


def _notice(body: str) -> Subject:
    try:
        notice = read_body(body, CHECKS)
    except Malformed as error:
        return Subject(refusal=str(error))
    pk, _, version = notice.notice_id.rpartition("|")[0].rpartition("|")
    arn = pk.removeprefix("JOB#").rpartition("#")[0]
    return Subject(
        JobRef.from_arn(arn),
        int(version) if version.isascii() and version.isdecimal() else None,
        notice.notice_id,
        notice.channel,
    )


def _decision(body: str) -> Subject:
    failed = _failed_batch(body)
    if failed is not None:
        return _position(failed["DDBStreamBatchInfo"])
    try:
        asked = read_decision(body, sent_at=_EPOCH)
    except Malformed as error:
        return Subject(refusal=str(error))
    return Subject(JobRef.from_arn(asked.key.arn), asked.version)


def _failed_batch(body: str) -> Mapping[str, Any] | None:
    """Lambda's record of a batch of the stream that failed, or None."""
    if "DDBStreamBatchInfo" not in body:
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    named = isinstance(found, dict) and isinstance(found.get("DDBStreamBatchInfo"), dict)
    return found if named else None


def _position(batch: Mapping[str, Any]) -> Subject:
    parts = {
        "streamArn": _STREAM_ARN,
        "shardId": _SHARD,
        "startSequenceNumber": _SEQUENCE,
        "endSequenceNumber": _SEQUENCE,
    }
    for key, form in parts.items():
        if not form.fullmatch(str(batch.get(key))):
            return Subject(refusal=f"{key} is none of a stream")
    return Subject(position=StreamPosition(*(str(batch[key]) for key in parts)))


def table_of(position: StreamPosition) -> str:
    """The table whose stream it is."""
    found = _STREAM_ARN.fullmatch(position.stream_arn)
    return found["table"] if found else ""


def region_of(position: StreamPosition) -> str:
    """The region of the stream."""
    found = _STREAM_ARN.fullmatch(position.stream_arn)
    return found["region"] if found else ""


_SUBJECTS = {Kind.FINISHED: _event, Kind.UNDECIDED: _decision, Kind.NOTICES: _notice}
