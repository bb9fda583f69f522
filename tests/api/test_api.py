"""`import sageaudit` is cheap and typed, and its errors are one sentence."""

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sageaudit
from sageaudit import AuditHistory
from sageaudit.adapters.files.exact_json import from_json
from sageaudit.api.history import SumFilters
from sageaudit.cli.main import cli
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.queries.columns import FILTERS
from sageaudit.queries.question import Question
from tests.fakes import recorded
from tests.fakes.schemas import schema_errors

JOBS = recorded.DATA / "jobs"
ONE = JOBS / "profiled-053-g4dn-xlarge.json"
FAILED = JOBS / "training-020-c4-8xlarge-x2-failed.json"
SET = JOBS / "tuning-set-bayesian-221019-1807.json"
ALL_DAYS = "2015-01-01"


@pytest.fixture(scope="module")
def recordings_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the history of a scan of the recordings whose names begin with "training"."""
    folder = tmp_path_factory.mktemp("scan")
    for path in JOBS.glob("training-*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    words = ["scan", "--recordings", str(folder), "--history", str(folder / "audits.db")]
    assert CliRunner().invoke(cli, words, standalone_mode=False).exception is None
    return folder / "audits.db"


def test_importing_the_package_loads_nothing_else() -> None:
    """The Lambdas import it too: it loads no AWS client, command line or rules."""
    code = (
        "import sys, sageaudit; sageaudit.__version__;"
        "print(*[name for name in sys.modules if name.startswith(('sageaudit.', 'boto', 'click'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == ""


def test_a_question_to_a_history_loads_no_command_line(recordings_history: Path) -> None:
    code = (
        "import sys, sageaudit\n"
        f"with sageaudit.AuditHistory.open({str(recordings_history)!r}) as asked:\n"
        "    assert asked.by('family', '2000-01-01')\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*sorted(loaded & {'boto3', 'click', 'rich'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == ""


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The known names are completed."""
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        _ = sageaudit.audits
    assert set(sageaudit.__all__) <= set(dir(sageaudit))


def test_an_audit_is_what_the_command_prints() -> None:
    """It is read from a file or its parsed JSON, with exact decimals."""
    of_file = sageaudit.audit(ONE)
    assert of_file == sageaudit.audit(str(ONE)) == sageaudit.audit(json.loads(ONE.read_text()))
    assert schema_errors("audit", from_json(sageaudit.to_json(of_file))) == []
    assert isinstance(of_file["bill"]["total_usd"], Decimal)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"describe": {}}, "has no ...JobName"),
        ({}, "has none of"),
        (Path("/no/such/file.json"), "cannot be read"),
    ],
)
def test_what_is_no_recording_is_one_sentence(given: Any, message: str) -> None:
    """The error is a SageauditError."""
    with pytest.raises(sageaudit.SageauditError, match=message):
        sageaudit.audit(given)


def test_a_policy_file_is_applied() -> None:
    """It works as --policy does."""
    policy = Path(__file__).parents[2] / "policy.toml"
    assert sageaudit.audit(ONE, policy=policy)["audit"]["policy"] != "default"
    with pytest.raises(sageaudit.SageauditError):
        sageaudit.audit(ONE, policy="/no/policy.toml")


def test_a_history_answers_with_typed_rows(recordings_history: Path) -> None:
    """Lists, sums and whole audits agree."""
    with AuditHistory.open(recordings_history) as history:
        rows = history.audits(ALL_DAYS, sort="waste")
        families, owners = history.by("family", ALL_DAYS), history.by("owner", ALL_DAYS)
        rules = history.by("rule", ALL_DAYS, sort="waste")
        trend = history.by("month", ALL_DAYS)
        first, by_name = history.audit(rows[0]), history.audit(rows[0].arn or "")
        result = history.findings(rules[0].rule or "", ALL_DAYS)
        changes = history.changes(ALL_DAYS)
    assert first is not None
    assert first == by_name
    waste = [row.waste_usd or Decimal(0) for row in rows]
    assert waste == sorted(waste, reverse=True)
    spent = sum(row.total_usd or 0 for row in rows)
    for sums in (families, owners, trend):
        assert sum(row.total_usd or 0 for row in sums) == spent
    assert len(result) == rules[0].jobs
    assert {change.jobs_before for change in changes} <= {None}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"since": "tomorrow"}, "since='tomorrow' is not a time"),
        ({"since": 3}, "since=3 is not a text"),
        ({"since": "2026-11-03", "until": "2026-11-01"}, "is not before until='2026-11-01'"),
        ({"kind": "endpoint"}, "none of training, processing"),
        ({"severity": "urgent"}, "none of"),
        ({"sort": "name"}, "none of newest"),
        ({"min_usd": "much"}, "not an amount"),
        ({"min_usd": "NaN"}, "not an amount"),
    ],
)
def test_a_question_that_makes_no_sense_is_one_sentence(
    recordings_history: Path, query: dict[str, Any], message: str
) -> None:
    """It names what is allowed."""
    with (
        AuditHistory.open(recordings_history) as history,
        pytest.raises(sageaudit.SageauditError, match=message),
    ):
        history.audits(**query)


