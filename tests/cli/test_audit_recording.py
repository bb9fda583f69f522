"""`sageaudit audit --recording`, as its users run it: output, exit codes, bad files."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sageaudit.cli.support.recordings.recorded_audits import audit_recording
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules.card import FamilyCase, JobCase
from sageaudit.rules.catalogue import load
from tests.fakes.command_line import Run
from tests.fakes.jobs import training_answer, transition
from tests.labelled.story import sweep

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FSX_SPOT = DATA / "training-073-m5-4xlarge-spot-fsx-completed.json"
UNJUDGED = FSX_SPOT
"""A job of $3.79 without metrics."""
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
JOB_SCOPES = {JobCase, FamilyCase}
UNFINISHED = [DATA / "processing-070-inprogress.json", DATA / "tuning-010-inprogress.json"]


Audited = Callable[[Path], dict[str, Any]]


@pytest.fixture
def audited(run: Run) -> Audited:
    """Gives the document of one recording."""

    def audit(path: Path) -> dict[str, Any]:
        document: dict[str, Any] = run("audit", "--recording", path, "--output", "json").document()
        return document

    return audit


def test_the_document_has_every_key_of_schema_1(audited: Audited) -> None:
    """Scripts rely on keys that are always present."""
    document = audited(FSX_SPOT)
    assert document["schema"] == 1
    assert set(document) >= {
        "job", "audit", "phases", "bill", "judged", "not_judged", "avoidable_usd", "lost_usd",
        "possible_usd", "idle_capacity", "findings", "unknown", "not_applicable", "clear",
        "waterfall", "children", "rollup",
    }  # fmt: skip
    assert set(document["job"]) >= {
        "name", "arn", "kind", "status", "account", "region", "family", "owner", "created_at",
        "started_at", "ended_at",
    }  # fmt: skip
    assert set(document["audit"]) >= {
        "version", "settled", "due_at", "ruleset", "policy", "coverage",
    }  # fmt: skip


def test_the_idle_capacity_has_every_key_or_its_reason(audited: Audited) -> None:
    """Hours and dollars of a job with GPU points; null, and said, where none were recorded."""
    figure = audited(DATA / "profiled-053-g4dn-xlarge.json")["idle_capacity"]
    assert set(figure) >= {"unit", "paid", "worked", "idle", "list_usd", "counted_usd"}
    assert (figure["unit"], round(figure["paid"], 4)) == ("gpu_hours", 0.8958)
    unrecorded = audited(FSX_SPOT)
    assert unrecorded["idle_capacity"] is None
    missing = unrecorded["audit"]["coverage"]["missing"]
    assert [x for x in missing if x.startswith("idle capacity: ")]


def test_the_fsx_spot_job_costs_what_its_billable_seconds_say(audited: Audited) -> None:
    """14,683 billable seconds of ml.m5.4xlarge are $3.76; its 37,026 of training were $9.48."""
    document = audited(FSX_SPOT)
    compute = [x for x in document["bill"]["lines"] if x["item"] == "compute"]
    assert [round(x["usd"], 2) for x in compute] == [3.76]
    assert round(sum(p["usd"] for p in document["phases"]), 2) == 3.76


def test_a_failed_job_is_lost_at_full_cost(audited: Audited) -> None:
    """Failed runs are billed like any other, and gave nothing."""
    document = audited(FAILED)
    assert document["lost_usd"] == document["bill"]["total_usd"] > 0
    assert [x["rule"] for x in document["findings"] if x["bucket"] == "lost"] == ["failed-spend"]


@pytest.mark.parametrize("path", UNFINISHED, ids=lambda path: path.stem)
def test_an_unfinished_job_is_audited_as_far_as_it_goes(audited: Audited, path: Path) -> None:
    """No figure is final: the bill is incomplete, and every rule says why it does not judge."""
    document = audited(path)
    assert document["bill"]["complete"] is False
    assert document["bill"]["total_usd"] is None
    assert document["audit"]["settled"] is False
    assert {x["code"] for x in document["unknown"]} == {"job_not_finished"}
    judging = {rule.name.name for rule in load() if rule.on and rule.scope in JOB_SCOPES}
    assert {x["rule"] for x in document["unknown"]} == judging
    assert (document["findings"], document["clear"]) == ([], [])


def test_a_set_rolls_its_children_up(audited: Audited) -> None:
    """The roll-up is the sum of its children's own shares, and is marked as one."""
    document = audited(DATA / "tuning-set-bayesian-221019-1807.json")
    assert document["rollup"] is True
    assert len(document["children"]) == 5
    total = sum(child["bill"]["total_usd"] for child in document["children"])
    assert document["bill"]["total_usd"] == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "is not JSON"),
        ("[]", "is not an object"),
        ('{"a": 1}', '"describe"'),
        ('{"describe": {"TrainingJobName": "x"}}', "describe has no"),
        ('{"children": []}', "children is empty"),
        ('{"children": [{"describe": 3}]}', "children[0].describe is not an object"),
        (
            '{"TrainingJobName": "x", "TrainingJobStatus": "Completed", "CreationTime": "soon"}',
            "CreationTime is not a time",
        ),
        (
            (
                '{"describe": {"TrainingJobName": "x", "TrainingJobStatus": "Failed"}, "metrics":'
                ' {"series": [{"host": "x/algo-1"}]}}'
            ),
            "metrics.series[0] needs host, metric, start",
        ),
        (
            (
                '{"children": [{"TrainingJobName": "x", "TrainingJobStatus": "Failed"}],'
                ' "describe": {"HyperParameterTuningJobName": "s",'
                ' "HyperParameterTuningJobStatus": "Failed", "LastModifiedTime": "soon"}}'
            ),
            "LastModifiedTime is not a time",
        ),
        ("[" * 100_000, "is not JSON"),
        ("\x00\x01", "is not JSON"),
    ],
)
def test_a_bad_file_is_one_sentence_and_exit_2(
    run: Run, tmp_path: Path, text: str, said: str
) -> None:
    """The sentence names the file and what is wrong in it; no stack trace."""
    path = tmp_path / "job.json"
    path.write_text(text)
    done = run("audit", "--recording", path)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(path) in done.stderr
    assert said in done.stderr


