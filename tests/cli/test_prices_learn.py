"""`sageaudit prices learn`, as its users run it, and audits at the rates that it learnt."""

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
    """`sageaudit prices learn` with these words, in a folder of its own."""
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.chdir(tmp_path)
    return partial(run, "prices", "learn")


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., Path]:
    """Writes a report of charges and gives its path."""

    def written(*charges: Charge, name: str = "cur.csv", shape: str = "cur2") -> Path:
        path = tmp_path / name
        path.write_text(SHAPES[shape](charges))
        return path

    return written


Report = Callable[..., Path]


def stored(name: str = "own-rates.json") -> list[dict[str, Any]]:
    """The rates of the file in this folder."""
    document = json.loads(Path(name).read_text(), parse_float=Decimal)
    return list(document["rates"])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rates_are_shown_and_written(learn: Run, report: Report, shape: str) -> None:
    """Beside the list price, with hours and days; the last lines say what to do next."""
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
    assert [(row["type"], row["usd"]) for row in stored()] == [
        ("ml.g5.2xlarge", Decimal("1.3332")),
        ("ml.p4d.24xlarge", Decimal("22.22")),
    ]
    assert "own-rates.json: 2 rates written, 0 kept" in done.stderr
    assert 'own_rates = "own-rates.json" under [discounts] in policy.toml' in done.stderr


def test_what_is_in_no_rate_is_said_with_its_reason(learn: Run, report: Report) -> None:
    """A usage type of jobs by its name; of an endpoint nothing."""
    spot = replace(G5, changes={"line_item_usage_type": "USE1-TrSpt:ml.g5.2xlarge"})
    endpoint = replace(G5, changes={"line_item_usage_type": "USE1-Host:ml.g5.2xlarge"})
    tax = replace(G5, kind="Tax", what="", usd=Decimal(3))
    few = replace(G5, what="ml.m5.large", seconds=10)
    done = learn("--cur", report(*OCTOBER, spot, endpoint, tax, few))
    assert done.exit_code == 0
    assert "no rate for TrSpt:ml.g5.2xlarge: no price table knows it" in done.stderr
    assert "no rate for ml.m5.large, Training, us-east-1: only 0.0028 hours" in done.stderr
    assert "left out, as it is no usage at a price: Tax, $3.00" in done.stderr
    assert "Host:" not in done.stderr
    assert {rate["type"] for rate in stored()} == {"ml.g5.2xlarge", "ml.p4d.24xlarge"}


def test_the_next_month_adds_and_the_same_month_again_replaces_what_changed(
    learn: Run, report: Report
) -> None:
    """The file has each rate of each month once."""
    november = [replace(charge, start=charge.start + timedelta(days=31)) for charge in OCTOBER]
    assert learn("--cur", report(*OCTOBER)).exit_code == 0
    assert "2 rates written, 2 kept" in learn("--cur", report(*november)).stderr
    assert [row["first"] for row in stored()] == ["2026-10-01", "2026-11-01"] * 2
    assert "2 rates written, 2 kept" in learn("--cur", report(*november)).stderr
    final = [replace(charge, price=Decimal("1.3")) for charge in hours_of(G5, hours=9)]
    assert "1 rate written, 3 kept" in learn("--cur", report(*final)).stderr
    assert [row["usd"] for row in stored()][:2] == [Decimal("1.3"), Decimal("1.3332")]


def test_a_file_of_something_else_or_of_another_kind_is_not_touched(
    learn: Run, report: Report, tmp_path: Path
) -> None:
    """Net and amortised rates, and accounts, are never mixed."""
    path = report(*OCTOBER)
    other = tmp_path / "own-rates.json"
    other.write_text("{}")
    done = learn("--cur", path)
    assert (done.exit_code, other.read_text()) == (2, "{}")
    assert "is not a file of own rates" in done.stderr
    other.unlink()
    assert learn("--cur", path).exit_code == 0
    for words, said in (
        (("--amortized",), "has net rates of all accounts: choose another file with --to"),
        (("--account", ACCOUNT), "has net rates of all accounts: choose another file with --to"),
    ):
        done = learn("--cur", path, *words)
        assert done.exit_code == 2
        assert said in done.stderr


def test_nothing_to_learn_is_not_found(learn: Run, report: Report) -> None:
    """With the reason; no file is written."""
    done = learn("--cur", report(replace(G5, seconds=10)))
    assert done.exit_code == 3
    assert "no rate for ml.g5.2xlarge, Training, us-east-1: only 0.0028 hours" in done.stderr
    assert "no rate could be learnt: nothing is written" in done.stderr
    assert not Path("own-rates.json").exists()


def recording(folder: Path, *, job: str, seconds: int, hosts: int, storage_gb: int) -> Path:
    """A Describe answer of a training job on ml.g4dn or m5, of October 2026."""
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


def billed(job: str) -> list[Charge]:
    """What AWS writes of one of the jobs: hour by hour and host by host, and its volumes."""
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
def test_a_job_at_learnt_rates_costs_what_the_report_says(
    learn: Run, run: Run, report: Report, tmp_path: Path, shape: str
) -> None:
    """To the cent, for each job and storage too; at list prices it costs 14% more."""
    charges = {job: billed(job) for job in JOBS}
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
        listed = run(*words).document(parse_float=Decimal)["bill"]
        assert listed["price_kind"] == "list"
        assert listed["total_usd"] > bill["total_usd"]


def cents(amount: Decimal) -> Decimal:
    """As a bill prints it."""
    return amount.quantize(CENT, ROUND_HALF_UP)
