"""The commands, SQL and AWS CLI calls of docs/queries.md work."""

import gzip
import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import duckdb
import pytest
from botocore import xform_name
from botocore.model import Shape
from botocore.session import Session
from botocore.validate import ParamValidator
from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.keys import INDEXES
from sageaudit.cli import clock
from sageaudit.cli.main import ALIASES
from sageaudit.cli.views import lists
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.command_line import Run
from tests.fakes.random_history import NOW, audits

PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")


def blocks(word: str) -> list[str]:
    """Returns the fenced blocks of a language."""
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
OF_THE_CLI = ("--query", "--output")
"""Options of the AWS CLI itself, of what it prints."""
PARTIQL = re.compile(r'SELECT (.+) FROM "([^"]+)"\."([^"]+)" WHERE (.+)')
CONDITION = re.compile(r"\"?(\w+)\"? (=|BETWEEN|IN) ('[^']*' AND '[^']*'|'[^']*'|\[[^]]*\])")
AWS = [block.replace("\\\n", " ") for block in blocks("sh") if block.startswith("aws ")]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Makes the commands run on the day of the audits, in a folder of their own."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_answers(run: Run, file: Path, line: str) -> None:
    """Each prints rows; `show` of generated audits prints JSON."""
    words = [*shlex.split(line)[1:], "--history", str(file)]
    if words[0] == "show":
        words += ["--output", "json"]
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert done.stdout or "written to" in done.stderr


def test_the_page_has_all_commands_that_read_a_history() -> None:
    """Each occurs at least once."""
    names = {shlex.split(line)[1] for line in COMMANDS}
    assert names == {
        *("history", "by", "changes", "top", "show", "export", "advice", "savings"),
        *ALIASES,
    }


@pytest.fixture
def exported_files(run: Run, file: Path) -> None:
    """Writes audits and findings as CSV and as Parquet in the folder."""
    for form in ("csv", "parquet"):
        words = ("--since", "2026-01-01", "--history", file)
        assert run("export", "-o", f"audits.{form}", *words).exit_code == 0
        assert run("export", "--findings", "-o", f"findings.{form}", *words).exit_code == 0


@pytest.mark.usefixtures("exported_files")
@pytest.mark.parametrize("query", blocks("sql duckdb"))
def test_sql_over_exports_gives_rows(query: str) -> None:
    """It reads Parquet and CSV."""
    for text in (query, query.replace(".parquet", ".csv")):
        assert duckdb.execute(text).fetchall()


@pytest.mark.parametrize("query", blocks("sql sqlite"))
def test_sql_over_the_file_gives_rows(file: Path, query: str) -> None:
    """Python's SQLite runs it."""
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(query).fetchall()


def test_athenas_columns_are_those_of_the_export(run: Run, file: Path) -> None:
    """They have the same order, with the types of the Parquet file."""
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
    """Yields a table with audits, and its client."""
    with dynamodb() as client:
        name = new_table(client)
        history = DynamoHistory(client, name)
        for entry in audits(60, days=18):
            history.record(entry)
        yield client, name


def test_athenas_items_have_attributes_of_heads_and_findings(table: tuple[Any, str]) -> None:
    """The attributes have DynamoDB's types; the queries use no others."""
    client, name = table
    items = [
        item
        for item in client.scan(TableName=name)["Items"]
        if item["sk"]["S"].startswith(("HEAD", "FINDING#"))
    ]
    known_columns = {(key, next(iter(value))) for item in items for key, value in item.items()}
    [ddl] = blocks("sql athena-items")
    columns = set(re.findall(r"(\w+): struct<(\w+):", ddl))
    assert columns <= known_columns
    queries = "".join(blocks("sql athena"))
    assert set(re.findall(r"Item\.(\w+)\.(\w+)", queries)) <= columns


@pytest.mark.parametrize("line", AWS)
def test_calls_of_the_aws_cli_are_valid(line: str) -> None:
    """Each option is a member of the request, and each value passes its checks."""
    service, operation, params = _parse_call(line)
    shape: Shape = service.operation_model(operation).input_shape
    report = ParamValidator().validate(params, shape)
    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize("line", [line for line in AWS if " query " in line])
