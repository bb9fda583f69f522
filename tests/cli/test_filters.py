"""Each filter selects the same audits in every command that lists audits."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from sageaudit.adapters.files.exact_json import from_json
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.job.job import Purchase
from sageaudit.ports import History
from sageaudit.structs import replace
from tests.fakes.command_line import Run
from tests.fakes.families import run_summary
from tests.fakes.random_history import ACCOUNTS, NOW, REGIONS, audits, cached_reads

TYPES = ("ml.g5.xlarge", "ml.m5.large", None)
ROW = dict[str, Any]
FILTERS: dict[str, tuple[list[str], Callable[[ROW], bool]]] = {
    "bill": (["--min-bill", "4"], lambda row: (row["total_usd"] or 0) >= 4),
    "both": (
        ["--min-bill", "$2", "--min-usd", "1"],
        lambda row: (row["total_usd"] or 0) >= 2 and (row["waste_usd"] or 0) >= 1,
    ),
    "nobody": (["--no-owner"], lambda row: row["owner"] is None),
    "type": (["--type", "ml.g5.xlarge"], lambda row: row["instance_type"] == TYPES[0]),
    "short type": (["--type", "m5.large"], lambda row: row["instance_type"] == TYPES[1]),
    "count": (["--count", "2"], lambda row: row["instance_count"] == 2),
    "purchase": (["--purchase", "spot"], lambda row: row["purchase"] == "spot"),
    "never": (
        ["--status", "never started"],
        lambda row: (row["status"], row["judged"], row["total_usd"]) == ("Never started", None, 0),
    ),
    "never-started": (
        ["--status", "Never-Started"],
        lambda row: (row["status"], row["judged"], row["total_usd"]) == ("Never started", None, 0),
    ),
    "family": (["--family", "team/bert"], lambda row: row["family"] == "training/team/bert"),
    "rare family": (["--family", "tuning/bert"], lambda row: row["family"] == "tuning/bert"),
    "owner": (["--owner", "ana"], lambda row: row["owner"] == "ana"),
    "account": (["--account", ACCOUNTS[0]], lambda row: row["account"] == ACCOUNTS[0]),
    "region": (["--region", REGIONS[1]], lambda row: row["region"] == REGIONS[1]),
    "no price": (["--no-price"], lambda row: row["total_usd"] is None and not row["rollup"]),
    "kind": (["--kind", "processing"], lambda row: row["kind"] == "processing"),
    "status": (["--status", "failed"], lambda row: row["status"] == "Failed"),
    "severity": (["--severity", "high"], lambda row: row["severity"] == "high"),
    "waste": (["--min-usd", "3"], lambda row: (row["waste_usd"] or 0) >= 3),
    "part": (["--min-percent", "40%"], lambda row: (row["waste_percent"] or 0) >= 40),
    "hours": (["--min-hours", "2"], lambda row: (row["duration_s"] or 0) >= 7200),
    "judged": (["--judged", "partly"], lambda row: row["judged"] == "partly"),
    "reason": (["--reason", "CODE error"], lambda row: row["reason"] == "code error"),
    "image": (["--image", "PyTorch"], lambda row: "pytorch" in (row["image"] or "")),
    "image and tag": (["--image", "XGBoost:1.7"], lambda row: row["image"] == "xgboost:1.7"),
    "interrupted": (["--interrupted"], lambda row: bool(row["interrupted_s"])),
    "team": (["--tag", "team=growth"], lambda row: row["tag_team"] == "growth"),
    "no team": (["--tag", "team="], lambda row: row["tag_team"] is None),
    "two tags": (
        ["--tag", "team=growth", "--tag", "project=search"],
        lambda row: (row["tag_team"], row["tag_project"]) == ("growth", "search"),
    ),
}
NOTHING = {
    "--type ml.p9.huge": "--type ml.p9.huge matches nothing",
    "--tag team=groth": "--tag team=groth matches nothing: did you mean team=growth?",
    "--tag cost=growth": "--tag cost=growth matches nothing",
    "--owner anna": "--owner anna matches nothing: did you mean ana?",
    "--region us-east-1 --count 7": "--count 7 matches nothing",
    "--status Aborted": "--status Aborted matches nothing",
    "--purchase serverless --owner ana": "--purchase serverless matches nothing\n",
    "--kind transform": "--kind transform matches nothing\n",
    "--min-bill 1000": "--min-bill 1000 matches nothing",
    "--family berd": "--family berd matches nothing: did you mean bert?",
    "--reason cod-error": "--reason cod-error matches nothing: did you mean code error?",
    "--min-hours 90": "--min-hours 90 matches nothing",
    "--no-owner --owner ana": "each filter matches some audits, but none matches all of them",
}
DAYS = ("--since", "2026-11-09", "--until", "2026-11-20")


def entries() -> Iterator[AuditEntry]:
    """Returns 80 audits with types, counts, purchases and tags; some jobs never started."""
    for number, entry in enumerate(audits(80, days=11)):
        if entry.document["job"]["family"] == "processing/bert":
            continue
        document: Any = entry.document
        bert = document["job"]["family"] == "training/bert"
        never = number % 5 == 0 and not document["rollup"]
        facts = run_summary(
            purchase=(Purchase.SPOT, Purchase.ON_DEMAND)[number % 2],
            elapsed_s=None if never else Decimal(60),
            instance_type=TYPES[number % 3],
            instance_count=number % 4 or None,
            reason="code error" if document["job"]["status"] == "Failed" else None,
            phase_s={"Interrupted": Decimal(60)} if number % 4 == 1 else {},
        )
        began = datetime.fromisoformat(document["job"]["ended_at"]) - timedelta(hours=number % 4)
        image = ("pytorch-training:2.1", "xgboost:1.7", None)[number % 3]
        job = {**document["job"], "started_at": began.isoformat(), "image": image}
        document = {**document, "job": job}
        if never:
            bill = {**document["bill"], "total_usd": Decimal(0), "lines": []}
            job = {**document["job"], "status": "Failed", "started_at": None}
            document = {**document, "bill": bill, "job": job}
        if bert:
            job = {**document["job"], "family": "training/team/bert"}
            document = {**document, "job": job}
        yield replace(entry, run_summary=facts, document=document)


@pytest.fixture(scope="module")
def history_tables() -> Iterator[History]:
    """Returns these audits in a history."""
    with SqliteHistory() as history:
        for entry in entries():
            history.record(entry)
        yield cached_reads(history)


@pytest.fixture(autouse=True)
def _clock_and_table(history_tables: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes commands with --table read these audits at their time."""
    monkeypatch.setattr(histories, "_open_table", lambda *_: (None, history_tables, None))
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)


