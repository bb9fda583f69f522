"""The records that Lambda passes to a function: a queue's messages, or changes of the table."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from sageaudit.adapters.files.exact_json import GZIP_JSON_ERRORS, read_gzip_text
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.keys import (
    AUDIT_PREFIX,
    BUDGET_PREFIX,
    DIGEST_PREFIX,
    JOB_PREFIX,
    NOTICE_PREFIX,
    PARTITION_KEY,
    SORT_KEY,
    WATCH_PREFIX,
)
from sageaudit.adapters.history.record_steps import read_stored_bytes
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.policy.routes import CHANNEL_NAME
from sageaudit.errors import MalformedData

T = TypeVar("T")
FIRST_SENT_ATTRIBUTE = "first-sent"
"""Attribute of a message that was sent again: when it was first sent, in epoch milliseconds."""
_NUMBER = re.compile(r"[0-9]{1,18}")
_RUN = re.compile(rf"{JOB_PREFIX}(?P<arn>.+)#(?P<created_ms>-?[0-9]{{1,15}})")
_VERSION = re.compile(
    rf"(?:{AUDIT_PREFIX}|{NOTICE_PREFIX})(?P<version>[0-9]{{5,9}})(?:#{CHANNEL_NAME})?"
)
_DIGEST = re.compile(rf"{DIGEST_PREFIX}\d{{4}}-\d\d-\d\d", re.ASCII)
_BUDGET = re.compile(rf"{BUDGET_PREFIX}\d{{4}}-\d\d#[a-z]*#.*", re.ASCII | re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SqsMessage(Struct, frozen=True):
    """A queue's message. Messages have no order, so only failed ones are delivered again."""

    LABEL: ClassVar[str] = "message_id"
    """The log label of the record's identifier."""
    IS_ORDERED: ClassVar[bool] = False
    """True if the records after a failed one must wait."""
    raw: dict[str, Any]

    @property
    def identifier(self) -> str:
        """The record's identifier in an answer to Lambda."""
        return str(self.raw["messageId"])

    @property
    def body(self) -> str:
        """The body as it was sent."""
        return str(self.raw["body"])

    @property
    def dead_letter_body(self) -> str:
        """The unchanged body, for the dead-letter queue."""
        return self.body

    @property
    def receipt_handle(self) -> str:
        """The handle for changing the message's visibility."""
        return str(self.raw["receiptHandle"])

    @property
    def receive_count(self) -> int:
        """How often SQS has delivered the message, from 1."""
        return int(self.raw.get("attributes", {}).get("ApproximateReceiveCount", "1"))

    @property
    def queue_name(self) -> str:
        """The name of the queue that the message came from."""
        return str(self.raw.get("eventSourceARN", "")).rpartition(":")[2]

    @property
    def first_sent_ms(self) -> int:
        """When the message was first sent, in epoch milliseconds; 0 if unknown."""
        sent_text = str(self.raw.get("attributes", {}).get("SentTimestamp", ""))
        return self.attribute_number(
            FIRST_SENT_ATTRIBUTE, int(sent_text) if sent_text.isdecimal() else 0
        )

    def age_s(self, now: datetime) -> float:
        """Returns the seconds since the message was first sent; 0 if unknown."""
        if not self.first_sent_ms:
            return 0.0
        return now.astimezone(UTC).timestamp() - self.first_sent_ms / 1000

    def attribute_number(self, name: str, default: int) -> int:
        """Returns a number of at most 18 digits from the message attributes, else `default`."""
        attribute = self.raw.get("messageAttributes", {}).get(name, {})
        value = attribute.get("stringValue", "")
        return int(value) if _NUMBER.fullmatch(value) else default


