"""`sageaudit record`: a file whose audit is that of the live job, without secrets, for sharing."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from moto import mock_aws

from local.recorded import RecordedJob, of_file
from local.sagemaker import RecordedSageMaker, put_series
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.cli.support.account import live
from tests.fakes.command_line import Run
from tests.fakes.price_lists import PricingClient, product

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
PROCESSING = DATA / "processing-067-failed.json"
WITH_METRICS = DATA / "profiled-053-g4dn-xlarge.json"
SET = DATA / "tuning-set-bayesian-221019-1807.json"
TUNING = DATA / "tuning-013-completed.json"
PASSWORD = "hunter2-Tr0ub4dor"


class _Clock(datetime):
    """A day on which CloudWatch still has the recorded jobs' points."""

    moment = datetime(2022, 10, 30, 12, tzinfo=UTC)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.moment.astimezone(tz or UTC)


class Account:
    """A live account with recorded jobs."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.jobs = RecordedSageMaker(session)

    def add(self, path: Path, **changes: Any) -> RecordedJob:
        """Puts one recorded job into the account, with other fields in its answer."""
        [job] = of_file(path)
        job = RecordedJob(job.kind, {**job.describe, **changes}, {"owner": "ana-belen"}, job.series)
        self.jobs.add(job)
        put_series(self.session, job)
        return job

    def refuse(self, operation: str, code: str) -> None:
        """Answers one operation with an error."""
        body = {"Error": {"Code": code, "Message": "refused"}, "ResponseMetadata": {}}
        answer = (AWSResponse("https://aws", 400, {}, None), body)
        self.session.events.register_first(f"before-call.{operation}", lambda **_: answer)

    def tuning(self) -> str:
        """A tuning job with its five training jobs; its ARN."""
        children = list(of_file(SET))
        for child in children:
            self.jobs.add(child)
            put_series(self.session, child)
        parent = str(children[0].describe["TuningJobArn"])
        own = self.add(
            TUNING,
            HyperParameterTuningJobName=parent.rpartition("/")[2],
            HyperParameterTuningJobArn=parent,
            CreationTime=min(one.describe["TrainingStartTime"] for one in children),
            HyperParameterTuningEndTime=max(one.describe["TrainingEndTime"] for one in children),
            TrainingJobStatusCounters={"Completed": len(children)},
        )
        assert own.arn == parent
        rows = [{"TrainingJobName": child.name, "TrainingJobArn": child.arn} for child in children]
        page = {"TrainingJobSummaries": rows, "ResponseMetadata": {}}
        self.session.events.register_first(
            "before-call.sagemaker.ListTrainingJobsForHyperParameterTuningJob",
            lambda **_: (AWSResponse("https://aws", 200, {}, None), page),
        )
        return parent


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """One account, the session that every `boto3.Session()` gives, and a clock that stands."""
    with mock_aws():
        session = boto3.Session(region_name="us-east-1")
        monkeypatch.setattr(boto3, "Session", lambda **_: session)
        monkeypatch.setattr(live, "datetime", _Clock)
        yield Account(session)


def audits(run: Run, arn: str, path: Path) -> tuple[Any, Any]:
    """The live audit of a job, and that of its recording, which is made."""
    live_one = run("audit", arn, "--output", "json").document(parse_float=Decimal)
    recorded = run("record", arn, "-o", path)
    assert recorded.exit_code == 0, recorded.stderr
    assert "differs" not in recorded.stderr
    again = run("audit", "--recording", path, "--output", "json").document(parse_float=Decimal)
    return live_one, again


@pytest.mark.parametrize(
    "file",
    [FAILED, PROCESSING, WITH_METRICS, DATA / "transform-136-completed.json"],
    ids=lambda path: path.stem,
)
def test_the_audit_of_the_file_is_that_of_the_live_job(
    account: Account, run: Run, tmp_path: Path, file: Path
) -> None:
    """Every key, metrics and prices included."""
    live_one, again = audits(run, account.add(file).arn, tmp_path / "job.json")
    assert again == live_one
    assert live_one["bill"]["total_usd"] is not None


def test_a_tuning_job_is_recorded_with_its_training_jobs(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """One file; its audit has the children and the sums of the live one."""
    live_one, again = audits(run, account.tuning(), tmp_path / "tuning.json")
    assert again == live_one
    assert len(again["children"]) == 5


def test_a_job_that_still_runs_is_audited_as_of_the_moment_it_was_read(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """Its bill so far, and when to audit it again."""
    job = account.add(DATA / "transform-130-inprogress.json")
    live_one, again = audits(run, job.arn, tmp_path / "job.json")
    assert again == live_one
    assert (again["audit"]["settled"], again["audit"]["due_at"]) == (False, "2022-10-30T13:00:00Z")


def test_metrics_that_are_not_there_yet_are_late_in_the_file_too(
    account: Account, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that ended minutes ago: its audit is provisional, and says to audit it again."""
    monkeypatch.setattr(_Clock, "moment", datetime(2022, 10, 27, 12, 10, tzinfo=UTC))
    [job] = of_file(WITH_METRICS)
    account.jobs.add(job)
    live_one, again = audits(run, job.arn, tmp_path / "job.json")
    assert again == live_one
    assert again["audit"]["settled"] is False
    assert "Audit it again in some minutes." in " ".join(again["not_judged"])


