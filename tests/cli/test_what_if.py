"""`sageaudit what-if`: figures, refusals and exit codes."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command_line import Run
from tests.fakes.jobs import training_answer
from tests.fakes.live_account import DATA, LiveAccount

UNFINISHED = DATA / "processing-070-inprogress.json"
HOST = "train-vision/algo-1"
START = "2026-05-20T10:00:00Z"


@pytest.fixture
def what_if(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs `sageaudit what-if` on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "140")
    return partial(run, "what-if")


def recorded_job(folder: Path, use: dict[str, float], **changes: Any) -> Path:
    """Returns an hour on one ml.g5.2xlarge (8 vCPU, 32 GiB, one A10G), all of it Training, evenly
    used.
    """
    answer = training_answer(
        ResourceConfig={"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 50},
        SecondaryStatusTransitions=[
            {"Status": "Training", "StartTime": START, "EndTime": "2026-05-20T11:00:00Z"}
        ],
        **changes,
    )
    cores = {"CPUUtilization": 8}
    sums = {metric: value * cores.get(metric, 1) for metric, value in use.items()}
    series = [
        {"host": HOST, "metric": metric, "start": START, "values": [value] * 60}
        for metric, value in sums.items()
    ]
    path = folder / "job.json"
    path.write_text(json.dumps({"describe": answer, "metrics": {"period_s": 60, "series": series}}))
    return path


LITTLE = {
    "CPUUtilization": 20.0,
    "MemoryUtilization": 20.0,
    "GPUUtilization": 10.0,
    "GPUMemoryUtilization": 20.0,
}


def candidates(what_if: Run, path: Path, *words: str) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Returns the document, and its candidates by their type."""
    document = what_if("--recording", path, *words, "--output", "json").document()
    return document, {row["type"]: row for row in document["candidates"]}


def test_candidates_are_sorted_by_cost_and_refused_ones_are_last(
    what_if: Run, tmp_path: Path
) -> None:
    """The job costs 1 h at $1.515. ml.g5.xlarge fits its 1.9 vCPU and 7.7 GiB, at $1.408.

    All 224 other types of the catalogue are there, refused types with their constraint.
    """
    document, types = candidates(what_if, recorded_job(tmp_path, LITTLE))
    assert document["current"]["usd"] == 1.515
    needs = {name: document["needs"][name] for name in ("vcpu", "memory_gib", "gpu_busy_percent")}
    assert needs == {"vcpu": 1.92, "memory_gib": 7.68, "gpu_busy_percent": 10}
    row = types["ml.g5.xlarge"]
    assert (row["fits"], row["hours"], row["usd"]) == (True, 1, 1.408)
    assert (row["saving_usd"], row["saving_range_usd"]) == (0.107, None)
    fits = [row["fits"] for row in document["candidates"]]
    costs = [row["usd"] for row in document["candidates"] if row["fits"]]
    assert (len(fits), fits, costs) == (224, sorted(fits, reverse=True), sorted(costs))
    assert types["ml.m5.2xlarge"]["constraint"] == "GPU count"
    assert types["ml.trn1.2xlarge"]["constraint"] in {"accelerator", "no price"}


def test_only_the_named_types_are_candidates(what_if: Run, tmp_path: Path) -> None:
    """They are in the order of their cost."""
    path = recorded_job(tmp_path, LITTLE)
    _, types = candidates(what_if, path, "--type", "ml.g5.4xlarge", "--type", "ml.g5.xlarge")
    assert [*types] == ["ml.g5.xlarge", "ml.g5.4xlarge"]


def test_the_table_shows_the_cheapest_and_counts_the_refused(what_if: Run, tmp_path: Path) -> None:
    """It shows at most fifteen that fit, each with its reason."""
    output = what_if("--recording", recorded_job(tmp_path, LITTLE)).stdout
    for message in (
        "It ran on 1 x ml.g5.2xlarge: 1 h billed, $1.52",
        "Needs: 1.9 vCPU, 7.7 GiB of memory",
        "ml.g5.xlarge",
        "-$0.11 (7%)",
        "Does not fit: ",
    ):
        assert message in output
    assert output.count("GPU count") == 1