def test_queries_of_the_aws_cli_find_items(table: tuple[Any, str], line: str) -> None:
    """boto3 runs them with the same arguments."""
    client, name = table
    _, _, params = _parse_call(line)
    assert client.query(**params | {"TableName": name})["Items"]


@pytest.mark.parametrize("line", [line for line in AWS if " get-item " in line])
def test_a_document_is_read_with_base64_and_gunzip(table: tuple[Any, str], line: str) -> None:
    """It is the JSON of an audit in the table."""
    client, name = table
    # a history changes how its own client parses answers
    client = boto3.client("dynamodb", region_name=client.meta.region_name)
    _, _, params = _parse_call(line)
    [pk] = {
        item["pk"]["S"]
        for item in client.scan(TableName=name)["Items"]
        if item["sk"]["S"] == "HEAD" and item["job"]["S"] == "job-00000"
    }
    arguments = {**params["Key"], "pk": {"S": pk}}
    binary = client.get_item(TableName=name, Key=arguments)["Item"]["document"]["B"]
    assert json.loads(gzip.decompress(binary))["job"]["name"] == "job-00000"


@pytest.mark.parametrize("line", [line for line in AWS if " execute-statement " in line])
def test_partiql_finds_items_by_the_keys_of_an_index(table: tuple[Any, str], line: str) -> None:
    """Its conditions, over the index that it names, return items with the columns that it selects.
    moto knows no index in PartiQL. Words that DynamoDB reserves are quoted.
    """
    client, name = table
    _, _, params = _parse_call(line)
    columns, of_table, of_index, conditions = PARTIQL.fullmatch(params["Statement"]).groups()  # type: ignore[union-attr]
    assert of_table == "sageaudit-history"
    [index] = [index for index in INDEXES if index.name == of_index]
    words = re.findall(r"\w+", re.sub(r"'[^']*'|\"[^\"]*\"", "", f"{columns} {conditions}"))
    reserved = {*ReservedKeywords.get_reserved_keywords()} - {"AND", "BETWEEN", "IN"}
    assert not {word.upper() for word in words} & reserved
    arguments = CONDITION.findall(conditions)
    assert [arguments[0][0], arguments[1][0]] == [index.partition_key, index.sort_key]
    result = [
        item
        for item in client.scan(TableName=name, IndexName=index.name)["Items"]
        if all(_holds(item, *condition) for condition in arguments)
    ]
    assert result
    assert set(columns.split(", ")) <= {column for item in result for column in item}


def _holds(item: dict[str, Any], attribute: str, operator: str, operands: str) -> bool:
    value: str = item[attribute]["S"]
    words = re.findall(r"'([^']*)'", operands)
    if operator == "BETWEEN":
        return bool(words[0] <= value <= words[1])
    return value in words


def _parse_call(line: str) -> tuple[Any, str, dict[str, Any]]:
    """Returns the service's model, the operation and the request of a call, as the AWS CLI reads
    it.
    """
    _, service_name, command, *words = shlex.split(line.partition(" | ")[0])
    service: Any = Session().get_service_model(service_name)
    by_option = {xform_name(name, "-"): name for name in service.operation_names}
    operation = by_option[command]
    members = {
        f"--{xform_name(name, '-')}": (name, shape)
        for name, shape in service.operation_model(operation).input_shape.members.items()
    }
    params: dict[str, Any] = {}
    remaining = iter(words)
    for word in remaining:
        if word.startswith("--no-"):
            name, shape = members[f"--{word.removeprefix('--no-')}"]
            assert shape.type_name == "boolean"
            params[name] = False
            continue
        if word in OF_THE_CLI:
            next(remaining)
            continue
        name, shape = members[word]
        value = next(remaining)
        reads: dict[str, Any] = {
            "map": json.loads,
            "structure": json.loads,
            "list": json.loads,
            "integer": int,
        }
        params[name] = reads.get(shape.type_name, str)(value)
    return service, operation, params
