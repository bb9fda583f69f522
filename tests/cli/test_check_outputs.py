"""The documents of `sageaudit check` about all files of a run: SARIF, JUnit, Markdown."""

import json
import re
import subprocess
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from sageaudit.domain.job.kinds import JobKind
from tests.cli.test_check import HOSTILE, OLD_TYPE, SPOT, no_user_settings, save  # noqa: F401
from tests.fakes.command_line import Run
from tests.fakes.planned import body
from tests.fakes.schemas import schema_errors


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def history_of_files(folder: Path) -> Path:
    """Returns a request of a git repository, whose only commit also has a broken file."""
    path = folder / request(folder, None, "committed.json")
    (folder / "was-bad.json").write_text("{", "utf-8")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "--quiet"), ("add", "."), (*identity, "commit", "--quiet", "-m", "x")):
        subprocess.run(["git", *words], check=True)  # noqa: S607
    return path


def request(folder: Path, changes: Mapping[str, Any] | None = None, name: str = "r.json") -> str:
    """Writes a training request, and returns its name."""
    save(folder, body(JobKind.TRAINING, changes), name)
    return name


def sarif(run: Run, *words: str) -> dict[str, Any]:
    """Returns the only run of the SARIF document."""
    document = json.loads(run("check", *words, "--output", "sarif").stdout)
    [sarif_run] = document["runs"]
    assert document["version"] == "2.1.0"
    result: dict[str, Any] = sarif_run
    return result


