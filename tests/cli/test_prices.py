"""`sageaudit prices`: known, estimated and unknown rates."""

import json
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from tests.fakes.command_line import Result, Run


@pytest.fixture
def prices(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs `sageaudit prices` on a terminal of 120 columns."""
    monkeypatch.setenv("COLUMNS", "120")
    return partial(run, "prices")


def rows(done: Result) -> list[dict[str, Any]]:
    """Returns the rates of `--output json`."""
    rates: list[dict[str, Any]] = json.loads(done.stdout, parse_float=Decimal)["rates"]
    return rates


def test_a_type_shows_its_rate_date_and_source(prices: Run) -> None:
    """There is one line if all components cost the same."""
    done = prices("ml.m5.xlarge", "--region", "eu-west-1")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "$0.257" in done.stdout
    assert "2026-05-20" in done.stdout
    assert "Training, Processing, BatchTransform" in done.stdout
    assert "packaged from the AWS Price List: Hosting's rate, used for all jobs" in done.stdout


def test_without_a_region_all_known_rates_are_shown(prices: Run) -> None:
    """m6i has a packaged price in five regions, and an estimate in us-east-1."""
    done = prices("ml.m6i.large", "--component", "training", "--output", "json")
    assert done.exit_code == 0
    kinds = {row["region"]: row["kind"] for row in rows(done)}
    assert list(kinds) == [
        "ap-east-2",
        "ap-southeast-5",
        "ap-southeast-6",
        "ap-southeast-7",
        "mx-central-1",
        "us-east-1",
    ]
    assert [region for region, kind in kinds.items() if kind == "estimate"] == ["us-east-1"]


def test_an_estimated_rate_says_about_and_how_it_was_made(prices: Run) -> None:
    """No table says that SageMaker sells the type."""
    done = prices("ml.m6i.large", "--region", "us-east-1")
    assert done.exit_code == 0
    message = " ".join(done.stdout.split())
    assert "about $0.1152" in message
    assert "SageMaker's rate for ml.m6i.large is not known here" in message
    assert "estimated from EC2's rate x 1.20" in message
    [row] = rows(
        prices(
            "ml.m6i.large", "--region", "us-east-1", "--component", "training", "--output", "json"
        )
    )
    assert (row["usd_per_hour"], row["kind"]) == (Decimal("0.1152"), "estimate")
