"""`sageaudit audit NAME|ARN` only reads a live account; each refusal has its exit code."""

from pathlib import Path

import pytest

from local.recorded import RecordedJob
from tests.fakes.command_line import Run
from tests.fakes.live_account import DATA, LiveAccount

FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
PROCESSING = DATA / "processing-067-failed.json"


def test_a_name_is_found_and_audited_as_the_lambda_would(account: LiveAccount, run: Run) -> None:
    """The document equals that of the recording, from Describe*, ListTags and GetMetricData."""
    job = account.add(FAILED)
    done = run("audit", job.name, "--region", "us-east-1", "--output", "json")
    document = done.document()
    assert document["job"]["arn"] == job.arn
    assert document["lost_usd"] == document["bill"]["total_usd"] > 0


def test_a_name_under_two_kinds_is_refused_with_both_named(account: LiveAccount, run: Run) -> None:
    """The exit code is 2; --kind chooses one."""
    training, processing = account.add(FAILED), account.add(PROCESSING)
    twin = RecordedJob(
        processing.kind,
        {
            **processing.describe,
            "ProcessingJobName": training.name,
            "ProcessingJobArn": processing.arn.rpartition("/")[0] + "/" + training.name.lower(),
        },
        {},
        (),
    )
    account.jobs.add(twin)
    done = run("audit", training.name, "--region", "us-east-1")
    assert done.exit_code == 2
    assert "a training job and a processing job" in done.stderr
    again = run("audit", training.name, "--kind", "processing", "--output", "json")
    assert again.document()["job"]["kind"] == "processing"


@pytest.mark.parametrize(
    ("operation", "code", "exit_code", "message"),
    [
        ("sagemaker.DescribeTrainingJob", "AccessDeniedException", 4, "DescribeTrainingJob"),
        ("sagemaker.DescribeTrainingJob", "ExpiredTokenException", 4, "expired"),
        ("sagemaker.DescribeTrainingJob", "ThrottlingException", 5, "throttled"),
        ("sagemaker.DescribeTrainingJob", "InternalFailure", 5, "refused"),
    ],
)
def test_a_refusal_is_one_sentence_and_its_code(
    account: LiveAccount, run: Run, operation: str, code: str, exit_code: int, message: str
) -> None:
    """The code is 4 for credentials and permissions, 5 for throttling and outages."""
    job = account.add(FAILED)
    account.refuse(operation, code)
    done = run("audit", job.arn)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", ["no-such-job", None])
@pytest.mark.usefixtures("account")
def test_a_job_that_does_not_exist_exits_with_3(run: Run, target: str | None) -> None:
    """The code is the same for a name and an ARN."""
    arn = "arn:aws:sagemaker:us-east-1:111122223333:training-job/no-such-job"
    done = run("audit", target or arn, "--region", "us-east-1")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no-such-job" in done.stderr


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("TrainingJobStatus", "Deleting", "its status is Deleting"),
        ("ResourceConfig", {"InstanceCount": -1}, "its Describe answer cannot be read"),
    ],
)
def test_a_job_that_exists_and_cannot_be_audited_exits_with_1(
    account: LiveAccount, run: Run, key: str, value: object, message: str
) -> None:
    """The sentence says why, and not that the job is gone."""
    job = account.add(FAILED, series=False, **{key: value})
    done = run("audit", job.arn)
    assert (done.exit_code, done.stdout) == (1, "")
    assert message in done.stderr
    assert job.arn in done.stderr


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
    ("profile", "message"),
    [
        ("sso", "`aws sso login`"),
        ("role", "correct the AWS config file"),
        ("half", "`aws sso login`"),
        ("nobody", "`aws configure list-profiles`"),
    ],
)
def test_a_profile_without_credentials_is_4_and_says_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, message: str
) -> None:
    """The cases are an expired SSO session, a role without a source, half a key, and no such
    profile.
    """
    config = tmp_path / "config"
    config.write_text(PROFILES)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run("audit", "a-job", "--profile", profile, "--region", "us-east-1")
    assert (done.exit_code, done.stdout) == (4, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_name_is_found_if_one_kind_may_be_described(account: LiveAccount, run: Run) -> None:
    """stderr names the kinds that could not be read, since another job may have this name."""
    for kind in ("Processing", "Transform", "HyperParameterTuning"):
        account.refuse(f"sagemaker.Describe{kind}Job", "AccessDeniedException")
    job = account.add(FAILED)
    done = run("audit", job.name, "--region", "us-east-1", "--output", "json")
    assert done.document()["job"]["arn"] == job.arn
    for action in ("DescribeProcessingJob", "DescribeTransformJob", "DescribeHyperParameterTuning"):
        assert action in done.stderr


def test_a_name_that_is_not_found_lists_the_denied_kinds(account: LiveAccount, run: Run) -> None:
    """The exit code is 4, not 3: the job may be of the denied kind."""
    account.refuse("sagemaker.DescribeProcessingJob", "AccessDeniedException")
    done = run("audit", "no-such-job", "--region", "us-east-1")
    assert done.exit_code == 4
    assert "sagemaker:DescribeProcessingJob is not permitted" in done.stderr
    assert "training" in done.stderr


def test_a_proxys_page_never_reaches_a_document(account: LiveAccount, run: Run) -> None:
    """The error is reported in plain words."""
    page = "<html><head><title>403 Forbidden</title></head><body>Zscaler</body></html>"
    account.refuse("pricing.GetProducts", "403", page)
    account.refuse("cloudwatch.GetMetricData", "403", page)
    job = account.add(FAILED)
    done = run("audit", job.arn, "--output", "json")
    assert "<html" not in done.stdout + done.stderr
    assert "Zscaler" not in done.stdout + done.stderr
