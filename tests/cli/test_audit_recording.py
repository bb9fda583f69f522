"""`sageaudit audit --recording`: output, exit codes and bad files."""

import gzip
import json
import unicodedata
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sageaudit.cli.main import cli
from sageaudit.rules.card import Case, FamilyCase, JobCase
from sageaudit.rules.catalogue import load
from sageaudit.structs import replace
from tests.fakes.command_line import Run
from tests.fakes.jobs import training_answer, transition
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import BEGIN, Plot, training

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FSX_SPOT = DATA / "training-073-m5-4xlarge-spot-fsx-completed.json"
UNJUDGED = FSX_SPOT
"""A job of $3.79 without metrics."""
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
JOB_SCOPES = {Case, JobCase, FamilyCase}
UNFINISHED = [DATA / "processing-070-inprogress.json", DATA / "tuning-010-inprogress.json"]


Audited = Callable[[Path], dict[str, Any]]


@pytest.fixture
def audited(run: Run) -> Audited:
    """Returns a function that returns the document of one recording."""

    def audit(path: Path) -> dict[str, Any]:
        document: dict[str, Any] = run("audit", "--recording", path, "--output", "json").document()
        return document

    return audit


@pytest.mark.parametrize("path", UNFINISHED, ids=lambda path: path.stem)
def test_an_unfinished_job_is_audited_as_far_as_it_goes(audited: Audited, path: Path) -> None:
    """No figure is final: the bill is incomplete, and every rule says why it does not judge."""
    document = audited(path)
    assert document["bill"]["complete"] is False
    assert document["bill"]["total_usd"] is None
    assert document["audit"]["settled"] is False
    assert {x["code"] for x in document["unknown"]} == {"job_not_finished"}
    judging = {
        rule.info.name for rule in load() if rule.is_on_by_default and rule.scope in JOB_SCOPES
    }
    assert {x["rule"] for x in document["unknown"]} == judging
    assert (document["findings"], document["clear"]) == ([], [])


@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(lambda text: text.encode("utf-16"), id="as PowerShell writes it"),
        pytest.param(lambda text: gzip.compress(text.encode()), id="in gzip"),
    ],
)
def test_a_recording_is_read_in_the_form_that_people_have(
    audited: Audited, tmp_path: Path, encode: Callable[[str], bytes]
) -> None:
    path = tmp_path / "job.json"
    path.write_bytes(encode(FAILED.read_text(encoding="utf-8")))
    assert audited(path)["bill"] == audited(FAILED)["bill"]


def test_a_recording_is_read_from_standard_input() -> None:
    done = CliRunner().invoke(cli, ["audit", "--recording", "-"], input=FAILED.read_bytes())
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("training job, Failed")


ONE, OTHER = (json.loads(file.read_text(encoding="utf-8")) for file in (UNJUDGED, FAILED))
SEVERAL = {
    "JSON lines": f"{json.dumps(ONE)}\n{json.dumps(OTHER)}\n",
    "documents after each other": f"{json.dumps(ONE, indent=1)}\n{json.dumps(OTHER, indent=1)}",
    "a list": json.dumps([ONE, OTHER]),
    "an answer of Search": json.dumps(
        {"Results": [{"TrainingJob": job["describe"]} for job in (ONE, OTHER)]}
    ),
}


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_all_jobs_of_a_file_are_audited(run: Run, tmp_path: Path, text: str) -> None:
    """As if each had its own file; commands about one job refuse the file."""
    path = tmp_path / "jobs.json"
    path.write_text(text)
    done = run("audit", "--recording", path, "--output", "json")
    assert done.exit_code == 0, done.stderr
    names = [json.loads(line)["job"]["name"] for line in done.stdout.splitlines()]
    assert names == [job["describe"]["TrainingJobName"] for job in (ONE, OTHER)]
    for command in (("what-if",), ("record",), ("report", "-o", "-"), ("notify",)):
        refused = run(*command, "--recording", path)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "has 2 jobs: give a file with one of them" in refused.stderr


def test_a_bad_line_among_jobs_is_named_and_costs_only_itself(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    late = {"TrainingJobName": "a", "TrainingJobStatus": "Failed", "CreationTime": "soon"}
    lines = (json.dumps(ONE), "oops", "{}", json.dumps(OTHER), json.dumps(late))
    path.write_text("\n".join(lines))
    done = run("audit", "--recording", path, "--output", "json")
    assert done.exit_code == 2
    assert len(done.stdout.splitlines()) == 2
    first, second, third = done.stderr.splitlines()
    assert f"{path}: is not JSON (line 2, column 1" in first
    assert f"{path}: line 3: the top level has none of" in second
    assert f"{path}: line 5: CreationTime is not a time" in third


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "is not JSON"),
        ('{"children": [{"describe": 3}]}', "children[0].describe is not an object"),
        ("\x00\x01", "is not text"),
    ],
)
def test_a_bad_file_is_one_sentence_and_exit_2(
    run: Run, tmp_path: Path, text: str, message: str
) -> None:
    """The sentence names the file and its error, without a stack trace."""
    path = tmp_path / "job.json"
    path.write_text(text)
    done = run("audit", "--recording", path)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(path) in done.stderr
    assert message in done.stderr