def test_python_has_the_filters_of_the_commands() -> None:
    """They have the same names; an unknown filter is named."""
    assert SumFilters.__annotations__.keys() == FILTERS.keys()
    read_by_name = {name for name, of in vars(Question).items() if isinstance(of, property)}
    assert read_by_name - {"index"} <= FILTERS.keys()


FILTERED: tuple[tuple[dict[str, Any], Callable[[AuditSummary], bool]], ...] = (
    ({"no_owner": True, "count": 2}, lambda row: row.instance_count == 2),
    ({"type": "c4.8xlarge"}, lambda row: row.instance_type == "ml.c4.8xlarge"),
    (
        {"min_bill": "0.1", "status": "failed"},
        lambda row: row.status == "Failed" and (row.total_usd or 0) >= Decimal("0.1"),
    ),
    ({"purchase": "spot"}, lambda row: row.purchase == "spot"),
    ({"family": "kmeans"}, lambda row: row.family.endswith("/kmeans")),
    ({"min_usd": 0}, lambda row: row.waste_usd is not None),
)


@pytest.mark.parametrize(("filters", "matches"), FILTERED)
def test_python_filters_as_the_commands_do(
    recordings_history: Path, filters: dict[str, Any], matches: Callable[[AuditSummary], bool]
) -> None:
    """A family may be named by its last part; a tag that no audit has matches none."""
    with AuditHistory.open(recordings_history) as history:
        all_names = history.audits(ALL_DAYS)
        assert history.audits(ALL_DAYS, tag={"team": "x"}, **filters) == ()
        result = history.audits(ALL_DAYS, **filters)
    assert list(result) == [row for row in all_names if matches(row)] != []


def test_a_missing_history_is_one_sentence(tmp_path: Path) -> None:
    """No file is written."""
    with pytest.raises(sageaudit.SageauditError):
        AuditHistory.open(tmp_path / "none.db")
    with pytest.raises(sageaudit.SageauditError, match="name one history"):
        AuditHistory.open(tmp_path / "none.db", table="t")
    assert list(tmp_path.iterdir()) == []


REQUEST = {
    "TrainingJobName": "resnet-1",
    "RoleArn": "arn:aws:iam::111122223333:role/train",
    "AlgorithmSpecification": {
        "TrainingImage": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/train:1",
        "TrainingInputMode": "File",
    },
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 50},
    "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
}


def test_a_request_is_checked_as_by_the_command(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST), encoding="utf-8")
    words = ["check", str(file), "--output", "json"]
    printed = from_json(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
    checked = sageaudit.check(REQUEST)
    assert checked["jobs"][0]["cost"]["at_most_usd"] > 0
    assert [row["rule"] for row in checked["jobs"][0]["findings"]]
    without_lines = from_json(sageaudit.to_json(checked))
    for job in printed["jobs"]:
        job["line"] = None
        for finding in job["findings"]:
            finding["line"] = None
    assert without_lines["jobs"] == printed["jobs"]
    assert from_json(sageaudit.to_json(sageaudit.check(file))) != without_lines  # it has lines


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"request": {"some": "thing"}}, "the request: "),
        ({"request": REQUEST, "region": "Ireland"}, "Ireland is not a region"),
        ({"request": REQUEST, "account": "1234"}, "1234 is not an account id"),
        ({"request": REQUEST, "form": "job"}, "form='job' is none of training,"),
        ({"request": "no-such-file.json"}, "no-such-file.json: cannot be read"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(sageaudit.SageauditError, match=reason):
        sageaudit.check(**arguments)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (sageaudit.check, {"request": 42}, "request=42 is not a request or the path"),
        (sageaudit.check, {"request": {"a": 1}}, r"\(form=\.\.\. names the format\)"),
        (sageaudit.check, {"request": {}, "region": 1}, "region=1 is not a text"),
        (sageaudit.check, {"request": {}, "pipeline": 1}, "pipeline=1 is not a text"),
        (sageaudit.check, {"request": {}, "history": 1}, "history=1 is not an open history"),
        (sageaudit.audit, {"recording": 42}, "recording=42 is not a recording or the path"),
        (AuditHistory.open, {"path": 42}, "path=42 is not a history or the path"),
    ],
)
def test_an_error_names_the_argument(
    function: Callable[..., object], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(sageaudit.SageauditError, match=message):
        function(**arguments)
