"""`sageaudit prices learn`, and audits at the derived rates."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sageaudit.structs import replace
from tests.fakes.command_line import Run
from tests.fakes.cost_reports import ACCOUNT, SHAPES, Charge, hours_of
from tests.fakes.jobs import training_answer

CENT = Decimal("0.01")
START = datetime(2026, 10, 5, 10, tzinfo=UTC)
G5 = Charge(START)
P4D = Charge(
    START, "ml.p4d.24xlarge", price=Decimal("22.22"), list_price=Decimal("25.25"), job="job-2"
)
OCTOBER = [*hours_of(G5, hours=5), *hours_of(P4D, hours=2)]


@pytest.fixture
def learn(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Returns a function that runs `sageaudit prices learn` in a folder of its own."""
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.chdir(tmp_path)
    return partial(run, "prices", "learn")


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., Path]:
    """Writes a report of charges and returns its path."""

    def written(*charges: Charge, name: str = "cur.csv", shape: str = "cur2") -> Path:
        path = tmp_path / name
        path.write_text(SHAPES[shape](charges))
        return path

    return written


Report = Callable[..., Path]


def stored_rates(name: str = "own-rates.json") -> list[dict[str, Any]]:
    """Returns the rates of the file in this folder."""
    document = json.loads(Path(name).read_text(), parse_float=Decimal)
    return list(document["rates"])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rates_are_shown_and_written(learn: Run, report: Report, shape: str) -> None:
    """They are shown with the list price, hours and days; the last lines say what to do next."""
    done = learn("--cur", report(*OCTOBER, shape=shape))
    assert done.exit_code == 0
    [_, g5, p4d, *_] = done.stdout.splitlines()
    assert g5.split() == [
        "ml.g5.2xlarge",
        "us-east-1",
        "Training",
        "$1.3332",
        "$1.515",
        "-12.0%",
        "5.00",
        "h",
        "2026-10-01",
        "2026-10-05",
    ]
    assert "$22.22" in p4d
    assert [(row["type"], row["usd"]) for row in stored_rates()] == [
        ("ml.g5.2xlarge", Decimal("1.3332")),
        ("ml.p4d.24xlarge", Decimal("22.22")),
    ]
    assert "own-rates.json: 2 rates written, 0 kept" in done.stderr
    assert 'own_rates = "own-rates.json" under [discounts] in policy.toml' in done.stderr


def test_usage_without_a_rate_is_reported_with_its_reason(learn: Run, report: Report) -> None:
    """A usage type of jobs is named; usage of an endpoint is not mentioned."""
    spot = replace(G5, changes={"line_item_usage_type": "USE1-TrSpt:ml.g5.2xlarge"})
    endpoint = replace(G5, changes={"line_item_usage_type": "USE1-Host:ml.g5.2xlarge"})
    tax = replace(G5, kind="Tax", what="", usd=Decimal(3))
    short = replace(G5, what="ml.m5.large", seconds=10)
    done = learn("--cur", report(*OCTOBER, spot, endpoint, tax, short))
    assert done.exit_code == 0
    assert "no rate for TrSpt:ml.g5.2xlarge: no price table knows it" in done.stderr
    assert "no rate for ml.m5.large, Training, us-east-1: only 0.0028 hours" in done.stderr
    assert "left out, since it is not priced usage: Tax, $3.00" in done.stderr
    assert "Host:" not in done.stderr
    assert {rate["type"] for rate in stored_rates()} == {"ml.g5.2xlarge", "ml.p4d.24xlarge"}


def test_a_new_month_adds_rates_and_a_repeated_month_replaces_them(
    learn: Run, report: Report
) -> None:
    """The file has each rate of each month once."""
    november = [replace(charge, start=charge.start + timedelta(days=31)) for charge in OCTOBER]
    assert learn("--cur", report(*OCTOBER)).exit_code == 0
    assert "2 rates written, 2 kept" in learn("--cur", report(*november)).stderr
    assert [row["first"] for row in stored_rates()] == ["2026-10-01", "2026-11-01"] * 2
    assert "2 rates written, 2 kept" in learn("--cur", report(*november)).stderr
    final = [replace(charge, price=Decimal("1.3")) for charge in hours_of(G5, hours=9)]
    assert "1 rate written, 3 kept" in learn("--cur", report(*final)).stderr
    assert [row["usd"] for row in stored_rates()][:2] == [Decimal("1.3"), Decimal("1.3332")]


def test_a_file_of_another_format_or_basis_is_not_changed(
    learn: Run, report: Report, tmp_path: Path
) -> None:
    """Net and amortised rates are never mixed, and neither are accounts."""
    path = report(*OCTOBER)
    another_file = tmp_path / "own-rates.json"
    another_file.write_text("{}")
    done = learn("--cur", path)
    assert (done.exit_code, another_file.read_text()) == (2, "{}")
    assert "is not a file of own rates" in done.stderr
    another_file.unlink()
    assert learn("--cur", path).exit_code == 0
    for words, message in (
        (("--amortized",), "has net rates of all accounts: choose another file with --to"),
        (("--account", ACCOUNT), "has net rates of all accounts: choose another file with --to"),
    ):
        done = learn("--cur", path, *words)
        assert done.exit_code == 2
        assert message in done.stderr


