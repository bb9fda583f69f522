"""Converts times and keys to text, and rows to DynamoDB items.

An item has one attribute per field, with the field's name. A field is not stored if its value is
None, or equals a default that is False or empty. A JobKey's fields are stored beside the others.
Times and enum values are strings, and tuples are lists. Money is a number. The figures of
RUN_FIELDS and Sums are strings, as a metric may have any exponent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from sys import intern
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, asdict, fields

from sageaudit.adapters.files.exact_json import gzip_json, read_gzip_json
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.finding_document import RunRecommendation
from sageaudit.domain.audit.record import Detail, FindingRow
from sageaudit.domain.audit.summary import RUN_FIELDS, AuditSummary, JobKey
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.moments import as_utc, parse_day, parse_moment
from sageaudit.domain.money import check_figure
from sageaudit.domain.resize.candidate import CostlierStep

MAX_TEXT_LENGTH = 2_000
"""The maximum length of a text in rows and keys. The document has the full text."""
_MAX_PART_BYTES = 512
"""The maximum size of a text in a key. A longer key would make the transaction fail.

DynamoDB accepts 2,048 bytes in a partition key and 1,024 in a sort key.
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Item = dict[str, Any]
StoredT = TypeVar(
    "StoredT", AuditSummary, FindingRow, JobKey, RunRecommendation, CostlierStep, Decision
)
RowT = TypeVar("RowT", bound=Struct)
MAX_NAME_LENGTH = 200
_MAX_DETAIL_BYTES = 350_000
"""The maximum size of a detail's gzipped description and series. A larger detail loses its series.
"""
_RUN_FIELD_NAMES = frozenset(RUN_FIELDS)
_FORMS = (AuditSummary, FindingRow, JobKey, RunRecommendation, CostlierStep, Decision)
_FIELDS_IN_FINDINGS = frozenset({"key", "job", "family", "owner", "ended_at"})


def read_decimal(value: Any) -> Decimal:
    """Returns a stored figure. Raises one of PARSE_ERRORS for anything else."""
    return check_figure(Decimal(value))


_NUMBERS: dict[type[Sums | RuleSums], dict[str, Callable[[Any], Any]]] = {
    form: {
        name: read_decimal if name.endswith("_usd") else int
        for name in form.__struct_fields__
        if name != "rules"
    }
    for form in (Sums, RuleSums)
}


def key_part(text: str) -> str:
    """Returns the text as a part of a key. A hash replaces the end of a text that is too long."""
    encoded = text[:MAX_TEXT_LENGTH].encode("utf-8", "replace")
    if len(encoded) <= _MAX_PART_BYTES:
        return encoded.decode()
    prefix = encoded[: _MAX_PART_BYTES - 65].decode("utf-8", "ignore")
    return f"{prefix}~{hashlib.sha256(encoded).hexdigest()}"


def run_key(key: JobKey) -> str:
    """Returns a run's identifier: its ARN and its creation time in epoch milliseconds."""
    return f"{key_part(key.arn)}#{epoch_ms(key.created_at)}"


def moment_sk(moment: datetime, key: JobKey) -> str:
    """Returns a sort key for the time of a run's end or recheck. Each run has its own key."""
    return f"{moment_text(moment)}#{run_key(key)}"


def sk_before(moment: datetime | None) -> str:
    """Returns a sort key after all keys of times before `moment`. None means after all keys."""
    return "~" if moment is None else moment_text(moment)


def through_sk(moment: datetime) -> str:
    """Returns a sort key after all keys of times up to and including `moment`."""
    return f"{moment_text(moment)}$"