Ask = Callable[..., list[ROW]]


@pytest.fixture
def ask(run: Run) -> Ask:
    """Returns the rows of a command's JSON."""

    def rows(command: str, *words: str) -> list[ROW]:
        arguments = (
            ["--output", "jsonl"] if command != "export" else ["-o", "-", "--format", "jsonl"]
        )
        done = run(*command.split(), "--table", "audits", *DAYS, *words, *arguments)
        assert done.exit_code == 0, done.stderr
        assert (" matches; " in done.stderr) is (command != "export" and not done.stdout)
        return [from_json(line) for line in done.stdout.splitlines()]

    return rows


TWICE = {
    ("image", "image and tag"),
    *(("bill", "both"), ("type", "short type"), ("never", "never-started")),
    *(("family", "rare family"), ("team", "no team"), ("no team", "two tags")),
}
"""Pairs with one option twice, which is refused; of tags, where they name one tag twice."""
ASKED = [*((name,) for name in FILTERS), *(pair for pair in pairwise(FILTERS) if pair not in TWICE)]


@pytest.mark.parametrize("names", ASKED, ids=" and ".join)
def test_a_filter_selects_the_same_rows_in_every_command(ask: Ask, names: tuple[str, ...]) -> None:
    """Sums are those of the rows, and two filters select what both select."""
    words = [word for name in names for word in FILTERS[name][0]]
    all_rows = ask("history", "--all")
    expected = [row for row in all_rows if all(FILTERS[name][1](row) for name in names)]
    jobs = [row["job"] for row in expected]
    assert jobs or len(names) > 1
    assert [row["job"] for row in ask("history", "--all", *words)] == jobs
    assert [row["job"] for row in ask("export", *words)] == jobs
    top = [row["job"] for row in ask("top", "--limit", "999", *words)]
    assert sorted(top) == sorted(row["job"] for row in expected if row["waste_usd"])
    for command in ("by family", "by team", "by type", "by day", "changes", "changes --by team"):
        sums = ask(command, "--all", *words)
        for name in ("total_usd", "waste_usd"):
            assert known_sum(sums, name) == known_sum(expected, name), (command, name)
        if command.startswith("by"):
            failed = [row for row in expected if row["status"] == "Failed" and not row["rollup"]]
            assert sum(row["failed"] for row in sums) == len(failed)
    if "--min-usd" not in words and "--severity" not in words:
        result = {row["job"] for row in ask("history", "--all", "--rule", "gpu-idle", *words)}
        assert result == {row["job"] for row in ask("history", "--all", "--rule", "gpu-idle")} & {
            *jobs
        }


