"""The demo's jobs have all ended: what is printed, what the history holds, and who was notified."""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from local import demo
from local.recorded import RecordedJob, jobs_in_file, recorded_jobs
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.workflows.example import company
from tests.integration.whole_flow import Scene, a_failed_job, recorded, scene, tuning_set


@dataclass(frozen=True, slots=True)
class Played:
    """The demo after its end: the local AWS, and what was printed."""

    scene: Scene
    jobs: list[RecordedJob]
    shown: str


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    """The demo's own run on a terminal of 80 columns; every job was audited."""
    jobs = recorded_jobs()
    with scene(jobs[0].ended_at) as current_scene:
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
            patch.setenv("COLUMNS", "80")
            assert (
                demo.run_demo(
                    jobs, load_policy(demo.POLICY), current_scene.aws, current_scene.slack
                )
                == 0
            )
        yield Played(current_scene, jobs, out.getvalue())


def test_the_demo_shows_what_happened(played: Played) -> None:
    """The result in one sentence, how much is real, the jobs, and an answer of the history."""
    first = " ".join(played.shown.split()[:18])
    figures = "about $11.40 or more was avoidable and about $0.16 was lost"
    assert first == f"26 jobs cost up to about $33.12: {figures}."
    for part in ("25 of them are real", "not judged", "up to $0.74", "about $0.54"):
        assert part in played.shown
    assert "The GPU averaged 6% (P95 7%)" in played.shown
    assert "\x1b" not in played.shown
    assert max(map(len, played.shown.splitlines())) <= 80


def test_the_message_shown_is_of_dollars_that_a_fix_avoids(played: Played) -> None:
    """3 h x ($4.89 - 1.52 x $0.94), with the parameter to change; which job is made up is said."""
    [job] = jobs_in_file(demo.COMPOSED)
    message = played.shown[played.shown.index("as on a phone:") :]
    for part in (
        "saves $10.38 of this run's",
        'InstanceType = "ml.g4dn.2xlarge"',
        "tile-classifier wasted about $10 in 1",
    ):
        assert part in message
    assert f"{job.name} is made up" in played.shown


def test_the_demo_ends_with_a_report_of_its_jobs(played: Played) -> None:
    """It says where the page lies; its headline is the sum that the first line printed."""
    assert played.shown.splitlines()[-1].startswith("build/demo-report.html: ")
    page = demo.REPORT.read_text(encoding="utf-8")
    headline = (
        "26 jobs cost up to about $33.12: about $11.40 or more was avoidable and about $0.16 was"
        " lost."
    )
    assert headline in page
    assert all(job.name in page for job in played.jobs)


def test_each_job_has_one_audit(played: Played) -> None:
    """Of a real job something is said, and it is said once; no handler fails on it unseen."""
    versions = {job.name: played.scene.versions(job) for job in played.jobs}
    assert versions == dict.fromkeys(versions, 1)
    assert {played.scene.head(job).unauditable for job in played.jobs} == {None}
    assert not any(function.failures for function in played.scene.aws.functions.values())


def test_a_loss_is_told_once_on_each_channel(played: Played) -> None:
    """Of the failures only the dearest is worth a message under the demo's floor."""
    [lost] = [headline for headline in played.scene.headlines() if "lost" in headline]
    assert lost.startswith("*c7n-job lost about $0.15 in 1 run: ")
    mails = [json.loads(mail["Body"])["Message"] for mail in played.scene.aws.mails]
    assert sum(a_failed_job().name in mail for mail in mails) == 1


def test_a_run_on_more_gpus_than_it_used_is_told_with_the_smaller_type(played: Played) -> None:
    """3 h of ml.g4dn.12xlarge at $4.89 that ml.g4dn.2xlarge holds at $0.94, for up to 4.57 h.

    Four GPUs at 17.43% take at most 1 + 0.1743 x 3 times as long on one.
    """
    document = played.scene.audit(recorded("composed-g4dn-12xlarge"))
    assert document["bill"]["total_usd"] == Decimal("14.67")
    assert document["avoidable_usd"] == Decimal("14.67") - 3 * Decimal("0.94") * Decimal("1.5229")
    [fix] = document["findings"][0]["fix"]
    assert fix["new"] == "ml.g4dn.2xlarge"
    assert "use 1 x ml.g4dn.2xlarge" in played.scene.headlines()[-1]


def test_prices_that_may_not_be_asked_are_the_packaged_ones(played: Played) -> None:
    """The line of the bill says why, and the message does not carry it."""
    document = played.scene.audit(recorded("composed-g4dn-12xlarge"))
    [line] = document["bill"]["lines"]
    assert "packaged 2026-05-20: pricing:GetProducts is not permitted" in (line["note"] or "")
    assert "GetProducts" not in str(played.scene.slack.posts)


def test_points_are_read_by_the_minute(played: Played) -> None:
    """The local clock stands shortly after the job's end, as it does for the deployed function."""
    job = recorded("profiled-053-g4dn-xlarge")
    coverage = played.scene.audit(job)["audit"]["coverage"]
    assert coverage["period_s"] == 60
    assert played.scene.head(job).settled


def test_children_are_added_up(played: Played) -> None:
    """The tuning job's bill is the sum of its children's, and no sum of its own."""
    children, tuning = tuning_set("Completed")
    parts = [played.scene.audit(child)["bill"]["total_usd"] or Decimal(0) for child in children]
    document = played.scene.audit(tuning)
    assert document["rollup"]
    assert document["bill"]["total_usd"] == sum(parts)


def test_the_demo_writes_weeks_of_a_made_up_company(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the recorded jobs, in a file of its own, with what to ask it."""
    alone = [workload for workload in company.WORKLOADS if workload.name == "map-tiles"]
    monkeypatch.setattr(company, "WORKLOADS", alone)
    monkeypatch.setattr(demo, "EXAMPLE", tmp_path / "example.db")
    demo.show_example()
    shown = capsys.readouterr().out
    assert "The example company is made up. The history has 28 audits of its jobs;" in shown
    assert "sageaudit savings --history" in shown
    assert demo.EXAMPLE.is_file()