def moment_text(moment: datetime) -> str:
    """Returns the time as ISO 8601 in UTC, always 27 characters."""
    return as_utc(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


def epoch_s(moment: datetime) -> int:
    """Returns whole seconds since 1970, the unit of TTL attributes."""
    return (as_utc(moment) - _EPOCH) // timedelta(seconds=1)


def epoch_ms(moment: datetime) -> int:
    """Returns whole milliseconds since 1970."""
    return (as_utc(moment) - _EPOCH) // timedelta(milliseconds=1)


class FieldReader(NamedTuple):
    """How to read a field.

    `convert` converts the stored value; None if it needs no conversion. `is_optional` means that
    the attribute may be absent. A value equal to `default` is not stored. `is_nested` means that
    the value is a list or a map.
    """

    name: str
    convert: Callable[..., Any] | None
    is_optional: bool
    default: Any
    is_nested: bool


def to_item(row: StoredT) -> Item:
    """Returns a row's attributes."""
    return to_attributes(row, READERS_BY_TYPE[type(row)])


def to_attributes(row: StoredT, readers: Iterable[FieldReader]) -> Item:
    """Returns the row's attributes for the fields of `readers`."""
    item: Item = {}
    for name, _, is_optional, default, _ in readers:
        value = getattr(row, name)
        if isinstance(value, JobKey):
            item |= to_item(value)
        elif value is not None and not (is_optional and value == default):
            item[name] = _run_value(value) if name in _RUN_FIELD_NAMES else _plain(value)
    return item


def from_item(row_type: type[StoredT], item: Item) -> StoredT:
    """Reads the row of an item. Raises one of PARSE_ERRORS for an item of another form."""
    return make_row(row_type, read_fields(READERS_BY_TYPE[row_type], item))


def make_row(row_type: type[RowT], values: dict[str, Any]) -> RowT:
    """Returns a row of these values. Raises ValueError if a value has another type than its field.

    The row has the given values themselves, which many rows may share: msgspec would copy them.
    """
    msgspec.convert(values, row_type)
    return row_type(**values)


def read_fields(readers: Iterable[FieldReader], item: Item) -> dict[str, Any]:
    """Returns an item's converted values, by field.

    Raises KeyError if a required attribute is missing.
    """
    values: dict[str, Any] = {}
    for name, convert, is_optional, *_ in readers:
        if name in item:
            values[name] = item[name] if convert is None else convert(item[name])
        elif is_optional:
            continue
        elif convert is from_item:
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
    if isinstance(value, RunRecommendation):
        return {name: _run_value(part) for name, part in to_item(value).items()}
    if isinstance(value, CostlierStep):
        return {name: _run_value(part) for name, part in to_item(value).items()}
    if isinstance(value, tuple | list):
        return [_run_value(part) for part in value]
    if isinstance(value, Mapping):
        return {name[:MAX_NAME_LENGTH]: str(number) for name, number in value.items()}
    return str(value) if isinstance(value, str | Decimal) else value


def _sums_item(sums: Sums) -> Item:
    # Zeros are not stored.
    rules = {name: _texts(rule) for name, rule in sums.rules.items()}
    return _texts(sums) | ({"rules": rules} if rules else {})


def _texts(sums: Sums | RuleSums) -> Item:
    return {name: str(number) for name, number in non_zero_numbers(sums).items()}


def non_zero_numbers(sums: Sums | RuleSums) -> Item:
    """Returns the counts and amounts that are not zero, without the sums by rule."""
    return {name: value for name, value in asdict(sums).items() if value and name != "rules"}


def _read_sums(item: Item) -> Sums:
    rules = {
        name: RuleSums(**parse_numbers(RuleSums, numbers))
        for name, numbers in item.get("rules", {}).items()
    }
    return Sums(**parse_numbers(Sums, item), rules=rules)


def parse_numbers(form: type[Sums | RuleSums], item: Item) -> Item:
    """Returns an item's counts as int, and its amounts (names with `_usd`) as Decimal.

    The stored values are numbers or texts. Other attributes are left out.
    """
    numbers = _NUMBERS[form]
    return {name: numbers[name](value) for name, value in item.items() if name in numbers}


def detail_to_item(detail: Detail) -> Item:
    """Returns a detail's attributes: description and tags as gzipped JSON, series as bytes."""
    description = gzip_json({"describe": detail.describe, "tags": detail.tags})
    is_within_limit = len(description) + len(detail.series) <= _MAX_DETAIL_BYTES
    dropped_note = None if is_within_limit else "The series were too large to keep."
    notes = [note for note in (detail.note, dropped_note) if note]
    series = detail.series if is_within_limit else b""
    return {"description": description, "series": series, "note": " ".join(notes) or None}


def read_detail(item: Item) -> Detail:
    """Reads the detail from the attributes that `detail_to_item` made. Raises PARSE_ERRORS."""
    job = read_gzip_json(item["description"])
    values = {
        "describe": job["describe"],
        "tags": job["tags"],
        "series": item["series"],
        "note": item.get("note"),
    }
    return make_row(Detail, values)


def _readers(form: type[Any]) -> tuple[FieldReader, ...]:
    readers = []
    for field in fields(form):
        hint = field.type
        can_be_none = NoneType in get_args(hint)
        [value_type] = (
            [part for part in get_args(hint) if part is not NoneType] if can_be_none else [hint]
        )
        default = None if can_be_none else _empty_default(field)
        is_optional = can_be_none or default is not None
        is_nested = get_origin(value_type) in {tuple, Mapping} or value_type is Sums
        read = _read_final_metrics if field.name == "final_metrics" else _value_reader(value_type)
        readers.append(FieldReader(field.name, read, is_optional, default, is_nested))
    return tuple(readers)


def _read_final_metrics(values: Mapping[str, Any]) -> dict[str, Decimal]:
    # a metric of the job's own code may have any exponent
    return {intern(name): Decimal(value) for name, value in values.items()}


def _empty_default(field: FieldInfo) -> object:
    """Returns None if the field's default is neither False nor empty."""
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return default if default is False or default in ((), {}, Sums()) else None


def _value_reader(hint: Any) -> Callable[..., Any] | None:
    """Returns None if a stored value needs no conversion."""
    if hint is str:
        return None
    if get_origin(hint) is tuple:
        form = get_args(hint)[0]
        if form in (RunRecommendation, CostlierStep):
            return lambda items: tuple(from_item(form, item) for item in items)
        return tuple
    if get_origin(hint) is Mapping:
        value_hint = get_args(hint)[1]
        if Decimal in (value_hint, *get_args(value_hint)):
            return lambda values: {
                intern(name): None if value is None else read_decimal(value)
                for name, value in values.items()
            }
        return lambda values: {intern(name): value for name, value in values.items()}
    reader: Callable[..., Any] = {
        JobKey: from_item,
        Decimal: read_decimal,
        date: parse_day,
        datetime: parse_moment,
        Sums: _read_sums,
    }.get(hint, hint)
    return reader


READERS_BY_TYPE = {form: _readers(form) for form in _FORMS}
RUN_READERS = tuple(row for row in READERS_BY_TYPE[AuditSummary] if row.name in _FIELDS_IN_FINDINGS)
"""Readers of the summary's fields that finding rows store too."""
