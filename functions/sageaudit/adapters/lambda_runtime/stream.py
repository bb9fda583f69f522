"""One record of the table's stream, as Lambda gets it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sageaudit.adapters.dynamo import keys
from sageaudit.adapters.dynamo.stored_document import read_text
from sageaudit.adapters.dynamo.table import AUDIT_PREFIX, PARTITION_KEY, SORT_KEY
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import JobKey
from sageaudit.errors import Malformed

_RUN = re.compile(r"JOB#(?P<arn>.+)#(?P<created_ms>-?[0-9]{1,15})")
_VERSION = re.compile(rf"{AUDIT_PREFIX}(?P<version>[0-9]{{5,9}})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_new_audit(record: dict[str, Any]) -> bool:
    """An INSERT of a version item, or of what has no sort key, which `read_run` then refuses.

    The mapping's filter says the same; DynamoDB as tests play it sends other records too.
    """
    sk = _text(_image(record), SORT_KEY)
    return record.get("eventName") == "INSERT" and (not sk or sk.startswith(AUDIT_PREFIX))


def read_run(record: dict[str, Any]) -> tuple[str, JobKey, int]:
    """Partition, run and version of a new audit. Raises Malformed."""
    image = _image(record)
    pk, sk = _text(image, PARTITION_KEY), _text(image, SORT_KEY)
    run, version = _RUN.fullmatch(pk), _VERSION.fullmatch(sk)
    if run is None:
        raise Malformed(PARTITION_KEY, "is not a run of a job")
    if version is None:
        raise Malformed(SORT_KEY, "is not a version of an audit")
    try:
        created_at = _EPOCH + timedelta(milliseconds=int(run["created_ms"]))
    except OverflowError as error:
        raise Malformed(PARTITION_KEY, "is of no year that can be") from error
    key = JobKey(run["arn"], created_at)
    if keys.job_pk(key) != pk:
        raise Malformed(PARTITION_KEY, "is not a run of a job")
    return pk, key, int(version["version"])


def read_document(record: dict[str, Any]) -> AuditDocument:
    """The audit's document. Raises Malformed."""
    try:
        document = read_text(_text(_image(record), "document"))
    except ValueError as error:
        raise Malformed("document", "is not JSON") from error
    if not isinstance(document, dict):
        raise Malformed("document", "is not an object")
    return document


def written_at(record: dict[str, Any], clock: Callable[[], datetime]) -> datetime:
    """When the item was written, the same at every delivery; now where the record does not say."""
    seconds = _stream(record).get("ApproximateCreationDateTime")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return clock()
    return _EPOCH + timedelta(seconds=seconds)


def sequence_number(record: dict[str, Any]) -> str:
    """Where Lambda goes on after a failure; empty (the whole batch) where the record has none."""
    number = _stream(record).get("SequenceNumber")
    return number if isinstance(number, str) else ""


def place(record: dict[str, Any]) -> dict[str, str]:
    """Where the audit lies in the table and its record in the stream, as far as is known."""
    image = _image(record)
    return {
        PARTITION_KEY: _text(image, PARTITION_KEY),
        SORT_KEY: _text(image, SORT_KEY),
        "sequence_number": sequence_number(record),
    }


def _stream(record: dict[str, Any]) -> dict[str, Any]:
    stream = record.get("dynamodb")
    return stream if isinstance(stream, dict) else {}


def _image(record: dict[str, Any]) -> dict[str, Any]:
    image = _stream(record).get("NewImage")
    return image if isinstance(image, dict) else {}


def _text(image: dict[str, Any], name: str) -> str:
    attribute = image.get(name)
    text = attribute.get("S") if isinstance(attribute, dict) else None
    return text if isinstance(text, str) else ""