def test_what_was_denied_is_in_the_audit_of_the_file_too(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """Tags and metrics that were not readable are no gap of the recording."""
    job = account.add(WITH_METRICS)
    account.refuse("sagemaker.ListTags", "AccessDeniedException")
    account.refuse("cloudwatch.GetMetricData", "AccessDenied")
    live_one, again = audits(run, job.arn, tmp_path / "job.json")
    assert again == live_one
    assert "sagemaker:ListTags" in " ".join(again["audit"]["coverage"]["missing"])


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Price List API that has one type, at twice its packaged rate."""
    products = [product("ml.g4dn.xlarge", "1.4720000000", region="us-east-1")]
    client = PricingClient(products)
    monkeypatch.setattr(live, "PriceList", lambda _: PriceList(lambda _: client))


@pytest.mark.usefixtures("listed")
def test_the_prices_of_that_day_are_in_the_file(account: Account, run: Run, tmp_path: Path) -> None:
    """An audit of it needs no price list and has the rates of the live audit."""
    live_one, again = audits(run, account.add(WITH_METRICS).arn, tmp_path / "job.json")
    assert again == live_one
    assert {line["price_source"] for line in again["bill"]["lines"]} >= {"Price List API"}
    what_if = run("what-if", "--recording", tmp_path / "job.json", "--output", "json")
    today = what_if.document(parse_float=Decimal)["today"]
    assert today["usd"] == live_one["bill"]["total_usd"]


def test_two_files_of_one_salt_share_their_pseudonyms(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """And of two runs without one, no pseudonym is the same."""
    arn, names = account.add(WITH_METRICS).arn, []
    for number, salt in enumerate((("--salt", "s3cret"), ("--salt", "s3cret"), (), ())):
        path = tmp_path / f"{number}.json"
        assert run("record", arn, "--anonymize", "-o", path, *salt).exit_code == 0
        names.append(json.loads(path.read_text(encoding="utf-8"))["describe"]["TrainingJobName"])
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_every_command_that_takes_a_recording_reads_it(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """Named and anonymised."""
    arn = account.add(WITH_METRICS).arn
    for more in ((), ("--anonymize",)):
        path = tmp_path / f"{len(more)}" / "job.json"
        path.parent.mkdir()
        assert run("record", arn, "-o", path, *more).exit_code == 0
        number = json.loads(path.read_text(encoding="utf-8"))["account"]
        history = tmp_path / f"{len(more)}.db"
        for words in (
            ("audit", "--recording", path),
            ("what-if", "--recording", path),
            ("account", number, "--recording", path),
            ("scan", "--recordings", path.parent, "--history", history),
        ):
            done = run(*words)
            assert done.exit_code == 0, done.stderr


def test_secrets_are_not_written_and_what_rules_read_of_them_is(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """Hyperparameters and environment leave their hints; the audit is the same."""
    job = account.add(
        WITH_METRICS,
        HyperParameters={"api_key": f'"{PASSWORD}"', "fp16": '"true"', "sagemaker_program": "a.py"},
        Environment={"TOKEN": PASSWORD},
        FailureReason=f"died with {PASSWORD}",
    )
    live_one, again = audits(run, job.arn, tmp_path / "job.json")
    assert again == live_one
    text = (tmp_path / "job.json").read_text(encoding="utf-8")
    assert PASSWORD not in text
    derived = json.loads(text)["describe"]["Derived"]
    assert derived["Hints"]["mixed_precision"] is True
    assert derived["EntryPoint"] == "a.py"


def test_an_anonymised_file_has_the_same_dollars_and_no_name(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """Of the job, its account, bucket and owner; AWS's own image stays."""
    job = account.add(WITH_METRICS)
    path = tmp_path / "shared.json"
    done = run("record", job.arn, "--anonymize", "-o", path)
    assert (done.exit_code, "differs" in done.stderr) == (0, False), done.stderr
    text = path.read_text(encoding="utf-8")
    assert not [name for name in (job.name, "111122223333", "ana-belen") if name in text]
    live_one = run("audit", job.arn, "--output", "json").document(parse_float=Decimal)
    again = run("audit", "--recording", path, "--output", "json").document(parse_float=Decimal)
    assert again["bill"]["total_usd"] == live_one["bill"]["total_usd"]
    assert again["avoidable_usd"] == live_one["avoidable_usd"]
    assert [one["rule"] for one in again["findings"]] == [
        one["rule"] for one in live_one["findings"]
    ]


def test_the_file_is_for_its_owner_only_and_never_replaced_unasked(
    account: Account, run: Run, tmp_path: Path
) -> None:
    """Mode 0600; a second run exits with 2 and leaves the file as it is, --force replaces it."""
    job, path = account.add(FAILED), tmp_path / "job.json"
    path.write_text("mine", encoding="utf-8")
    refused = run("record", job.arn, "-o", path)
    assert (refused.exit_code, path.read_text(encoding="utf-8")) == (2, "mine")
    assert "--force" in refused.stderr
    assert run("record", job.arn, "-o", path, "--force").exit_code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["job.json"]


def test_a_dash_prints_the_recording(account: Account, run: Run) -> None:
    """And writes no file."""
    job = account.add(FAILED)
    done = run("record", job.arn, "-o", "-")
    assert done.document()["describe"]["TrainingJobName"] == job.name
    assert "wrote" not in done.stderr


def test_without_a_name_the_file_is_named_after_the_job(
    account: Account, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An anonymised one after the pseudonym."""
    monkeypatch.chdir(tmp_path)
    job = account.add(FAILED)
    assert run("record", job.arn).exit_code == 0
    assert run("record", job.arn, "--anonymize").exit_code == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert f"{job.name}.json" in names
    [other] = [name for name in names if name != f"{job.name}.json"]
    assert other.startswith("job-")


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("no-such-job", "--region", "us-east-1"), 3, "there is no job no-such-job"),
        ((), 2, "name one job, or give its file"),
        (("x", "--recording", "y"), 2, "name one job, or give its file"),
        (("--recording", "/no/such.json"), 2, "/no/such.json: cannot be read"),
        (("x", "--salt", "s"), 2, "--salt is for --anonymize"),
        (("x", "--anonymize", "--salt", " "), 2, "--salt is empty"),
        (("x", "-o", "/no/such/folder/job.json"), 2, "/no/such/folder"),
    ],
)
def test_bad_input_is_one_sentence_and_its_code(
    run: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    """Before anything is asked of AWS, where that is possible."""
    done = run("record", *words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr


@pytest.mark.parametrize("file", [WITH_METRICS, SET], ids=lambda path: path.stem)
def test_a_file_is_anonymised_too(run: Run, tmp_path: Path, file: Path) -> None:
    """Of a job that is gone, or as the AWS CLI printed it; the dollars stay."""
    shared = tmp_path / "shared.json"
    done = run("record", "--recording", file, "--anonymize", "-o", shared)
    assert (done.exit_code, "differs" in done.stderr) == (0, False), done.stderr
    before, after = (
        run("audit", "--recording", path, "--output", "json").document(parse_float=Decimal)
        for path in (file, shared)
    )
    assert after["bill"]["total_usd"] == before["bill"]["total_usd"]
    assert before["job"]["name"] not in shared.read_text(encoding="utf-8")
