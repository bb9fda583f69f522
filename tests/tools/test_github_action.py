"""The GitHub Action: its steps run as shell scripts in a repository, with an API on loopback."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.github_actions import ROOT, ActionRun, CommentsApi, comments_api, run_action
from tests.fakes.planned import body

REQUESTS = {"files": "jobs/**/*.json\n", "region": "us-east-1"}
OLD_TYPE = {"ResourceConfig.InstanceType": "ml.p3.2xlarge"}
SPOT = {"EnableManagedSpotTraining": True}


class Repository(Struct):
    """A git repository whose branch left `base`."""

    folder: Path
    scratch: Path

    def git(self, *words: str) -> str:
        """Runs git, and returns what it printed."""
        identity = {
            f"GIT_{who}_{what}": "a@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        done = subprocess.run(
            ["git", *words],  # noqa: S607
            cwd=self.folder,
            env=os.environ | identity | {"GIT_CONFIG_GLOBAL": os.devnull},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def save(self, name: str, changes: Mapping[str, Any] | None = None) -> None:
        """Writes a training request."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        changes = {"TrainingJobName": path.stem.replace(" ", "-")} | dict(changes or {})
        path.write_text(json.dumps(body(JobKind.TRAINING, changes), indent=2), "utf-8")

    def commit(self) -> str:
        """Commits all files, and returns the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def run(self, base: str | None, api: CommentsApi | None = None, **inputs: str) -> ActionRun:
        """Runs the action for pull request 7 onto `base`, or for a push."""
        event = {"pull_request": {"number": 7, "base": {"sha": base}}} if base else {}
        words = {name.replace("_", "-"): value for name, value in inputs.items()}
        if api:
            words["comment"] = "true"
        github = {"event": event}
        url = api.url if api else ""
        return run_action(self.folder, self.scratch, REQUESTS | words, github, url)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Returns a repository with three requests, and a file that is none."""
    (tmp_path / "work tree").mkdir()
    repository = Repository(tmp_path / "work tree", tmp_path / "scratch")
    repository.git("init", "--quiet", "--initial-branch", "main")
    repository.save("jobs/kept.json")
    repository.save("jobs/nightly/grown.json")
    gone = body(JobKind.PROCESSING, {"ProcessingJobName": "gone"})
    (repository.folder / "jobs" / "gone.json").write_text(json.dumps(gone), "utf-8")
    (repository.folder / "package.json").write_text("{}", "utf-8")
    return repository


@pytest.fixture
def api() -> Iterator[CommentsApi]:
    """Yields GitHub's API of comments."""
    with comments_api() as running:
        yield running


