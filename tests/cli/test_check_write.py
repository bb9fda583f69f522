"""`sageaudit check --write` puts fixes into the file of a request."""

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sageaudit.domain.job.kinds import JobKind
from sageaudit.workflows.check.comparison import counted_findings
from sageaudit.workflows.check_files import check_file
from sageaudit.workflows.check_write import plan_fixes
from tests.cli.test_check import CHECKS, OLD_TYPE, SPOT, no_user_settings, request  # noqa: F401
from tests.fakes.command_line import Run
from tests.fakes.planned import body
from tests.labelled.before_run.cases import CASES

JSON_CASES = [case for case in CASES if case.form != "terraform"]


def test_fixes_are_written_after_a_diff(run: Run, tmp_path: Path) -> None:
    """The exit code and the last line are about the changed file."""
    path = request(tmp_path, SPOT | OLD_TYPE | {"StoppingCondition.MaxRuntimeInSeconds": 36000})
    before = path.read_text("utf-8")
    done = run("check", path, "--write", "--yes", "--fail-on", "high")
    assert done.exit_code == 0, done.stderr
    assert '-  "InstanceType": "ml.p3.2xlarge",' in done.stdout
    assert '+  "InstanceType": "ml.g6e.2xlarge",' in done.stdout
    assert f"{path}: written." in done.stderr
    changed = json.loads(path.read_text("utf-8"))
    expected = json.loads(before)
    expected["ResourceConfig"]["InstanceType"] = "ml.g6e.2xlarge"
    expected["StoppingCondition"]["MaxWaitTimeInSeconds"] = 72000
    assert changed == expected
    assert "Not written: spot-without-checkpoint (choose " in " ".join(done.stdout.split())
    assert run("check", path, "--write", "--yes").stdout.count("No fix can be written") == 1


def test_nothing_is_written_without_an_answer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script needs --yes; a person may say no."""
    path = request(tmp_path, SPOT)
    before = path.read_bytes()
    done = run("check", path, "--write")
    assert (done.exit_code, "use --yes" in done.stderr) == (2, True)
    assert '+  "MaxWaitTimeInSeconds": 7200' in done.stdout
    monkeypatch.setattr("sageaudit.cli.commands.check.can_ask", lambda: True)
    answers = iter(["n", "y"])
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(answers))
    assert run("check", path, "--write").exit_code == 10
    assert path.read_bytes() == before
    assert run("check", path, "--write").exit_code == 0
    assert path.read_bytes() != before


@pytest.mark.parametrize("words", ["--write --output json", "--write --base main", "--yes"])
def test_it_goes_with_the_table_alone(run: Run, tmp_path: Path, words: str) -> None:
    done = run("check", request(tmp_path), *words.split())
    says = "cannot be used with --output or --base" if "--write" in words else "only for --write"
    assert (done.exit_code, says in done.stderr) == (2, True)


def test_a_file_that_nobody_edits_is_refused_in_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML, gzip, repeated keys, standard input, a pipe and a plan; each file stays as it was."""
    document = body(JobKind.TRAINING, SPOT)
    files = {
        "--write changes only JSON": b"TrainingJobName: x\nResourceConfig: {}\n",
        "save it as UTF-8": gzip.compress(json.dumps(document).encode()),
        "the key Tags appears twice": json.dumps(document | {"Tags": []})
        .replace("{", '{"Tags": [],', 1)
        .encode(),
    }
    for says, content in files.items():
        path = tmp_path / "request.json"
        path.write_bytes(content)
        done = run("check", path, "--write", "--yes")
        assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
        assert path.read_bytes() == content
    plan = next(case.file for case in CASES if case.name == "terraform_spot_keep_alive")
    done = run("check", plan, "--write", "--yes")
    assert done.exit_code == 2
    assert "change the arguments in your Terraform code" in done.stderr
    reader, writer = os.pipe()
    os.write(writer, json.dumps(document).encode())
    os.close(writer)
    with open(reader) as pipe, request(tmp_path).open() as file:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr("sys.stdin", file)
        for name in ("-", f"/dev/fd/{pipe.fileno()}"):
            done = run("check", name, "--write", "--yes")
            shown = name.replace("-", "standard input")
            assert (done.exit_code, f"{shown} cannot be changed" in done.stderr) == (2, True)


