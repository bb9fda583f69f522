"""What commands print with --output json is what docs/schema says."""

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
    """And without its `schema` it is not."""
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
def test_lists_of_a_history_are_valid(run: Run, scanned: Path, words: tuple[str, ...]) -> None:
    """Each row has no field that the schema does not name."""
    asked = (*words, "--history", scanned, "--since", "2017-01-01", "--output", "json")
    printed = run(*asked).document(parse_float=Decimal)
    assert printed["rows"]
    assert schema_errors("rows", printed) == []
    printed["rows"][0] = {name: [] for name in printed["rows"][0]}
    assert schema_errors("rows", printed)


@pytest.mark.parametrize(("name", "more"), [("scan", ()), ("scan-plan", ("--dry-run",))])
def test_a_scan_is_valid(run: Run, tmp_path: Path, name: str, more: tuple[str, ...]) -> None:
    """Its ranking too."""
    words = ("scan", "--recordings", ROOT / "local" / "recordings", "--history", tmp_path / "a.db")
    printed = run(*words, "--output", "json", *more).document(parse_float=Decimal)
    assert schema_errors(name, printed) == []
    assert schema_errors(name, {key: value for key, value in printed.items() if key != "schema"})


def test_an_account_is_valid(run: Run, scanned: Path) -> None:
    """The demo's."""
    asked = ("account", "111122223333", "--history", scanned, "--since", "2017-01-01")
    printed = run(*asked, "--output", "json").document(parse_float=Decimal)
    assert schema_errors("account", printed) == []


def test_a_shown_audit_is_an_audit(run: Run, scanned: Path) -> None:
    """As `audit` prints it."""
    listed = run("history", "--history", scanned, "--since", "2017-01-01", "--output", "json")
    arn = listed.document()["rows"][0]["arn"]
    shown = run("show", arn, "--history", scanned, "--output", "json")
    assert schema_errors("audit", shown.document(parse_float=Decimal)) == []


def test_a_checked_request_is_valid(run: Run, tmp_path: Path) -> None:
    """One document for a file."""
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
