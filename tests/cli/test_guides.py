"""--guides shows the guides that fit a job or a request, in every view."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sageaudit.domain.guides import load
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.command_line import Result, Run
from tests.fakes.planned import PYTORCH, body
from tests.fakes.schemas import schema_errors

FOLDER = Path(__file__).parent / "guided"
"""Simulated jobs of the template and the failures that AWS's pages on cost describe."""
EARLY, FAILED, NVME = (
    FOLDER / f"{name}.json" for name in ("early-objective", "failed-soon", "volume-on-nvme")
)
WIDTH = 80


def names(guides: Sequence[dict[str, str]]) -> list[str]:
    """Returns the names of guides."""
    return [guide["name"] for guide in guides]


def audit_with_guides(run: Run, path: Path) -> dict[str, Any]:
    """Returns the audit of a recording with its guides, as JSON."""
    done = run("audit", "--recording", path, "--guides", "--output", "json")
    document: dict[str, Any] = done.document()
    return document


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(
            EARLY,
            [
                "subset-of-the-data",
                "pretrained-start",
                "mixed-precision",
                "profile-memory-and-steps",
                "volume-without-effect",
            ],
            id="a run whose objective was reached early",
        ),
        pytest.param(
            FAILED,
            ["local-mode", "pretrained-start", "distribution-not-named", "volume-without-effect"],
            id="a run that failed soon",
        ),
        pytest.param(
            NVME,
            [
                "pretrained-start",
                "mixed-precision",
                "profile-memory-and-steps",
                "volume-without-effect",
            ],
            id="a run with a volume beside its local disk",
        ),
    ],
)
def test_a_job_gets_the_guides_that_fit_it(run: Run, path: Path, expected: list[str]) -> None:
    """The expected guides were written down before the command was run."""
    assert names(audit_with_guides(run, path)["guides"]) == expected


def test_json_has_guides_only_if_they_are_asked_for(run: Run) -> None:
    """With guides it is still valid by the audit's schema."""
    without = run("audit", "--recording", NVME, "--output", "json").document()
    with_them = audit_with_guides(run, NVME)
    assert "guides" not in without
    assert schema_errors("audit", with_them) == []
    assert schema_errors("audit", with_them | {"guides": [{"name": "x"}]})
    assert {key: value for key, value in with_them.items() if key != "guides"} == without


def test_no_guide_is_printed_unless_it_is_asked_for(run: Run) -> None:
    """Guides are not findings."""
    text = run("audit", "--recording", EARLY).stdout
    assert not any(guide.name in text for guide in load())


def test_a_guide_is_readable_in_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an address to copy may be longer."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    text = run("audit", "--recording", EARLY, "--guides").stdout
    output = text.partition("Guides: advice without dollars\n")[2]
    assert output.startswith("  subset-of-the-data\n    The objective was nearly reached early")
    lines = [line for line in output.splitlines() if "https://" not in line]
    assert max(map(len, lines)) <= WIDTH


def test_a_job_that_no_guide_fits_says_so(run: Run, tmp_path: Path) -> None:
    """It is a short CPU job with its own image."""
    recording = json.loads(NVME.read_text())
    describe = recording["describe"]
    describe["AlgorithmSpecification"]["TrainingImage"] = "trainer:7"
    describe["ResourceConfig"]["InstanceType"] = "ml.m5.large"
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"describe": describe}))
    done = run("audit", "--recording", path, "--guides")
    assert "No guide applies to this job." in done.stdout


def test_the_history_shows_the_same_guides(run: Run, tmp_path: Path) -> None:
    """It stores the job's properties, so that `show` prints what `audit` printed."""
    history = tmp_path / "h.db"
    audited = audit_with_guides(run, EARLY)
    assert run("audit", "--recording", EARLY, "--history", history).exit_code == 0
    words = ("show", "early", "--history", history, "--guides")
    output = run(*words, "--output", "json").document()
    assert output["guides"] == audited["guides"]
    assert "\n  subset-of-the-data\n" in run(*words).stdout


def test_the_page_of_a_job_has_them_in_a_closed_fold(run: Run, tmp_path: Path) -> None:
    """This holds for recordings and histories; the page of an account has none."""
    history, page = tmp_path / "h.db", tmp_path / "page.html"
    run("audit", "--recording", EARLY, "--history", history)

    def text(*words: object) -> str:
        assert run("report", *words, "-o", page).exit_code == 0
        return page.read_text(encoding="utf-8")

    for words in (["--recording", EARLY], ["early", "--history", history]):
        fold = re.search(r'<section id="guides">(.*?)</section>', text(*words), re.DOTALL)
        assert fold is not None
        assert '<details class="data"><summary>5 guides</summary>' in fold[1]
        assert "<h2>Guides: advice without dollars</h2>" in fold[1]
        assert "The objective was nearly reached early" in fold[1]
    account = text("--history", history, "--since", "4000d")
    assert "Guides:" not in account


def check_request(run: Run, folder: Path, changes: dict[str, Any], *words: object) -> Result:
    """Returns the check of a deep-learning request with these changes."""
    image = {"AlgorithmSpecification.TrainingImage": PYTORCH}
    path = folder / "request.json"
    path.write_text(json.dumps(body(JobKind.TRAINING, image | changes)))
    return run("check", path, "--guides", *words)


def test_a_request_gets_guides_before_it_runs(run: Run, tmp_path: Path) -> None:
    """It asks for two hosts with a named method, on GPUs with local storage."""
    changes = {
        "AlgorithmSpecification.TrainingInputMode": "File",
        "ResourceConfig": {
            "InstanceType": "ml.p4d.24xlarge",
            "InstanceCount": 2,
            "VolumeSizeInGB": 100,
        },
        "HyperParameters": {
            "sagemaker_distributed_dataparallel_enabled": "true",
            "sagemaker_training_compiler_enabled": "true",
            "bf16": "true",
        },
    }
    done = check_request(run, tmp_path, changes, "--output", "json")
    [job] = done.document()["jobs"]
    assert schema_errors("check", done.document()) == []
    assert names(job["guides"]) == [
        "data-source",
        "pretrained-start",
        "first-gpu",
        "training-compiler",
        "smddp",
        "volume-without-effect",
        "network-isolation",
    ]
    text = check_request(run, tmp_path, changes).stdout
    assert "\n  smddp\n    The request names the SageMaker distributed data parallelism" in text


def test_a_request_that_follows_a_guide_gets_it_no_more(run: Run, tmp_path: Path) -> None:
    """It is isolated, starts from a trained model, and streams its data."""
    changes = {
        "EnableNetworkIsolation": True,
        "HyperParameters": {"model_name_or_path": "bert-base-uncased", "bf16": "true"},
        "AlgorithmSpecification.TrainingInputMode": "FastFile",
        "ResourceConfig": {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 1},
    }
    [job] = check_request(run, tmp_path, changes, "--output", "json").document()["jobs"]
    assert job["guides"] == []
    assert "No guide applies" in check_request(run, tmp_path, changes).stdout


def test_annotations_have_only_findings(run: Run, tmp_path: Path) -> None:
    """A guide does not belong to a line of a file."""
    done = check_request(run, tmp_path, {}, "--output", "github")
    assert done.exit_code == 2
    assert "--guides cannot be used with --output github" in done.stderr