def test_a_misspelled_name_is_written_only_if_its_letters_are_right(
    run: Run, tmp_path: Path
) -> None:
    """Another name may be meant, and is left to the user."""
    path = request(tmp_path, {"Hyperparameters": {"a": "b"}, "EnableSpotTraining": True})
    done = run("check", path, "--write", "--yes")
    changed = json.loads(path.read_text("utf-8"))
    assert changed["HyperParameters"] == {"a": "b"}
    assert changed["EnableSpotTraining"] is True
    assert "EnableManagedSpotTraining may not be what you mean" in " ".join(done.stdout.split())


def test_one_of_two_fixes_for_the_same_is_written(tmp_path: Path) -> None:
    """A request gets sharded inputs or fast file mode, not both."""
    case = next(case for case in CASES if case.name == "everything_at_once")
    checked = check_file(CHECKS, str(case.file))
    plan = plan_fixes(CHECKS, str(case.file), checked)
    assert "replicated-input" in [fix.finding["rule"] for fix in plan.fixes]
    reasons = {fix.finding["rule"]: fix.skipped_because for fix in plan.skipped}
    assert reasons["file-mode-large"] == "the fix of replicated-input replaces it"
    assert str(reasons["limit-cost"]).startswith("choose ")


@pytest.mark.parametrize("case", JSON_CASES, ids=lambda case: case.name)
def test_no_written_finding_remains_and_nothing_else_changes(case: Any, tmp_path: Path) -> None:
    """AWS refuses nothing new, and the cost is not higher."""
    path = tmp_path / case.file.name
    shutil.copy(case.file, path)
    checked = check_file(CHECKS, str(path))
    plan = plan_fixes(CHECKS, str(path), checked)
    plan.file.save(plan.after)
    again = check_file(CHECKS, str(path))
    for job, new_job in zip(checked["jobs"], again["jobs"], strict=True):
        known = {(row["rule"], row["path"]) for row in job["findings"]}
        assert not [
            row
            for row in counted_findings(new_job)
            if row["refused"] and (row["rule"], row["path"]) not in known
        ]
        old_cost, new_cost = job["cost"], new_job["cost"]
        if (
            None not in {old_cost["at_most_usd"], new_cost["at_most_usd"]}
            and not old_cost["missing"]
        ):
            assert new_cost["at_most_usd"] <= old_cost["at_most_usd"]
    for fix in plan.fixes:
        remaining = counted_findings(again["jobs"][fix.job_index])
        written = (fix.finding["rule"], fix.finding["path"])
        assert written not in [(row["rule"], row["path"]) for row in remaining]
    edits = sum(len(fix.edits) for fix in plan.fixes)
    old, new = json.loads(plan.before), json.loads(plan.after)
    assert len(differences(old, new)) <= 2 * edits
    assert (old == new) is (edits == 0)


def differences(old: Any, new: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the paths of the values that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        pairs = [(key, old.get(key), new.get(key)) for key in keys]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(n, *items) for n, items in enumerate(zip(old, new, strict=True))]
    else:
        return [] if old == new else [place]
    return [found for key, a, b in pairs for found in differences(a, b, (*place, key))]


def test_a_number_becomes_text_where_aws_takes_text(run: Run, tmp_path: Path) -> None:
    """The name of a finding that is not fixed is printed with the reason."""
    changes = {"HyperParameters": {"epochs": 3}, "ResourceConfig.InstanceType": 5}
    path = request(tmp_path, changes)
    done = run("check", path, "--write", "--yes")
    assert 'HyperParameters.epochs = "3"  # now: 3' in done.stdout
    assert json.loads(path.read_text("utf-8"))["HyperParameters"] == {"epochs": "3"}
    assert "Not written: wrong-type (no single change fixes it)" in done.stdout


def test_the_default_of_a_pipelines_parameter_is_left_to_the_user(run: Run, tmp_path: Path) -> None:
    """The value in its place is a reference."""
    train = body(JobKind.TRAINING, {"HyperParameters": {"epochs": {"Get": "Parameters.Epochs"}}})
    definition = {
        "Parameters": [{"Name": "Epochs", "Type": "Integer", "DefaultValue": 3}],
        "Steps": [{"Name": "Train", "Type": "Training", "Arguments": train}],
    }
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(definition), "utf-8")
    done = run("check", path, "--write", "--yes")
    assert json.loads(path.read_text("utf-8")) == definition
    assert "is the pipeline parameter Epochs" in " ".join(done.stdout.split())
