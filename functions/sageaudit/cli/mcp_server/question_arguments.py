"""The arguments of tools that ask a question: a time, filters, and the number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from sageaudit.cli import clock
from sageaudit.cli.mcp_server.answer import MAX_ARGUMENT_LENGTH, Arguments, Name, option_words
from sageaudit.cli.query_options import option_name, resolve_rule
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import BadUsage
from sageaudit.queries.columns import FILTERS, Column, make_question
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.window import TIME_FORMATS, parse_window


def _filter_schema(column: Column) -> dict[str, Any]:
    kind = "boolean" if column.parse is bool else "number" if column.unit else "string"
    kinds = {"count": "integer", "tag": "object"}
    schema: dict[str, Any] = {
        "type": kinds.get(column.name, kind),
        "description": column.help.removesuffix(" May be repeated."),
    }
    return schema | ({"enum": [*column.choices]} if column.choices else {})


ARGUMENT_FORMAT = "{} {}"
"""How errors name an argument and its text."""
Since = Annotated[Name, Meta(description=f"Jobs that ended since then: {TIME_FORMATS}.")]
Limit = Annotated[int, Meta(ge=1, le=100, description="Maximum number of rows.")]
_Filters = Annotated[
    dict[str, Any],
    Meta(
        description="Only jobs that match all of these.",
        extra_json_schema={
            "properties": {name: _filter_schema(column) for name, column in FILTERS.items()},
            "additionalProperties": False,
        },
    ),
]


class QuestionArguments(Arguments, frozen=True):
    """The arguments of a question. A tool may have another default for `since`."""

    since: Since = "30d"
    until: Annotated[Name, Meta(description='Jobs that ended by then; "": until now.')] = ""
    filters: _Filters = field(default_factory=dict)
    limit: Limit = 10

    def question(self, sort: SortOrder, since: str = "", *, with_today: bool = True) -> Question:
        """Returns the question of these arguments. Raises BadUsage."""
        times = (since or self.since, self.until or None)
        window = parse_window(
            *times, clock.utc_now(), with_today=with_today, option_format=ARGUMENT_FORMAT
        )
        return make_question(window, sort, dict(_parse_filters(self.filters)))

    def words(self, since: str = "") -> list[str]:
        """Returns the command's options for the time and the filters."""
        words = option_words({"--since": since or self.since, "--until": self.until})
        for name, value in _parse_filters(self.filters):
            for text in value if isinstance(value, tuple) else (value,):
                words += [option_name(name)] if text is True else [option_name(name), text]
        return words


def _parse_filters(filters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields each given filter with its value as an option has it. Raises BadUsage."""
    for name, value in filters.items():
        if name not in FILTERS:
            suggestion = did_you_mean(name, FILTERS) or ":"
            raise BadUsage(f"there is no filter {name}{suggestion} there are {', '.join(FILTERS)}")
        if value in (None, "", False, {}):
            continue
        is_flag = FILTERS[name].parse is bool
        tags = value if name == "tag" and isinstance(value, dict) else {}
        values = [*tags.values()] or [value]
        if is_flag != (value is True) or any(isinstance(part, list | dict) for part in values):
            raise BadUsage(f"the filter {name} takes {'true or false' if is_flag else 'one value'}")
        if None in values:
            raise BadUsage(f"the filter {name} has no value for a tag")
        texts = [f"{tag}={text}" for tag, text in tags.items()] or [str(value)]
        if sum(map(len, texts)) > MAX_ARGUMENT_LENGTH:
            raise BadUsage(f"the filter {name} has more than {MAX_ARGUMENT_LENGTH} letters")
        if name == "tag":
            yield name, tuple(texts)
        else:
            yield name, is_flag or (resolve_rule(texts[0]) if name == "rule" else texts[0])
