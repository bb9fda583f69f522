"""Runs Logs Insights queries over lines of JSON, as far as the runbook needs them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]
Test = Callable[[Row], bool]
_TOKEN = re.compile(
    r"\s*(?:(?P<text>\"[^\"]*\")|(?P<number>\d+)|(?P<op>!=|=|>|<|\(|\))|(?P<name>[@\w.]+))"
)


def run_query(log: str, query: str) -> list[dict[str, Any]]:
    """Returns the rows of a query; raises ValueError if it uses anything unsupported."""
    rows = list(_lines(log))
    for command in _commands(query):
        word, _, rest = command.partition(" ")
        if word == "filter":
            test = _Filter(rest).parsed()
            rows = [row for row in rows if test(row)]
        elif word == "fields":
            names = re.split(r",\s*", rest)
            rows = [{name: row[name] for name in names if name in row} for row in rows]
        elif word == "stats":
            rows = _counted(rest, rows)
        elif word == "limit":
            rows = rows[: int(rest)]
        elif word == "sort":
            if not re.fullmatch(r"@?\w+(?: (?:asc|desc))?", rest):
                raise ValueError(f"no sort: {rest}")
        else:
            raise ValueError(f"no command of these tests: {command}")
    return rows


def _commands(query: str) -> Iterator[str]:
    for part in re.split(r"\|(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", query):
        yield part.strip()


def _lines(log: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(log.splitlines()):
        try:
            parsed_line = json.loads(line)
        except ValueError:
            parsed_line = {}
        if isinstance(parsed_line, dict):
            yield {"@timestamp": number, "@message": line, **dict(_flat(parsed_line))}


def _flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yields flattened keys with dots, as Insights does; of a list, its only value."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(inner, f"{before}{key}.")
        elif isinstance(inner, list) and len(inner) == 1:
            yield f"{before}{key}", inner[0]
        elif inner is not None:
            yield f"{before}{key}", inner


def _counted(rest: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    matched = re.fullmatch(r"count\(\*\) as (\w+) by (.+)", rest)
    if sums := re.fullmatch(r"((?:sum\(\w+\) as \w+(?:, )?)+) by bin\(1d\) as \w+", rest):
        named = re.findall(r"sum\((\w+)\) as (\w+)", sums[1])
        return [{name: sum(row.get(field, 0) for row in rows) for field, name in named}]
    if matched is None:
        raise ValueError(f"no stats of these tests: {rest}")
    names = re.split(r",\s*", matched[2])
    counts = Counter(tuple(row.get(name) for name in names) for row in rows)
    return [
        {**dict(zip(names, values, strict=True)), matched[1]: number}
        for values, number in counts.most_common()
    ]


class _Filter:
    """Parses comparisons, `ispresent`, `and` and `or`; `and` binds first."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            matched = _TOKEN.match(text, position)
            if matched is None:
                raise ValueError(f"no filter: {text[position:]}")
            self._tokens.append(matched.group().strip())
            position = matched.end()

    def parsed(self) -> Test:
        """Returns the test of the whole filter."""
        test = self._any_of()
        if self._tokens:
            raise ValueError(f"no filter: {' '.join(self._tokens)}")
        return test

    def _any_of(self) -> Test:
        tests = [self._all_of()]
        while self._tokens[:1] == ["or"]:
            self._tokens.pop(0)
            tests.append(self._all_of())
        return lambda row: any(test(row) for test in tests)

    def _all_of(self) -> Test:
        tests = [self._one()]
        while self._tokens[:1] == ["and"]:
            self._tokens.pop(0)
            tests.append(self._one())
        return lambda row: all(test(row) for test in tests)

    def _one(self) -> Test:
        name = self._tokens.pop(0)
        if name == "ispresent":
            _, field, _ = (self._tokens.pop(0) for _ in range(3))
            return lambda row: field in row
        operator, value = self._tokens.pop(0), json.loads(self._tokens.pop(0))
        if operator == "=":
            return lambda row: bool(row.get(name) == value)
        if operator == "!=":
            return lambda row: bool(name in row and row[name] != value)
        if operator == ">":
            return lambda row: bool(name in row and row[name] > value)
        raise ValueError(f"no comparison of these tests: {operator}")
