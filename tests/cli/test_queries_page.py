"""What docs/queries.md shows can be run: its commands, its SQL, and its calls of the AWS CLI."""

import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from botocore import xform_name
from botocore.model import Shape
from botocore.session import Session
from botocore.validate import ParamValidator

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.cli.command_folder import SHORT
from sageaudit.cli.support.history import asking, lists
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.asked import NOW, audits
from tests.fakes.command_line import Run

PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")


def blocks(word: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{word}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


COMMANDS = [
    *re.findall(r"`(sageaudit [^`]+)`", "\n".join(re.findall(r"^\|.*\|$", PAGE, re.MULTILINE))),
    *(
        line
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("sageaudit")
    ),
]
AWS = [block.replace("\\\n", " ") for block in blocks("sh") if block.startswith("aws ")]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The commands run on the day of the audits, in a folder of their own."""
    monkeypatch.setattr(asking, "now", lambda: NOW)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_answers(run: Run, file: Path, line: str) -> None:
    """With rows. `show` of made-up audits: as JSON."""
    words = [*shlex.split(line)[1:], "--history", str(file)]
    if words[0] == "show":
        words += ["--output", "json"]
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert done.stdout or "written to" in done.stderr


def test_the_page_has_the_commands_that_ask() -> None:
    """Each of them at least once."""
    named = {shlex.split(line)[1] for line in COMMANDS}
    assert named == {
        *("history", "by", "changes", "top", "show", "export", "advice", "savings"),
        *SHORT,
    }


@pytest.fixture
def exported(run: Run, file: Path) -> None:
    """Audits and findings as CSV and as Parquet in the folder."""
    for form in ("csv", "parquet"):
        words = ("--since", "2026-01-01", "--history", file)
        assert run("export", "-o", f"audits.{form}", *words).exit_code == 0
        assert run("export", "--findings", "-o", f"findings.{form}", *words).exit_code == 0


@pytest.mark.usefixtures("exported")
@pytest.mark.parametrize("query", blocks("sql duckdb"))
def test_sql_over_exports_gives_rows(query: str) -> None:
    """Over Parquet, and over CSV."""
    for text in (query, query.replace(".parquet", ".csv")):
        assert duckdb.execute(text).fetchall()


@pytest.mark.parametrize("query", blocks("sql sqlite"))
def test_sql_over_the_file_gives_rows(file: Path, query: str) -> None:
    """As the SQLite of Python reads it."""
    with sqlite3.connect(file) as connection:
        assert connection.execute(query).fetchall()


def test_athenas_columns_are_those_of_the_export(run: Run, file: Path) -> None:
    """In the same order, with the types of the Parquet file."""
    [ddl] = blocks("sql athena-parquet")
    columns = dict(re.findall(r"(\w+) (timestamp|string|boolean|bigint|decimal\(38,6\))", ddl))
    types = {
        "text": "string",
        "usd": "decimal(38,6)",
        "count": "bigint",
        "flag": "boolean",
        "time": "timestamp",
    }
    assert list(columns.items()) == [
        (field.name, types[field.column]) for field in lists.AUDITS.fields
    ]


@pytest.fixture(scope="module")
def table() -> Iterator[tuple[Any, str]]:
    """A table with audits, and its client."""
    with dynamodb() as client:
        name = new_table(client)
        history = DynamoHistory(client, name)
        for entry in audits(60, days=18):
            history.record(entry)
        yield client, name


def test_athenas_items_have_attributes_of_heads(table: tuple[Any, str]) -> None:
    """With the types that DynamoDB gives them."""
    client, name = table
    heads = [item for item in client.scan(TableName=name)["Items"] if item["sk"]["S"] == "HEAD"]
    known = {(key, next(iter(value))) for head in heads for key, value in head.items()}
    [ddl] = blocks("sql athena-items")
    assert set(re.findall(r"(\w+): struct<(\w+):", ddl)) <= known


@pytest.mark.parametrize("line", AWS)
def test_calls_of_the_aws_cli_are_what_the_service_takes(line: str) -> None:
    """Each option is a member of the request, and each value passes its checks."""
    service, operation, params = _parsed(line)
    shape: Shape = service.operation_model(operation).input_shape
    report = ParamValidator().validate(params, shape)
    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize("line", [line for line in AWS if " query " in line])
def test_queries_of_the_aws_cli_find_items(table: tuple[Any, str], line: str) -> None:
    """Run by boto3 with the same arguments."""
    client, name = table
    _, _, params = _parsed(line)
    assert client.query(**params | {"TableName": name})["Items"]


def _parsed(line: str) -> tuple[Any, str, dict[str, Any]]:
    """The service's model, the operation and the request of a call, as the AWS CLI reads it."""
    _, service_name, command, *words = shlex.split(line)
    service: Any = Session().get_service_model(service_name)
    by_option = {xform_name(name, "-"): name for name in service.operation_names}
    operation = by_option[command]
    members = {
        f"--{xform_name(name, '-')}": (name, shape)
        for name, shape in service.operation_model(operation).input_shape.members.items()
    }
    params: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if word.startswith("--no-"):
            name, shape = members[f"--{word.removeprefix('--no-')}"]
            assert shape.type_name == "boolean"
            params[name] = False
            continue
        name, shape = members[word]
        value = next(left)
        reads: dict[str, Any] = {
            "map": json.loads,
            "structure": json.loads,
            "list": json.loads,
            "integer": int,
        }
        params[name] = reads.get(shape.type_name, str)(value)
    return service, operation, params