def test_types_that_fit_and_have_no_price_are_named(what_if: Run, tmp_path: Path) -> None:
    """They do not mean that no other type fits."""
    path = recorded_job(tmp_path, LITTLE | {"GPUUtilization": 0.0})
    _, types = candidates(what_if, path)
    named = [row for row in types.values() if row["feasible_unpriced"]]
    assert named
    assert all(row["constraint"] == "no price" and not row["fits"] for row in named)
    output = what_if("--recording", path).stdout
    assert f"Fits, but has no known price: {named[0]['type']}" in output


def test_a_training_plan_saves_no_cash(what_if: Run, tmp_path: Path) -> None:
    """It is prepaid: this is printed once, and every candidate costs more."""
    plan = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p"
    path = recorded_job(tmp_path, LITTLE)
    document = json.loads(path.read_text())
    document["describe"]["ResourceConfig"]["TrainingPlanArn"] = plan
    path.write_text(json.dumps(document))
    printed, types = candidates(what_if, path)
    assert printed["current"]["usd"] == 0
    assert "prepaid" in printed["notes"][0]
    assert types["ml.g5.xlarge"]["saving_usd"] == -1.408


def test_an_unfinished_job_is_marked(what_if: Run) -> None:
    """No figure is final; the exit code is 0, since the answer is known."""
    done = what_if("--recording", UNFINISHED)
    assert done.exit_code == 0
    assert "has not ended" in done.stdout
    printed, _ = candidates(what_if, UNFINISHED)
    assert (printed["candidates"], printed["needs"]) == ([], None)
    assert "has not ended" in printed["impossible"]


def on_another_type(folder: Path, name: str) -> Path:
    """Returns the hour on another type."""
    path = recorded_job(folder, {"CPUUtilization": 40.0, "MemoryUtilization": 40.0})
    path.write_text(path.read_text().replace("ml.g5.2xlarge", name))
    return path


def test_candidates_at_an_estimated_rate_are_marked(what_if: Run, tmp_path: Path) -> None:
    """The table says how the rate was estimated; known rates have no mark."""
    path = on_another_type(tmp_path, "ml.m7i.2xlarge")
    document, types = candidates(what_if, path)
    guess, known = types["ml.m8i.2xlarge"], types["ml.m7i.4xlarge"]
    assert (guess["estimated"], guess["price_kind"]) == (True, "estimate")
    assert guess["price_note"] == (
        "SageMaker's rate for ml.m8i.2xlarge is not known here; estimated from EC2's rate x 1.20."
    )
    assert (known["estimated"], known["price_kind"]) == (False, "list")
    assert (document["current"]["estimated"], document["current"]["missing"]) == ([], [])
    output = what_if("--recording", path).stdout
    row = next(line for line in output.splitlines() if line.startswith("ml.m8i.2xlarge"))
    assert (row.count("about $"), row.count("about +$")) == (1, 1)
    assert "SageMaker may not offer it in this region" in " ".join(output.split())
    row = next(line for line in output.splitlines() if line.startswith("ml.m7i.4xlarge"))
    assert "about" not in row


def test_a_live_job_is_described_measured_and_resized(what_if: Run, account: LiveAccount) -> None:
    """It is named, and all calls only read.

    No price list responds here, so packaged prices are used.
    """
    job = account.add(DATA / "profiled-046-p3-2xlarge.json")
    account.calls.clear()
    document = what_if(job.name, "--region", "us-east-1", "--output", "json").document()
    assert document["job"]["arn"] == job.arn
    assert document["current"]["instances"] == "1 x ml.p3.2xlarge"
    assert len(document["candidates"]) == 224
    names = [call.partition(":")[2] for call in account.calls]
    assert all(name.startswith(("Describe", "List", "Get")) for name in names)
