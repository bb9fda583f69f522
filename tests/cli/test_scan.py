"""`sageaudit scan` on an account in moto: what it audits, prints, stores and refuses."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.command_line import Result, Run
from tests.fakes.jobs import ACCOUNT
from tests.fakes.live_account import LiveAccount, live_account
from tests.fakes.moto_jobs import add_training_job

JOBS = 4
TODAY = datetime.now(UTC).date()


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveAccount]:
    """Yields four jobs of one family, and the session that every `boto3.Session()` returns."""
    with live_account(monkeypatch, "eu-west-1") as live:
        for number in range(JOBS):
            add_training_job(live.session, f"bert-{number}", days_ago=JOBS - number)
        yield live


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Returns the path of the history file."""
    return tmp_path / "history.db"


def document(done: Result) -> Any:
    """Returns the JSON of a scan with any exit code."""
    return json.loads(done.stdout, parse_float=Decimal)


@pytest.mark.usefixtures("account")
def test_it_ranks_what_the_jobs_of_the_account_cost(run: Run, history: Path) -> None:
    """It has family, rule, owner and type, with the fix of the most wasteful run."""
    done = run("scan", "--history", history)
    assert done.exit_code == 0
    for part in (
        "4 jobs cost",
        "training/bert/-/bert",
        "some-gpus-unused",
        "ResourceConfig.InstanceType = ",
        "ann",
        "ml.g5.12xlarge",
        "4  audited now",
    ):
        assert part in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "4 jobs: 4 to audit" in done.stderr
    assert "this scan costs <$0.01: it asks for 20 CloudWatch metrics" in done.stderr


def test_a_second_scan_only_lists(account: LiveAccount, run: Run, history: Path) -> None:
    """The ranking is the same, and no job is read."""
    first = document(run("scan", "--history", history, "--output", "json"))
    account.calls.clear()
    second_run = run("scan", "--history", history, "--output", "json")
    second = document(second_run)
    lists = {kind.spec.list_call for kind in JobKind}
    assert {call.partition(":")[2] for call in account.calls} <= lists
    assert second["ranking"] == first["ranking"]
    assert second["scan"]["jobs"]["known"] == JOBS
    assert "this scan costs nothing" in second_run.stderr


def test_a_dry_run_reads_and_stores_nothing(account: LiveAccount, run: Run, history: Path) -> None:
    """It prints what would be audited, and what that costs."""
    account.calls.clear()
    plan = document(run("scan", "--history", history, "--dry-run", "--output", "json"))
    assert plan["jobs"] == {"to_audit": JOBS, "running": 0, "known": 0}
    assert plan["cost_usd"] == Decimal("0.0002")
    assert not history.exists()
    assert all(":List" in call for call in account.calls)
    output = run("scan", "--history", history, "--dry-run").stdout
    assert f"4  training jobs in {ACCOUNT} eu-west-1" in output


def test_jobs_outside_the_period_the_kind_or_the_limit_are_left_out(
    account: LiveAccount, run: Run, history: Path
) -> None:
    """No other job is read."""
    result = document(run("scan", "--history", history, "--since", "2d", "--output", "json"))
    assert result["scan"]["jobs"]["audited"] == 2
    result = document(run("scan", "--history", history, "--kind", "transform", "--output", "json"))
    assert result["scan"]["jobs"] == dict.fromkeys(result["scan"]["jobs"], 0)
    account.calls.clear()
    until = TODAY - timedelta(days=3)
    words = ("--until", str(until), "--limit", "1", "--output", "json")
    assert document(run("scan", "--history", history, *words))["scan"]["jobs"]["audited"] == 1
    assert account.calls.count("sagemaker:DescribeTrainingJob") == 1


def test_a_running_job_is_counted(account: LiveAccount, run: Run, history: Path) -> None:
    """It is not in the ranking."""
    add_training_job(account.session, "bert-9", status="InProgress")
    done = run("scan", "--history", history)
    assert "1  still running: left out" in done.stdout
    assert "4 jobs cost" in done.stdout


