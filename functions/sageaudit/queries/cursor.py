"""Cursors of answers: where a question's rows continue, whatever is added or removed meanwhile.

A cursor is safe in a URL and a shell. It belongs to its question: other filters or another order
refuse it. The window is not part of it, since `30d` means other days tomorrow.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal, InvalidOperation

from sageaudit.domain.audit.record import JobKey, Position
from sageaudit.errors import BadUsage
from sageaudit.queries.question import Question, Sort
from sageaudit.queries.rows import AuditRow, amount

_VERSION = 2
USUAL = b',null,"2026-11-20T12:00:00.000000+00:00","arn:aws:sagemaker:us-east-1:training-job/'
"""What most cursors contain: compressed with it, they are half as long."""
_LONGEST = 20_000
"""Characters that are unpacked of a cursor."""


@dataclass(frozen=True, slots=True)
class Place:
    """The last row shown: its position and, in an order by dollars, its amount in USD."""

    position: Position
    usd: Decimal | None = None


def place_of(row: AuditRow, sort: Sort) -> Place:
    """The place of a row in an answer."""
    return Place(row.position, None if sort is Sort.NEWEST else amount(row, sort))


def cursor_of(question: Question, place: Place) -> str:
    """The cursor after this place."""
    run = place.position.key
    parts = [
        _VERSION,
        _digest(question),
        place.position.ended_at.isoformat(),
        run.arn,
        run.created_at.isoformat(),
        None if place.usd is None else str(place.usd),
    ]
    text = json.dumps(parts, separators=(",", ":"))
    press = zlib.compressobj(9, wbits=-zlib.MAX_WBITS, zdict=USUAL)
    short = press.compress(text.encode()) + press.flush()
    return base64.urlsafe_b64encode(short).decode().rstrip("=")


def read_cursor(question: Question, cursor: str) -> Place:
    """The place that a cursor names. Raises BadUsage for one of another question."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        short = base64.b64decode(padded, altchars=b"-_", validate=True)
        unpress = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=USUAL)
        parts = json.loads(unpress.decompress(short, _LONGEST))
        match parts:
            case [version, digest, str(ended), str(arn), str(created), usd] if (
                version,
                digest,
            ) == (_VERSION, _digest(question)) and (usd is None) == (question.sort is Sort.NEWEST):
                key = JobKey(arn, _moment(created))
                return Place(Position(_moment(ended), key), _usd(usd))
    except (ValueError, RecursionError, InvalidOperation, zlib.error):
        pass
    raise BadUsage(
        "--cursor does not belong to this question: repeat it with the same filters and --sort,"
        " or without --cursor"
    )


def _digest(question: Question) -> str:
    filters = [getattr(question, of.name) for of in fields(question) if of.name != "window"]
    text = json.dumps([None if part is None else str(part) for part in filters])
    return f"{zlib.crc32(text.encode()):08x}"


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a cursor's times have a zone")
    return moment


def _usd(text: object) -> Decimal | None:
    usd = None if text is None else Decimal(str(text))
    if usd is not None and not usd.is_finite():
        raise ValueError("a cursor's amount is a number")
    return usd