BAD_FILES = {
    "a name that SageMaker gives no job": (
        '{"TrainingJobName": "my_job", "TrainingJobStatus": "Completed"}',
        "TrainingJobName is not the name of a job: at most 63 letters, digits and hyphens",
    ),
    "not JSON": ("not json", "is not JSON"),
    "an answer with a time that is none": (
        '{"TrainingJobName": "a", "TrainingJobStatus": "Completed", "CreationTime": "soon"}',
        "CreationTime",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES)
@pytest.mark.parametrize("lasts", [False, True], ids=["alone", "with a history"])
def test_a_bad_file_among_others_is_named_and_the_others_are_audited(
    run: Run, tmp_path: Path, text: str, message: str, *, lasts: bool
) -> None:
    """The two other files are printed, and the exit code is 2."""
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    files = (UNJUDGED, bad, FAILED)
    names = [part for file in files for part in ("--recording", file)]
    history = ["--history", tmp_path / "history.db"] if lasts else []
    done = run("audit", *names, *history, "--output", "json")
    assert done.exit_code == 2
    assert len(done.stdout.splitlines()) == 2
    [sentence] = [line for line in done.stderr.splitlines() if str(bad) in line]
    assert message in sentence


def test_an_exempt_finding_does_not_fail(run: Run, tmp_path: Path) -> None:
    """The policy exempts the finding, which is shown.

    The run fails only because nothing else was judged.
    """
    policy = tmp_path / "policy.toml"
    rules_with_findings = ("failed-spend", "old-generation")
    policy.write_text(
        "".join(
            f'[[exempt]]\nrule = "{rule}"\nby = "ana"\nreason = "known"\n'
            for rule in rules_with_findings
        )
    )
    words = ("--policy", policy, "--output", "json", "--fail-on", "low")
    done = run("audit", "--recording", FAILED, *words)
    assert done.exit_code == 11
    assert {f["rule"] for f in json.loads(done.stdout)["findings"] if f["exempt"]} == set(
        rules_with_findings
    )


@pytest.mark.parametrize(
    ("severity", "files", "code"),
    [
        ("low", ("FAILED",), 10),
        ("medium", ("FAILED",), 0),
        ("low", ("UNJUDGED",), 11),
        ("high", ("UNJUDGED",), 11),
        (None, ("UNJUDGED",), 0),
        ("low", ("FAILED", "UNJUDGED"), 10),
        ("high", ("FAILED", "UNJUDGED"), 11),
        ("high", ("FAILED", "FAILED"), 0),
        ("low", ("UNJUDGED", "missing.json", "FAILED"), 2),
    ],
)
def test_fail_on_exits_with_the_first_of_its_codes_that_applies(
    run: Run, severity: str | None, files: tuple[str, ...], code: int
) -> None:
    """The order is 2, 10, 11, 0, and every result is printed.

    A 15-cent failure is low. A job that could not be judged does not pass, since its findings may
    be missing.
    """
    paths = {"FAILED": FAILED, "UNJUDGED": UNJUDGED}
    words = [w for name in files for w in ("--recording", paths.get(name, Path(name)))]
    gate = ["--fail-on", severity] if severity else []
    done = run("audit", *words, "--output", "json", *gate)
    assert done.exit_code == code
    assert len(done.stdout.splitlines()) == sum(name in paths for name in files)
    message = "could not be judged, so it does not pass --fail-on" in done.stderr
    assert message is bool(severity and "UNJUDGED" in files)


def test_a_describe_response_alone_never_says_that_nothing_was_avoidable(run: Run) -> None:
    """The report has the cost, says that the use is unknown, and what to do."""
    output = run("audit", "--recording", UNJUDGED).stdout
    assert "It cost $3.79, and what was avoidable could not be judged" in output
    assert (
        "The use of its machines was not judged: the recording lacks these metrics of this job."
        in " ".join(output.split())
    )
    assert "avoidable cost was found" not in output


def running_job(tmp_path: Path, **changes: Any) -> Path:
    """Returns a training job that downloaded for ten minutes and is training since."""
    answer = training_answer(TrainingJobStatus="InProgress", SecondaryStatus="Training")
    for gone in ("TrainingEndTime", "TrainingTimeInSeconds", "BillableTimeInSeconds"):
        del answer[gone]
    answer |= {
        "LastModifiedTime": "2026-05-20T10:10:00Z",
        "SecondaryStatusTransitions": [
            transition("Starting", "09:58:00", "10:00:00"),
            transition("Downloading", "10:00:00", "10:10:00"),
            transition("Training", "10:10:00"),
        ],
    }
    path = tmp_path / "running.json"
    path.write_text(json.dumps({"describe": answer, "region": "us-east-1"} | changes))
    return path


def test_a_running_job_is_shown_until_the_latest_time_of_its_recording(
    audited: Audited, tmp_path: Path
) -> None:
    """Its last metric point is of 11:00, so it has used two instances for an hour.

    No figure is final.
    """
    point = {"host": "train-vision/algo-1", "metric": "CPUUtilization"}
    series = [{**point, "start": "2026-05-20T10:10:00Z", "values": [100.0] * 51 + [None]}]
    document = audited(running_job(tmp_path, metrics={"period_s": 60, "series": series}))
    compute = document["bill"]["lines"][0]
    assert compute["quantity"] == 2
    assert document["bill"]["total_usd"] == compute["usd"] > 0
    assert document["bill"]["complete"] is False
    assert "still running" in document["bill"]["missing"][0]
    assert [part["seconds"] for part in document["phases"]] == [120, 600, 3000]
    assert (document["judged"], document["avoidable_usd"], document["lost_usd"]) == (
        "no",
        None,
        None,
    )


def test_a_running_job_without_metrics_is_shown_until_its_last_change(
    audited: Audited, tmp_path: Path
) -> None:
    """It has used two instances for ten minutes."""
    document = audited(running_job(tmp_path))
    assert document["bill"]["lines"][0]["quantity"] == pytest.approx(1 / 3, abs=1e-6)


def test_a_line_separates_the_reports_of_a_batch(run: Run) -> None:
    """There is no line before the first report, and none after the last."""
    done = run("audit", "--recording", FAILED, "--recording", FSX_SPOT)
    lines = done.stdout.splitlines()
    [parted] = [place for place, line in enumerate(lines) if line and not line.strip("─")]
    assert 0 < parted < len(lines) - 1
    assert "  training job, " in lines[parted + 1]


def test_json_has_no_character_that_controls_a_terminal(run: Run, tmp_path: Path) -> None:
    """Control, format and bidirectional characters are escapes; a parser reads them unchanged."""
    recorded = json.loads(FAILED.read_text())
    attack = "\x9b2J \x7f \u202egnp.exe\u2066 \u2028 \ue000 \U000e0041 é \x1b[31m"
    recorded |= {"as_of": "2026-05-20T10:00:00Z", "notes": [attack]}
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(recorded))
    result = run("audit", "--recording", path, "--output", "json")
    unseen = {unicodedata.category(char) for char in result.stdout.rstrip("\n")}
    assert not unseen & {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"}
    assert attack in result.document()["audit"]["coverage"]["missing"]


DAY = timedelta(days=1)
FIVE = Doing(5, cores=2.0, gpus=(0.12,), gib=4, gpu_gib=(2,))
SHORT = Plot("ml.g5.xlarge", one_host(Doing(14, cores=2.0, gpus=(0.12,), gib=4, gpu_gib=(2,))))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Returns four runs of 14 minutes, a day apart; nightly-0 is the oldest."""
    folder = tmp_path_factory.mktemp("family")
    paths = []
    for number in range(4):
        plot = replace(SHORT, name=f"nightly-{number}", begin=BEGIN + timedelta(days=number))
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(json.dumps(training(plot, number)))
    return paths


def audit_together(paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Returns the documents of one call by job name."""
    words = ["audit", "--output", "json"]
    for path in paths:
        words += ["--recording", str(path)]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    lines = [json.loads(line, parse_float=Decimal) for line in done.stdout.splitlines()]
    return {audits["job"]["name"]: audits for audits in lines}


def rules_with_findings(audits: dict[str, Any]) -> set[str]:
    """Returns the rules with a finding."""
    return {finding["rule"] for finding in audits["findings"]}


def test_one_recording_alone_says_what_is_missing(files: list[Path]) -> None:
    """The family may have more runs."""
    audits = audit_together(files[3:])["nightly-3-3"]
    assert audits["judged"] == "no"
    assert "gpu-underused" not in rules_with_findings(audits)
    assert "the last runs of their family on the same instances" in audits["not_judged"][0]


def test_runs_of_one_family_are_judged_together(files: list[Path]) -> None:
    """Each run is judged with the earlier ones; the oldest is not judged.

    The order of the files does not matter.
    """
    audits = audit_together(files)
    pools = [audits[f"nightly-{number}-{number}"]["audit"]["pool"] for number in range(4)]
    assert [pool and pool["runs"] for pool in pools] == [None, 2, 3, 4]
    assert pools[3]["earlier_runs"] == ["nightly-2-2", "nightly-1-1", "nightly-0-0"]
    measured = [
        "gpu-underused" in rules_with_findings(audits[f"nightly-{number}-{number}"])
        for number in range(4)
    ]
    assert measured == [False, True, True, True]
    assert audit_together(files[::-1]) == audits


def test_a_run_in_two_files_is_one_run(files: list[Path], tmp_path: Path) -> None:
    """A copy adds no minutes, so that the next run is still too short."""
    one = training(replace(SHORT, name="five", begin=BEGIN, hosts=one_host(FIVE)), 1)
    later = training(replace(SHORT, name="six", begin=BEGIN + DAY, hosts=one_host(FIVE)), 2)
    paths = [tmp_path / f"{number}.json" for number in range(4)]
    for path, told in zip(paths, (one, one, one, later), strict=True):
        path.write_text(json.dumps(told))
    audits = audit_together(paths)
    assert audits["six-2"]["audit"]["pool"] is None
    assert audits["six-2"] == audit_together([paths[0], paths[3]])["six-2"]
