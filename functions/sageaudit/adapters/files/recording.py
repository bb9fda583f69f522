"""Reads recordings: JSON files with a job's Describe* response, as the AWS CLI prints it, and
metrics.

`sageaudit record` also stores the time, the prices, and what could not be read. So an audit of the
recording equals an audit of the live job at that time. docs/schema/recording.schema.json describes
all keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any

from msgspec import Struct

from sageaudit.adapters.files import text_file
from sageaudit.adapters.files.answers import FORMS, HINT, TOP_LEVEL, find_answers
from sageaudit.adapters.prices.price_list import (
    ListedPrices,
    StoredListing,
    entries_document,
    read_entries,
)
from sageaudit.domain.audit.finding_document import iso
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import Component, JobKind, kind_from_answer
from sageaudit.domain.job.ref import JOB_NAME, JobRef
from sageaudit.domain.prices.price_list import PriceListing
from sageaudit.domain.usage.measurements import MissingMetrics, RawSeries
from sageaudit.errors import BadRecording, BadUsage, MalformedData

SCHEMA = 1
"""The format's version. The oldest files have none."""
_MAX_POINTS = 1_000_000
_PRICES = "prices"


class Recording(Struct, frozen=True):
    """One recorded job. `account` and `region` are None if the file does not name them.

    `read_context` is None if the file does not say when the job was read.
    """

    describe: Mapping[str, Any]
    tags: Mapping[str, str]
    series: tuple[RawSeries, ...]
    account: str | None
    region: str | None
    read_context: ReadContext | None = None
    has_all_tags: bool = False
    """False if `tags` has only the tags that audits store."""


class RecordedSet(Struct, frozen=True):
    """The recorded jobs that a roll-up launched. `rollup` is None if the file does not have it."""

    children: tuple[Recording, ...]
    rollup: Recording | None = None
    deleted_jobs: tuple[JobRef, ...] = ()
    """Launched jobs that were deleted before they could be recorded."""


class FileRecording(Struct, frozen=True):
    """A recording in a file; BadRecording if it cannot be read.

    `place` names the file, and the line or key of a recording among several.
    """

    place: str
    recorded: Recording | RecordedSet | BadRecording


def read(path: Path) -> Recording | RecordedSet:
    """Reads a file with one job. Raises BadRecording with one sentence that names the file."""
    return only_recording(read_all(path), text_file.display_name(str(path)))


def only_recording(recordings: Sequence[FileRecording], name: str) -> Recording | RecordedSet:
    """Returns the only recording of a file. Raises BadRecording if there are several."""
    readable = [row.recorded for row in recordings if not isinstance(row.recorded, BadRecording)]
    if len(readable) > 1:
        raise BadRecording(f"{name}: has {len(readable)} jobs: give a file with one of them")
    for row in recordings:
        if isinstance(row.recorded, BadRecording):
            raise row.recorded
    return readable[0]


def read_all(path: Path) -> tuple[FileRecording, ...]:
    """Reads all jobs of a file, and says for each bad one where it is and what is wrong.

    Raises BadRecording, with the first reason, if no job can be read.
    """
    name = text_file.display_name(str(path))
    try:
        text = text_file.read_text(str(path), HINT)
        documents = text_file.parse_documents(text, name, HINT)
    except BadUsage as error:
        raise BadRecording(str(error)) from error
    recordings: list[FileRecording] = []
    for document in documents:
        place = f"{name}: line {document.line}" if len(documents) > 1 else name
        if isinstance(document.value, BadUsage):
            recordings.append(FileRecording(place, BadRecording(str(document.value))))
        else:
            recordings += find_recordings(document.value, place)
    refusals = [row.recorded for row in recordings if isinstance(row.recorded, BadRecording)]
    if len(refusals) == len(recordings):
        raise refusals[0]
    return tuple(recordings)


def find_recordings(document: object, name: str) -> list[FileRecording]:
    """Returns the recordings in parsed JSON. `name` is where the document is, for messages."""
    recordings: list[FileRecording] = []
    try:
        answers = find_answers(document)
    except RecursionError:
        return [FileRecording(name, BadRecording(f"{name}: {text_file.TOO_DEEPLY_NESTED}"))]
    for answer in answers:
        place = f"{name}: {answer.place}" if answer.place else name
        recordings.append(FileRecording(place, _parse_answer(answer.content, place)))
    return recordings


