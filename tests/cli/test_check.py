"""`sageaudit check`: file formats, outputs, exit codes and bad files."""

import copy
import io
import json
import random
import re
import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml  # type: ignore[import-untyped]
from msgspec.structs import asdict
from rich.console import Console

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.prices import sources
from sageaudit.api.guarded_call import CheckedCall
from sageaudit.cli.check_outputs import OUTPUT_FORMATS
from sageaudit.cli.views.check import terminal
from sageaudit.cli.views.check.github import github_annotations
from sageaudit.cli.views.check.junit import junit_report
from sageaudit.cli.views.check.markdown import markdown_report
from sageaudit.cli.views.check.sarif import sarif_document
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import SageauditError
from sageaudit.workflows.check.comparison import FileCheck
from sageaudit.workflows.check.document import CheckFinding, sort_findings
from sageaudit.workflows.check.run import RequestChecker
from sageaudit.workflows.check_files import check_file
from tests.fakes.command_line import Run
from tests.fakes.planned import body
from tests.labelled.before_run.cases import CASES

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "local" / "recordings" / "composed-g4dn-12xlarge.json"
HOSTILE = "\x1b[31mx\u202e::error::a`|<b>@all"
SPOT = {"EnableManagedSpotTraining": True}
OLD_TYPE = {"ResourceConfig.InstanceType": "ml.p3.2xlarge"}
OLD_INSTANCES = {"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30}


@pytest.fixture(autouse=True)
def no_user_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hides the history and AWS settings of the person who runs the tests."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def save(folder: Path, document: object, name: str = "request.json") -> Path:
    """Writes a file with this JSON, one key per line, and returns its path."""
    path = folder / name
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def request(
    folder: Path, changes: dict[str, Any] | None = None, name: str = "request.json"
) -> Path:
    """Returns the file of a training request."""
    return save(folder, body(JobKind.TRAINING, changes), name)


def test_a_healthy_request_has_a_cost_and_no_findings(run: Run, tmp_path: Path) -> None:
    """The file format and the date of the prices are printed."""
    done = run("check", request(tmp_path))
    assert done.exit_code == 0
    assert "CreateTrainingJob request, 1 job" in done.stdout
    assert "At most $0.24" in done.stdout
    assert re.search(r"Prices of\s+\d{4}-\d\d-\d\d", done.stdout)
    assert "No findings." in done.stdout


@pytest.mark.parametrize("severity", ["high", "medium", "info", None])
def test_a_request_that_aws_refuses_fails(run: Run, tmp_path: Path, severity: str | None) -> None:
    """A spot request without a maximum wait fails.

    One that is only expensive fails with --fail-on.
    """
    words = ["--fail-on", severity] if severity else []
    assert run("check", request(tmp_path, SPOT), *words).exit_code == 10
    assert run("check", request(tmp_path), "--fail-on", "info").exit_code == 0
    old = request(tmp_path, OLD_TYPE)
    assert [run("check", old, *more).exit_code for more in ([], ["--fail-on", "low"])] == [0, 10]


def test_several_files_are_all_checked(run: Run, tmp_path: Path) -> None:
    """A bad file does not stop the others; its exit code follows the results."""
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    done = run("check", bad, request(tmp_path, SPOT), "--fail-on", "high", "--output", "json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["jobs"][0]["findings"][0]["rule"] == "spot-wait"


def test_standard_input_is_read(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has Terraform's output."""
    text = request(tmp_path).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert "standard input" in run("check", "-").stdout


def test_each_finding_has_its_path_line_and_values(run: Run, tmp_path: Path) -> None:
    """The line is that of the key in the file."""
    path = request(tmp_path, SPOT | {"StoppingCondition.MaxWaitTimeInSeconds": 60})
    [job] = json.loads(run("check", path, "--output", "json").stdout)["jobs"]
    [row] = [row for row in job["findings"] if row["rule"] == "spot-wait"]
    key = "StoppingCondition.MaxWaitTimeInSeconds"
    assert (row["path"], row["severity"]) == (key, "high")
    assert "MaxWaitTimeInSeconds" in path.read_text("utf-8").splitlines()[row["line"] - 1]
    assert row["fix"] == [
        {"parameter": key, "old": 60, "new": 7200, "pipeline_parameter": None, "argument": None}
    ]


def test_terraform_reads_its_own_names(run: Run, tmp_path: Path) -> None:
    """So it is for an argument that is not set yet."""
    values = {
        "training_job_name": "x",
        "enable_managed_spot_training": True,
        "resource_config": [{"instance_type": "ml.g5.2xlarge", "keep_alive_period_in_seconds": 60}],
    }
    resource = {
        "address": "aws_sagemaker_training_job.x",
        "mode": "managed",
        "type": "aws_sagemaker_training_job",
        "change": {"after": values},
    }
    plan = save(tmp_path, {"resource_changes": [resource]})
    printed_text = run("check", plan, "--region", "us-east-1").stdout
    assert "remove resource_config.keep_alive_period_in_seconds" in printed_text
    assert "stopping_condition.max_wait_time_in_seconds = 172800" in printed_text


def test_annotations_escape_what_github_reads(run: Run, tmp_path: Path) -> None:
    """Properties and message have different rules; no name starts a command of its own."""
    changes = SPOT | {"TrainingJobName": HOSTILE, "Tags": [{"Key": "50%", "Valu": "x"}]}
    path = request(tmp_path, changes, "a,b:c%.json")
    lines = run("check", path, "--output", "github").stdout.splitlines()
    assert lines
    command = re.compile(r"::(error|warning|notice) file=[^,:\n]+,line=\d+,title=[^,:\n]*::.+")
    assert all(command.fullmatch(line) for line in lines)
    assert all("a%2Cb%3Ac%25.json" in line for line in lines)
    assert not any("\x1b" in line or "\u202e" in line for line in lines)
    assert any("Tags[50%25].Valu" in line for line in lines)


@pytest.mark.parametrize("output", OUTPUT_FORMATS)
def test_a_hostile_file_controls_no_output(run: Run, tmp_path: Path, output: str) -> None:
    """It has wrong types and control characters everywhere."""
    document = {
        "TrainingJobName": HOSTILE,
        "\x1b[2J": 1,
        "ResourceConfig": {"InstanceType": HOSTILE},
        "InputDataConfig": [3, {"ChannelName": HOSTILE}],
        "StoppingCondition": HOSTILE,
        "Tags": {"a": "b"},
        "HyperParameters": {HOSTILE: 1},
    }
    done = run("check", save(tmp_path, document), "--output", output)
    assert done.exit_code == 10
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


@pytest.mark.parametrize("output", OUTPUT_FORMATS)
def test_no_value_of_the_users_settings_is_shown(run: Run, tmp_path: Path, output: str) -> None:
    """Hyperparameters, environment and arguments may be secrets, even if they are wrong."""
    secret = "hunter2-" + "x" * 3000
    changes = {
        "HyperParameters": {"token": secret, "other": ["hunter2"]},
        "Environment": {"PASSWORD": secret},
        "AlgorithmSpecification.ContainerArguments": ["--key", secret],
    }
    done = run("check", request(tmp_path, changes), "--output", output)
    assert "hunter2" not in done.stdout + done.stderr


def test_a_table_fits_80_columns(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only lines to copy may be longer; the terminal wraps them."""
    monkeypatch.setenv("COLUMNS", "80")
    printed_text = run("check", request(tmp_path, SPOT)).stdout.splitlines()
    assert all(len(line.rstrip()) <= 80 for line in printed_text if "# now:" not in line)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"", "is empty", id="an empty file"),
        pytest.param(b"{a", "is not JSON (line 1, column 2", id="a file that breaks off"),
        pytest.param(b"[1]", "is a list", id="a list"),
        pytest.param(
            b"\xff\xfe{", "is not text in UTF-16 (byte 3)", id="half a character in UTF-16"
        ),
        pytest.param(b"[" * 100_000, "too many brackets", id="too many brackets"),
        pytest.param(b"[" + b"9" * 5_000 + b"]", "value has 5000 digits)", id="too large a number"),
        pytest.param(
            b'{"Steps": [{"Type": "Training", "Arguments": '
            + b'{"a":' * 5_000
            + b"1"
            + b"}" * 5_001
            + b"]}",
            "too many brackets",
            id="a request inside too many brackets",
        ),
        pytest.param(b'{"a": NaN}', "is not JSON", id="a value that is no JSON"),
        pytest.param(
            b'{"TrainingJobName": "x", "TrainingJobStatus": "Completed"}',
            "audit --recording",
            id="the answer of a job that ran",
        ),
        pytest.param(b'{"describe": {}}', "audit --recording", id="a recording"),
        pytest.param(
            b'{"resource_changes": [{"type": "google_x", "change": {}}]}',
            "without any resource of AWS",
            id="a Terraform plan without AWS",
        ),
    ],
)
def test_a_file_that_is_no_request_is_one_sentence(
    run: Run, tmp_path: Path, content: bytes, says: str
) -> None:
    """It names the file, and says what to do instead."""
    path = tmp_path / "file.json"
    path.write_bytes(content)
    done = run("check", path)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_huge_file_is_not_read(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is this large."""
    monkeypatch.setattr("sageaudit.adapters.files.text_file.MAX_BYTES", 100)
    done = run("check", request(tmp_path))
    assert (done.exit_code, "is larger than" in done.stderr) == (2, True)


def test_a_large_file_that_is_no_request_is_refused_by_its_beginning(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is not parsed, so that it need not be JSON."""
    monkeypatch.setattr("sageaudit.adapters.files.request_file._LARGE", 100)
    path = tmp_path / "large.json"
    rest = " " * 100 + "]]"
    for begins, says in (
        ("[", "is a list"),
        ('{"describe": {"Steps": 1', "is a recording"),
        ('{"version": 4, "terraform_version": "1", "lineage": "x"', "is a Terraform state"),
        ('{"a": {"describe": 1}', "is not JSON"),
    ):
        path.write_text(begins + rest, encoding="utf-8")
        assert says in run("check", path).stderr
    assert run("check", request(tmp_path)).exit_code == 0


def test_a_duplicate_key_is_reported(run: Run, tmp_path: Path) -> None:
    """JSON takes the last value without a warning.

    Duplicates inside both values are not reported again.
    """
    path = request(tmp_path)
    text = path.read_text("utf-8")
    twice = '"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 9},'
    path.write_text(text.replace("{", "{" + twice, 1), encoding="utf-8")
    written = json.loads(run("check", path, "--output", "json").stdout)
    [message] = written["not_checked"]
    assert re.fullmatch(
        r"ResourceConfig occurs twice \(line \d+\): only the last one counts", message
    )
    assert "At most $0.24" in run("check", path).stdout


def recommendation(rule: str, usd: str | None, new_type: str = "", **more: Any) -> CheckFinding:
    """Returns a finding; with a type, its fix."""
    fix = [{"parameter": "ResourceConfig.InstanceType", "old": "a", "new": new_type}]
    dollars = Decimal(usd) if usd else None
    return CheckFinding(
        rule=rule,
        source="rules",
        summary="",
        path="",
        line=1,
        saving_usd=dollars,
        fix=fix if new_type else [],
        **more,
    )


def test_the_largest_recommendation_is_first_and_types_do_not_conflict() -> None:
    """It follows the requests that AWS refuses. The same type may be recommended twice."""
    rows = sort_findings(
        [
            recommendation("old", "2", "ml.g6.xlarge", severity="medium"),
            recommendation("loose", None, severity="medium"),
            recommendation("cheap", "9", "ml.g4dn.xlarge", severity="low"),
            recommendation("wait", None, refused=True),
            recommendation("same", "1", "ml.g4dn.xlarge", severity="low"),
        ]
    )
    assert [row.rule for row in rows] == ["wait", "cheap", "same", "loose", "old"]
    assert [row.not_counted for row in rows] == [None] * 4 + ["cheap names another type"]


def test_certain_dollars_come_before_possible_ones() -> None:
    """Refusals come before both, and findings without dollars after them; also in a guard."""
    rows = [
        recommendation("remark", None, bucket="avoidable", severity="high"),
        recommendation("trial", "99", bucket="possible"),
        recommendation("waste", "1", bucket="avoidable", severity="low"),
        recommendation("loss", "2", bucket="lost", severity="low"),
        recommendation("wait", None, refused=True),
    ]
    order = ["wait", "loss", "waste", "trial", "remark"]
    assert [row.rule for row in sort_findings(rows)] == order
    checked: Any = {"jobs": [{"trial": False, "findings": [*map(asdict, rows)]}]}
    assert [row["rule"] for row in CheckedCall("job", "created", checked).findings] == order


def recorded_request() -> dict[str, Any]:
    """Returns the request of a recorded job."""
    expected = (
        "TrainingJobName",
        "HyperParameters",
        "AlgorithmSpecification",
        "RoleArn",
        "InputDataConfig",
        "OutputDataConfig",
        "ResourceConfig",
        "CheckpointConfig",
        "StoppingCondition",
    )
    answer = json.loads(RECORDED.read_text("utf-8"))["describe"]
    return {key: answer[key] for key in expected if key in answer}


@pytest.fixture
def history(run: Run, tmp_path: Path) -> Path:
    """Returns a history file with the audit of one recorded run."""
    path = tmp_path / "history.db"
    assert run("audit", "--recording", RECORDED, "--history", path).exit_code == 0
    return path


def test_the_history_says_what_the_next_run_costs(run: Run, tmp_path: Path, history: Path) -> None:
    """It also says which recommendation the request ignores: the request is that of the run that
    had it.
    """
    again = save(tmp_path, recorded_request())
    printed_text = " ".join(run("check", again, "--history", history).stdout.split())
    assert (
        "Will probably cost about $14.67 in 3 h (median of 1 completed run of its family"
        in printed_text
    )
    assert "some-gpus-unused (SA204" in printed_text
    assert "It does not follow the recommendation of tile-classifier" in printed_text
    assert "had the same finding" in printed_text


def test_earlier_runs_on_the_same_instances_count_before_newer_ones(
    run: Run, tmp_path: Path, history: Path
) -> None:
    """Three newer runs on another type hide neither this one's recommendation nor its dollars."""
    text = RECORDED.read_text("utf-8").replace("ml.g4dn.12xlarge", "ml.c5.xlarge")
    for number in range(1, 4):
        later = re.sub(r"(?<=2026-0)(\d)(?=-\d\dT)", lambda month: str(int(month[1]) + 1), text)
        later = later.replace("02-11-408", f"02-11-41{number}")
        path = tmp_path / f"later-{number}.json"
        path.write_text(later, encoding="utf-8")
        assert run("audit", "--recording", path, "--history", history).exit_code == 0
    again = save(tmp_path, recorded_request())
    written = run("check", again, "--history", history, "--output", "json").stdout
    [job] = json.loads(written)["jobs"]
    [row] = [row for row in job["findings"] if row["rule"] == "some-gpus-unused"]
    assert row["saving_usd"] > 1
    assert row["saving_basis"] == "earlier"


def test_a_new_family_is_its_first_run(run: Run, tmp_path: Path, history: Path) -> None:
    """The history is read and does not have the family."""
    assert "First run of its family" in run("check", request(tmp_path), "--history", history).stdout
    assert "First run" not in run("check", request(tmp_path)).stdout


def test_the_users_own_history_is_read_if_possible(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged default file is reported and stops nothing; a damaged file that was named does."""
    monkeypatch.setattr(sys, "platform", "linux")
    own_file = tmp_path / "data" / "sageaudit" / "history.db"
    own_file.parent.mkdir(parents=True)
    assert run("audit", "--recording", RECORDED, "--history", own_file).exit_code == 0
    assert "Will probably cost about" in run("check", save(tmp_path, recorded_request())).stdout
    own_file.write_bytes(b"no database at all, but long enough to be read as one" * 40)
    done = run("check", request(tmp_path))
    assert (done.exit_code, "the history is not used" in done.stderr) == (0, True)
    assert run("check", request(tmp_path), "--history", own_file).exit_code == 2


def test_without_account_or_region_the_history_is_not_read(
    run: Run, tmp_path: Path, history: Path
) -> None:
    """The note says which option helps."""
    nobody = request(tmp_path, {"RoleArn": None})
    printed_text = " ".join(run("check", nobody, "--history", history).stdout.split())
    assert "The history cannot be read without account (give --account)" in printed_text
    assert (
        "First run"
        in run("check", nobody, "--history", history, "--account", "111122223333").stdout
    )


def examples() -> list[Any]:
    """Returns the YAML of docs/check.md: a workflow, a pre-commit file, a pipeline of GitLab."""
    page = (ROOT / "docs" / "check.md").read_text("utf-8")
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def test_the_example_workflow_gives_the_action_inputs_that_it_has() -> None:
    """It has the permission to write the comment that it asks for."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    workflow = examples()[0]
    [step] = [step for step in workflow["jobs"]["check"]["steps"] if "sageaudit@" in step["uses"]]
    required = {name for name, rules in action["inputs"].items() if rules.get("required")}
    assert required <= set(step["with"]) <= set(action["inputs"])
    assert (step["with"]["comment"], workflow["permissions"]["pull-requests"]) == ("true", "write")
    assert all(isinstance(value, str) for value in step["with"].values())


def test_the_hook_runs_as_pre_commit_runs_it(run: Run, tmp_path: Path) -> None:
    """Its entry gets the arguments of the example, then the files."""
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    [repository] = examples()[1]["repos"]
    [example] = repository["hooks"]
    assert (hook["id"], hook["language"]) == (example["id"], "python")
    assert re.search(example["files"], "jobs/a.json")
    assert not re.search(hook["files"], "package.json"), "without a pattern nothing is checked"
    program, *words = shlex.split(hook["entry"])
    assert program == "sageaudit"
    old_type = request(tmp_path, OLD_TYPE)
    for arguments in (hook["args"], example["args"]):
        assert run(*words, *arguments, old_type).exit_code == 10


def test_the_example_of_gitlab_writes_its_report(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job fails by the finding, and the report is there."""
    [job] = examples()[2].values()
    [line] = [line for line in job["script"] if line.startswith("sageaudit")]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    request(tmp_path / "jobs", SPOT)
    base = ("--base", "$CI_MERGE_REQUEST_DIFF_BASE_SHA")
    words = [word.replace("*", "request") for word in shlex.split(line) if word not in base]
    assert run(*words[1:]).exit_code == 10
    report = tmp_path / job["artifacts"]["reports"]["junit"]
    assert 'failures="1"' in report.read_text("utf-8")


CHECKS = RequestChecker(
    policy=Policy(),
    now=datetime(2026, 5, 20, tzinfo=UTC),
    form=None,
    pipeline=None,
    model=api_model(),
    markets=sources.offline_markets(),
    region="us-east-1",
    account=None,
    default_region=lambda: None,
    read_family=None,
)
ANYTHING: list[Any] = [
    None,
    True,
    0,
    -1,
    3.5,
    10**30,
    1e308,
    "",
    "x",
    "\x1b[0m",
    "\ud800",
    "ml.p3.2xlarge",
    "s3://b/x",
    [],
    [1],
    [[]],
    [{}],
    {},
    {"a": 1},
    {"Get": "Parameters.X"},
    {"Std:Join": {"Values": [1, None]}},
    {"Fn::Join": []},
    {"Fn::Sub": [[], {}]},
    "${later}",
]


def paths(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yields every path in a document but the top."""
    if place:
        yield place
    pairs: Any = ()
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, place_document in pairs:
        yield from paths(place_document, (*place, key))


def damaged_request(seed: int) -> Any:
    """Returns a request of an expert or of another tool, with up to four values replaced or
    removed.
    """
    chance = random.Random(seed)
    files = [*(case.file for case in CASES), *sorted((HERE / "requests").glob("*.json")) * 4]
    request_document = json.loads(chance.choice(files).read_text("utf-8"))
    for _ in range(chance.randint(1, 4)):
        result = list(paths(request_document))
        if not result:
            break
        *around, last = chance.choice(result)
        place_document = request_document
        for step in around:
            place_document = place_document[step]
        if chance.random() < 0.2:
            del place_document[last]
        else:
            place_document[last] = copy.deepcopy(chance.choice(ANYTHING))
    return request_document


@pytest.mark.parametrize("seed", range(60))
def test_any_file_gets_an_answer(seed: int, tmp_path: Path) -> None:
    """Every format has an output, and no rule fails."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps(damaged_request(seed)), encoding="utf-8")
    try:
        written = check_file(CHECKS, str(path))
    except SageauditError:
        return
    json.loads(to_json(written))
    file_check = FileCheck(str(path), written)
    assert "\x1b" not in github_annotations(file_check)
    terminal.show(file_check, Console(file=io.StringIO(), width=80))
    ET.fromstring(junit_report([file_check], None))  # noqa: S314 - our own text
    to_json(sarif_document([file_check]))
    assert "\x1b" not in markdown_report([file_check])
    codes = {row["code"] for job in written["jobs"] for row in job["unknown"]}
    assert "rule_failed" not in codes


@pytest.mark.parametrize(
    ("kind", "section", "changes", "path"),
    [
        (
            JobKind.TUNING,
            "TrainingJobDefinition",
            {"HyperParameterTuningResourceConfig": OLD_INSTANCES},
            "TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceType",
        ),
        (
            JobKind.TUNING,
            "TrainingJobDefinition",
            {"HyperParameterTuningResourceConfig": {"InstanceConfigs": [OLD_INSTANCES]}},
            "TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs[0].InstanceType",
        ),
        (
            JobKind.TRAINING,
            "",
            {"ResourceConfig": {"InstancePreferences": [OLD_INSTANCES], "VolumeSizeInGB": 30}},
            "ResourceConfig.InstancePreferences[0].InstanceType",
        ),
    ],
)
def test_a_fix_names_the_parameter_of_the_request(
    run: Run, tmp_path: Path, kind: JobKind, section: str, changes: dict[str, Any], path: str
) -> None:
    """AWS refuses `ResourceConfig.InstanceType` beside these lists and in such a definition."""
    document = body(kind)
    place = document[section] if section else document
    place.pop("ResourceConfig")
    place.update(changes)
    name = save(tmp_path, document)
    words = ("check", name, "--region", "us-east-1", "--output", "json")
    jobs = json.loads(run(*words).stdout)["jobs"]
    rows = [row for job in jobs for row in job["findings"] if row["rule"] == "old-generation"]
    assert [fix["parameter"] for row in rows for fix in row["fix"]] == [path]
