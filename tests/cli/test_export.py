"""`sageaudit export`: a whole file or none, with the rows that `history` shows."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sageaudit.adapters.files import parquet_rows
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.support.history import asking
from sageaudit.errors import Unavailable
from sageaudit.queries import answer
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.asked import NOW, RULES, audits, fill
from tests.fakes.command_line import Run


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of 80 audits in 40 days."""
    path = tmp_path_factory.mktemp("asked") / "history.db"
    with SqliteHistory(path) as history:
        fill(history, 80)
    return path


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands run on the day of the audits."""
    monkeypatch.setattr(asking, "now", lambda: NOW)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_file_has_what_the_history_prints(
    run: Run, file: Path, tmp_path: Path, form: str
) -> None:
    """Byte by byte; the format is the ending of its name; stderr counts the rows."""
    out = tmp_path / f"audits.{form}"
    done = run("export", "--history", file, "-o", out)
    assert (done.exit_code, done.stdout) == (0, "")
    printed = run("history", "--history", file, "--all", "--output", form).stdout
    assert out.read_bytes().decode() == printed
    rows = len(printed.splitlines()) - (form == "csv")
    assert f"{rows} rows written to {out}" in done.stderr
    assert run("export", "--history", file, "--format", form, "-o", "-").stdout == printed
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_findings_of_all_rules_are_one_file(run: Run, file: Path, tmp_path: Path) -> None:
    """As many as each rule's list has."""
    out = tmp_path / "findings.csv"
    assert run("export", "--findings", "--history", file, "-o", out).exit_code == 0
    with out.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    assert {row["rule"] for row in rows} == set(RULES)
    of_rule = run("history", "--rule", RULES[0], "--all", "--history", file, "--output", "jsonl")
    assert len([row for row in rows if row["rule"] == RULES[0]]) == len(of_rule.stdout.splitlines())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "audits"], "which format? audits ends in none of parquet, jsonl, csv"),
        (["-o", "-", "--format", "parquet"], "Parquet is not written to stdout"),
        (["-o", "a.csv", "--fields", "nope"], "there is no field nope"),
        (
            ["-o", "no/such/folder/a.csv"],
            "a.csv cannot be written (No such file or directory): name another file",
        ),
        (["-o", f"{'a' * 300}.csv"], "cannot be written (File name too long)"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: list[str], sentence: str,
) -> None:  # fmt: skip
    """And no file is left."""
    monkeypatch.chdir(tmp_path)
    done = run("export", "--history", file, *words)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_only_by_a_whole_one(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that fails in the middle leaves the old file as it was."""
    out = tmp_path / "audits.csv"
    out.write_text("the old one")
    real = answer.all_rows

    def failing(*args: Any, **options: Any) -> answer.Answer:
        whole = real(*args, **options)

        def rows() -> Iterator[Any]:
            yield next(whole.rows)
            raise Unavailable("the table does not answer: try again later")

        return answer.Answer(rows(), whole.reading)

    monkeypatch.setattr(answer, "all_rows", failing)
    done = run("export", "--history", file, "-o", out)
    assert done.exit_code == 5
    assert out.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == ["audits.csv"]


def test_a_pipe_is_written_to_and_never_replaced(run: Run, file: Path, tmp_path: Path) -> None:
    """Nor a device: root's `-o /dev/null` must not make a file of it."""
    pipe = tmp_path / "audits.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("export", "--history", file, "-o", pipe).exit_code == 0
        assert os.read(reader, 8) == b"ended_at"
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_a_link_and_a_file_named_part_stay(run: Run, file: Path, tmp_path: Path) -> None:
    """The link's file is written, with the mode that it had."""
    real, link, other = (tmp_path / name for name in ("real.csv", "link.csv", "link.csv.part"))
    real.write_text("older")
    real.chmod(0o600)
    link.symlink_to("real.csv")
    other.write_text("somebody's")
    assert run("export", "--history", file, "-o", link).exit_code == 0
    assert link.is_symlink()
    assert real.read_text().startswith("ended_at")
    assert real.stat().st_mode & 0o777 == 0o600
    assert other.read_text() == "somebody's"


def test_a_link_that_leads_to_itself_is_one_sentence(run: Run, file: Path, tmp_path: Path) -> None:
    """It stays what it is."""
    loop = tmp_path / "loop.csv"
    loop.symlink_to("loop.csv")
    done = run("export", "--history", file, "-o", loop)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert loop.is_symlink()


def test_parquet_without_duckdb_says_what_to_install(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or which other format to take."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run("export", "--history", file, "-o", tmp_path / "a.parquet")
    assert done.exit_code == 2
    assert "(--format csv is without it) needs DuckDB: `pip install duckdb`" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_parquet_has_the_rows_with_their_types(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Money is a decimal, a time a timestamp in UTC, unknown is null; exact to the last digit."""
    monkeypatch.setattr(parquet_rows, "_ROWS", 25)
    out, lines = tmp_path / "a.parquet", tmp_path / "a.jsonl"
    for path in (out, lines):
        assert run("export", "--history", file, "-o", path).exit_code == 0
    written = duckdb.read_parquet(str(out))
    types = dict(zip(written.columns, map(str, written.types), strict=True))
    assert types["total_usd"] == "DECIMAL(38,6)"
    assert types["ended_at"] == "TIMESTAMP WITH TIME ZONE"
    assert (types["rollup"], types["findings"], types["job"]) == ("BOOLEAN", "BIGINT", "VARCHAR")
    columns = ("job", "total_usd", "avoidable_usd", "findings", "rollup")
    rows = [json.loads(line, parse_float=Decimal) for line in lines.read_text().splitlines()]
    assert written.project(", ".join(columns)).fetchall() == [
        tuple(row[column] for column in columns) for row in rows
    ]
    assert len(rows) > 25


def test_a_table_is_asked_in_the_same_words(run: Run, tmp_path: Path) -> None:
    """The rows, the sums and the cursor of a table in AWS are those of a file."""
    file = tmp_path / "history.db"
    with dynamodb() as client, SqliteHistory(file) as of_file:
        name = new_table(client)
        of_table = DynamoHistory(client, name)
        for entry in audits(40):
            of_file.record(entry)
            of_table.record(entry)
        for words in (
            ["history", "--limit", "7", "--output", "json"],
            ["history", "--sort", "waste", "--limit", "5", "--output", "json"],
            ["history", "--family", "training/bert", "--all", "--output", "csv"],
            ["history", "--rule", "gpu-idle", "--all", "--output", "jsonl"],
            ["families", "--output", "csv"],
            ["owners", "--output", "csv"],
            ["trend", "--output", "csv"],
            ["rules", "--counts", "--output", "csv"],
            ["show", "job-00003", "--since", "60d", "--output", "json"],
        ):
            asked_file = run(*words, "--history", file)
            asked_table = run(*words, "--table", name)
            assert asked_file.exit_code == 0, asked_file.stderr
            if "json" in words and words[0] == "history":
                assert asked_table.document()["rows"] == asked_file.document()["rows"]
                assert asked_table.document()["cursor"] == asked_file.document()["cursor"]
            else:
                assert asked_table.stdout == asked_file.stdout


def test_a_table_that_is_not_there_is_one_sentence(run: Run) -> None:
    """With exit code 3."""
    with dynamodb():
        done = run("history", "--table", "nobody-made-it")
    assert done.exit_code == 3
    assert "There is no table nobody-made-it in this account and region" in done.stderr