def _parse_answer(
    content: Mapping[str, Any] | str, place: str
) -> Recording | RecordedSet | BadRecording:
    if isinstance(content, str):
        return BadRecording(f"{place}: {content}")
    try:
        return parse(content)
    except MalformedData as error:
        return BadRecording(f"{place}: {error}")


def parse(document: Mapping[str, Any]) -> Recording | RecordedSet:
    """Reads a recording from parsed JSON. Raises MalformedData with the key."""
    if "children" not in document:
        return parse_job(document)
    _check_schema(document)
    children = fields.items(document, "children")
    kind = kind_from_answer(fields.section(document, "describe"))
    is_rollup = kind is not None and kind.spec.rollup is not None
    if not children and not (is_rollup and "schema" in document):
        raise MalformedData("children", "is empty")
    shared_time = {key: document[key] for key in ("as_of",) if key in document}
    prices = parse_prices(document)
    return RecordedSet(
        tuple(
            _child(shared_time | dict(child), index, prices) for index, child in enumerate(children)
        ),
        parse_job(document) if is_rollup else None,
        tuple(_parse_deleted(document)),
    )


def _parse_deleted(document: Mapping[str, Any]) -> Iterator[JobRef]:
    arns = document.get("deleted") or []
    for arn in arns if isinstance(arns, list) else [None]:
        ref = JobRef.from_arn(arn) if isinstance(arn, str) else None
        if ref is None:
            raise MalformedData("deleted", "is not a list of the ARNs of jobs")
        yield ref


def _check_schema(document: Mapping[str, Any]) -> None:
    if document.get("schema", SCHEMA) != SCHEMA:
        raise MalformedData("schema", f"is not {SCHEMA}: use a newer sageaudit to read this file")


def _child(document: Mapping[str, Any], position: int, prices: ListedPrices | None) -> Recording:
    try:
        return parse_job(document, prices)
    except MalformedData as error:
        where = f"children[{position}]"
        key = where if error.key == TOP_LEVEL else f"{where}.{error.key}"
        raise MalformedData(key, error.reason) from error


def parse_job(document: Mapping[str, Any], prices: ListedPrices | None = None) -> Recording:
    """Reads one job's recording from parsed JSON. Raises MalformedData with the key.

    `prices` is the price list that the jobs of a recorded set share.
    """
    if "describe" in document:
        _check_schema(document)
        answer = fields.section(document, "describe")
        if (kind := kind_from_answer(answer)) is None:
            raise MalformedData("describe", "has no ...JobName with a ...JobStatus of a known kind")
        _check_name(answer, kind, "describe.")
        return Recording(
            describe=answer,
            tags=_tags(document),
            series=tuple(_series(fields.section(document, "metrics"))),
            account=fields.text(document, "account"),
            region=fields.text(document, "region"),
            read_context=parse_read_context(document, prices),
            has_all_tags="tags" in document and "schema" not in document,
        )
    if (kind := kind_from_answer(document)) is not None:
        _check_name(document, kind)
        return Recording(document, _tags(document), (), None, None, has_all_tags="Tags" in document)
    raise MalformedData(TOP_LEVEL, f"has none of {FORMS}")


def _check_name(answer: Mapping[str, Any], kind: JobKind, key_prefix: str = "") -> None:
    """Raises MalformedData for an invalid job name, without quoting it."""
    name = fields.text(answer, kind.spec.name_key)
    if name is not None and not JOB_NAME.match(name):
        reason = "is not the name of a job: at most 63 letters, digits and hyphens"
        raise MalformedData(f"{key_prefix}{kind.spec.name_key}", reason)


def _tags(document: Mapping[str, Any]) -> dict[str, str]:
    key = "tags" if "describe" in document else "Tags"
    tags: dict[str, str] = {}
    if isinstance(document.get(key), Mapping):  # as in events, and in Step Functions' output
        tags = {name: value or "" for name, value in document[key].items()}
        if not all(isinstance(value, str) for value in tags.values()):
            raise MalformedData(key, "has a value that is not a string")
        return tags
    for item in fields.items(document, key):
        name = fields.text(item, "Key")
        if name is None:
            raise MalformedData(key, "has an item without Key")
        tags[name] = fields.text(item, "Value") or ""
    return tags


