"""`sageaudit record` writes a file whose audit equals that of the live job, without secrets."""

import json
import stat
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local.recorded import jobs_in_file
from sageaudit.adapters.prices.price_list import PriceList
from sageaudit.workflows import live
from tests.fakes.automl import candidates
from tests.fakes.command_line import Run
from tests.fakes.live_account import DATA, SET, LiveAccount
from tests.fakes.price_lists import PricingClient, product

FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
PROCESSING = DATA / "processing-067-failed.json"
WITH_METRICS = DATA / "profiled-053-g4dn-xlarge.json"
RUNNING = DATA / "transform-130-inprogress.json"
PASSWORD = "hunter2-Tr0ub4dor"


class _Clock(datetime):
    """A day on which CloudWatch still has the recorded jobs' points."""

    moment = datetime(2022, 10, 30, 12, tzinfo=UTC)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.moment.astimezone(tz or UTC)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "datetime", _Clock)


def audits(run: Run, arn: str, path: Path) -> tuple[Any, Any]:
    """Records a job, and returns its live audit and the audit of the recording."""
    live_one = run("audit", arn, "--output", "json").document(parse_float=Decimal)
    recorded = run("record", arn, "-o", path)
    assert recorded.exit_code == 0, recorded.stderr
    again = run("audit", "--recording", path, "--output", "json").document(parse_float=Decimal)
    return live_one, again


@pytest.mark.parametrize(
    ("file", "denied"),
    [
        (FAILED, False),
        (PROCESSING, False),
        (WITH_METRICS, False),
        (WITH_METRICS, True),
        (DATA / "transform-136-completed.json", False),
        (RUNNING, False),
    ],
)
def test_the_audit_of_the_file_is_that_of_the_live_job(
    account: LiveAccount, run: Run, tmp_path: Path, file: Path, denied: bool
) -> None:
    """Every key is equal, with metrics and prices; denied reads are not missing in the recording.

    For a running job, this is its bill so far and when to audit it again.
    """
    arn = account.add(file).arn
    if denied:
        account.refuse("sagemaker.ListTags", "AccessDeniedException")
        account.refuse("cloudwatch.GetMetricData", "AccessDenied")
    live_one, again = audits(run, arn, tmp_path / "job.json")
    assert again == live_one
    assert ("sagemaker:ListTags" in " ".join(again["audit"]["coverage"]["missing"])) is denied
    running = file is RUNNING
    assert again["audit"]["due_at"] == ("2022-10-30T13:00:00Z" if running else None)
    assert (again["audit"]["settled"], again["bill"]["total_usd"] is None) == (not running, running)


def test_a_tuning_job_is_recorded_with_its_training_jobs(
    account: LiveAccount, run: Run, tmp_path: Path
) -> None:
    """One file has them all; its audit has the children and sums of the live one."""
    live_one, again = audits(run, account.tuning(), tmp_path / "tuning.json")
    assert again == live_one
    assert len(again["children"]) == 5


