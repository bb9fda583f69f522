"""One reason, one exit code: credentials, permissions, proxies, pipes and what help lists."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from moto import mock_aws

from local.recorded import of_file
from local.sagemaker import RecordedSageMaker, put_series
from sageaudit.cli.command_folder import GROUPS
from sageaudit.cli.main import commands
from tests.fakes.command_line import Run

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
PROFILES = """
[profile sso]
sso_session = my
sso_account_id = 111122223333
sso_role_name = reader
region = us-east-1
[sso-session my]
sso_start_url = https://example.awsapps.com/start
sso_region = us-east-1
[profile role]
role_arn = arn:aws:iam::111122223333:role/reader
source_profile = nobody
region = us-east-1
[profile half]
aws_access_key_id = AKIDEXAMPLE
region = us-east-1
"""


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("sso", "`aws sso login`"),
        ("role", "correct the AWS config file"),
        ("half", "`aws sso login`"),
        ("nobody", "`aws configure list-profiles`"),
    ],
)
def test_a_profile_without_credentials_is_4_and_says_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, said: str
) -> None:
    """An SSO session that expired, a role without a source, half a key, no such profile."""
    config = tmp_path / "config"
    config.write_text(PROFILES)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("audit", "a-job", "--profile", profile, "--region", "us-east-1")
    assert (done.exit_code, done.stdout) == (4, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An account with one recorded training job."""
    with mock_aws():
        made = boto3.Session(region_name="us-east-1")
        monkeypatch.setattr(boto3, "Session", lambda **_: made)
        jobs = RecordedSageMaker(made)
        [job] = of_file(FAILED)
        jobs.add(job)
        put_series(made, job)
        yield made


def _refuse(session: Any, operation: str, code: str, message: str = "refused") -> None:
    body = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
    answer = (AWSResponse("https://aws", 400, {}, None), body)
    session.events.register_first(f"before-call.{operation}", lambda **_: answer)


def test_a_name_is_found_where_one_kind_may_be_described(session: Any, run: Run) -> None:
    """The kinds that could not be asked are named on stderr: another job may have this name."""
    for kind in ("Processing", "Transform", "HyperParameterTuning"):
        _refuse(session, f"sagemaker.Describe{kind}Job", "AccessDeniedException")
    [job] = of_file(FAILED)
    done = run("audit", job.name, "--region", "us-east-1", "--output", "json")
    assert done.document()["job"]["arn"] == job.arn
    for action in ("DescribeProcessingJob", "DescribeTransformJob", "DescribeHyperParameterTuning"):
        assert action in done.stderr


def test_a_name_that_is_not_found_names_what_could_not_be_asked(session: Any, run: Run) -> None:
    """Exit 4, not 3: the job may be of the kind that is denied."""
    _refuse(session, "sagemaker.DescribeProcessingJob", "AccessDeniedException")
    done = run("audit", "no-such-job", "--region", "us-east-1")
    assert done.exit_code == 4
    assert "sagemaker:DescribeProcessingJob is not permitted" in done.stderr
    assert "training" in done.stderr


@pytest.mark.usefixtures("session")
def test_another_region_than_the_arn_says_is_2(run: Run) -> None:
    """A price of another region would be wrong without a word."""
    [job] = of_file(FAILED)
    done = run("audit", job.arn, "--region", "eu-west-1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is in us-east-1, not in eu-west-1" in done.stderr


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalFailure", "AccessDenied"])
def test_tags_that_cannot_be_read_never_end_an_audit(session: Any, run: Run, code: str) -> None:
    """The bill needs no tag; that they are missing stands in the document."""
    _refuse(session, "sagemaker.ListTags", code)
    [job] = of_file(FAILED)
    document = run("audit", job.arn, "--output", "json").document()
    assert document["bill"]["total_usd"] > 0
    assert any("tags: " in line for line in document["audit"]["coverage"]["missing"])


def test_a_proxys_page_never_reaches_a_document(session: Any, run: Run) -> None:
    """What went wrong is said in words."""
    page = "<html><head><title>403 Forbidden</title></head><body>Zscaler</body></html>"
    _refuse(session, "pricing.GetProducts", "403", page)
    _refuse(session, "cloudwatch.GetMetricData", "403", page)
    [job] = of_file(FAILED)
    done = run("audit", job.arn, "--output", "json")
    assert "<html" not in done.stdout + done.stderr
    assert "Zscaler" not in done.stdout + done.stderr


@pytest.mark.parametrize("words", [("rules",), ("prices", "ml.g5.2xlarge", "--output", "json")])
def test_a_closed_pipe_is_0(words: tuple[str, ...]) -> None:
    """The reader has seen enough, as `head` does."""
    code = "from sageaudit.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=300) == 0
    assert b"Traceback" not in said
    assert b"Exception" not in said


def test_help_lists_every_command_once_and_whole(run: Run) -> None:
    """In groups; a summary is not cut."""
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(set(listed))
    assert set(commands.list_commands(None)) <= set(listed)  # type: ignore[arg-type]
    done = run("--help")
    assert "..." not in done.stdout.partition("\n")[2]
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_rules_are_printed_as_json(run: Run) -> None:
    """All of them with their thresholds, or one with its page."""
    every = run("rules", "--output", "json").document()
    one = run("rules", "gpu-idle", "--output", "json").document()
    assert every["schema"] == one["schema"] == 1
    assert one["rule"]["page"].startswith("# gpu-idle")
    named = next(rule for rule in every["rules"] if rule["name"] == "gpu-idle")
    assert {**named, "page": one["rule"]["page"]} == one["rule"]
    assert json.dumps(every)
