"""`sageaudit pack`: a policy in a release's asset, and the commands that deploy it."""

import json
import shlex
import zipfile
from pathlib import Path

import pytest

from sageaudit.adapters.files import policy_file, stored_policy
from sageaudit.adapters.files.lambda_asset import read_version
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import version
from tests.fakes.command_line import Run

PACKAGE = Path(__file__).parents[2] / "functions" / "sageaudit"
SLACK = '[channels.slack]\nservice = "slack"\n'
VERSION = "sageaudit/data/ruleset.json"


@pytest.fixture
def asset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a small asset of this version, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_asset(tmp_path, version.version_file_text(PACKAGE))


def write_asset(folder: Path, version_text: str) -> Path:
    """Writes an asset with one handler, the default policy and a version."""
    path = folder / "sageaudit-lambda-0.1.0.zip"
    with zipfile.ZipFile(path, "w") as archive:
        handler = zipfile.ZipInfo("audit/handler.py", (1980, 1, 1, 0, 0, 0))
        handler.external_attr = 0o100644 << 16
        archive.writestr(handler, "x = 1\n" * 100, zipfile.ZIP_DEFLATED)
        archive.writestr(stored_policy.FILE_NAME, stored_policy.to_text(Policy()))
        archive.writestr(VERSION, version_text)
    return path


def write_policy(folder: Path, text: str) -> Path:
    """Writes a policy file."""
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_copy_has_the_policy_and_all_other_files_unchanged(
    asset: Path, tmp_path: Path, run: Run
) -> None:
    """The functions read the same policy as after `make deploy`."""
    policy = write_policy(tmp_path, f"floor_usd = 7\n{SLACK}")
    done = run("pack", asset.name, "--policy", policy, "--bucket", "our-bucket")
    assert done.exit_code == 0, done.stderr
    [copy] = set(tmp_path.glob("*.zip")) - {asset}
    with zipfile.ZipFile(asset) as before, zipfile.ZipFile(copy) as after:
        assert after.namelist() == before.namelist()
        text = after.read(stored_policy.FILE_NAME).decode()
        assert stored_policy.from_text(text) == policy_file.load_policy(policy)
        assert after.read("audit/handler.py") == before.read("audit/handler.py")
        rows = [archive.getinfo("audit/handler.py") for archive in (before, after)]
        assert len({(row.date_time, row.external_attr, row.compress_size) for row in rows}) == 1
    assert f"AssetKey={copy.name}" in done.stdout
    assert "--template-file sageaudit-slack.template.json" in done.stdout
    assert "--name sageaudit/channel/slack" in done.stdout
    assert f"aws s3 cp {copy.name} s3://our-bucket/" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_another_policy_has_another_key_and_the_same_one_the_same(
    asset: Path, tmp_path: Path, run: Run
) -> None:
    """CloudFormation updates functions only if the key of their code changes."""
    for floor in (7, 7, 8):
        policy = write_policy(tmp_path, f"floor_usd = {floor}\n")
        assert run("pack", asset, "--policy", policy).exit_code == 0
    assert len(set(tmp_path.glob("*.zip"))) == 1 + 2


