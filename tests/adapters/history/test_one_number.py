"""One number everywhere: the same dollars from every question.

Its answer is added up and compared with the audits themselves, to the micro-dollar. SQLite is
asked: that the table answers alike is for the contract tests.
"""

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from sageaudit.cli.main import main
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import is_standing
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.audit.sums import Scope, Sums, sum_rows
from sageaudit.domain.money import format_usd
from sageaudit.domain.sweep import Period
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.scan.run import ScanRun
from tests.fakes.entries import finding
from tests.fakes.memory_ledger import MemoryDecisions
from tests.fakes.random_history import NOW, audits

SINCE, UNTIL = date(2026, 11, 1), NOW.date()
AMOUNTS = ("total_usd", "avoidable_usd", "lost_usd", "possible_usd")
_ZERO = Decimal(0)

Dollars = dict[str, Decimal | int]
"""Amounts by name, and `jobs`, as far as an answer tells them."""


def versions() -> Iterator[tuple[AuditEntry, ...]]:
    """Audits of every sort, each with the version before it where there was one."""
    for number, given in enumerate(audits(100, days=8)):
        document: dict[str, Any] = {**given.document}
        if number % 9 == 0:
            said = ["the rate is estimated"]
            document["bill"] = {**document["bill"], "estimated": said, "missing": said}
        newest = replace(given, document=cast("AuditDocument", document))
        yield (_older(newest, number), newest) if number % 4 == 0 else (newest,)


def _older(newest: AuditEntry, number: int) -> AuditEntry:
    """The version before, of other dollars, and perhaps of another owner or day."""
    job: dict[str, Any] = {**newest.document["job"]}
    if number % 8 == 0:
        earlier = datetime.fromisoformat(job["ended_at"]) - timedelta(days=1)
        job |= {"owner": "person-before", "ended_at": earlier.isoformat()}
    document = {
        **newest.document,
        "job": job,
        "avoidable_usd": Decimal("7.25"),
        "findings": [finding("idle-tail", saving_usd=Decimal("7.25"))],
    }
    return replace(
        newest,
        document=cast("AuditDocument", document),
        last_modified_at=newest.last_modified_at - timedelta(minutes=5),
    )


def dollars_of(document: AuditDocument) -> Dollars:
    """What one audit adds: a tuning job only the findings of its own."""
    if not document["rollup"]:
        parts: dict[str, Any] = {**document, "total_usd": document["bill"]["total_usd"]}
        return {name: parts[name] or _ZERO for name in AMOUNTS} | {"jobs": 1}
    added: Dollars = dict.fromkeys(AMOUNTS, _ZERO)
    for standing in filter(is_standing, document["findings"]):
        name = f"{standing['bucket']}_usd"
        is_known = document[name] is not None  # type: ignore[literal-required]
        if standing["rule"] in (document["rollup_rules"] or ()) and is_known:
            added[name] += standing["saving_usd"] or _ZERO
    return added


def added(rows: Iterable[dict[str, Any]]) -> Dollars:
    """The columns of amounts, and of jobs or the rows that are of no tuning job."""
    sums: Dollars = dict.fromkeys((*AMOUNTS, "jobs"), _ZERO)
    for row in rows:
        for name in AMOUNTS:
            sums[name] += Decimal(row.get(name) or 0)
        sums["jobs"] += int(row["jobs"] if "jobs" in row else str(row.get("rollup")) != "true")
    return sums


def of_findings(rows: Iterable[dict[str, Any]]) -> Dollars:
    """The savings by bucket; findings do not tell the bill."""
    sums: Dollars = dict.fromkeys(AMOUNTS[1:], _ZERO)
    for row in rows:
        sums[f"{row['bucket']}_usd"] += Decimal(row["saving_usd"] or 0)
    return sums


def of_sums(sums: Sums) -> Dollars:
    """The same of daily sums."""
    return {name: getattr(sums, name) for name in (*AMOUNTS, "jobs")}


