"""The columns of audits and the filters of questions, one row of a table for each.

From it come the options of commands and of Python, the filters of a `Question`, which rows fit, the
columns of sums, and the names compared with a mistyped filter. A cost tag that the policy shows is
a column of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.record import FindingRow, RuleFinding
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.failure_words import CLASSES
from sageaudit.domain.job.family import shared_name
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage
from sageaudit.queries.lists import NEVER_STARTED
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.window import PeriodLength, Window

_RUNNING = frozenset({"Inprogress", "Running", "Stopping", "Starting", "Pending"})
_STATUSES = ("Completed", "Failed", "Stopped", NEVER_STARTED)
_HOUR_S = 3600
TAG_PREFIX = "tag_"
"""Begins the field of a cost tag. In `by`, the tag's name is enough if no column has that name."""
Matches = Callable[[AuditSummary, Any], bool]


class Column(Struct, frozen=True):
    """A column of audits, or with `summed` False only a filter.

    `field` is its name in rows, if it differs. `read` parses the filter's value; `fits` compares a
    summary with it, `matches_finding` a finding. `needs_summary`: a finding does not have it.
    `scope` is that of its daily sums. `words` are its only values, `unit` is that of an amount.
    Without `help` it is not a filter.
    """

    name: str
    help: str = ""
    field: str = ""
    read: Callable[[str], Any] = str
    fits: Matches | None = None
    matches_finding: Callable[[FindingRow, Any], bool] | None = None
    words: tuple[str, ...] = ()
    scope: Scope | None = None
    needs_summary: bool = False
    summed: bool = True
    length: PeriodLength | None = None
    tag: bool = False
    unit: str = ""

    @property
    def key(self) -> str:
        """The name of the field in rows of sums and of lists."""
        return f"{TAG_PREFIX}{self.name}" if self.tag else self.field or self.name

    def value_of(self, row: Any) -> Any:
        """Returns the value of the column in a row."""
        return row.tags.get(self.name) if self.tag else getattr(row, self.key)

    def is_match(self, row: AuditSummary | RuleFinding, wanted: Any) -> bool:
        """Whether a row passes this filter; fields that are not read yet pass."""
        if isinstance(row, RuleFinding):
            if self.matches_finding:
                return self.matches_finding(row.finding, wanted)
            if self.needs_summary and not row.is_loaded:
                return True
            row = row.summary
        return bool(self.fits(row, wanted) if self.fits else self.value_of(row) == wanted)


def _parse_status(text: str) -> str:
    """Reads a status. Raises ValueError for a status of jobs that have not ended."""
    word = text.replace("-", " ").capitalize()
    if word.replace(" ", "") in _RUNNING:
        raise ValueError("is of jobs that have not ended: a history has only those that have")
    return word


def _has_status(row: AuditSummary, wanted: str) -> bool:
    return row.status.lower() == wanted.lower()


def _parse_type(text: str) -> str:
    return f"ml.{text.removeprefix('ml.')}"


def _minimum_filter(
    amount_of: Callable[[AuditSummary], Decimal | None], unit: str, example: str
) -> dict[str, Any]:
    """Makes a filter by a minimum amount; `read` raises ValueError for other texts."""

    def read(text: object) -> Decimal:
        try:
            least = Decimal(str(text).removeprefix("$").removesuffix("%"))
        except InvalidOperation:
            least = Decimal(-1)
        if not least.is_finite() or least < 0:
            raise ValueError(f"is not an amount in {unit}, such as {example}")
        return least

    def fits(row: AuditSummary, wanted: Decimal) -> bool:
        return _reaches(amount_of(row), wanted)

    return {"read": read, "fits": fits, "unit": unit, "summed": False}


def _reaches(usd: Decimal | None, least: Decimal) -> bool:
    return usd is not None and usd >= least


def _number(text: object) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", str(text)):
        raise ValueError("is not a number of instances")
    return int(str(text))


def _tags(given: Any) -> dict[str, str]:
    """Reads `{"team": "growth"}` from "team=growth", from several such texts, or from a map."""
    if isinstance(given, Mapping):
        return {str(name): str(value or "") for name, value in given.items()}
    texts = [given] if isinstance(given, str) else [*given]
    pairs = [text.partition("=") for text in texts]
    if not all(name and equals for name, equals, _ in pairs):
        raise ValueError("is not written key=value")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise ValueError("names a tag twice")
    return {name: value for name, _, value in pairs}


def _has_tags(row: AuditSummary, wanted: Mapping[str, str]) -> bool:
    return all(
        name in row.tags and (row.tags[name] or "") == value for name, value in wanted.items()
    )


def _severe(row: AuditSummary, wanted: Severity) -> bool:
    return row.severity is not None and row.severity.rank >= wanted.rank


def _hours(row: AuditSummary) -> Decimal | None:
    return None if row.duration_s is None else Decimal(row.duration_s) / _HOUR_S


def _reason(text: str) -> str:
    """Reads the word for a kind of failure, in any case."""
    return next((word for word in CLASSES if word.lower() == text.lower()), text)


def _has_image(row: AuditSummary, wanted: str) -> bool:
    """Whether the name has the text; NAME:TAG must be all of its last part, or more of its path."""
    image, text = (row.image or "").lower(), wanted.lower()
    return f"/{image}".endswith(f"/{text}") if ":" in text else text in image


def _enum(kind: type[Enum]) -> dict[str, Any]:
    return {"read": kind, "words": tuple(str(word.value) for word in kind)}


