"""`sageaudit check` reads requests as other tools write them; `requests/` has the files."""

import json
from pathlib import Path
from time import process_time

import pytest

from tests.cli.test_check import no_user_settings  # noqa: F401 - used by every test
from tests.fakes.command_line import Run

REQUESTS = Path(__file__).parent / "requests"


@pytest.mark.parametrize(
    ("name", "form", "exit_code", "rules"),
    [
        ("plan-section-after-apply.json", "terraform", 0, []),
        ("section-in-wrong-case.json", "training", 10, ["unknown-parameter"]),
        ("state-parameters.json", "training", 0, []),
        ("template-with-functions.yaml", "cloudformation", 0, []),
        ("definition-in-a-string.json", "pipeline", 0, ["old-generation", "limit-cost"]),
        ("template-of-the-cdk.json", "cloudformation", 0, ["old-generation", "limit-cost"]),
    ],
)
def test_a_request_of_another_tool_is_checked_without_false_refusals(
    run: Run, name: str, form: str, exit_code: int, rules: list[str]
) -> None:
    """Only the misspelled section is refused, and only for its name."""
    done = run("check", REQUESTS / name, "--region", "us-east-1", "--output", "json")
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["form"]) == (exit_code, form)
    assert [row["rule"] for job in answer["jobs"] for row in job["findings"]] == rules


def test_parameters_of_a_cloudtrail_event_are_read_by_awss_names(run: Run) -> None:
    """A parameter that AWS does not list is named, and not refused."""
    done = run("check", REQUESTS / "cloudtrail-parameters.json", "--output", "json")
    answer = json.loads(done.stdout)
    [job] = answer["jobs"]
    assert (job["name"], job["instances"]) == ("cal-1", "1 x ml.p3.2xlarge")
    assert [row["rule"] for row in job["findings"] if row["refused"]] == ["spot-wait"]
    assert answer["not_checked"] == [
        "resourceConfig.useReservedCapacity is not a parameter that AWS knows: it is left out"
    ]


def test_each_job_of_a_template_is_checked_and_the_other_parts_are_named(run: Run) -> None:
    """Jobs, pipelines and state machines, with short forms of functions."""
    done = run("check", REQUESTS / "template-with-functions.yaml", "--output", "json")
    answer = json.loads(done.stdout)
    assert [job["label"] for job in answer["jobs"]] == ["P", "SM, state T", "Sub, state A"]
    assert answer["not_checked"] == [
        "S3Pipe is not checked: its definition is in S3: give the file that is there",
        "M is not checked: sageaudit does not check AWS::SageMaker::MonitoringSchedule",
    ]


@pytest.mark.parametrize(
    "code",
    [
        'resource "aws_sagemaker_training_job" "train" {\n}',
        '# a comment\n\nterraform {\n  required_version = ">= 1.9"\n}',
        "/* a\ncomment */ locals {}",
    ],
)
def test_terraform_code_is_named_with_the_command_that_prints_its_plan(
    run: Run, tmp_path: Path, code: str
) -> None:
    """HCL is not JSON."""
    path = tmp_path / "main.tf"
    path.write_text(code, encoding="utf-8")
    done = run("check", path)
    assert done.exit_code == 2
    assert "is Terraform code" in done.stderr
    assert "terraform show -json" in done.stderr


def test_a_file_that_is_larger_than_aws_takes_is_not_parsed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan may be larger, but a definition in it may not."""
    monkeypatch.setattr("sageaudit.adapters.files.request_file._LARGE", 100)
    monkeypatch.setattr("sageaudit.adapters.files.request_file._MAX_CHARACTERS", 200)
    monkeypatch.setattr("sageaudit.domain.request.definitions.MAX_CHARACTERS", 100)
    path = tmp_path / "large.json"
    path.write_text('{"Steps": [' + " " * 300, encoding="utf-8")
    done = run("check", path)
    assert (done.exit_code, "is larger than" in done.stderr) == (2, True)
    definition = {"pipeline_definition": json.dumps({"Steps": [{"Name": "x" * 200}]})}
    pipeline = {"type": "aws_sagemaker_pipeline", "change": {"after": definition}}
    plan = {"format_version": "1.2", "resource_changes": [pipeline]}
    path.write_text(json.dumps(plan), encoding="utf-8")
    done = run("check", path)
    assert (done.exit_code, "AWS takes 100 at most" in done.stdout.replace("\n  ", " ")) == (
        0,
        True,
    )


def test_only_the_first_500_jobs_of_a_file_are_checked(run: Run, tmp_path: Path) -> None:
    """The output says so."""
    steps = [{"Name": f"s{n}", "Type": "Training", "Arguments": {}} for n in range(501)]
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps({"Steps": steps}), encoding="utf-8")
    answer = json.loads(run("check", path, "--output", "json").stdout)
    assert len(answer["jobs"]) == 500
    assert answer["not_checked"] == ["only the first 500 of its jobs are checked"]


def test_the_keys_before_a_long_text_full_of_quotes_are_found_at_once(
    run: Run, tmp_path: Path
) -> None:
    """The text is cut off where the search ends; once it was searched from each quote in it."""
    definition = json.dumps({"Steps": [], "Metadata": ['"'] * 300_000})
    pipeline = {
        "type": "aws_sagemaker_pipeline",
        "change": {"after": {"pipeline_definition": definition}},
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"format_version": "1.2", "resource_changes": [pipeline]}), "utf-8")
    start = process_time()
    assert run("check", path).exit_code == 0
    assert process_time() - start < 5
