"""Stored forms: times and keys as texts, and rows as table items, by the names and types of fields.

Keys identify runs, and sort them by their ends or rechecks. An attribute has the name of its field;
a field that is None has no attribute, nor has one that is False, or an empty list or map, by
default. The fields of a JobKey are attributes like the others. Times and enum values are strings,
tuples are lists. Money is a number; the figures of RUN_FIELDS and Sums are strings, as a metric may
have any exponent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from sys import intern
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, asdict, fields

from sageaudit.adapters.files.exact_json import gzip_json, read_gzip_json
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.finding_document import Recommendation
from sageaudit.domain.audit.record import Detail, FindingRow
from sageaudit.domain.audit.summary import RUN_FIELDS, AuditSummary, JobKey
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.resize.candidate import CostlierStep

MAX_TEXT_LENGTH = 2_000
"""Most characters of a text in rows and keys; the document has the full text."""
_MAX_PART_BYTES = 512
"""A partition key has at most 2,048 bytes, a sort key 1,024; a longer one fails the transaction."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Item = dict[str, Any]
StoredT = TypeVar(
    "StoredT", AuditSummary, FindingRow, JobKey, Recommendation, CostlierStep, Decision
)
MAX_NAME_LENGTH = 200
_MAX_DETAIL_BYTES = 350_000
"""Description in gzip and series together; above it the series are dropped."""
_RUN_FIELD_NAMES = frozenset(RUN_FIELDS)
_FORMS = (AuditSummary, FindingRow, JobKey, Recommendation, CostlierStep, Decision)
_FIELDS_IN_FINDINGS = frozenset({"key", "job", "family", "owner", "ended_at"})
_NUMBERS: dict[type[Sums | RuleSums], dict[str, Callable[[Any], Any]]] = {
    form: {
        name: Decimal if name.endswith("_usd") else int
        for name in form.__struct_fields__
        if name != "rules"
    }
    for form in (Sums, RuleSums)
}


def key_part(text: str) -> str:
    """Returns the text as one part of a key; a text that is too long is cut and gets a hash."""
    encoded = text[:MAX_TEXT_LENGTH].encode("utf-8", "replace")
    if len(encoded) <= _MAX_PART_BYTES:
        return encoded.decode()
    beginning = encoded[: _MAX_PART_BYTES - 65].decode("utf-8", "ignore")
    return f"{beginning}~{hashlib.sha256(encoded).hexdigest()}"


def run_key(key: JobKey) -> str:
    """Returns a run's identifier: its ARN and creation time in epoch milliseconds."""
    return f"{key_part(key.arn)}#{epoch_ms(key.created_at)}"


def moment_sk(moment: datetime, key: JobKey) -> str:
    """Returns a sort key by a moment of each run, its end or recheck. Keys are unique, so that a
    list can be continued after one.
    """
    return f"{moment_text(moment)}#{run_key(key)}"


def sk_before(before: datetime | None) -> str:
    """Returns a key after every `moment_sk` to list: those before a moment, or all."""
    return "~" if before is None else moment_text(before)


def through_sk(moment: datetime) -> str:
    """Returns a key after every `moment_sk` up to this moment, since "$" follows "#"."""
    return f"{moment_text(moment)}$"


