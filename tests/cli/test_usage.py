"""Invalid arguments give one sentence and an exit code, before any call or file."""

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.client import BaseClient

from sageaudit.cli import clock
from tests.fakes.command_line import Run
from tests.fakes.live_account import DATA, SET
from tests.fakes.random_history import NOW

RECORDING = DATA / "training-020-c4-8xlarge-x2-failed.json"
RUNNING = DATA / "processing-070-inprogress.json"
TODAY = datetime.now(UTC).date()
JOB = "arn:aws:sagemaker:us-east-1:111122223333:training-job/x"
ONE_HISTORY = "name one history: either a file with --history or a table with --table"
ROWS = "is not in the range 1<=x<=1000000"
WRONG = [
    ("account 111122223333 --history h.db --table t1", 2, ONE_HISTORY),
    (
        "account 111122223333 --table history",
        2,
        "which region is the table in? give --table",
    ),
    ("account 12 --history {file}", 2, "ACCOUNT 12 is not an account id, which has 12 digits"),
    ("account 222233334444 --history {file}", 3, "no audited run of account 222233334444"),
    ("audit", 2, "name a job"),
    ("audit --output xml", 2, "xml"),
    ("audit arn:aws:s3:::bucket", 2, "is not the ARN of a SageMaker job"),
    (f"audit {JOB} --region eu-west-1", 2, "is in us-east-1, not in eu-west-1: omit --region"),
    ("audit no/name --region us-east-1", 2, "neither an ARN nor a job name"),
    ("audit job --region 'us east'", 2, "'us east' is not a region; a region looks like"),
    ("audit job", 2, "which region? give --region, or set one for your AWS profile"),
    ("audit --recording x.json --policy /no/such.toml", 2, "/no/such.toml"),
    ("audit --recording {recording} --fix-as boto3 --output json", 2, "--fix-as cannot be used"),
    ("audit --recording {recording} --fix-as cloudformation", 2, "'sdk-v3'"),
    ("check x.json --region moon", 2, "--region moon is not a region"),
    ("check x.json --account 12", 2, "--account 12 is not an account id"),
    ("check x.json --as letter", 2, "letter"),
    ("check x.json --fail-on loud", 2, "loud"),
    ("check x.json --history none.db", 3, "none.db"),
    ("doctor --policy history", 2, "do not call AWS; with --table NAME"),
    ("doctor frobnicate", 2, "there is no command frobnicate"),
    ("doctor --role reader", 2, "--role needs the accounts"),
    ("by tema --history {file}", 2, "there is no column 'tema': did you mean team?"),
    ("by week,month --history {file}", 2, "only one of day, week and month"),
    ("by week --history none.db --fields week", 2, "there is no field week: the fields are"),
    ("by family --history {file} --sort newest", 2, "'newest' is not one of"),
    ("families --history {file} --limit 0", 2, ROWS),
    ("families --history {file} --since ''", 2, "is not a time"),
    ("history --history {file} --status InProgress", 2, "is a status of jobs that have not ended"),
    ("history --history {file} --type a --type b", 2, "--type was given 2 times"),
    ("history --history {file} --sort jobs", 2, "'jobs' is not one of"),
    ("changes --history {file} --since 0d", 2, "is not before the end of yesterday"),
    ("history --history {file} --since soon", 2, "--since soon is not a time: write 30d"),
    ("history --history {file} --since ''", 2, "is not a time"),
    ("history --history {file} --since 2031-01-01", 2, "--since 2031-01-01 is in the future"),
    ("history --history {file} --since 1d --until 2d", 2, "is not before --until 2d"),
    ("history --history {file} --min-usd much", 2, "--min-usd much is not an amount in USD"),
    ("history --history {file} --min-usd -1", 2, "--min-usd -1 is not an amount in USD"),
    ("history --history {file} --limit 1000001", 2, ROWS),
    ("history --history none.db --fields job,color", 2, "no field color: the fields are ended_at"),
    ("history --history {file} --fields ,", 2, "--fields names no field"),
    ("history --table 'a b'", 2, "--table a b is not a valid table name"),
    ("prices ml.foo.xlarge", 2, "ml.foo.xlarge is not an instance type"),
    ("prices NaN", 2, "NaN is not an instance type"),
    ("prices -1", 2, "No such option"),
    ("prices '\x1b[31mred'", 2, "is not an instance type"),
    ("prices ml.m5.xlarge --region eu-west-9", 2, "eu-west-9 is not a known AWS region"),
    ("prices ml.m5.xlarge --component cooking", 2, "'cooking' is not one of"),
    ("prices ml.m5.xlarge --region cn-north-1", 3, "is unknown, not 0"),
    ("prices ml.p5e.48xlarge --region us-east-1", 3, "no price is known for ml.p5e.48xlarge in"),
    ("prices learn --cur absent.csv", 2, "absent.csv"),
    ("prices learn --cur absent.csv --account 12", 2, "--account 12 is not an account id"),
    ("reconcile --cur a.csv --month 2023-13 --history {file}", 2, "--month 2023-13 is not a month"),
    ("reconcile --cur a.csv --month february --history {file}", 2, "is not a month"),
    ("reconcile --cur a.csv --month 0000-01 --history {file}", 2, "is not a month"),
    ("reconcile --cur a.csv --month 2099-01 --history {file}", 2, "--month 2099-01 has not begun"),
    (
        "reconcile --cur a.csv --month 2026-10 --account mine --history {file}",
        2,
        "--account mine is not an",
    ),
    ("reconcile --cur a.csv --month 2026-10 --history h.db --table t1", 2, ONE_HISTORY),
    ("record", 2, "name one job, or give its file"),
    ("record x --recording y", 2, "name one job, or give its file"),
    ("record --recording /no/such.json", 2, "/no/such.json: cannot be read"),
    ("record x -o /no/such/folder/job.json", 2, "/no/such/folder"),
    ("report --recording {recording} --since 7d", 2, "leave out --since"),
    ("report --recording {recording} -o no/report.html", 2, "cannot be written (No such file or"),
    ("report --history {file} --since ''", 2, "is not a time"),
    ("rules gpu-idel", 2, "there is no rule gpu-idel: did you mean gpu-idle? `sageaudit rules`"),
    ("rules SA999", 2, "there is no rule SA999; `sageaudit rules` lists them all"),
    ("rules --output csv", 2, "'csv' is not one of"),
    ("scan --since 30", 2, "--since 30 is not a time: write 30d"),
    ("scan --since 9999-01-01", 2, "is in the future"),
    (f"scan --until {TODAY + timedelta(days=1)}", 2, "is in the future"),
    ("scan --since 456d", 2, "CloudWatch metrics are kept for 455 days"),
    (f"scan --since {TODAY} --until {TODAY - timedelta(days=9)}", 2, "is not before --until"),
    ("scan --region eu-wset-1", 2, "did you mean eu-west-1?"),
    ("prices ml.g5.xlrage", 2, "did you mean ml.g5.xlarge?"),
    (f"what-if --recording {RECORDING} --type g5.xlarge", 2, "did you mean ml.g5.xlarge?"),
    ("scan --region nowhere", 2, "is not a region of SageMaker"),
    ("scan", 2, "which region? give --region or --all-regions"),
    ("scan --region eu-west-1 --all-regions", 2, "either --region or --all-regions"),
    ("scan --limit 0", 2, "0 is not in the range"),
    ("scan --kind notebook", 2, "notebook"),
    ("scan --policy no-such-file", 2, "no-such-file"),
    ("scan --recordings . --region eu-west-1", 2, "--recordings does not use AWS"),
    ("scan --recordings no-such-folder", 2, "no-such-folder"),
    ("scan --recordings . --history h.db --dry-run", 2, "has no .json or .jsonl file"),
    ("scan --recordings . --until 2026-01-01", 2, "--until with --recordings needs --since"),
    ("scan --recordings . --coverage", 2, "recordings have no bill"),
    ("scan --organization", 2, "--organization needs --role NAME"),
    ("scan --organization --account 1 --role r", 2, "give either --account ID or --organization"),
    ("scan --role reader", 2, "--role needs the accounts that have it"),
    ("scan --external-id x", 2, "--external-id needs --role"),
    ("scan --organization --role arn:aws:iam::1:role/x", 2, "is not the name of a role"),
    ("scan --organization --role r --external-id 'a b'", 2, "--external-id must have"),
    ("scan --organization --role r --recordings .", 2, "--recordings does not use AWS"),
    ("show nobody --history {file}", 3, "no audit of nobody is in this history"),
    (f"show {JOB} --history {{file}}", 3, f"no audit of {JOB} is in this history"),
    ("show arn:aws:s3:::bucket --history {file}", 2, "is not the ARN of a SageMaker job"),
    ("show x --fix-as boto3 --output json --history {file}", 2, "--fix-as cannot be used"),
    ("top --history {file} --rule gpu-idle", 2, "top ranks jobs, not findings"),
    ("what-if", 2, "name one job, or one file"),
    ("what-if job --recording x.json", 2, "name one job, or one file"),
    ("what-if --recording {running} --type ml.g5.96xlarge", 2, "is not in the catalogue"),
    ("what-if --recording {set}", 2, "is a tuning job: ask about one of its training jobs"),
    ("what-if --recording no-such.json", 2, "no-such.json"),
]


@pytest.fixture(scope="module")
def paths(file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns the files that the lines name."""
    policy = tmp_path_factory.mktemp("policy") / "new.toml"
    policy.touch()
    return {"file": file, "policy": policy, "recording": RECORDING, "running": RUNNING, "set": SET}


@pytest.mark.parametrize(("line", "code", "message"), WRONG, ids=[line for line, *_ in WRONG])
def test_invalid_arguments_are_one_sentence(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    paths: dict[str, Path],
    line: str,
    code: int,
    message: str,
) -> None:
    """There is nothing on stdout, no stack trace and no escape sequence."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)
    monkeypatch.setattr(BaseClient, "_make_api_call", lambda *_: pytest.fail("AWS was asked"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    done = run(*(word.format_map(paths) for word in shlex.split(line)))
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    assert {path.name for path in tmp_path.rglob("*.*")} <= {"fingerprint.key"}
