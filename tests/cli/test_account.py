"""`sageaudit account` judges the runs of an account in a history."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sageaudit.structs import replace
from tests.fakes.command_line import Run
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import Plot, training

IDLE_CPU = Plot("ml.m5.4xlarge", one_host(Doing(90, cores=3.0, gib=24, jitter=0.2)), name="small")
ACCOUNT = ("account", "111122223333")


@pytest.fixture
def history(run: Run, tmp_path: Path) -> Path:
    """Returns four runs; the recent ones have a known rate, an estimated rate and no metrics."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    for number, days_ago in enumerate((2, 3, 4, 80)):
        day = datetime.now(UTC).replace(microsecond=0) - timedelta(days=days_ago)
        job = training(replace(IDLE_CPU, begin=day, name=f"small-{number}"), number)
        text = json.dumps({**job, "metrics": {}} if number == 2 else job)
        text = text.replace("ml.m5.4xlarge", "ml.m8i.4xlarge") if number == 1 else text
        (folder / f"{number}.json").write_text(text)
    path = tmp_path / "history.db"
    assert run("scan", "--recordings", folder, "--history", path).exit_code == 0
    return path


def test_an_account_is_judged_by_its_runs(run: Run, history: Path) -> None:
    """Each account rule answers for these days only; uncertain runs are counted."""
    words = (*ACCOUNT, "--history", history)
    read = run(*words, "--output", "json").document()
    assert (read["account"], read["days"], read["runs"]) == ("111122223333", 31, 3)
    answers = [
        row["rule"] for group in ("findings", "unknown", "not_applicable") for row in read[group]
    ]
    assert sorted([*answers, *read["clear"]]) == ["commitment-candidate"]
    assert read["runs_judged"] == {"yes": 2, "partly": 0, "no": 1, "unknown": 0}
    assert (read["runs_at_estimated_rates"], read["runs_with_incomplete_bills"]) == (1, 0)
    output = run(*words).stdout
    assert "1 run could not be judged." in output
    assert "1 run billed at an estimated rate" in output
    wider = run(*words, "--since", "90d", "--output", "json").document()
    assert wider["runs"] == 4


def test_runs_of_recordings_that_name_no_account_are_those_of_the_account_unknown(
    run: Run, tmp_path: Path
) -> None:
    yesterday = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
    job = training(replace(IDLE_CPU, begin=yesterday), 1)
    del job["account"], job["describe"]["TrainingJobArn"]
    (tmp_path / "job.json").write_text(json.dumps(job))
    path = tmp_path / "history.db"
    assert run("scan", "--recordings", tmp_path, "--history", path).exit_code == 0
    read = run("account", "unknown", "--history", path, "--output", "json").document()
    assert (read["account"], read["runs"]) == ("unknown", 1)