@pytest.mark.parametrize(
    ("policy", "template", "cron", "zone"),
    [
        ("", "sageaudit", "0 8,9 ? * MON *", "UTC"),
        ('[channels.teams]\nservice = "teams"\n', "sageaudit-teams", "0 8,9 ? * MON *", "UTC"),
        ('[digest]\nday = "off"\n', "sageaudit", "0 8,9 ? * MON *", "UTC"),
        (
            '[digest]\nday = "friday"\nhour = 15\ntimezone = "Europe/Berlin"\n',
            *("sageaudit", "0 15,16 ? * FRI *", "Europe/Berlin"),
        ),
    ],
)
def test_the_commands_name_the_template_and_the_time_of_the_digest(
    asset: Path, tmp_path: Path, run: Run, policy: str, template: str, cron: str, zone: str
) -> None:
    """Also the usual time: `aws cloudformation deploy` keeps the last value of other parameters."""
    done = run("pack", asset, "--policy", write_policy(tmp_path, policy))
    assert done.exit_code == 0, done.stderr
    words = shlex.split(done.stdout.replace("\\\n", ""), comments=True)
    assert words[words.index("--template-file") + 1] == f"{template}.template.json"
    assert words[-2:] == [f"DigestSchedule=cron({cron})", f"DigestTimezone={zone}"]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (f'{SLACK}[channels.teams]\nservice = "teams"\n', "[channels] has other channels"),
        ('[channels.ml]\nservice = "slack"\n', "[channels] has other channels"),
        (f'{SLACK}secret = "ml/slack"\n', "[channels] has other channels"),
        ('[channels.slack]\nservice = "teams"\n', "[channels] has other channels"),
        ('regions = ["eu-west-1"]\n', "[accounts] has other accounts or regions"),
        ('[digest]\nreport_bucket = "our-reports"\n', "[digest] has a report_bucket"),
    ],
)
def test_a_policy_that_changes_the_stack_further_needs_a_clone(
    asset: Path, tmp_path: Path, run: Run, policy: str, why: str
) -> None:
    """Nothing is written, as the functions would lack queues, permissions or an event bus."""
    done = run("pack", asset, "--policy", write_policy(tmp_path, policy))
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in done.stderr
    assert "`make deploy`" in done.stderr
    assert list(tmp_path.glob("*.zip")) == [asset]


def test_limits_and_job_lines_of_a_channel_are_only_in_the_asset(
    asset: Path, tmp_path: Path, run: Run
) -> None:
    """The functions alone apply them, so every template fits."""
    text = f"{SLACK}max_per_hour = 3\nevery_job = true\n"
    assert run("pack", asset, "--policy", write_policy(tmp_path, text)).exit_code == 0


def test_a_mistake_in_the_policy_is_named_with_its_line(
    asset: Path, tmp_path: Path, run: Run
) -> None:
    """It stops here, before anything is deployed."""
    done = run("pack", asset, "--policy", write_policy(tmp_path, "\nflor_usd = 7\n"))
    assert done.exit_code == 2
    assert "policy.toml:2: unknown key flor_usd" in done.stderr


def test_an_asset_of_another_version_is_refused(tmp_path: Path, run: Run) -> None:
    """Its functions might not read what this version writes."""
    other = write_asset(tmp_path, json.dumps({"version": "0.0.9+00000000"}))
    assert read_version(other) == "0.0.9+00000000"
    done = run("pack", other, "--policy", write_policy(tmp_path, ""))
    assert done.exit_code == 2
    assert "is of sageaudit 0.0.9+00000000" in done.stderr


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"{}", None])
def test_what_is_not_an_asset_is_refused(tmp_path: Path, run: Run, content: bytes | None) -> None:
    """One sentence says which file it should be; so also for a folder and for a missing file."""
    path = tmp_path / "asset.zip"
    if content is not None:
        path.write_bytes(content)
    for name in (path, tmp_path):
        done = run("pack", name, "--policy", write_policy(tmp_path, ""))
        assert (done.exit_code, done.stdout) == (2, "")
        assert "sageaudit-lambda-VERSION.zip" in done.stderr


def test_a_damaged_asset_leaves_no_half_copy(asset: Path, tmp_path: Path, run: Run) -> None:
    """A download that broke in the middle has a wrong checksum."""
    content = asset.read_bytes()
    place = content.index(b"audit/handler.py") + len("audit/handler.py") + 4
    asset.write_bytes(content[:place] + b"\xff\xff" + content[place + 2 :])
    done = run("pack", asset, "--policy", write_policy(tmp_path, ""))
    assert done.exit_code == 2
    assert "is damaged" in done.stderr
    assert list(tmp_path.glob("*.zip")) == [asset]
    assert not list(tmp_path.glob(".sageaudit*"))
