"""`sageaudit by usage_type` adds up bills by the usage types of Cost Explorer."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.bill_document import LineDocument
from sageaudit.queries.by import sum_by
from sageaudit.queries.changes import find_changes
from sageaudit.queries.columns import parse_columns
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question
from sageaudit.queries.total import SumsRow
from sageaudit.queries.window import parse_window
from tests.fakes.command_line import Run
from tests.fakes.entries import entry_ending_at
from tests.fakes.random_history import NOW
from tests.queries.test_by import TODAY, WINDOW

EVER = ("--since", "2018-01-01")


def line(item: str, usage_type: str | None, note: str, **known: Decimal | None) -> LineDocument:
    """Returns a bill line at $2 an hour, or per GB-month."""
    return {
        "item": item,
        "usage_type": usage_type,
        "quantity": known.get("quantity", Decimal(1)),
        "unit": "GB-months" if "storage" in item else "instance-hours",
        "rate_usd": known.get("rate_usd", Decimal(2)),
        "usd": known.get("usd", Decimal(2)),
        "price_as_of": None,
        "price_source": None,
        "price_kind": "list",
        "note": note,
    }


def rows(*bills: tuple[LineDocument, ...]) -> dict[str | None, SumsRow]:
    """Returns the sums by usage type of jobs with these bills."""
    with SqliteHistory() as history:
        for number, lines in enumerate(bills):
            known = [
                line_document["usd"] for line_document in lines if line_document["usd"] is not None
            ]
            bill = {"lines": [*lines], "total_usd": sum(known, Decimal(0))}
            history.record(entry_ending_at(f"job-{number}", NOW, bill=bill))
        result = sum_by(
            HistoryLists(history, WINDOW),
            Question(WINDOW),
            parse_columns("usage_type"),
            today=TODAY,
        )
    return {row.usage_type: row for row in result}


def test_usage_types_add_up_to_the_bills(run: Run, recordings_history: Path) -> None:
    """For all sample jobs, each dollar is in exactly one row.

    Each line and each bill is rounded to a millionth.
    """
    words = ("--history", recordings_history, *EVER, "--all", "--output", "json")
    [account] = run("by", "account", *words).document()["rows"]
    result = run("by", "usage_type", *words).document()["rows"]
    assert len(result) > 10
    assert sum(row["total_usd"] for row in result) == pytest.approx(account["total_usd"], abs=2e-5)
    assert result == sorted(result, key=lambda row: -row["total_usd"])


def test_a_row_can_be_compared_with_cost_explorer(run: Run, recordings_history: Path) -> None:
    """It has the usage type, hours and dollars: 3 h on 1 x ml.g4dn.12xlarge at $4.89."""
    done = run("by", "usage_type", "--history", recordings_history, *EVER)
    assert done.stdout.splitlines()[1].split() == [
        "Usage",
        "type",
        "Jobs",
        "Usage",
        "Unit",
        "Spend",
        "Share",
    ]
    assert "USE1-Train:ml.g4dn.12xlarge         1   3.00  Hrs         $14.67" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_hours_and_volumes_of_several_jobs_are_added_by_usage_type() -> None:
    """Each row has a job count. If one job's amount is unknown, the sum is a lower bound."""
    compute = line("compute", "USE1-Train:ml.m5.large", "1 x ml.m5.large")
    volume = line("storage", "USE1-Train:VolumeUsage.gp2", "30 GB x 1, 2026-11")
    unpriced = line("compute", "USE1-Train:ml.m5.large", "1 x ml.m5.large", usd=None, rate_usd=None)
    result = rows((compute, volume), (compute,), (unpriced,))
    hours, storage = result["USE1-Train:ml.m5.large"], result["USE1-Train:VolumeUsage.gp2"]
    assert (hours.jobs, hours.usage_quantity, hours.usage_unit) == (3, 3, "Hrs")
    assert (hours.total_usd, hours.spend_qualifier) == (4, "at_least")
    assert (storage.jobs, storage.usage_quantity, storage.usage_unit) == (1, 1, "GB-Mo")
    assert (storage.total_usd, storage.spend_qualifier) == (2, "exact")


def test_no_usage_type_has_avoidable_dollars() -> None:
    """Waste belongs to a job, not to a line: it is unknown, and not 0."""
    [row] = rows((line("compute", "USE1-Train:ml.m5.large", ""),)).values()
    assert (row.avoidable_usd, row.lost_usd, row.possible_usd, row.judged_usd) == (None,) * 4


@pytest.mark.parametrize("columns", ["usage_type,month", "usage_type,day"])
def test_no_usage_type_of_a_period_has_avoidable_dollars(columns: str) -> None:
    """The period before has none either."""
    with SqliteHistory() as history:
        bill = {"lines": [line("compute", "USE1-Train:ml.m5.large", "")], "total_usd": Decimal(2)}
        history.record(entry_ending_at("job", NOW, bill=bill))
        result = sum_by(
            HistoryLists(history, WINDOW), Question(WINDOW), parse_columns(columns), today=TODAY
        )
    [row] = [row for row in result if row.jobs]
    assert (row.avoidable_usd, row.waste_usd, row.idle_usd) == (None,) * 3
    assert row.before is None or row.before.avoidable_usd is None


def test_a_change_of_a_usage_type_is_only_of_spend() -> None:
    """Its waste is unknown in both periods, even if there were no jobs before."""
    with SqliteHistory() as history:
        for name, days in (("new", 1), ("old", 9)):
            lines = [line("compute", f"USE1-Train:ml.{name}5.large", "")]
            bill = {"lines": lines, "total_usd": Decimal(2)}
            history.record(entry_ending_at(name, NOW - timedelta(days=days), bill=bill))
        span = parse_window("7d", None, NOW)
        [column] = parse_columns("usage_type")
        result = find_changes(HistoryLists(history, span), Question(span), column, today=NOW.date())
    assert {row.jobs for row in result} == {0, 1}
    assert {(row.waste_usd, row.waste_before_usd, row.waste_change_usd) for row in result} == {
        (None, None, None)
    }


def test_an_unknown_prefix_is_left_out_and_no_usage_type_is_invented() -> None:
    """No public bill or price list names the usage type of a warm pool."""
    result = rows(
        (
            line("compute", None, "1 x ml.m5.large"),
            line("warm_pool", None, "warm pool Terminated"),
            line("warm_pool_storage", None, "30 GB x 1, 2026-11"),
        )
    )
    assert {name: row.usage_unit for name, row in result.items()} == {
        "Train:ml.m5.large": "Hrs",
        "warm pool, usage type unknown": "Hrs",
        "warm pool storage, usage type unknown": "GB-Mo",
    }


def test_prepaid_and_free_capacity_is_left_out() -> None:
    """AWS bills training plans elsewhere, and Debugger's own rules not at all."""
    assert not rows((line("compute", None, "1 x ml.p5.48xlarge", rate_usd=Decimal(0)),))
