"""One record of the table's stream, as Lambda passes it to the function."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.table import AUDIT_PREFIX, PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.stored_document import read_text
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import JobKey
from sageaudit.errors import Malformed

_RUN = re.compile(r"JOB#(?P<arn>.+)#(?P<created_ms>-?[0-9]{1,15})")
_VERSION = re.compile(rf"{AUDIT_PREFIX}(?P<version>[0-9]{{5,9}})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN_AT = "written_at"
"""Key of a letter: when the audit was written, in seconds since the epoch."""


def run_of(pk: str, sk: str) -> tuple[str, JobKey, int]:
    """The partition key, run and version of an audit by its keys. Raises Malformed."""
    run, version = _RUN.fullmatch(pk), _VERSION.fullmatch(sk)
    if run is None:
        raise Malformed(PARTITION_KEY, "is not a run of a job")
    if version is None:
        raise Malformed(SORT_KEY, "is not a version of an audit")
    try:
        created_at = _EPOCH + timedelta(milliseconds=int(run["created_ms"]))
    except OverflowError as error:
        raise Malformed(PARTITION_KEY, "has a creation time out of range") from error
    key = JobKey(run["arn"], created_at)
    if keys.job_pk(key) != pk:
        raise Malformed(PARTITION_KEY, "is not a run of a job")
    return pk, key, int(version["version"])


def written_at(seconds: object, now: datetime) -> datetime:
    """A time in seconds since the epoch; `now` where it is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return now
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return now


@dataclass(frozen=True, slots=True)
class Change:
    """Implements Record. Changes have an order: those after one that is not done must wait."""

    LABEL: ClassVar[str] = "sequence_number"
    IN_ORDER: ClassVar[bool] = True
    raw: dict[str, Any]

    @property
    def identifier(self) -> str:
        """Where Lambda starts again after a failure; empty, the whole batch, without a number."""
        number = self._stream.get("SequenceNumber")
        return number if isinstance(number, str) else ""

    @property
    def letter(self) -> str:
        """The keys of the audit in the table, when it was written, and its place in the stream."""
        return json.dumps(
            {
                PARTITION_KEY: self._text(PARTITION_KEY),
                SORT_KEY: self._text(SORT_KEY),
                WRITTEN_AT: self._written_s,
                self.LABEL: self.identifier,
            }
        )

    def is_new_audit(self) -> bool:
        """An INSERT of a version item, or of an item without a sort key, which `run` then refuses.

        The event source mapping filters in the same way, but the local AWS sends other records too.
        """
        sk = self._text(SORT_KEY)
        return self.raw.get("eventName") == "INSERT" and (not sk or sk.startswith(AUDIT_PREFIX))

    def run(self) -> tuple[str, JobKey, int]:
        """The partition key, run and version of a new audit. Raises Malformed."""
        return run_of(self._text(PARTITION_KEY), self._text(SORT_KEY))

    def document(self) -> AuditDocument:
        """The audit's document. Raises Malformed."""
        try:
            document = read_text(self._text("document"))
        except (ValueError, RecursionError) as error:
            raise Malformed("document", "is not JSON") from error
        if not isinstance(document, dict):
            raise Malformed("document", "is not an object")
        return document

    def written_at(self, now: datetime) -> datetime:
        """When the item was written, equal for every delivery; `now` where that is absent."""
        return written_at(self._written_s, now)

    @property
    def _written_s(self) -> object:
        return self._stream.get("ApproximateCreationDateTime")

    @property
    def _stream(self) -> dict[str, Any]:
        stream = self.raw.get("dynamodb")
        return stream if isinstance(stream, dict) else {}

    def _text(self, name: str) -> str:
        image = self._stream.get("NewImage")
        attribute = image.get(name) if isinstance(image, dict) else None
        text = attribute.get("S") if isinstance(attribute, dict) else None
        return text if isinstance(text, str) else ""