def as_utc(moment: datetime) -> datetime:
    """Returns the moment in UTC; one without a zone is taken as UTC."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def moment_text(moment: datetime) -> str:
    """Returns ISO 8601 in UTC, always 27 characters."""
    return as_utc(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_moment(text: str) -> datetime:
    """Reads a moment in ISO 8601."""
    return as_utc(datetime.fromisoformat(text))


def epoch_s(moment: datetime) -> int:
    """Returns whole seconds since 1970, as TTL attributes count."""
    return (as_utc(moment) - _EPOCH) // timedelta(seconds=1)


def epoch_ms(moment: datetime) -> int:
    """Returns whole milliseconds since 1970."""
    return (as_utc(moment) - _EPOCH) // timedelta(milliseconds=1)


class FieldReader(NamedTuple):
    """A field, and what converts its stored value (None: it is stored as it is).

    `is_optional`: it may be absent; a value equal to `default` is not stored. `is_nested`: it is a
    list or a map.
    """

    name: str
    convert: Callable[..., Any] | None
    is_optional: bool
    default: Any
    is_nested: bool


def to_item(row: StoredT) -> Item:
    """Returns the attributes of a row."""
    return to_attributes(row, READERS_BY_TYPE[type(row)])


def to_attributes(row: StoredT, readers: Iterable[FieldReader]) -> Item:
    """Returns the attributes of these fields of a row."""
    item: Item = {}
    for name, _, optional, default, _ in readers:
        value = getattr(row, name)
        if isinstance(value, JobKey):
            item |= to_item(value)
        elif value is not None and not (optional and value == default):
            item[name] = _run_value(value) if name in _RUN_FIELD_NAMES else _plain(value)
    return item


def from_item(row_type: type[StoredT], item: Item) -> StoredT:
    """Reads the row of an item. Raises KeyError if a required attribute is missing."""
    return row_type(**read_fields(READERS_BY_TYPE[row_type], item))


def read_fields(readers: Iterable[FieldReader], item: Item) -> dict[str, Any]:
    """Reads the fields of these readers from an item. Raises KeyError, like `from_item`."""
    values: dict[str, Any] = {}
    for name, read, optional, *_ in readers:
        if name in item:
            values[name] = item[name] if read is None else read(item[name])
        elif optional:
            continue
        elif read is from_item:
            values[name] = from_item(JobKey, item)
        else:
            raise KeyError(name)
    return values


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sums):
        return _sums_item(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _run_value(value: object) -> object:
    if isinstance(value, Recommendation):
        return {name: _run_value(part) for name, part in to_item(value).items()}
    if isinstance(value, CostlierStep):
        return {name: _run_value(part) for name, part in to_item(value).items()}
    if isinstance(value, tuple | list):
        return [_run_value(part) for part in value]
    if isinstance(value, Mapping):
        return {name[:MAX_NAME_LENGTH]: str(number) for name, number in value.items()}
    return str(value) if isinstance(value, str | Decimal) else value


def _sums_item(sums: Sums) -> Item:
    """Returns the attributes of sums, without zeros."""
    rules = {name: _texts(rule) for name, rule in sums.rules.items()}
    return _texts(sums) | ({"rules": rules} if rules else {})


def _texts(sums: Sums | RuleSums) -> Item:
    return {name: str(number) for name, number in non_zero_numbers(sums).items()}


def non_zero_numbers(sums: Sums | RuleSums) -> Item:
    """Returns the counts and amounts that are not zero, without those of rules."""
    return {name: value for name, value in asdict(sums).items() if value and name != "rules"}


def _read_sums(item: Item) -> Sums:
    rules = {
        name: RuleSums(**parse_numbers(RuleSums, numbers))
        for name, numbers in item.get("rules", {}).items()
    }
    return Sums(**parse_numbers(Sums, item), rules=rules)


def parse_numbers(form: type[Sums | RuleSums], item: Item) -> Item:
    """Reads counts as int and amounts as Decimal (a count has no unit in its name).

    The values may be numbers or texts. Other attributes of the item are left out.
    """
    numbers = _NUMBERS[form]
    return {name: numbers[name](value) for name, value in item.items() if name in numbers}


def detail_to_item(detail: Detail) -> Item:
    """Returns a detail's attributes: description and tags as JSON in gzip, series as bytes."""
    description = gzip_json({"describe": detail.describe, "tags": detail.tags})
    fits = len(description) + len(detail.series) <= _MAX_DETAIL_BYTES
    dropped = None if fits else "The series were too large to keep."
    notes = [note for note in (detail.note, dropped) if note]
    series = detail.series if fits else b""
    return {"description": description, "series": series, "note": " ".join(notes) or None}


def read_detail(item: Item) -> Detail:
    """Reads the detail from these attributes."""
    job = read_gzip_json(item["description"])
    return Detail(job["describe"], job["tags"], item["series"], item.get("note"))


def _readers(form: type[Any]) -> tuple[FieldReader, ...]:
    """Returns the readers of all fields."""
    readers, hints = [], get_type_hints(form)
    for field in fields(form):
        hint = hints[field.name]
        unknown = NoneType in get_args(hint)
        [kind] = [kind for kind in get_args(hint) if kind is not NoneType] if unknown else [hint]
        default = None if unknown else _empty(field)
        optional = unknown or default is not None
        nested = get_origin(kind) in {tuple, Mapping} or kind is Sums
        readers.append(FieldReader(field.name, _value_reader(kind), optional, default, nested))
    return tuple(readers)


def _empty(field: FieldInfo) -> object:
    """Returns a field's default if it is False or empty; None for any other."""
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return default if default is False or default in ((), {}, Sums()) else None


def _value_reader(hint: Any) -> Callable[..., Any] | None:
    """Returns what converts a stored Decimal, string, ... to the type; None for a text."""
    if hint is str:
        return None
    if get_origin(hint) is tuple:
        form = get_args(hint)[0]
        if form in (Recommendation, CostlierStep):
            return lambda items: tuple(from_item(form, item) for item in items)
        return tuple
    if get_origin(hint) is Mapping and get_args(hint)[1] is str:
        return lambda values: {intern(name): value for name, value in values.items()}
    if get_origin(hint) is Mapping:
        read = Decimal if Decimal in get_args(hint) else lambda text: text
        return lambda values: {intern(name): read(value) for name, value in values.items()}
    reader: Callable[..., Any] = {
        JobKey: from_item,
        date: date.fromisoformat,
        datetime: read_moment,
        Sums: _read_sums,
    }.get(hint, hint)
    return reader


READERS_BY_TYPE = {form: _readers(form) for form in _FORMS}
RUN_READERS = tuple(row for row in READERS_BY_TYPE[AuditSummary] if row.name in _FIELDS_IN_FINDINGS)
"""Fields of a summary that finding rows have too: what a rule's list shows of a run."""
