"""Scenes of the whole flow on the local AWS: what tests arrange and ask."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct

from local import ACCOUNT, REGION
from local.aws import LocalAws, local_aws
from local.demo import POLICY
from local.functions import OnStep, ProcessKilled
from local.recorded import RECORDINGS, RecordedJob, jobs_in_file
from local.slack import FakeSlack, slack_stand_in
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Routes
from sageaudit.structs import replace
from tests.fakes.lambda_events import parse_counts
from tests.fakes.quick_moto import quick_moto


class Scene(Struct, frozen=True):
    """A local AWS with Slack at its end."""

    aws: LocalAws
    slack: FakeSlack

    def head(self, job: RecordedJob) -> AuditSummary:
        """What the history says of a job."""
        head = self.aws.history().summary(job.key)
        assert head is not None
        return head

    def audit(self, job: RecordedJob) -> AuditDocument:
        """The job's newest audit."""
        audit = self.aws.history().audit(job.key)
        assert audit is not None
        return audit

    def versions(self, job: RecordedJob) -> int:
        """How many versions of its audit the history holds."""
        history = self.aws.history()
        return next(n for n in count() if history.audit(job.key, n + 1) is None)

    def headlines(self) -> list[str]:
        """What Slack was sent, by its first lines."""
        return [post["blocks"][0]["text"]["text"] for post in self.slack.posts]

    def mails(self, part: str = "Message") -> list[str]:
        """The texts of the mails, or their subjects."""
        return [json.loads(mail["Body"])[part] for mail in self.aws.mails]

    def dead_letters(self) -> list[dict[str, Any]]:
        """Takes what was given up, of all three queues."""
        names = (
            "TriggerFinishedJobsDeadLetters",
            "NoticesUndecidedAudits",
            "NoticesNoticesDeadLetters",
        )
        return [message for name in names for message in self.aws.take_messages(name)]

    def count(self, name: str, function: str) -> int:
        """One metric of a function, over all channels."""
        counts = parse_counts(self.aws.functions[function].log.getvalue())
        return sum(number for (metric, _), number in counts.items() if metric == name)


@contextmanager
def scene(
    start: datetime,
    on_step: OnStep = lambda _: None,
    *,
    sweeps: bool = False,
    policy: Policy | None = None,
    routes: Routes | None = None,
) -> Iterator[Scene]:
    """One scene from `start` on, with the demo's policy or another. Posts are steps too."""
    policy = policy or load_policy(POLICY)
    policy = policy if routes is None else replace(policy, routes=routes)
    with slack_stand_in() as slack, quick_moto():

        def transport(url: str, body: bytes, headers: Any) -> Any:
            on_step("before POST")
            answer = slack.transport(url, body, headers)
            on_step("after POST")
            return answer

        with local_aws(
            start, policy=policy, transport=transport, on_step=on_step, run_sweeps=sweeps
        ) as aws:
            yield Scene(aws, slack)


def recorded(name: str, folder: Path = RECORDINGS) -> RecordedJob:
    """The one job of a recording."""
    [job] = jobs_in_file(folder / f"{name}.json")
    return job


def a_failed_job() -> RecordedJob:
    """Two large hosts that failed: dear enough to be told, whole without metrics."""
    return recorded("training-020-c4-8xlarge-x2-failed")


def tuning_set(status: str) -> tuple[list[RecordedJob], RecordedJob]:
    """Five children and their tuning job; `status` is made the children's."""
    children = [
        replace(child, describe={**child.describe, "TrainingJobStatus": status})
        for child in jobs_in_file(RECORDINGS / "tuning-set-bayesian-221019-1807.json")
    ]
    return children, recorded("tuning-bayesian-221019-1807")


def renamed(job: RecordedJob, name: str, *, later: timedelta = timedelta(0)) -> RecordedJob:
    """The same job under another name, and at another time."""
    prefix = job.kind.spec.prefix
    arn = f"{job.arn.rpartition('/')[0]}/{name}"
    old = job.name
    describe = json.loads(
        json.dumps(dict(job.describe)), object_hook=lambda found: _shifted(found, later)
    )
    describe |= {f"{prefix}JobName": name, f"{prefix}JobArn": arn}
    series = tuple(
        replace(series, host=series.host.replace(old, name, 1), start=series.start + later)
        for series in job.series
    )
    return replace(job, describe=describe, series=series)


def _shifted(found: dict[str, Any], later: timedelta) -> dict[str, Any]:
    if not later:
        return found
    return {key: _later(key, value, later) for key, value in found.items()}


def _later(key: str, value: Any, later: timedelta) -> Any:
    if not key.endswith("Time"):
        return value
    if isinstance(value, int | float):
        return value + later.total_seconds()
    try:
        return (datetime.fromisoformat(value) + later).isoformat()
    except (TypeError, ValueError):
        return value


def delivered(job: RecordedJob) -> str:
    """The event of a job's end as EventBridge sends it to a queue."""
    entry = job.event()
    return json.dumps(
        {
            "source": entry["Source"],
            "detail-type": entry["DetailType"],
            "account": ACCOUNT,
            "region": REGION,
            "time": job.ended_at.isoformat(),
            "detail": json.loads(entry["Detail"]),
        }
    )


class Steps:
    """Ends the process at the first step of a name, once."""

    def __init__(self, *, kill_first: str) -> None:
        self.killed = False
        self._kill_first = kill_first

    def __call__(self, name: str) -> None:
        """One step."""
        if not self.killed and name == self._kill_first:
            self.killed = True
            raise ProcessKilled(name)
