"""A week with 200 jobs in which everything fails: in the end nothing is lost or wrong.

Times are hours from Monday 00:00. Events are lost, duplicated and late. Every 37th invocation dies
at some step, and every 50th write succeeds without an answer.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from random import Random
from string import ascii_lowercase

import pytest
from msgspec import Struct

from local.functions import ProcessKilled
from local.recorded import RecordedJob
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.structs import replace
from tests.faults.network import Fault
from tests.faults.stories import HOUR, Story, stories
from tests.faults.verdict import baseline
from tests.faults.webhook import WebhookAnswer
from tests.faults.world import REPEAT, World, open_world
from tests.integration.whole_flow import a_failed_job, recorded, renamed, tuning_set

DAY = 24 * HOUR
PLAIN, LATE, LOST, DELETED, OLD = 150, 24, 15, 4, 10
TUNING = 2
FIRST_END, LAST_END = 30, 140
"""Hours at which the first and the last job end."""
WRITES = ("PutItem", "UpdateItem", "TransactWriteItems", "SendMessage")
STEPS = ("before ", "after ", "answered ")
MENDED = 153
"""The hour from which nothing fails."""


class Week(Struct, frozen=True):
    """The jobs by group, and the start of the week."""

    plain: tuple[RecordedJob, ...]
    late: tuple[RecordedJob, ...]
    tuning: tuple[tuple[RecordedJob, ...], ...]
    deleted: tuple[RecordedJob, ...]
    old: tuple[RecordedJob, ...]
    start: datetime

    @property
    def audited(self) -> tuple[RecordedJob, ...]:
        """All jobs except those that were deleted before their audit."""
        return (
            *self.plain,
            *self.late,
            *self.old,
            *(job for tuning_set in self.tuning for job in tuning_set),
        )


def _word(number: int) -> str:
    """Returns a name without digits, so that each job is its own family."""
    return ascii_lowercase[number // 26] + ascii_lowercase[number % 26]


def week() -> Week:
    """Returns two hundred recorded jobs with other names and times."""
    start = datetime.fromisoformat("2026-05-04T00:00:00+00:00")

    def at(job: RecordedJob, name: str, hour: float) -> RecordedJob:
        return renamed(job, name, later=start + hour * HOUR - job.ended_at)

    failed, measured = a_failed_job(), recorded("profiled-053-g4dn-xlarge")
    span = (LAST_END - FIRST_END) / PLAIN
    children, tuning = tuning_set("Failed")
    sets = []
    for n in range(TUNING):
        later = start + (50 + 40 * n) * HOUR - tuning.ended_at
        arn = tuning.arn.replace(tuning.name, f"{tuning.name}-{_word(n)}")
        moved = [renamed(c, f"{c.name}-{_word(n)}", later=later) for c in children]
        moved = [replace(c, describe={**c.describe, "TuningJobArn": arn}) for c in moved]
        sets.append((*moved, renamed(tuning, f"{tuning.name}-{_word(n)}", later=later)))
    return Week(
        plain=tuple(at(failed, f"plain-{_word(n)}", FIRST_END + n * span) for n in range(PLAIN)),
        late=tuple(at(measured, f"late-{_word(n)}", FIRST_END + 4 * n) for n in range(LATE)),
        tuning=tuple(sets),
        deleted=tuple(at(failed, f"gone-{_word(n)}", 40 + 20 * n) for n in range(DELETED)),
        old=tuple(at(failed, f"old-{_word(n)}", 2 + n / 10) for n in range(OLD)),
        start=start,
    )


SLACK = (
    (34.0, 34.04, WebhookAnswer(hangs=True)),
    (38.0, 38.33, WebhookAnswer(body="<html>a hotel</html>", accepts=False)),
    (38.33, 38.42, WebhookAnswer(302, "", (("Location", "http://169.254.169.254/"),))),
    (42.0, 42.5, WebhookAnswer(502, "", accepts=True)),
    (81.0, MENDED, WebhookAnswer(404, "no_service")),
)
AWS: tuple[tuple[float, float, str, Fault | tuple[int, str]], ...] = (
    (33, 81, "sns.Publish", (400, "KMSDisabled")),
    (50, 56, "sagemaker.Describe", Fault.THROTTLED_LONG),
    (58, 58.33, "sagemaker.ListTags", Fault.THROTTLED_LONG),
    (60, 61, "sqs.", Fault.DOWN),
    (68, 74, "dynamodb.", Fault.DOWN),
    (102, 103, "sagemaker.ListTrainingJobs", Fault.DOWN),
    (103, 103.5, "sagemaker.ListProcessingJobs", Fault.ENDLESS),
    (106, 106.5, "secrets-manager.", Fault.HANGS),
    (120, 124, "cloudwatch.", Fault.DOWN),
)


@dataclass
class Troubles:
    """Schedules the faults of the week."""

    start: datetime
    dice: Random
    writes: int = 0
    invocations: int = 0
    dies_at: int = 0
    steps: int = 0
    world: World | None = None
    deaths: Counter[str] = field(default_factory=Counter)

    def hour(self) -> float:
        """Returns the current hour of the week."""
        assert self.world is not None
        return (self.world.now - self.start) / HOUR

    def slack_answer(self, now: datetime) -> WebhookAnswer | None:
        """Returns the webhook's answer to a post now."""
        hour = (now - self.start) / HOUR
        return next((says for since, until, says in SLACK if since <= hour < until), None)

    def aws_fault(self, function: str, name: str) -> Fault | tuple[int, str] | None:
        """Returns the fault of an AWS request now."""
        hour = self.hour()
        if hour >= MENDED or not function:
            return None
        for since, until, what, fault in AWS:
            if since <= hour < until and name.startswith(what):
                return fault
        if any(write in name for write in WRITES):
            self.writes += 1
            if not self.writes % 50:
                return Fault.UNANSWERED
        return None

    def step(self, name: str) -> None:
        """Kills every 37th invocation at one of its first 12 steps."""
        if self.world is None or self.hour() >= MENDED:
            return
        if name.startswith("answered"):
            self.invocations += 1
            self.steps = 0
            self.dies_at = 0 if self.invocations % 37 else self.dice.randint(1, 12)
            return
        self.steps += 1
        if self.dies_at and self.steps >= self.dies_at:
            self.dies_at = 0
            self.deaths[name] += 1
            raise ProcessKilled(name)


