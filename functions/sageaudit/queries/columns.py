"""The columns of audits and the filters of questions, one row of a table for each.

The table defines the options of commands and of Python, the filters of a `Question`, the columns of
sums, and the known values of a filter. A cost tag that the policy shows is a column of its own.
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
_WASTE = ("avoidable_usd", "lost_usd", "rollup", "sums")
"""The fields with the avoidable and lost dollars of a row. A roll-up's are those of its sums."""
_TOTAL = ("total_usd", "rollup", "sums")
TAG_PREFIX = "tag_"
"""The prefix of a cost tag's field. `by` also takes the tag's name if no column has it."""
Matches = Callable[[AuditSummary, Any], bool]


class Column(Struct, frozen=True):
    """A column of audits, a filter, or both.

    Without `help` it is not a filter. If it is not `groupable`, it is only a filter. `field` is its
    name in rows, if that differs. `parse` reads a filter value. `reads` names the summary's fields
    that the value and the filter need, by default the one of that name. `matches` compares a
    summary with the filter value, `matches_finding` a finding. `needs_summary` means that a finding
    does not have the column. `scope` is the scope of its daily sums. `choices` are all values that
    it can have.
    """

    name: str
    help: str = ""
    field: str = ""
    parse: Callable[[str], Any] = str
    reads: tuple[str, ...] | None = None
    matches: Matches | None = None
    matches_finding: Callable[[FindingRow, Any], bool] | None = None
    choices: tuple[str, ...] = ()
    scope: Scope | None = None
    needs_summary: bool = False
    groupable: bool = True
    period_length: PeriodLength | None = None
    is_tag: bool = False
    unit: str = ""

    @property
    def key(self) -> str:
        """The name of the field in rows of sums and of lists."""
        return f"{TAG_PREFIX}{self.name}" if self.is_tag else self.field or self.name

    @property
    def read_fields(self) -> tuple[str, ...]:
        """The fields of a summary that the value or the filter needs."""
        if self.is_tag:
            return ("tags",)
        return (self.field or self.name,) if self.reads is None else self.reads

    def value_of(self, row: Any) -> Any:
        """Returns the value of the column in a row."""
        return row.tags.get(self.name) if self.is_tag else getattr(row, self.key)

    def is_match(self, row: AuditSummary | RuleFinding, filter_value: Any) -> bool:
        """Returns whether a row passes this filter. A field that was not read yet passes."""
        if isinstance(row, RuleFinding):
            if self.matches_finding:
                return self.matches_finding(row.finding, filter_value)
            if self.needs_summary and not row.is_loaded:
                return True
            row = row.summary
        return bool(
            self.matches(row, filter_value) if self.matches else self.value_of(row) == filter_value
        )


def _parse_status(text: str) -> str:
    """Returns the status as audits have it. Raises ValueError for a status of jobs that have not
    ended.
    """
    word = text.replace("-", " ").capitalize()
    if word.replace(" ", "") in _RUNNING:
        raise ValueError(
            "is a status of jobs that have not ended: a history has only jobs that have ended"
        )
    return word


def _has_status(row: AuditSummary, filter_value: str) -> bool:
    return row.status.lower() == filter_value.lower()


def _parse_type(text: str) -> str:
    return f"ml.{text.removeprefix('ml.')}"


def _minimum_filter(
    get_amount: Callable[[AuditSummary], Decimal | None], unit: str, example: str
) -> dict[str, Any]:
    def parse(text: object) -> Decimal:
        try:
            minimum = Decimal(str(text).removeprefix("$").removesuffix("%"))
        except InvalidOperation:
            minimum = Decimal(-1)
        if not minimum.is_finite() or minimum < 0:
            raise ValueError(f"is not an amount in {unit}, such as {example}")
        return minimum

    def matches(row: AuditSummary, filter_value: Decimal) -> bool:
        return _is_at_least(get_amount(row), filter_value)

    return {"parse": parse, "matches": matches, "unit": unit, "groupable": False}


def _is_at_least(usd: Decimal | None, minimum: Decimal) -> bool:
    return usd is not None and usd >= minimum


def _parse_count(text: object) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", str(text)):
        raise ValueError("is not a number of instances")
    return int(str(text))


