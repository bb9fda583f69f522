"""An AutoML job on the local AWS: no event tells of it, and it is the only one with a message."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest

from local.recorded import RecordedJob
from sageaudit.domain.job.job import FINISHED
from sageaudit.structs import replace
from tests.fakes.automl import NAME, PARENT, automl_job, candidates
from tests.integration.whole_flow import Scene, scene

HOUR = timedelta(hours=1)


def run_all(current_scene: Scene, automl: RecordedJob, children: list[RecordedJob]) -> None:
    """Each child ends with its event; the AutoML job is only in the list."""
    current_scene.aws.sagemaker.add_running(automl)
    for child in sorted(children, key=lambda child: child.ended_at):
        current_scene.aws.advance(child.ended_at)
        current_scene.aws.end_job(child)


@pytest.mark.parametrize("version", [1, 2])
def test_an_automl_job_with_twelve_jobs_gets_one_message(version: int) -> None:
    """A sweep finds it, whichever API created it; the sums are those of all kinds of its jobs."""
    automl, children = automl_job(version=version), candidates(4)
    with scene(automl.key.created_at, sweeps=True) as current_scene:
        run_all(current_scene, automl, children)
        assert {child.kind.value for child in children} == {"training", "processing", "transform"}
        current_scene.aws.advance(automl.ended_at + 3 * HOUR)
        parts = [current_scene.audit(child) for child in children]
        audit = current_scene.audit(automl)
        assert {part["job"]["family"] for part in parts} == {PARENT}
        assert audit["bill"]["total_usd"] == sum(
            part["bill"]["total_usd"] or Decimal(0) for part in parts
        )
        assert audit["lost_usd"] == sum(part["lost_usd"] or Decimal(0) for part in parts)
        assert audit["audit"]["settled"]
        [headline] = current_scene.headlines()
        assert headline.startswith(f"*{NAME} lost about $0.64 in an AutoML job: ")
        assert len(current_scene.aws.mails) == 1
        assert "8 of 12 jobs" in json.dumps(current_scene.slack.posts)
        assert (
            current_scene.count("LostEventsFound", "sweep")
            == current_scene.count("JobsMissing", "sweep")
            == 0
        )
        assert not current_scene.dead_letters()


def test_an_automl_job_that_was_stopped_before_it_launched_anything_cost_nothing() -> None:
    """No candidate is listed, so its audit is complete, and nobody gets a message."""
    automl = automl_job("Stopped", hours=1)
    with scene(automl.key.created_at, sweeps=True) as current_scene:
        run_all(current_scene, automl, [])
        current_scene.aws.advance(automl.ended_at + 2 * HOUR)
        audit = current_scene.audit(automl)
        assert (audit["bill"]["total_usd"], audit["bill"]["complete"]) == (0, True)
        assert audit["audit"]["settled"]
        assert not current_scene.headlines()
        assert not current_scene.dead_letters()


def test_a_job_that_still_runs_is_waited_for_and_then_added() -> None:
    """The sum says that one is missing, and is made again once that one has ended."""
    automl, children = automl_job(), candidates(2)
    late = children[1]
    end = automl.ended_at + 5 * HOUR
    ends = {"TrainingEndTime": end.isoformat(), "LastModifiedTime": end.isoformat()}
    late = replace(late, describe={**late.describe, **ends})
    with scene(automl.key.created_at, sweeps=True) as current_scene:
        current_scene.aws.sagemaker.add_running(late)
        run_all(current_scene, automl, [child for child in children if child.name != late.name])
        current_scene.aws.advance(automl.ended_at + 2 * HOUR)
        first = current_scene.audit(automl)
        assert "1 of 6 jobs are not audited" in first["bill"]["missing"]
        assert not first["audit"]["settled"]
        current_scene.aws.advance(end)
        current_scene.aws.end_job(late)
        current_scene.aws.advance(end + 24 * HOUR)
        last = current_scene.audit(automl)
        assert current_scene.audit(late)["job"]["status"] in FINISHED
        assert (last["bill"]["missing"], last["audit"]["settled"]) == ([], True)
        assert (last["lost_usd"] or 0) > (first["lost_usd"] or 0)


def test_a_job_that_was_deleted_before_its_audit_is_missing_from_the_sum() -> None:
    """It has no audit, and no later one can come: a day later the sum is final, with a note."""
    automl, children = automl_job(), candidates(2)
    gone = children[4]
    with scene(automl.key.created_at, sweeps=True) as current_scene:
        current_scene.aws.sagemaker.add(gone)
        current_scene.aws.sagemaker.delete(gone)
        run_all(current_scene, automl, [child for child in children if child.name != gone.name])
        current_scene.aws.advance(automl.ended_at + 26 * HOUR)
        audit = current_scene.audit(automl)
        assert audit["audit"]["settled"]
        assert "1 of 6 jobs are not audited" in audit["bill"]["missing"]