def _timeline(jobs_of_week: Week, dice: Random) -> Iterator[tuple[datetime, str, RecordedJob]]:
    """Yields what happens when: ends, events (late, repeated or none), late metrics, deletions."""
    lost = set(dice.sample([job.name for job in jobs_of_week.plain], LOST - 2))
    lost |= {jobs[0].name for jobs in jobs_of_week.tuning}
    repeated_names = {job.name for job in dice.sample(jobs_of_week.plain, 5)}
    for job in (*jobs_of_week.audited, *jobs_of_week.deleted):
        yield job.ended_at, "ends", job
        if job in jobs_of_week.old:
            continue
        copies = 0 if job.name in lost else 1 + dice.randrange(3)
        for _ in range(20 if job.name in repeated_names else copies):
            yield job.ended_at + timedelta(minutes=dice.randrange(20)), "event", job
    for job in jobs_of_week.late:
        yield job.ended_at + timedelta(minutes=dice.choice((8, 40))), "measured", job
    for job in jobs_of_week.deleted:
        yield job.ended_at + timedelta(seconds=10), "deleted", job
    for job in dice.sample(jobs_of_week.plain[:40], 10):
        yield job.ended_at + 5 * DAY, "event", job


def _live(world: World, jobs_of_week: Week, dice: Random) -> None:
    swept = world.now
    for moment, what, job in sorted(
        _timeline(jobs_of_week, dice), key=lambda happening: happening[0]
    ):
        while swept + HOUR < moment:
            swept += HOUR
            world.quiet(swept)
            world.aws.sweep()
        world.quiet(moment)
        match what:
            case "ends":
                world.aws.sagemaker.add(job)
                if job not in jobs_of_week.late:
                    world.aws.put_metrics(job)
            case "event":
                world.aws.put_event(job.event())
            case "measured":
                world.aws.put_metrics(job)
            case "deleted":
                world.aws.sagemaker.delete(job)