def test_a_pull_request_shows_the_costs_before_and_after(
    repository: Repository, api: CommentsApi
) -> None:
    """Changed, added, removed and renamed requests have rows; unchanged ones have none."""
    base = repository.commit()
    repository.save("jobs/nightly/grown.json", {"StoppingCondition.MaxRuntimeInSeconds": 36000})
    repository.save("jobs/new one.json", OLD_TYPE)
    repository.git("rm", "--quiet", "jobs/gone.json")
    repository.git("mv", "jobs/kept.json", "jobs/moved.json")
    repository.save("jobs/moved.json")
    repository.commit()
    done = repository.run(base, api)
    assert done.exit_code == 0, done.log
    assert done.pip.split()[-1] == f"{ROOT}[yaml]"
    rows = [line for line in done.summary.splitlines() if line.startswith("| **")]
    cells = {row.split("**")[1]: [cell.strip() for cell in row.split("|")[2:5]] for row in rows}
    before, now, _ = cells.pop("grown")  # the cents depend on the length of this month
    assert before == "at most $0.24"
    assert re.fullmatch(r"at most \$2\.3\d<br>\*\*\+\$2\.1\d\*\*", now)
    assert cells == {
        "gone": ["at most $0.23", "removed", ""],
        "moved": ["kept<br>at most $0.24", "at most $0.24", "none"],
        "new-one": ["no such job", "at most $3.83", "1 medium"],
    }
    assert "::warning file=jobs/new one.json,line=" in done.log
    [comment] = api.comments
    assert done.summary.strip() in comment["body"]
    sarif = json.loads(Path(done.outputs["sarif"]).read_text("utf-8"))
    [result] = sarif["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place == "jobs/new%20one.json"


def test_the_comment_is_updated_and_no_other_one_is_touched(
    repository: Repository, api: CommentsApi
) -> None:
    """The comment is found on any page; a person who quotes its marker keeps the own text."""
    base = repository.commit()
    repository.save("jobs/kept.json", OLD_TYPE)
    repository.commit()
    for number in range(120):
        api.add(f"comment {number}", "ana")
    assert repository.run(base, api).exit_code == 0
    marker = api.comments[-1]["body"].splitlines()[0]
    api.comments.insert(0, {"id": 0, "body": f"{marker}\nmine", "user": {"login": "ana"}})
    for number, comment in enumerate(api.comments):
        comment["id"] = number
    repository.git("checkout", "--quiet", base, "--", "jobs")
    repository.commit()
    done = repository.run(base, api)
    assert "The comment has been updated." in done.log
    assert "No SageMaker request has changed." in api.comments[-1]["body"]
    assert [len(api.comments), api.comments[0]["body"]] == [122, f"{marker}\nmine"]


def test_a_pull_request_without_requests_gets_no_comment(
    repository: Repository, api: CommentsApi
) -> None:
    base = repository.commit()
    (repository.folder / "README.md").write_text("text", "utf-8")
    repository.commit()
    done = repository.run(base, api)
    assert (done.exit_code, api.comments, done.outputs["sarif"]) == (0, [], "")
    assert "No SageMaker request has changed." in done.summary


@pytest.mark.parametrize(
    ("fault", "reason"),
    [({"may_write": False}, "the token may not do it"), ({"breaks_off": True}, "IncompleteRead")],
)
def test_a_comment_that_cannot_be_written_fails_nothing(
    repository: Repository, api: CommentsApi, fault: dict[str, bool], reason: str
) -> None:
    """A pull request from a fork may not write one. The summary has the report."""
    base = repository.commit()
    repository.save("jobs/kept.json", OLD_TYPE)
    repository.commit()
    for name, value in fault.items():
        setattr(api, name, value)
    done = repository.run(base, api)
    assert done.exit_code == 0
    assert f"::notice title=sageaudit::No comment was written: {reason}" in done.log
    assert "ml.p3.2xlarge" in done.summary


def test_findings_and_unreadable_files_fail_after_the_comment(
    repository: Repository, api: CommentsApi
) -> None:
    """The exit code is that of the check; a file that is not JSON is an annotation, too."""
    base = repository.commit()
    repository.save("jobs/kept.json", OLD_TYPE)
    repository.commit()
    done = repository.run(base, api, fail_on="medium")
    assert (done.exit_code, done.outputs["exit-code"]) == (10, "10")
    (repository.folder / "jobs" / "bad.json").write_text("{", "utf-8")
    repository.commit()
    done = repository.run(base, api)
    assert done.exit_code == 2
    assert "::error file=jobs/bad.json,title=Not checked::" in done.log
    assert "1 file could not be checked" in api.comments[0]["body"]
    done = repository.run(base, api, policy="none.toml")
    assert done.exit_code == 2
    assert "The check failed with exit code 2" in api.comments[0]["body"]


def test_a_push_checks_all_files_without_a_comparison(
    repository: Repository, api: CommentsApi
) -> None:
    """Untracked files, such as a plan of an earlier step, are checked too."""
    repository.commit()
    repository.save("jobs/$(touch injected) `x`.json", SPOT)
    done = repository.run(None, api)
    assert done.exit_code == 10
    assert done.summary.count("| **") == 4
    assert "| job | cost | findings |" in done.summary
    assert not (repository.folder / "injected").exists()
    assert api.requests == []
    done = repository.run(None, files="nowhere/*.json")
    assert done.exit_code == 0
    assert "::warning title=sageaudit::No file matches" in done.log


def test_a_shallow_checkout_fetches_the_base(repository: Repository) -> None:
    """If it cannot, all files are checked, and the log says so."""
    base = repository.commit()
    repository.save("jobs/kept.json", OLD_TYPE)
    repository.commit()
    origin = repository.folder
    clone = origin.parent / "clone"
    url = origin.as_uri()
    repository.git("clone", "--quiet", "--depth=1", url, str(clone))
    shallow = Repository(clone, repository.scratch)
    rows = [line for line in shallow.run(base).summary.splitlines() if line.startswith("| **")]
    assert len(rows) == 1
    shutil.rmtree(clone)
    repository.git("clone", "--quiet", "--depth=1", url, str(clone))
    shallow.git("remote", "set-url", "origin", str(origin / "nowhere"))
    done = shallow.run(base)
    assert "The base commit cannot be fetched" in done.log
    assert done.summary.count("| **") == 3


def test_missing_things_are_named(repository: Repository, tmp_path: Path) -> None:
    """No checkout, no pattern: one sentence each, and the step fails."""
    empty = Repository(tmp_path / "empty", repository.scratch)
    empty.folder.mkdir()
    done = empty.run(None)
    assert (done.exit_code, "run actions/checkout first" in done.log) == (1, True)
    repository.commit()
    done = repository.run(None, files=" \n".strip())
    assert (done.exit_code, "The input files is empty" in done.log) == (1, True)


def test_the_workflow_runs_the_checks_on_each_supported_python() -> None:
    """Its versions are those of the package's metadata."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    [job] = workflow["jobs"].values()
    metadata = (ROOT / "pyproject.toml").read_text("utf-8")
    versions = job["strategy"]["matrix"]["python"]
    assert [
        f'"Programming Language :: Python :: {version}",' in metadata for version in versions
    ] == [True] * metadata.count("Python :: 3.")
    assert job["steps"][-1]["run"] == ".ci/run"
    assert (ROOT / ".ci" / "run").exists()
    assert workflow["permissions"] == {"contents": "read"}
    assert {"timeout-minutes", "runs-on"} <= set(job)