def _parse_tags(value: Any) -> dict[str, str]:
    """Reads `{"team": "growth"}` from "team=growth", from several such texts, or from a map."""
    if isinstance(value, Mapping):
        return {str(name): str(value or "") for name, value in value.items()}
    texts = [value] if isinstance(value, str) else [*value]
    pairs = [text.partition("=") for text in texts]
    if not all(name and sign for name, sign, _ in pairs):
        raise ValueError("is not written key=value")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise ValueError("names a tag twice")
    return {name: value for name, _, value in pairs}


def _has_tags(row: AuditSummary, filter_value: Mapping[str, str]) -> bool:
    return all(
        name in row.tags and (row.tags[name] or "") == value for name, value in filter_value.items()
    )


def _has_severity(row: AuditSummary, filter_value: Severity) -> bool:
    return row.severity is not None and row.severity.rank >= filter_value.rank


def _duration_hours(row: AuditSummary) -> Decimal | None:
    return None if row.duration_s is None else Decimal(row.duration_s) / _HOUR_S


def _parse_reason(text: str) -> str:
    """Returns the kind of failure as audits have it. An unknown name is returned unchanged."""
    return next((word for word in CLASSES if word.lower() == text.lower()), text)


def _has_image(row: AuditSummary, filter_value: str) -> bool:
    """Returns True if the image of the row matches the text.

    A text with a tag, such as `pytorch-training:2.1`, must be the end of the image's path. Any
    other text may be anywhere in it.
    """
    image, text = (row.image or "").lower(), filter_value.lower()
    return f"/{image}".endswith(f"/{text}") if ":" in text else text in image


def _enum_filter(enum_type: type[Enum]) -> dict[str, Any]:
    return {"parse": enum_type, "choices": tuple(str(member.value) for member in enum_type)}


COLUMNS = (
    Column(
        "rule", "Findings of this rule, by name or id.", reads=(),
        matches_finding=lambda finding, rule: finding.rule == rule,
    ),
    Column(
        "family", "Jobs of this family; its last part is enough.", scope=Scope.FAMILY,
        matches=lambda row, name: name in {row.family, shared_name(row.family)},
    ),
    Column("owner", "Jobs of this owner.", scope=Scope.OWNER),
    Column("account", "Jobs of this account.", scope=Scope.ACCOUNT),
    Column("region", "Jobs of this AWS region."),
    Column("kind", "Kind of job.", **_enum_filter(JobKind)),
    Column(
        "type", "Jobs on this instance type, such as ml.g5.xlarge.", "instance_type", _parse_type,
        scope=Scope.TYPE, needs_summary=True,
    ),
    Column(
        "count", "Jobs with this number of instances.", "instance_count", _parse_count,
        needs_summary=True,
    ),
    Column(
        "purchase", "How the capacity was purchased.", needs_summary=True,
        **_enum_filter(Purchase),
    ),
    Column(
        "status", 'Completed, Failed, Stopped or "never started".',
        reads=("status", "never_started"), parse=_parse_status,
        matches=_has_status, choices=_STATUSES, needs_summary=True,
    ),
    Column(
        "judged", "How much of a job could be judged.", reads=("judged", "never_started"),
        needs_summary=True,
        **_enum_filter(Judged),
    ),
    Column(
        "reason", "Jobs that failed or were stopped for this kind of reason, such as `code error`.",
        parse=_parse_reason, needs_summary=True,
    ),
    Column(
        "image", "Jobs with this text in the name of their image; with a tag, such as"
        " pytorch-training:2.1, of this repository and tag.", needs_summary=True,
        matches=_has_image,
    ),
    Column("usage_type", reads=()),
    *(
        Column(length.value, field="period", reads=(), period_length=length)
        for length in PeriodLength
    ),
    Column(
        "tag", "Jobs with this value of a cost tag, such as team=growth; without a value, jobs"
        " without the tag. May be repeated.", reads=("tags",), parse=_parse_tags, matches=_has_tags,
        needs_summary=True, groupable=False,
    ),
    Column(
        "no_owner", "Jobs without an owner.", reads=("owner",),
        matches=lambda row, _: not row.owner, parse=bool, groupable=False,
    ),
    Column(
        "severity", "Jobs with a finding of this severity or a higher one.", matches=_has_severity,
        groupable=False, **_enum_filter(Severity),
    ),
    Column(
        "min_usd", "Jobs with at least this many avoidable plus lost dollars.", reads=_WASTE,
        matches_finding=lambda finding, minimum: _is_at_least(finding.saving_usd, minimum),
        **_minimum_filter(lambda row: row.waste_usd, "USD", "0.50"),
    ),
    Column(
        "min_percent", "Jobs of whose bill at least this much is avoidable or lost.",
        reads=(*_WASTE, "total_usd"), needs_summary=True,
        **_minimum_filter(lambda row: row.waste_percent, "percent", "30"),
    ),
    Column(
        "min_bill", "Jobs that cost at least this much.", reads=_TOTAL, needs_summary=True,
        **_minimum_filter(lambda row: row.total_usd, "USD", "0.50"),
    ),
    Column(
        "min_hours", "Jobs that ran at least this long, from start to end.",
        reads=("duration_s",), needs_summary=True,
        **_minimum_filter(_duration_hours, "hours", "24"),
    ),
    Column(
        "no_price", "Jobs whose bill is not known.", reads=_TOTAL, needs_summary=True, parse=bool,
        groupable=False, matches=lambda row, _: row.total_usd is None and not row.rollup,
    ),
    Column(
        "interrupted", "Spot jobs that were interrupted.", reads=("phase_s",), needs_summary=True,
        parse=bool, groupable=False, matches=lambda row, _: bool(row.interrupted_s),
    ),
)  # fmt: skip
FILTERS = {column.name: column for column in COLUMNS if column.help}
GROUPABLE = {column.name: column for column in COLUMNS if column.groupable}