def test_bytes_that_are_no_text_are_one_sentence(run: Run, tmp_path: Path) -> None:
    """A model artifact given by mistake is refused like any other bad file."""
    path = tmp_path / "model.tar.gz"
    path.write_bytes(b"\x1f\x8b\xff\xfe" * 100)
    done = run("audit", "--recording", path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_batch_prints_its_results_and_exits_with_the_gravest(run: Run, tmp_path: Path) -> None:
    """One bad file of three does not hide the two audits."""
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    done = run(
        "audit", "--recording", FSX_SPOT, "--recording", bad, "--recording", FAILED,
        "--output", "json",
    )  # fmt: skip
    names = [json.loads(line)["job"]["name"] for line in done.stdout.splitlines()]
    assert names == [
        "bioims-vT44kUtLi7jnSGC7VXG7iT-j2xvJ5W8TbmNxZrK4mNYUd",
        "c7n-job-2018-01-12-18-23-33",
    ]
    assert done.exit_code == 2


@pytest.mark.parametrize(("severity", "code"), [("low", 10), ("medium", 0)])
def test_fail_on_exits_with_10_from_its_severity(run: Run, severity: str, code: int) -> None:
    """A 15-cent failure is low: it fails a gate on low, not one on medium."""
    done = run("audit", "--recording", FAILED, "--output", "json", "--fail-on", severity)
    assert done.exit_code == code
    assert json.loads(done.stdout)["job"]["status"] == "Failed"


def test_an_accepted_finding_fails_no_gate(run: Run, tmp_path: Path) -> None:
    """The policy exempts it: it is shown, and what fails the gate is that no more was judged."""
    policy = tmp_path / "policy.toml"
    rules = ("failed-spend", "old-generation")
    policy.write_text(
        "".join(f'[[exempt]]\nrule = "{rule}"\nby = "ana"\nreason = "known"\n' for rule in rules)
    )
    words = ("--policy", policy, "--output", "json", "--fail-on", "low")
    done = run("audit", "--recording", FAILED, *words)
    assert done.exit_code == 11
    assert {f["rule"] for f in json.loads(done.stdout)["findings"] if f["exempt"]} == set(rules)


@pytest.mark.parametrize("severity", ["low", "high"])
def test_a_gate_does_not_pass_a_job_that_could_not_be_judged(run: Run, severity: str) -> None:
    """No finding is no proof: exit 11, with a sentence, and the result all the same."""
    done = run("audit", "--recording", UNJUDGED, "--output", "json", "--fail-on", severity)
    assert done.exit_code == 11
    assert json.loads(done.stdout)["judged"] == "no"
    assert "could not be judged" in done.stderr


def test_without_a_gate_a_job_that_could_not_be_judged_is_done(run: Run) -> None:
    """Exit 11 is for those who asked."""
    assert run("audit", "--recording", UNJUDGED).exit_code == 0


@pytest.mark.parametrize(
    ("severity", "files", "code"),
    [
        ("low", ("FAILED", "UNJUDGED"), 10),
        ("high", ("FAILED", "UNJUDGED"), 11),
        ("high", ("FAILED", "FAILED"), 0),
        ("low", ("UNJUDGED", "missing.json", "FAILED"), 2),
    ],
)
def test_a_batch_exits_with_the_first_of_its_codes_that_applies(
    run: Run, severity: str, files: tuple[str, ...], code: int
) -> None:
    """2 before 10, 10 before 11, 11 before 0; every result is printed."""
    paths = {"FAILED": FAILED, "UNJUDGED": UNJUDGED}
    words = [w for name in files for w in ("--recording", paths.get(name, Path(name)))]
    done = run("audit", *words, "--output", "json", "--fail-on", severity)
    assert done.exit_code == code
    assert len(done.stdout.splitlines()) == sum(name in paths for name in files)


def test_a_describe_answer_alone_never_says_that_nothing_was_avoidable(run: Run) -> None:
    """A person reads what it cost, that nobody could look, and what to do."""
    shown = run("audit", "--recording", UNJUDGED).stdout
    assert "It cost $3.79, and what was avoidable could not be judged" in shown
    assert (
        "The use of its machines was not judged: the recording lacks these metrics of this job."
        in " ".join(shown.split())
    )
    assert "was found avoidable" not in shown


def running(tmp_path: Path, **changes: Any) -> Path:
    """A training job that has downloaded for ten minutes and trains since."""
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
    """Its last metric point is of 11:00: an hour on two instances, of which nothing is final."""
    point = {"host": "train-vision/algo-1", "metric": "CPUUtilization"}
    series = [{**point, "start": "2026-05-20T10:10:00Z", "values": [100.0] * 51 + [None]}]
    document = audited(running(tmp_path, metrics={"period_s": 60, "series": series}))
    compute = document["bill"]["lines"][0]
    assert compute["quantity"] == 2
    assert document["bill"]["total_usd"] == compute["usd"] > 0
    assert document["bill"]["complete"] is False
    assert "still runs" in document["bill"]["missing"][0]
    assert [part["seconds"] for part in document["phases"]] == [120, 600, 3000]
    assert (document["judged"], document["avoidable_usd"], document["lost_usd"]) == (
        "no",
        None,
        None,
    )


def test_a_running_job_without_metrics_is_shown_until_its_last_change(
    audited: Audited, tmp_path: Path
) -> None:
    """Ten minutes on two instances."""
    document = audited(running(tmp_path))
    assert document["bill"]["lines"][0]["quantity"] == pytest.approx(1 / 3, abs=1e-6)


def test_a_running_job_is_not_told_that_its_code_did_not_run(run: Run, tmp_path: Path) -> None:
    """It reads that the job still runs, what it cost so far, and once that nothing is judged."""
    shown = run("audit", "--recording", running(tmp_path)).stdout
    assert re.search(r"It still runs, and cost \$0\.2\d or more so far", shown)
    assert "its use can be judged only after its end" in " ".join(shown.split())
    assert "did not run" not in shown
    assert shown.count("has not ended (status InProgress)") == 1
    assert "Could not be checked" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a job"),
        (("--output", "xml"), "xml"),
        (("arn:aws:s3:::bucket",), "is not the ARN of a SageMaker job"),
        (("no/name", "--region", "us-east-1"), "neither an ARN nor a job name"),
        (("job", "--region", "us east"), "'us east' is not a region; a region looks like"),
        (("--recording", "x.json", "--policy", "/no/such.toml"), "/no/such.toml"),
    ],
)
def test_wrong_usage_exits_with_2(run: Run, words: tuple[str, ...], said: str) -> None:
    """What was wrong is said on stderr; stdout stays empty."""
    done = run("audit", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_policy_with_an_unknown_rule_is_refused(run: Run, tmp_path: Path) -> None:
    """A typing mistake never switches a rule off unseen."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[rules]\noff = ["gpu-idel"]\n')
    done = run("audit", "--recording", FAILED, "--policy", policy)
    assert done.exit_code == 2
    assert "gpu-idel" in done.stderr


def test_a_set_may_bring_its_tuning_jobs_own_answer(tmp_path: Path) -> None:
    """Then its trials are judged by its objective: the best was the second of twenty."""
    *trials, own = sweep(
        1, [0.80, 0.91, *(0.85 for _ in range(18))], {"Completed": 20}, Strategy="Bayesian"
    )
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps({**own, "children": trials}))
    document = audit_recording(path, Policy())
    assert (document["job"]["name"], document["job"]["status"]) == ("sweep", "Completed")
    [late] = [one for one in document["findings"] if one["rule"] == "tuning-plateau"]
    assert late["bucket"] == "possible"
    assert late["saving_usd"] is not None
    assert 0 < late["saving_usd"] < (document["bill"]["total_usd"] or 0)


def test_a_line_parts_the_reports_of_a_batch(run: Run) -> None:
    """None before the first, none after the last."""
    done = run("audit", "--recording", FAILED, "--recording", FSX_SPOT)
    lines = done.stdout.splitlines()
    [parted] = [place for place, line in enumerate(lines) if line and not line.strip("─")]
    assert 0 < parted < len(lines) - 1
    assert "  training job, " in lines[parted + 1]


def test_json_has_no_character_that_a_terminal_obeys(run: Run, tmp_path: Path) -> None:
    """Control, format and bidirectional characters are escapes, and read back as they were."""
    recorded = json.loads(FAILED.read_text())
    attack = "\x9b2J \x7f \u202egnp.exe\u2066 \u2028 \ue000 \U000e0041 é \x1b[31m"
    recorded |= {"as_of": "2026-05-20T10:00:00Z", "notes": [attack]}
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(recorded))
    result = run("audit", "--recording", path, "--output", "json")
    unseen = {unicodedata.category(char) for char in result.stdout.rstrip("\n")}
    assert not unseen & {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"}
    assert attack in result.document()["audit"]["coverage"]["missing"]