@pytest.mark.parametrize("pair", sorted(TWICE), ids=" and ".join)
def test_a_filter_given_twice_is_refused(run: Run, pair: tuple[str, str]) -> None:
    """Otherwise only the last one would count."""
    words = [word for name in pair for word in FILTERS[name][0]]
    for command in ("history", "by owner", "top", "changes"):
        done = run(*command.split(), "--table", "audits", *DAYS, *words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "twice" in done.stderr or "was given 2 times" in done.stderr


def known_sum(rows: list[ROW], name: str) -> Decimal:
    """Returns the sum of the known values."""
    return sum((row[name] or Decimal(0) for row in rows), Decimal(0))


@pytest.mark.parametrize("words", NOTHING)
@pytest.mark.parametrize("command", ["history", "top", "by owner", "by team", "changes"])
def test_a_value_that_matches_nothing_has_no_rows(run: Run, command: str, words: str) -> None:
    """A message names the filter and a similar value."""
    done = run(*command.split(), "--table", "audits", *DAYS, *words.split())
    assert (done.exit_code, done.stdout) == (0, "")
    assert NOTHING[words] in done.stderr


@pytest.mark.parametrize("days", [DAYS, ("--since", "2026-10")], ids=["days", "no audits"])
def test_a_column_that_does_not_exist_is_named(run: Run, days: tuple[str, ...]) -> None:
    """It is named even if the window has no audits that could have it as a cost tag."""
    done = run("by", "famly", "--table", "audits", *days)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no column 'famly': did you mean family?" in done.stderr


def test_the_end_of_several_families_is_refused(run: Run) -> None:
    """The message has their names."""
    done = run("history", "--table", "audits", *DAYS, "--family", "resnet")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "family resnet is the end of processing/resnet, training/resnet" in done.stderr
    assert "give more of the name" in done.stderr


def test_days_without_an_audit_are_answered_with_those_that_have_one(run: Run) -> None:
    """The message covers the whole history."""
    done = run("history", "--table", "audits", "--since", "2026-10")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "the history has audits of 12 days from 2026-11-09 to 2026-11-20" in done.stderr


def test_an_order_that_a_list_does_not_have_is_refused(run: Run) -> None:
    """A finding has one amount."""
    done = run("history", "--table", "audits", "--rule", "gpu-idle", "--sort", "total")
    assert done.exit_code == 2
    assert "findings have one amount, their saving" in done.stderr