def test_a_report_without_rates_is_not_found(learn: Run, report: Report) -> None:
    """The reason is printed, and no file is written."""
    done = learn("--cur", report(replace(G5, seconds=10)))
    assert done.exit_code == 3
    assert "no rate for ml.g5.2xlarge, Training, us-east-1: only 0.0028 hours" in done.stderr
    assert "no rate could be derived: nothing is written" in done.stderr
    assert not Path("own-rates.json").exists()


def recording(folder: Path, *, job: str, seconds: int, hosts: int, storage_gb: int) -> Path:
    """Returns the Describe* response of a training job on ml.g4dn or m5, of October 2026."""
    end = START + timedelta(seconds=seconds)
    answer = training_answer(
        TrainingJobName=job,
        ResourceConfig={
            "InstanceType": "ml.m5.xlarge",
            "InstanceCount": hosts,
            "VolumeSizeInGB": storage_gb,
        },
        CreationTime=f"{START:%Y-%m-%dT%H:%M:%SZ}",
        TrainingStartTime=f"{START:%Y-%m-%dT%H:%M:%SZ}",
        TrainingEndTime=f"{end:%Y-%m-%dT%H:%M:%SZ}",
        LastModifiedTime=f"{end:%Y-%m-%dT%H:%M:%SZ}",
        SecondaryStatusTransitions=[],
        TrainingTimeInSeconds=seconds,
        BillableTimeInSeconds=seconds,
    )
    path = folder / f"{job}.json"
    path.write_text(json.dumps(answer))
    return path


JOBS = {"a": (5432, 1, 30), "b": (86_399, 4, 500), "c": (61, 2, 30), "d": (40_000, 8, 1000)}
"""Seconds, hosts and GB of each."""
HOURLY, GB_MONTH = Decimal("0.2024"), Decimal("0.1232")


def billed_lines(job: str) -> list[Charge]:
    """Returns AWS's report lines of one job, by hour and host, and of its volumes."""
    seconds, hosts, gigabytes = JOBS[job]
    hour = Charge(
        START, "ml.m5.xlarge", price=HOURLY, list_price=Decimal("0.23"), job=job, seconds=3600
    )
    parts = hours_of(hour, hours=seconds // 3600)
    rest = replace(hour, start=START + timedelta(hours=seconds // 3600), seconds=seconds % 3600)
    compute = [
        replace(part, seconds=part.seconds * hosts) for part in (*parts, rest) if part.seconds
    ]
    quantity = (Decimal(gigabytes * hosts * seconds) / 3600 / (24 * 31)).quantize(Decimal("1e-10"))
    storage = replace(hour, what="VolumeUsage.gp2", quantity=quantity, unit="GB-Mo", price=GB_MONTH)
    return [*compute, storage]


@pytest.mark.parametrize("shape", ["cur2", "focus-1.2"])
def test_a_job_at_derived_rates_costs_what_the_report_says(
    learn: Run, run: Run, report: Report, tmp_path: Path, shape: str
) -> None:
    """Each job and its storage match to the cent; at list prices it costs 14% more."""
    charges = {job: billed_lines(job) for job in JOBS}
    path = report(*(charge for of_job in charges.values() for charge in of_job), shape=shape)
    assert learn("--cur", path).exit_code == 0
    policy = tmp_path / "policy.toml"
    policy.write_text('[discounts]\nown_rates = "own-rates.json"\n[discounts.percent]\nTraining=50')
    for job, (seconds, hosts, gigabytes) in JOBS.items():
        recorded = recording(tmp_path, job=job, seconds=seconds, hosts=hosts, storage_gb=gigabytes)
        words = ("audit", "--recording", recorded, "--output", "json")
        bill = run(*words, "--policy", policy).document(parse_float=Decimal)["bill"]
        reported = sum((charge.cost(charge.price) for charge in charges[job]), Decimal(0))
        assert cents(bill["total_usd"]) == cents(reported)
        assert bill["price_kind"] == "own"
        assert [(line["rate_usd"], line["price_as_of"]) for line in bill["lines"]] == [
            (HOURLY, "2026-10-01/2026-10-06"),
            (GB_MONTH, "2026-10-01/2026-10-05"),
        ]
        listing = run(*words).document(parse_float=Decimal)["bill"]
        assert listing["price_kind"] == "list"
        assert listing["total_usd"] > bill["total_usd"]


def cents(amount: Decimal) -> Decimal:
    """Rounds an amount as a bill prints it."""
    return amount.quantize(CENT, ROUND_HALF_UP)