def test_an_automl_job_is_recorded_with_its_jobs_of_all_kinds(
    account: LiveAccount, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleted job is left out of both, and reported."""
    monkeypatch.setattr(_Clock, "moment", datetime(2026, 5, 20, tzinfo=UTC))
    arn = account.automl()
    live_one, again = audits(run, arn, tmp_path / "automl.json")
    assert again == live_one
    assert len(again["children"]) == 12
    assert {child["job"]["kind"] for child in again["children"]} == {
        "processing",
        "training",
        "transform",
    }
    assert again["rollup"]
    assert again["job"]["kind"] == "automl"
    assert again["bill"]["total_usd"] == sum(
        child["bill"]["total_usd"] for child in again["children"]
    )


def test_a_job_of_an_automl_job_that_was_deleted_is_missing_from_the_sum(
    account: LiveAccount, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other jobs are summed, and the recording says so, also if it is anonymized."""
    monkeypatch.setattr(_Clock, "moment", datetime(2026, 5, 20, tzinfo=UTC))
    arn = account.automl()
    gone = candidates()[4]
    account.jobs.delete(gone)
    done = run("audit", arn, "--output", "json")
    audit = done.document(parse_float=Decimal)
    assert len(audit["children"]) == 11
    assert "1 of 12 jobs are not audited" in audit["bill"]["missing"]
    assert f"{gone.name} was deleted" in done.stderr
    file, shared = tmp_path / "automl.json", tmp_path / "shared.json"
    live_one, again = audits(run, arn, file)
    assert again == live_one
    run("record", "--recording", str(file), "--anonymize", "-o", str(shared))
    assert gone.name not in shared.read_text("utf-8")
    read = run("audit", "--recording", str(shared), "--output", "json")
    assert read.document(parse_float=Decimal)["bill"]["missing"] == audit["bill"]["missing"]


def test_late_metrics_are_late_in_the_file_too(
    account: LiveAccount, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ended minutes ago: its audit is provisional, and says to audit it again."""
    monkeypatch.setattr(_Clock, "moment", datetime(2022, 10, 27, 12, 10, tzinfo=UTC))
    [job] = jobs_in_file(WITH_METRICS)
    account.jobs.add(job)
    live_one, again = audits(run, job.arn, tmp_path / "job.json")
    assert again == live_one
    assert again["audit"]["settled"] is False
    assert "Audit it again in some minutes." in " ".join(again["not_judged"])


@pytest.fixture
def price_list_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the Price List API return one type, at twice its packaged rate."""
    products = [product("ml.g4dn.xlarge", "1.4720000000", region="us-east-1")]
    client = PricingClient(products)
    monkeypatch.setattr(live, "PriceList", lambda _: PriceList(lambda _: client))


@pytest.mark.usefixtures("price_list_api")
def test_the_prices_of_that_day_are_in_the_file(
    account: LiveAccount, run: Run, tmp_path: Path
) -> None:
    """Its audit needs no price list and has the rates of the live audit."""
    live_one, again = audits(run, account.add(WITH_METRICS).arn, tmp_path / "job.json")
    assert again == live_one
    assert {line["price_source"] for line in again["bill"]["lines"]} >= {"Price List API"}
    what_if = run("what-if", "--recording", tmp_path / "job.json", "--output", "json")
    current = what_if.document(parse_float=Decimal)["current"]
    assert current["usd"] == live_one["bill"]["total_usd"]


def test_two_files_have_different_pseudonyms(
    account: LiveAccount, run: Run, tmp_path: Path
) -> None:
    """The files cannot be linked with each other."""
    arn, names = account.add(WITH_METRICS).arn, set()
    for path in (tmp_path / "a.json", tmp_path / "b.json"):
        assert run("record", arn, "--anonymize", "-o", path).exit_code == 0
        names.add(json.loads(path.read_text(encoding="utf-8"))["describe"]["TrainingJobName"])
    assert len(names) == 2


def test_every_command_that_takes_a_recording_reads_it(
    account: LiveAccount, run: Run, tmp_path: Path
) -> None:
    """This holds for plain and anonymized recordings."""
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
            ("scan", "--recordings", path.parent, "--history", history),
            ("account", number, "--history", history, "--since", "2017-01-01"),
        ):
            done = run(*words)
            assert done.exit_code == 0, done.stderr


def test_only_the_owner_reads_the_file_and_force_replaces_it(
    account: LiveAccount, run: Run, tmp_path: Path
) -> None:
    """Its mode is 0600. A second run exits with 2 before any call; --force replaces the file."""
    job, path = account.add(FAILED), tmp_path / "job.json"
    path.write_text("mine", encoding="utf-8")
    refused = run("record", job.arn, "-o", path)
    assert (refused.exit_code, path.read_text(encoding="utf-8")) == (2, "mine")
    assert "--force" in refused.stderr
    assert account.calls == []
    assert run("record", job.arn, "-o", path, "--force").exit_code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["job.json"]


def test_a_dash_prints_the_recording(account: LiveAccount, run: Run) -> None:
    """It writes no file."""
    job = account.add(FAILED)
    done = run("record", job.arn, "-o", "-")
    assert done.document()["describe"]["TrainingJobName"] == job.name
    assert "wrote" not in done.stderr


def test_without_a_name_the_file_is_named_after_the_job(
    account: LiveAccount, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An anonymized file is named after the pseudonym."""
    monkeypatch.chdir(tmp_path)
    job = account.add(FAILED)
    assert run("record", job.arn).exit_code == 0
    assert run("record", job.arn, "--anonymize").exit_code == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert f"{job.name}.json" in names
    [second_file] = [name for name in names if name != f"{job.name}.json"]
    assert second_file.startswith("job-")


@pytest.mark.parametrize("file", [WITH_METRICS, SET], ids=lambda path: path.stem)
def test_a_file_is_anonymised_too(run: Run, tmp_path: Path, file: Path) -> None:
    """It is of a deleted job, or printed by the AWS CLI; the dollars stay the same."""
    shared = tmp_path / "shared.json"
    done = run("record", "--recording", file, "--anonymize", "-o", shared)
    assert done.exit_code == 0, done.stderr
    before, after = (
        run("audit", "--recording", path, "--output", "json").document(parse_float=Decimal)
        for path in (file, shared)
    )
    assert after["bill"]["total_usd"] == before["bill"]["total_usd"]
    assert before["job"]["name"] not in shared.read_text(encoding="utf-8")