def _expected_audit(job: RecordedJob) -> AuditDocument:
    """Returns the audit of an undisturbed run of the job."""
    return baseline(_alone(job.kind.value, job.name.split("-")[0])).audits[_sample(job).name]


@cache
def _alone(kind: str, group: str) -> Story:
    plain = stories()[0]
    jobs = {"late": recorded("profiled-053-g4dn-xlarge")}
    return replace(plain, name=f"alone {group}", jobs=(jobs.get(group, plain.jobs[0]),))


def _sample(job: RecordedJob) -> RecordedJob:
    return _alone(job.kind.value, job.name.split("-")[0]).jobs[0]


@pytest.mark.faults
@pytest.mark.parametrize("seed", [1])
def test_after_the_worst_days_everything_is_right_and_reported(seed: int) -> None:
    """Each audit is right and final; each message is sent or a dead letter that a redrive sends."""
    jobs_of_week, dice = week(), Random(seed)
    for jobs in (jobs_of_week.plain, jobs_of_week.late, jobs_of_week.old):
        _expected_audit(jobs[0])  # first, because only one local AWS can exist at a time
    troubles = Troubles(jobs_of_week.start, dice)
    with open_world(jobs_of_week.start + 6 * HOUR, on_step=troubles.step) as world:
        troubles.world = world
        world.slack.plan, world.network.plan = troubles.slack_answer, troubles.aws_fault
        for job in jobs_of_week.old:
            world.aws.sagemaker.add(job)
        _live(world, jobs_of_week, dice)
        world.quiet(max(world.now, jobs_of_week.start + MENDED * HOUR))
        assert troubles.deaths
        for letter in world.letters():
            assert letter.reason, letter
            assert letter.why, letter
        for _ in range(8):
            world.sweep()
            world.quiet(world.now + HOUR)
        world.settle()
        world.redrive_by_command()
        world.quiet()
        _check_week(world, jobs_of_week)


def _check_week(world: World, jobs_of_week: Week) -> None:
    assert not world.letters()
    assert not world.waiting()
    assert not world.due()
    assert not world.count("Abandoned")
    assert world.slack.strangers == []
    for job in (*jobs_of_week.audited, *jobs_of_week.deleted):
        head = world.summary(job)
        assert head is not None, job.name
        assert head.settled, job.name
        assert (head.unauditable is not None) == (job in jobs_of_week.deleted), job.name
    for job in (*jobs_of_week.plain, *jobs_of_week.late, *jobs_of_week.old):
        audit, right = world.audit(job), _expected_audit(job)
        assert audit is not None
        assert audit["bill"]["total_usd"] == right["bill"]["total_usd"], job.name
        assert audit["avoidable_usd"] == right["avoidable_usd"], job.name
        assert audit["lost_usd"] == right["lost_usd"], job.name
        assert audit["possible_usd"] == right["possible_usd"], job.name
    for *children, tuning in jobs_of_week.tuning:
        audits = [world.audit(child) for child in children]
        whole = world.audit(tuning)
        assert whole is not None
        totals = [audit["bill"]["total_usd"] or 0 for audit in audits if audit is not None]
        assert len(totals) == len(children)
        assert whole["bill"]["total_usd"] == sum(totals)
    should = {job.name for job in jobs_of_week.plain} | {
        jobs[-1].name for jobs in jobs_of_week.tuning
    }
    for channel in ("slack", "sns"):
        lines = [line for line in world.shown(channel) if "late-" not in line]
        shown = Counter(line.replace(REPEAT, "").strip(" *").partition(" ")[0] for line in lines)
        assert set(shown) == should, (channel, should ^ set(shown))
        plain = Counter(line for line in lines if REPEAT not in line)
        assert max(plain.values()) == 1, channel