def tag_column(name: str) -> Column:
    """Returns the column of a cost tag."""
    return Column(name.removeprefix(TAG_PREFIX), needs_summary=True, is_tag=True)


def parse_columns(text: str) -> tuple[Column, ...]:
    """Reads one or two columns, such as `family` or `owner,month`. Raises BadUsage.

    A word that is not a column is a cost tag.
    """
    names = [name.strip() for name in text.split(",")]
    columns = tuple(GROUPABLE.get(name.lower()) or tag_column(name) for name in names)
    if not all(names) or len(columns) > 2 or len({column.key for column in columns}) < len(columns):  # noqa: PLR2004
        raise BadUsage(f"by {text}: give one or two columns, and only one of day, week and month")
    return columns


def unknown_column_error(name: str, tags: set[str]) -> BadUsage:
    """Returns the error for a name that is neither a column nor a cost tag of any audit."""
    suggestion = did_you_mean(name, [*GROUPABLE, *tags]) or ":"
    names = [*GROUPABLE, *map(repr, sorted(tags))]
    return BadUsage(f"there is no column {name!r}{suggestion} the columns are {', '.join(names)}")


def make_row_filter(question: Question) -> Callable[[AuditSummary | RuleFinding], bool]:
    """Returns a function that returns whether a row passes every filter.

    A field that was not read yet passes.
    """
    column_filters = [
        (FILTERS[name], filter_value) for name, filter_value in question.filters.items()
    ]
    return lambda row: all(
        column.is_match(row, filter_value) for column, filter_value in column_filters
    )


def has_summary_filter(question: Question) -> bool:
    """Returns whether a filter needs fields that findings do not have."""
    return any(FILTERS[name].needs_summary for name in question.filters)


def make_question(
    window: Window,
    sort: SortOrder,
    filter_values: Mapping[str, Any],
    option_name: Callable[[str], str] = str,
) -> Question:
    """Makes a question from filter values, by the names of the filters.

    A value may be a text. `option_name` returns the caller's name of a filter, for errors. Raises
    BadUsage for an invalid value.
    """
    parsed_values = {}
    for name, value in filter_values.items():
        if value is None or value is False or value == ():
            continue
        column = FILTERS[name]
        try:
            parsed_values[name] = column.parse(value)
        except ValueError as error:
            is_enum = isinstance(column.parse, type)
            reason = f"is none of {', '.join(column.choices)}" if is_enum else str(error)
            text = " ".join(value) if isinstance(value, tuple) else value
            raise BadUsage(f"{option_name(name)} {text} {reason}") from error
    ordered_values = {name: parsed_values[name] for name in FILTERS if name in parsed_values}
    return Question.with_filters(window, sort=sort, **ordered_values)