def _series(metrics: Mapping[str, Any]) -> list[RawSeries]:
    default_period_s = fields.count(metrics, "period_s")
    series = []
    for position, item in enumerate(fields.items(metrics, "series")):
        key = f"metrics.series[{position}]"
        host, metric = fields.text(item, "host"), fields.text(item, "metric")
        start = fields.parsed_time(item.get("start"), f"{key}.start")
        period_s = fields.count(item, "period_s") or default_period_s
        if host is None or metric is None or start is None or not period_s:
            raise MalformedData(key, "needs host, metric, start and a period_s above 0")
        if (fields.text(item, "stat") or "Average") == "Average":
            values = _values(item.get("values"), f"{key}.values")
            series.append(RawSeries(host, metric, start, period_s, values))
    return series


def _values(values: object, key: str) -> tuple[float | None, ...]:
    if not isinstance(values, list) or len(values) > _MAX_POINTS:
        raise MalformedData(key, "is not a list of numbers")
    for value_type in set(map(type, values)):  # few types, many values
        if value_type is bool or not issubclass(value_type, int | float | NoneType):
            raise MalformedData(key, "has a value that is neither a number nor null")
    try:
        return tuple(None if value is None else float(value) for value in values)
    except OverflowError as error:
        raise MalformedData(key, "has a number that is too large") from error


class ReadContext(Struct, frozen=True):
    """When a job was read from AWS, and what could not be read.

    Audits of the recording are made as of `read_at`. `no_points_reason` says why a metric has no
    points. `metric_notes` and `notes` name other data that could not be read. `prices` is the price
    list of that day; None if it was not read.
    """

    read_at: datetime
    no_points_reason: MissingMetrics
    metric_notes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    prices: ListedPrices | None = None


def parse_read_context(
    document: Mapping[str, Any], shared_prices: ListedPrices | None
) -> ReadContext | None:
    """Returns when a recording's job was read; None if the file has no time.

    `shared_prices` is used if the job has no price list of its own. Raises MalformedData.
    """
    as_of = fields.parsed_time(document.get("as_of"), "as_of")
    if as_of is None:
        return None
    metrics = fields.section(document, "metrics")
    return ReadContext(
        read_at=as_of,
        no_points_reason=_absent(fields.section(metrics, "absent")),
        metric_notes=_sentences(metrics, "notes"),
        notes=_sentences(document, "notes"),
        prices=parse_prices(document) or shared_prices,
    )


def _absent(section: Mapping[str, Any]) -> MissingMetrics:
    code, reason = fields.text(section, "code"), fields.text(section, "reason")
    return MissingMetrics(
        code or "metric_missing",
        reason or "the recording lacks these metrics of this job",
        fields.text(section, "remedy"),
    )


def _sentences(section: Mapping[str, Any], key: str) -> tuple[str, ...]:
    sentences = section.get(key) or []
    if not isinstance(sentences, list) or not all(isinstance(text, str) for text in sentences):
        raise MalformedData(key, "is not a list of sentences")
    return tuple(sentences)


def prices_document(prices: ListedPrices) -> dict[str, Any]:
    """Returns the price list of a region and component as JSON. Rates are texts in USD."""
    return {
        "region": prices.region,
        "component": prices.component.value,
        "read_at": iso(prices.last_listing.read_at) if prices.last_listing else None,
        "why": prices.unavailable_because,
        "rates": entries_document(
            prices.last_listing.listing.entry_by_product if prices.last_listing else {}
        ),
    }


def parse_prices(document: Mapping[str, Any]) -> ListedPrices | None:
    """Returns a recording's price list; None if it has none. Raises MalformedData."""
    section = fields.section(document, _PRICES)
    if not section:
        return None
    region, component_name = fields.text(section, "region"), fields.text(section, "component")
    try:
        component = Component(component_name)
    except ValueError as error:
        raise MalformedData(
            f"{_PRICES}.component", "is not a component of the price list"
        ) from error
    read_at = fields.time(section, "read_at")
    stored_listing = None
    if read_at is not None and region is not None:
        rates = fields.section(section, "rates")
        try:
            entries = read_entries(rates)
        except MalformedData as error:
            raise MalformedData(f"{_PRICES}.rates.{error.key}", error.reason) from error
        stored_listing = StoredListing(PriceListing(region, component, entries), read_at)
    return ListedPrices(region, component, stored_listing, fields.text(section, "why"))