def csv_rows(text: str) -> list[dict[str, Any]]:
    """The rows of a CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def json_rows(text: str) -> list[dict[str, Any]]:
    """The rows of a JSON answer, or of JSON lines."""
    read = [json.loads(line, parse_float=Decimal) for line in text.splitlines()]
    rows = read[0]["rows"] if len(read) == 1 and "rows" in read[0] else read
    return [{**row, "rollup": str(row.get("rollup")).lower()} for row in rows]


Ask = Callable[..., str]


@pytest.fixture(scope="module")
def kept() -> Iterator[History]:
    """A history of these audits."""
    with SqliteHistory() as history:
        for entry in (entry for both in versions() for entry in both):
            history.record(entry)
        yield history


@pytest.fixture
def ask(kept: History, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Calls a command with that history, and returns what it prints; it must succeed."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW + timedelta(hours=10))
    source = histories.HistorySource(kept, MemoryDecisions(), "history")
    monkeypatch.setattr(histories, "open_history", lambda *_, **__: source)

    def call(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["sageaudit", *words, "--since", SINCE.isoformat()])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert not ended.value.code, printed.err
        return printed.out

    return call


@pytest.fixture(scope="module")
def truth() -> list[Dollars]:
    """What each newest audit adds, worked out without the code that sums them elsewhere."""
    found = [dollars_of(both[-1].document) for both in versions()]
    assert all(sum(ref[name] for ref in found) for name in AMOUNTS)
    return found


def agrees(answer: Dollars, truth: list[Dollars]) -> bool:
    """Whether all that the answer tells is that of the audits."""
    return all(
        usd == sum(amounts.get(name, 0) for amounts in truth) for name, usd in answer.items()
    )


@pytest.mark.parametrize(
    ("words", "read", "add"),
    [
        ("history --all --output csv", csv_rows, added),
        ("export --format csv -o -", csv_rows, added),
        ("export --format jsonl -o -", json_rows, added),
        ("export --findings --format csv -o -", csv_rows, of_findings),
        ("by family,region --all --output json", json_rows, added),
        ("by owner --output json", json_rows, added),
        ("by status,kind --output json", json_rows, added),
        ("by week --output json", json_rows, added),
        ("by rule --output json", json_rows, lambda rows: drop_bill(added(rows))),
    ],
)
def test_every_question_adds_up_to_the_audits(
    ask: Ask,
    truth: list[Dollars],
    words: str,
    read: Callable[[str], list[dict[str, Any]]],
    add: Callable[[Iterable[dict[str, Any]]], Dollars],
) -> None:
    """Whichever columns its rows have."""
    assert agrees(add(read(ask(*words.split()))), truth)


def drop_bill(sums: Dollars) -> Dollars:
    """A job counts for each of its rules, so spend and jobs do not add up."""
    return {name: usd for name, usd in sums.items() if name not in {"total_usd", "jobs"}}


def test_daily_sums_and_a_scans_ranking_are_that_number(
    kept: History, truth: list[Dollars]
) -> None:
    """By whatever they are summed."""
    for scope in set(Scope) - {Scope.TAG}:
        assert agrees(of_sums(sum_rows(kept.daily_sums(scope, SINCE, UNTIL))), truth)
    places = {(row.account, row.region) for row in kept.daily_sums(Scope.ACCOUNT, SINCE, UNTIL)}
    lanes: list[Any] = [
        SimpleNamespace(account=account, region=region) for account, region in places
    ]
    nobody: Any = None
    run = ScanRun(kept, scope=nobody, workers=nobody, warn=nobody, lanes=lanes)
    assert agrees(of_sums(run.ranking(Period(SINCE, UNTIL)).total), truth)


def test_the_dearest_jobs_are_the_dearest_audits(ask: Ask, truth: list[Dollars]) -> None:
    """In their order."""
    wastes = sorted(
        (amounts["avoidable_usd"] + amounts["lost_usd"] for amounts in truth), reverse=True
    )
    rows = json_rows(ask("top", "--limit", "20", "--output", "json"))
    assert [row["waste_usd"] for row in rows] == wastes[:20]


def test_a_reports_headline_is_that_number_to_the_cent(ask: Ask, truth: list[Dollars]) -> None:
    """With the jobs that are counted."""
    [news] = re.findall(r'<h1 class="headline">(.*?)</h1>', ask("report", "-o", "-"))
    for name in ("total_usd", "avoidable_usd", "lost_usd"):
        assert format_usd(sum((Decimal(amounts[name]) for amounts in truth), _ZERO)) in news
    assert news.startswith(f"{sum(amounts.get('jobs', 0) for amounts in truth):,} jobs cost about ")
