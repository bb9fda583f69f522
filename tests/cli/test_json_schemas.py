"""The output of --output json is valid by docs/schema."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.fakes.command_line import Run
from tests.fakes.schemas import schema_errors

ROOT = Path(__file__).parents[2]
JOB = str(ROOT / "tests" / "recorded" / "data" / "jobs" / "profiled-053-g4dn-xlarge.json")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("audit", ("audit", "--recording", JOB)),
        ("prices", ("prices", "show", "ml.m5.xlarge", "--region", "eu-west-1")),
        ("rules", ("rules",)),
        ("rules", ("rules", "gpu-idle")),
        ("what-if", ("what-if", "--recording", JOB)),
    ],
)
def test_what_a_command_prints_is_valid(run: Run, name: str, words: tuple[str, ...]) -> None:
    """Without its `schema` it is not valid."""
    printed = run(*words, "--output", "json").document(parse_float=Decimal)
    assert schema_errors(name, printed) == []
    assert schema_errors(name, {key: value for key, value in printed.items() if key != "schema"})


@pytest.mark.parametrize(
    "words",
    [
        ("history",),
        ("history", "--rule", "failed-spend"),
        ("history", "--fields", "job,total_usd"),
        ("top",),
        ("by", "family"),
        ("by", "rule,month"),
        ("changes",),
    ],
    ids=" ".join,
)
def test_lists_of_a_history_are_valid(
    run: Run, recordings_history: Path, words: tuple[str, ...]
) -> None:
    """No row has a field that the schema does not name."""
    arguments = (
        *words,
        "--history",
        recordings_history,
        "--since",
        "2017-01-01",
        "--output",
        "json",
    )
    printed = run(*arguments).document(parse_float=Decimal)
    assert printed["rows"]
    assert schema_errors("rows", printed) == []
    printed["rows"][0] = {name: [] for name in printed["rows"][0]}
    assert schema_errors("rows", printed)


@pytest.mark.parametrize(("name", "more"), [("scan", ()), ("scan-plan", ("--dry-run",))])
def test_a_scan_is_valid(run: Run, tmp_path: Path, name: str, more: tuple[str, ...]) -> None:
    """This includes its ranking."""
    words = ("scan", "--recordings", ROOT / "local" / "recordings", "--history", tmp_path / "a.db")
    printed = run(*words, "--output", "json", *more).document(parse_float=Decimal)
    assert schema_errors(name, printed) == []
    assert schema_errors(name, {key: value for key, value in printed.items() if key != "schema"})


def test_an_account_is_valid(run: Run, recordings_history: Path) -> None:
    """It is the account of the demo."""
    arguments = (
        "account",
        "111122223333",
        "--history",
        recordings_history,
        "--since",
        "2017-01-01",
    )
    printed = run(*arguments, "--output", "json").document(parse_float=Decimal)
    assert schema_errors("account", printed) == []


def test_a_shown_audit_is_an_audit(run: Run, recordings_history: Path) -> None:
    """The document equals the one that `audit` prints."""
    listing = run(
        "history", "--history", recordings_history, "--since", "2017-01-01", "--output", "json"
    )
    arn = listing.document()["rows"][0]["arn"]
    output = run("show", arn, "--history", recordings_history, "--output", "json")
    assert schema_errors("audit", output.document(parse_float=Decimal)) == []


def test_a_checked_request_is_valid(run: Run, tmp_path: Path) -> None:
    """There is one document per file."""
    request = {
        "TrainingJobName": "churn-1",
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "ResourceConfig": {
            "InstanceType": "ml.p2.xlarge",
            "InstanceCount": 2,
            "VolumeSizeInGB": 30,
        },
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    done = run("check", path, "--region", "eu-west-1", "--output", "json")
    printed = json.loads(done.stdout, parse_float=Decimal)
    assert schema_errors("check", printed) == []
    assert printed["jobs"][0]["findings"]