class TableChange(Struct, frozen=True):
    """A change of the table. If a change fails, later changes must wait."""

    LABEL: ClassVar[str] = "sequence_number"
    IS_ORDERED: ClassVar[bool] = True
    raw: dict[str, Any]

    @property
    def identifier(self) -> str:
        """The sequence number from which Lambda delivers again; "" for the whole batch."""
        number = self._stream.get("SequenceNumber")
        return number if isinstance(number, str) else ""

    @property
    def dead_letter_body(self) -> str:
        """JSON with the item's keys in the table and its place in the stream."""
        return json.dumps(
            {
                PARTITION_KEY: self.pk,
                SORT_KEY: self.sk,
                self.LABEL: self.identifier,
            }
        )

    @property
    def pk(self) -> str:
        """The item's partition key; "" if it has none."""
        return self.attribute_text(PARTITION_KEY)

    @property
    def sk(self) -> str:
        """The item's sort key; "" if it has none."""
        return self.attribute_text(SORT_KEY)

    @property
    def is_new(self) -> bool:
        """True if the change is an INSERT of a version, a notice, or an item without sort key.

        The event source mapping has the same filter, but the local AWS also sends other records.
        """
        is_audit_or_notice = self.sk.startswith((AUDIT_PREFIX, NOTICE_PREFIX))
        return self.raw.get("eventName") == "INSERT" and (is_audit_or_notice or not self.sk)

    def attribute_text(self, name: str) -> str:
        """Returns an attribute's text; "" if the item has no such text."""
        return self._attribute(name, "S")

    def _attribute(self, name: str, type_key: str) -> str:
        image = self._stream.get("NewImage")
        attribute = image.get(name) if isinstance(image, dict) else None
        text = attribute.get(type_key) if isinstance(attribute, dict) else None
        return text if isinstance(text, str) else ""

    def body(self) -> str:
        """Returns a notice's body. Raises MalformedData."""
        return self._read_binary("body", read_gzip_text)

    def _read_binary(self, name: str, read: Callable[[bytes], T]) -> T:
        try:
            return read(base64.b64decode(self._attribute(name, "B"), validate=True))
        except GZIP_JSON_ERRORS as error:
            raise MalformedData(name, "cannot be unpacked") from error

    def document(self) -> AuditDocument:
        """Returns the document of an audit. Raises MalformedData."""
        return self._read_binary("document", read_stored_bytes)

    @property
    def _stream(self) -> dict[str, Any]:
        stream = self.raw.get("dynamodb")
        return stream if isinstance(stream, dict) else {}


def parse_change_keys(body: str) -> tuple[str, str]:
    """Returns the partition and sort key of the DynamoDB item that a dead letter is about.

    `body`: the letter's body, which is the `dead_letter_body` of a TableChange. Raises
    MalformedData.
    """
    try:
        letter: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedData("body", "is not JSON") from error
    if not isinstance(letter, dict):
        raise MalformedData("body", "is not an object")
    pk, sk = letter.get(PARTITION_KEY), letter.get(SORT_KEY)
    if not isinstance(pk, str) or not isinstance(sk, str):
        raise MalformedData("body", "has no item keys")
    return pk, sk


def notice_labels(pk: str, sk: str) -> dict[str, Any]:
    """Returns log labels for the audit, running job, week or budget of a notice.

    Raises MalformedData.
    """
    if _DIGEST.fullmatch(pk) and _VERSION.fullmatch(sk):
        return {"digest": pk.rpartition("#")[2]}
    if _BUDGET.fullmatch(pk) and (sk_match := _VERSION.fullmatch(sk)):
        return {"budget": pk.removeprefix(BUDGET_PREFIX), "notice": int(sk_match["version"])}
    if pk.startswith(WATCH_PREFIX):
        key, number = parse_version(f"{JOB_PREFIX}{pk.removeprefix(WATCH_PREFIX)}", sk)
        return {"job": key.arn, "notice": number}
    key, version = parse_version(pk, sk)
    return {"job": key.arn, "version": version}


def parse_version(pk: str, sk: str) -> tuple[JobKey, int]:
    """Returns the run and version from the keys of an audit or notice. Raises MalformedData."""
    job_pk = pk.removeprefix(keys.run_alerts_pk(""))
    run_match, version_match = _RUN.fullmatch(job_pk), _VERSION.fullmatch(sk)
    if run_match is None:
        raise MalformedData(PARTITION_KEY, "is not a run of a job")
    if version_match is None:
        raise MalformedData(SORT_KEY, "is not a version of an audit")
    try:
        created_at = _EPOCH + timedelta(milliseconds=int(run_match["created_ms"]))
    except OverflowError as error:
        raise MalformedData(PARTITION_KEY, "has a creation time out of range") from error
    key = JobKey(run_match["arn"], created_at)
    if keys.job_pk(key) != job_pk:
        raise MalformedData(PARTITION_KEY, "is not a run of a job")
    return key, int(version_match["version"])
