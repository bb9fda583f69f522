"""One reason, one exit code: credentials, permissions, proxies, pipes and what help lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from sageaudit.cli.command_folder import GROUPS
from sageaudit.cli.main import commands
from tests.fakes.command_line import Run
from tests.fakes.live_account import DATA, LiveAccount

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


def test_a_name_is_found_where_one_kind_may_be_described(account: LiveAccount, run: Run) -> None:
    """The kinds that could not be asked are named on stderr: another job may have this name."""
    for kind in ("Processing", "Transform", "HyperParameterTuning"):
        account.refuse(f"sagemaker.Describe{kind}Job", "AccessDeniedException")
    job = account.add(FAILED)
    done = run("audit", job.name, "--region", "us-east-1", "--output", "json")
    assert done.document()["job"]["arn"] == job.arn
    for action in ("DescribeProcessingJob", "DescribeTransformJob", "DescribeHyperParameterTuning"):
        assert action in done.stderr


def test_a_name_that_is_not_found_names_what_could_not_be_asked(
    account: LiveAccount, run: Run
) -> None:
    """Exit 4, not 3: the job may be of the kind that is denied."""
    account.refuse("sagemaker.DescribeProcessingJob", "AccessDeniedException")
    done = run("audit", "no-such-job", "--region", "us-east-1")
    assert done.exit_code == 4
    assert "sagemaker:DescribeProcessingJob is not permitted" in done.stderr
    assert "training" in done.stderr


def test_a_proxys_page_never_reaches_a_document(account: LiveAccount, run: Run) -> None:
    """What went wrong is said in words."""
    page = "<html><head><title>403 Forbidden</title></head><body>Zscaler</body></html>"
    account.refuse("pricing.GetProducts", "403", page)
    account.refuse("cloudwatch.GetMetricData", "403", page)
    job = account.add(FAILED)
    done = run("audit", job.arn, "--output", "json")
    assert "<html" not in done.stdout + done.stderr
    assert "Zscaler" not in done.stdout + done.stderr


def test_help_lists_every_command_once_and_whole(run: Run) -> None:
    """In groups; a summary is not cut."""
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(set(listed))
    assert set(commands.list_commands(None)) <= set(listed)  # type: ignore[arg-type]
    done = run("--help")
    assert "..." not in done.stdout.partition("\n")[2]
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
