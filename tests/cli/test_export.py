"""`sageaudit export` writes a whole file or none, with the rows of `history`."""

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from sageaudit.adapters.files import duckdb_engine
from sageaudit.cli import clock
from tests.fakes.command_line import Run
from tests.fakes.random_history import NOW, RULES


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the commands run on the day of the audits."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_file_has_what_the_history_prints(
    run: Run, file: Path, tmp_path: Path, form: str
) -> None:
    """The bytes are the same. The format follows the file's ending; stderr counts the rows."""
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
    """It has as many rows as the lists of all rules."""
    out = tmp_path / "findings.csv"
    assert run("export", "--findings", "--history", file, "-o", out).exit_code == 0
    with out.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    assert {row["rule"] for row in rows} == set(RULES)
    of_rule = run("history", "--rule", RULES[0], "--all", "--history", file, "--output", "jsonl")
    assert len([row for row in rows if row["rule"] == RULES[0]]) == len(of_rule.stdout.splitlines())
    words = ("export", "--findings", "--rule", RULES[0], "--history", file, "--format", "jsonl")
    assert run(*words, "-o", "-").stdout == of_rule.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "audits"], "audits ends in none of parquet, jsonl, csv"),
        (["-o", "-", "--format", "parquet"], "Parquet is not written to stdout"),
        (["-o", "a.csv", "--fields", "nope"], "there is no field nope"),
        (
            ["-o", "no/such/folder/a.csv"],
            "a.csv cannot be written (No such file or directory): name another file",
        ),
        (["-o", f"{'a' * 300}.csv"], "cannot be written (File name too long)"),
    ],
)
def test_an_export_that_fails_is_one_sentence(
    run: Run,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    sentence: str,
) -> None:
    """No file is left."""
    monkeypatch.chdir(tmp_path)
    done = run("export", "--history", file, *words)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_duckdb_says_what_to_install(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also names other formats."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run("export", "--history", file, "-o", tmp_path / "a.parquet")
    assert done.exit_code == 2
    assert "(--format csv works without it) needs DuckDB: `pip install duckdb`" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_parquet_has_the_rows_with_their_types(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Money is a decimal, a time is a UTC timestamp, unknown is null; all digits are exact."""
    monkeypatch.setattr(duckdb_engine, "_BATCH_ROWS", 25)
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


def test_it_shows_progress_on_a_terminal(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is on stderr; a pipe gets only the last line."""
    quiet = run("export", "--history", file, "-o", tmp_path / "a.csv", "--since", "90d")
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, a terminal
    output = run("export", "--history", file, "-o", tmp_path / "b.csv", "--since", "90d")
    assert "writing: 100 rows" in output.stderr
    assert (
        "reading: 100 audits"
        in run("report", "--history", file, "-o", tmp_path / "c.html", "--since", "90d").stderr
    )
    assert quiet.stderr == f"sageaudit: 150 rows written to {tmp_path / 'a.csv'}\n"
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