COLUMNS = (
    Column(
        "rule", "Findings of this rule, by name or id.",
        matches_finding=lambda finding, rule: finding.rule == rule,
    ),
    Column(
        "family", "Jobs of this family; its last part is enough.", scope=Scope.FAMILY,
        fits=lambda row, name: name in {row.family, shared_name(row.family)},
    ),
    Column("owner", "Jobs of this owner.", scope=Scope.OWNER),
    Column("account", "Jobs of this account.", scope=Scope.ACCOUNT),
    Column("region", "Jobs of this AWS region."),
    Column("kind", "Kind of job.", **_enum(JobKind)),
    Column(
        "type", "Jobs on this instance type, as ml.g5.xlarge.", "instance_type", _parse_type,
        scope=Scope.TYPE, needs_summary=True,
    ),
    Column(
        "count", "Jobs on so many instances.", "instance_count", _number, needs_summary=True
    ),
    Column("purchase", "How capacity was bought.", needs_summary=True, **_enum(Purchase)),
    Column(
        "status", 'Completed, Failed, Stopped or "never started".', read=_parse_status,
        fits=_has_status,
        words=_STATUSES, needs_summary=True,
    ),
    Column("judged", "How much of a job could be judged.", needs_summary=True, **_enum(Judged)),
    Column(
        "reason", "Jobs that failed or were stopped for this kind of reason, as `code error`.",
        read=_reason, needs_summary=True,
    ),
    Column(
        "image", "Jobs with this text in the name of their image; with a tag, as"
        " pytorch-training:2.1, of this repository and tag.", needs_summary=True, fits=_has_image,
    ),
    Column("usage_type"),
    *(Column(length.value, field="period", length=length) for length in PeriodLength),
    Column(
        "tag", "Jobs with this value of a cost tag, as team=growth; without a value, those that"
        " lack it. May be repeated.", read=_tags, fits=_has_tags, needs_summary=True, summed=False,
    ),
    Column(
        "no_owner", "Jobs without an owner.", fits=lambda row, _: not row.owner, read=bool,
        summed=False,
    ),
    Column(
        "severity", "Jobs with a finding of this severity or a higher one.", fits=_severe,
        summed=False, **_enum(Severity),
    ),
    Column(
        "min_usd", "Jobs with as many avoidable and lost dollars.",
        matches_finding=lambda finding, least: _reaches(finding.saving_usd, least),
        **_minimum_filter(lambda row: row.waste_usd, "USD", "0.50"),
    ),
    Column(
        "min_percent", "Jobs of whose bill so much is avoidable or lost.", needs_summary=True,
        **_minimum_filter(lambda row: row.waste_percent, "percent", "30"),
    ),
    Column(
        "min_bill", "Jobs that cost as much.", needs_summary=True,
        **_minimum_filter(lambda row: row.total_usd, "USD", "0.50"),
    ),
    Column(
        "min_hours", "Jobs that ran as long, from start to end.", needs_summary=True,
        **_minimum_filter(_hours, "hours", "24"),
    ),
    Column(
        "no_price", "Jobs whose bill is not known.", needs_summary=True, read=bool, summed=False,
        fits=lambda row, _: row.total_usd is None and not row.rollup,
    ),
    Column(
        "interrupted", "Spot jobs that were interrupted.", needs_summary=True, read=bool,
        summed=False, fits=lambda row, _: bool(row.interrupted_s),
    ),
)  # fmt: skip
FILTERS = {column.name: column for column in COLUMNS if column.help}
GROUPABLE = {column.name: column for column in COLUMNS if column.summed}


def tag_column(name: str) -> Column:
    """The column of a cost tag."""
    return Column(name.removeprefix(TAG_PREFIX), needs_summary=True, tag=True)


def parse_columns(text: str) -> tuple[Column, ...]:
    """Reads `family` or `owner,month`; any other word is a cost tag. Raises BadUsage."""
    words = [word.strip() for word in text.split(",")]
    columns = tuple(GROUPABLE.get(word.lower()) or tag_column(word) for word in words)
    if not all(words) or len(columns) > 2 or len({column.key for column in columns}) < len(columns):  # noqa: PLR2004
        raise BadUsage(f"by {text}: give one column or two, and only one of day, week and month")
    return columns


def unknown_column_error(name: str, tags: set[str]) -> BadUsage:
    """Returns the error for a name that is neither a column nor a cost tag of any audit."""
    names = [*GROUPABLE, *sorted(tags)]
    near = did_you_mean(name, names) or ":"
    return BadUsage(f"there is no column {name!r}{near} the columns are {', '.join(names)}")


def matching(question: Question) -> Callable[[AuditSummary | RuleFinding], bool]:
    """Returns a function that tells if a row passes every filter; fields not read yet pass."""
    asked = [(FILTERS[name], wanted) for name, wanted in question.filters.items()]
    return lambda row: all(column.is_match(row, wanted) for column, wanted in asked)


def needs_summary(question: Question) -> bool:
    """Whether a filter needs fields that findings do not have."""
    return any(FILTERS[name].needs_summary for name in question.filters)


def make_question(
    window: Window,
    sort: SortOrder,
    filter_values: Mapping[str, Any],
    option_name: Callable[[str], str] = str,
) -> Question:
    """Makes a question from filter values, as texts or as values, by the names of the filters.

    `option_name` returns the caller's name of a filter. Raises BadUsage for an invalid value.
    """
    asked = {}
    for name, value in filter_values.items():
        if value is None or value is False or value == ():
            continue
        column = FILTERS[name]
        try:
            asked[name] = column.read(value)
        except ValueError as error:
            of_words = isinstance(column.read, type)
            reason = f"is none of {', '.join(column.words)}" if of_words else str(error)
            text = " ".join(value) if isinstance(value, tuple) else value
            raise BadUsage(f"{option_name(name)} {text} {reason}") from error
    in_order = {name: asked[name] for name in FILTERS if name in asked}
    return Question.with_filters(window, sort=sort, **in_order)