def test_sarif_has_what_github_reads(run: Run, folder: Path) -> None:
    """One document for all files. The form was compared with the schema of OASIS."""
    (folder / "a folder").mkdir()
    names = [
        request(folder, SPOT),
        request(folder, OLD_TYPE | {"Tags": [{"Key": "a", "Valu": "b"}]}, "a folder/ö.json"),
    ]
    document = sarif(run, *names)
    rules = document["tool"]["driver"]["rules"]
    levels = [result["level"] for result in document["results"]]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert {rule["id"] for rule in rules} >= {"SA406", "SA301", "unknown-parameter"}
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
    uris = set()
    for result in document["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        [location] = result["locations"]
        place = location["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        uris.add(place["artifactLocation"]["uri"])
        assert result["partialFingerprints"]["primaryLocationLineHash"]
    assert uris == {"r.json", "a%20folder/%C3%B6.json"}
    assert document["invocations"] == [
        {"executionSuccessful": True, "toolExecutionNotifications": []}
    ]


def test_a_result_is_the_same_after_its_line_moved(run: Run, folder: Path) -> None:
    """Each fingerprint of a file is different."""

    def fingerprints() -> list[str]:
        results = sarif(run, "r.json")["results"]
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

    request(folder, SPOT | OLD_TYPE)
    before = fingerprints()
    path = folder / "r.json"
    path.write_text("\n\n\n" + path.read_text("utf-8"), "utf-8")
    assert fingerprints() == before
    assert len(set(before)) == len(before) > 1


def test_sarif_marks_what_does_not_count_and_what_could_not_be_checked(
    run: Run, folder: Path
) -> None:
    """An exempt finding is suppressed; an unreadable file and a skipped part are notifications."""
    (folder / "policy.toml").write_text(
        '[[exempt]]\nrule = "old-generation"\nby = "ana"\nreason = "until May"\n', "utf-8"
    )
    (folder / "bad.json").write_text("{", "utf-8")
    (folder / "pipeline.json").write_text('{"Steps": [{"Name": "x", "Type": "Lambda"}]}', "utf-8")
    names = ("bad.json", "pipeline.json", request(folder, OLD_TYPE))
    document = sarif(run, *names, "--policy", "policy.toml")
    [result] = [row for row in document["results"] if row["ruleId"] == "SA301"]
    [suppression] = result["suppressions"]
    assert suppression["kind"] == "external"
    assert "until May" in suppression["justification"]
    [invocation] = document["invocations"]
    assert invocation["executionSuccessful"] is False
    notes = invocation["toolExecutionNotifications"]
    assert [note["level"] for note in notes] == ["error", "note"]
    assert "bad.json: is not JSON" in notes[0]["message"]["text"]


def test_sarif_has_no_place_for_standard_input_and_absolute_uris_elsewhere(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path inside the working directory is relative."""
    name = request(folder, OLD_TYPE)
    inside = sarif(run, str(folder / name))["results"][0]["locations"][0]
    assert inside["physicalLocation"]["artifactLocation"]["uri"] == name
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    outside = sarif(run, str(folder / name))["results"][0]["locations"][0]
    assert outside["physicalLocation"]["artifactLocation"]["uri"] == (folder / name).as_uri()
    with (folder / name).open() as file:
        monkeypatch.setattr("sys.stdin", file)
        [location] = sarif(run, "-")["results"][0]["locations"]
    assert location == {"logicalLocations": [{"name": "train-1"}]}


def test_sarif_keeps_the_most_severe_results_within_githubs_limit(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is counted in a notification."""
    monkeypatch.setattr("sageaudit.cli.views.check.sarif.MAX_RESULTS", 1)
    document = sarif(run, request(folder, OLD_TYPE | SPOT))
    assert [result["level"] for result in document["results"]] == ["error"]
    [note] = document["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].endswith("less severe results are left out.")


def junit(run: Run, *words: str) -> ET.Element:
    """Returns the root of the JUnit report."""
    return ET.fromstring(run("check", *words, "--output", "junit").stdout)  # noqa: S314 - ours


def test_junit_has_a_suite_for_a_file_and_a_case_for_a_job(run: Run, folder: Path) -> None:
    """An unreadable file is an error; a clean job passes; two jobs of a name are two cases."""
    (folder / "bad.json").write_text("{", "utf-8")
    step = {"Name": "Train", "Type": "Training", "Arguments": body(JobKind.TRAINING)}
    save(folder, {"Steps": [step, step]}, "pipeline.json")
    root = junit(run, request(folder, SPOT | OLD_TYPE), "bad.json", "pipeline.json")
    assert root.attrib | {"name": ""} == {"name": "", "tests": "4", "failures": "1", "errors": "1"}
    first, second, third = root
    assert (first.get("name"), second.get("errors"), third.get("failures")) == ("r.json", "1", "0")
    [failure] = first.iter("failure")
    assert failure.get("type") == "high"
    assert "findings:" in str(failure.get("message"))
    assert "StoppingCondition.MaxWaitTimeInSeconds = 7200" in str(failure.text)
    names = [case.get("name") for case in third]
    assert len(set(names)) == 2


def test_junit_fails_by_the_severity_of_fail_on(run: Run, folder: Path) -> None:
    """Findings below it are the case's output."""
    name = request(folder, OLD_TYPE)
    assert junit(run, name).get("failures") == "1"
    root = junit(run, name, "--fail-on", "high")
    assert root.get("failures") == "0"
    assert "old-generation" in str(next(root.iter("system-out")).text)


def test_markdown_says_what_a_request_costs_and_what_to_change(run: Run, folder: Path) -> None:
    """An amount has its qualifier, or is not known."""
    save(folder, body(JobKind.TRANSFORM), "transform.json")
    names = (request(folder, OLD_TYPE), "transform.json")
    text = run("check", *names, "--region", "us-east-1", "--output", "markdown").stdout
    assert "| **train-1**<br>r.json<br>1 x ml.p3.2xlarge | at most $3.83 | 1 medium |" in text
    assert "| not known<br>$0.23 an hour | none |" in text
    assert "If each runs once: not known: 1 of 2 jobs has no known cost." in text
    assert '`ResourceConfig.InstanceType = "ml.g6e.2xlarge"  # now: ml.p3.2xlarge`' in text


def test_markdown_does_not_say_what_an_unreadable_file_has(run: Run, folder: Path) -> None:
    """Only a readable file has no job."""
    (folder / "bad.json").write_text("{", "utf-8")
    (folder / "none.json").write_text('{"Steps": []}', "utf-8")
    bad, empty = (run("check", name, "--output", "markdown") for name in ("bad.json", "none.json"))
    assert bad.stdout.startswith("No job could be checked.")
    assert empty.stdout.startswith("There is no SageMaker job in these files.")


def test_markdown_has_no_markup_of_others(run: Run, folder: Path) -> None:
    """Names are escaped in the table, in lines and in code."""
    name = "[x](http:evil) @all | `.json"
    changes = OLD_TYPE | {"TrainingJobName": f"{HOSTILE}\n# <img> #1 @ana"}
    text = run("check", request(folder, changes, name), "--output", "markdown").stdout
    assert "<img>" not in text
    assert "](http" not in text.replace("\\](", "")
    assert "@" not in text
    row = next(line for line in text.splitlines() if line.startswith("| **"))
    assert row.replace("\\|", "").count("|") == 4


def test_a_long_report_says_what_it_leaves_out(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment on GitHub has a limit."""
    steps = [
        {"Name": f"s{n}", "Type": "Training", "Arguments": body(JobKind.TRAINING, OLD_TYPE)}
        for n in range(200)
    ]
    save(folder, {"Steps": steps}, "pipeline.json")
    monkeypatch.setattr("sageaudit.cli.views.check.markdown.MAX_CHARACTERS", 20_000)
    text = run("check", "pipeline.json", "--output", "markdown").stdout
    assert len(text) < 21_000
    assert " more jobs not in the table." in text
    assert "more parts of this report would be too long here" in text


def test_one_run_writes_all_outputs(run: Run, folder: Path) -> None:
    """One is printed, the others are files; the files of others are not changed by a bad usage."""
    name = request(folder, OLD_TYPE)
    formats = ("json", "github", "markdown", "sarif", "junit")
    words = [word for form in formats for word in ("--output", f"{form}={form}.out")]
    done = run("check", name, "--output", "table", *words, "--fail-on", "medium")
    assert done.exit_code == 10
    assert "No findings" not in done.stdout
    for form in formats:
        assert (folder / f"{form}.out").read_text("utf-8") == run(
            "check", name, "--output", form, "--fail-on", "medium"
        ).stdout
    assert run("check", name, *words[:2]).stdout == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--output", "json", "--output", "sarif"), "only one --output can be printed"),
        (("--output", "table=x"), "a table has no file"),
        (("--output", "json="), "name a file"),
        (("--output", "xml"), "is not one of table, json, github"),
        (("--output", "sarif=none/x"), "cannot be written"),
        (("--output", "json=x", "--output", "sarif=./x"), "x is used twice: name another file"),
        (("--output", "json=r.json"), "r.json is used twice: name another file"),
        (("--guides", "--output", "junit"), "--guides cannot be used with --output junit"),
    ],
)
def test_a_wrong_output_is_refused(
    run: Run, folder: Path, words: tuple[str, ...], says: str
) -> None:
    """It is one sentence with exit code 2, and no file is overwritten."""
    before = (folder / request(folder)).read_bytes()
    done = run("check", "r.json", *words)
    assert done.exit_code == 2
    assert says in done.stderr
    assert (folder / "r.json").read_bytes() == before
    assert not (folder / "x").exists()


def test_json_has_the_earlier_check_if_there_is_a_base(
    run: Run, folder: Path, history_of_files: Path
) -> None:
    """`base` is null for a new file, and absent without --base."""
    new = request(folder, OLD_TYPE, "new.json")
    printed = run("check", str(history_of_files.name), new, "--base", "HEAD", "--output", "json")
    documents = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [document["base"] and document["base"]["jobs"][0]["name"] for document in documents] == [
        "train-1",
        None,
    ]
    assert all(schema_errors("check", document) == [] for document in documents)
    assert "base" not in json.loads(run("check", new, "--output", "json").stdout)


def test_a_terminal_shows_the_cost_before(run: Run, folder: Path, history_of_files: Path) -> None:
    """For a changed, an unchanged and a new job."""
    name = history_of_files.name
    assert "Before: The same cost." in run("check", name, "--base", "HEAD").stdout
    new = request(folder, {"TrainingJobName": "b"}, "new.json")
    assert "Before: There was no such job." in run("check", new, "--base", "HEAD").stdout
    request(folder, OLD_TYPE, name)
    changed = " ".join(run("check", name, "--base", "HEAD").stdout.split())
    assert "At most $3.83: $3.825 an hour up to the limit of 1 h." in changed
    assert "Before: At most $0.24: $0.23 an hour up to the limit of 1 h." in changed
    (folder / name).unlink()
    done = run("check", name, "--base", "HEAD", "--fail-on", "info")
    assert (done.exit_code, done.stdout.strip()) == (0, f"{name} was removed")


def test_an_earlier_version_that_cannot_be_read_is_a_note(
    run: Run, folder: Path, history_of_files: Path
) -> None:
    """The file itself is checked; the note names no temporary file."""
    done = run("check", request(folder, None, "was-bad.json"), "--base", "HEAD")
    assert done.exit_code == 0
    assert "at HEAD: is not JSON (line 1, column 2" in done.stdout.replace("\n  ", " ")
    names = (history_of_files.name, "was-bad.json")
    text = run("check", *names, "--base", "HEAD", "--output", "markdown").stdout
    assert "; before, not known." in text


@pytest.mark.parametrize("revision", ["nowhere", "--help", "HEAD:x", ""])
def test_a_revision_that_git_does_not_have_is_refused(
    run: Run, folder: Path, history_of_files: Path, revision: str
) -> None:
    """An option of git is no revision."""
    done = run("check", history_of_files.name, f"--base={revision}")
    assert done.exit_code == 2
    assert "git has no revision" in done.stderr


def test_a_base_needs_a_repository_and_git(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    done = run("check", request(folder), "--base", "main")
    assert (done.exit_code, "not in a git repository" in done.stderr) == (2, True)
    monkeypatch.setenv("PATH", str(folder))
    done = run("check", request(folder), "--base", "main")
    assert (done.exit_code, "git, which is not installed" in done.stderr) == (2, True)


def test_the_first_words_say_that_aws_refuses_a_request(run: Run, folder: Path) -> None:
    """In every output for people, with the number of reasons."""
    bad = request(folder, {"HyperParameters": {"a": 1, "b": True}}, "bad.json")
    refusal = "AWS refuses this request (2 reasons). 2 findings: 2 high."
    assert refusal in run("check", bad).stdout
    assert f"**{refusal}**" in run("check", bad, "--output", "markdown").stdout
    report = ET.fromstring(run("check", bad, "--output", "junit").stdout)  # noqa: S314 - our own
    assert [failure.get("message") for failure in report.iter("failure")] == [refusal]
    assert "AWS refuses the request" in run("check", bad, "--output", "github").stdout
    files = (bad, request(folder))
    text = run("check", *files, "--output", "markdown").stdout
    assert text.startswith("**AWS refuses 1 of 2 requests (2 reasons). 2 findings: 2 high.**")


def test_the_parts_of_the_cost_add_up(run: Run, folder: Path) -> None:
    """Five days at $0.23, and 500 GB for as long."""
    changes = {
        "ResourceConfig.VolumeSizeInGB": 500,
        "StoppingCondition.MaxRuntimeInSeconds": 432_000,
    }
    text = " ".join(run("check", request(folder, changes), "--region", "us-east-1").stdout.split())
    found = re.search(
        r"At most \$([\d.]+): \$([\d.]+) an hour for instances and \$([\d.]+) for volumes, up to"
        r" the limit of 5 d\.",
        text,
    )
    assert found
    total, hourly, volumes = map(Decimal, found.groups())
    assert abs(total - 120 * hourly - volumes) <= Decimal("0.01")


def test_a_search_with_a_time_limit_costs_what_fits_into_it(run: Run, folder: Path) -> None:
    """Two jobs at a time, for half an hour at $0.23, with their volumes."""
    limit = "HyperParameterTuningJobConfig.ResourceLimits.MaxRuntimeInSeconds"
    save(folder, body(JobKind.TUNING, {limit: 1800}), "search.json")
    text = run("check", "search.json", "--region", "us-east-1").stdout
    assert "At most $0.24: its training jobs, up to the limit of 30 min." in text