LISTS = [f"sagemaker.List{kind.spec.prefix}Jobs" for kind in JobKind]
DESCRIBE, DENIED, STALE = "sagemaker.DescribeTrainingJob", "AccessDeniedException", "set its clock"
REFUSALS: list[tuple[list[str], tuple[Any, ...], int, str, str]] = [
    (
        ["sagemaker.ListProcessingJobs"],
        (DENIED,),
        4,
        "4 jobs cost",
        "sagemaker:ListProcessingJobs ",
    ),
    ([DESCRIBE], (DENIED,), 4, "No audited job", "sagemaker:DescribeTrainingJob "),
    (["sagemaker.ListTags"], (DENIED,), 0, "(no owner)", ""),
    (["cloudwatch.GetMetricData"], (DENIED,), 0, "Allow cloudwatch:GetMetricData", ""),
    ([DESCRIBE], ("ThrottlingException", "slow", 3), 5, "is throttled", "1 of 4 jobs are not"),
    (LISTS, ("ExpiredTokenException",), 4, "", "log in again"),
    (LISTS, ("RequestTimeTooSkewed", "The difference is too large"), 4, "", STALE),
    (LISTS, ("InvalidSignatureException", "Signature expired: 2026 is now earlier"), 4, "", STALE),
    (LISTS, ("InvalidSignatureException", "Signature not yet current: 2026"), 4, "", STALE),
]


def test_an_automl_job_is_scanned_with_what_it_launched(
    account: LiveAccount, run: Run, history: Path
) -> None:
    """Twelve jobs of three kinds are one family, and its own audit adds nothing to their sum."""
    arn = account.automl()
    days = ("--since", "2026-05-01", "--until", "2026-05-31")
    done = run("scan", *days, "--history", history, "--output", "json")
    assert done.exit_code == 0, done.stderr
    [family] = document(done)["ranking"]["families"]
    assert (family["name"], family["jobs"]) == (arn, 12)
    listing = run("history", *days, "--all", "--history", history, "--output", "json")
    kinds = Counter(row["kind"] for row in json.loads(listing.stdout)["rows"])
    assert kinds == {"automl": 1, "processing": 4, "training": 4, "transform": 4}


@pytest.mark.parametrize(("operations", "refusal", "exit_code", "output", "message"), REFUSALS)
def test_an_aws_error_is_reported_and_the_scan_continues(
    account: LiveAccount,
    run: Run,
    history: Path,
    operations: list[str],
    refusal: tuple[Any, ...],
    exit_code: int,
    output: str,
    message: str,
) -> None:
    """It follows the results, with a next step. If no list can be read, nothing is ranked."""
    for operation in operations:
        account.refuse(operation, *refusal)
    done = run("scan", "--history", history)
    assert done.exit_code == exit_code
    assert output in " ".join(done.stdout.split())
    assert bool(done.stdout) is bool(output)
    assert message in done.stderr or message in done.stdout
    if exit_code == 5:
        assert "run the same command again" in done.stderr


@pytest.mark.parametrize("code", ["ServiceUnavailable", "ThrottlingException"])
def test_an_aws_that_does_not_answer_is_one_sentence(
    account: LiveAccount, run: Run, history: Path, code: str
) -> None:
    """It is not reported as an account without jobs, at no cost."""
    for operation in LISTS:
        account.refuse(operation, code)
    done = run("scan", "--history", history, "--region", "eu-west-1", "--region", "us-east-1")
    assert (done.exit_code, done.stdout) == (5, "")
    assert "no list of jobs could be read, so nothing is known about this account: " in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "0 jobs" not in done.stderr


def test_regions_that_are_not_enabled_are_named(
    account: LiveAccount, run: Run, history: Path
) -> None:
    """This is only for --all-regions; it is not an error."""

    def answer(context: Any, **_: Any) -> Any:
        if context["client_region"] == "eu-west-1":
            return None
        body = {"Error": {"Code": "UnrecognizedClientException"}, "ResponseMetadata": {}}
        return AWSResponse("https://aws", 400, {}, None), body

    account.session.events.register_first("before-call.sagemaker", answer)
    done = run("scan", "--history", history, "--all-regions")
    assert done.exit_code == 0
    assert "not enabled for this account: " in done.stderr
    assert "4 jobs cost" in done.stdout


def test_ctrl_c_while_it_lists_ends_the_scan(account: LiveAccount, run: Run, history: Path) -> None:
    """Nothing was audited yet, so nothing is ranked."""

    def press(**_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    account.session.events.register_first("before-call.sagemaker.ListTrainingJobs", press)
    done = run("scan", "--history", history)
    assert (done.exit_code, done.stdout) == (130, "")
    assert "interrupted before the first audit" in done.stderr


def test_a_file_of_another_tool_is_refused(account: LiveAccount, run: Run, tmp_path: Path) -> None:
    """It is not changed, and AWS is not called."""
    another_tool = tmp_path / "other.db"
    another_tool.write_text("not a history, but a text that is long enough to be looked at" * 20)
    account.calls.clear()
    done = run("scan", "--history", another_tool)
    assert (done.exit_code, done.stdout) == (2, "")
    assert account.calls == []
