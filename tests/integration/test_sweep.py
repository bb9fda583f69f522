"""A sweep on the local AWS beside an audit that waits; the runbook has those that find jobs."""

from datetime import timedelta
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from local.requests import Send
from tests.integration.whole_flow import a_failed_job, scene

HOUR = timedelta(hours=1)


def test_a_job_whose_audit_is_throttled_for_hours_is_missing_and_not_found() -> None:
    """Its event came: it is not sent once more, and no alarm says that events are lost."""
    job = a_failed_job()
    until = job.ended_at + 2 * HOUR
    with scene(job.ended_at - HOUR, sweeps=True) as current_scene:
        current_scene.aws.advance(job.ended_at)

        def throttled(asked: str, _: Any, send: Send) -> AWSResponse:
            if asked == "sagemaker.DescribeTrainingJob" and current_scene.aws.clock.now() < until:
                said = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
                raise ClientError(said, "DescribeTrainingJob")
            return send()

        current_scene.aws.requests.interceptor = throttled
        current_scene.aws.end_job(job)
        current_scene.aws.advance(job.ended_at + 4 * HOUR)
        assert current_scene.count("JobsAudited", "audit") == 1
        assert current_scene.count("JobsMissing", "sweep") > 2
        assert current_scene.count("LostEventsFound", "sweep") == 0
        assert current_scene.count("DuplicateEvents", "audit") == 0
        assert not current_scene.dead_letters()
