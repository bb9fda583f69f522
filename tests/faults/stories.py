"""Stories: one or more jobs end, and something may already be broken.

A broken story shows calls that are made only then: to wait, give up, or decide again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache

from msgspec import Struct

from local.demo import POLICY
from local.functions import OnStep
from local.recorded import RecordedJob
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Routes
from sageaudit.structs import replace
from tests.faults.calls import Call
from tests.faults.network import Broken, Fault
from tests.faults.webhook import WebhookAnswer
from tests.faults.world import World, open_world
from tests.integration.test_running import BUSY, HUNG, running
from tests.integration.whole_flow import a_failed_job, recorded, renamed, tuning_set

HOUR = timedelta(hours=1)
DIGEST_AFTER = timedelta(days=8)
"""When the digest starts, after the job's end."""


class Story(Struct, frozen=True, eq=False):
    """A story. `jobs`: in the order of their ends; `play` ends them and delivers everything."""

    name: str
    jobs: tuple[RecordedJob, ...]
    play: Callable[[World, tuple[RecordedJob, ...]], None]
    broken: tuple[tuple[Call, Fault, timedelta], ...] = ()
    """What fails from the start, and how long."""
    slack: tuple[WebhookAnswer, ...] = ()
    policy: Policy | None = None
    """The policy, if not that of the local AWS."""
    early: timedelta = timedelta(0)
    """How long before the end of the first job the story begins."""
    seen_at: str = "(?!)"
    """Pattern of the words in a first line that may differ with the time of writing."""
    most_of_a_call: int = 2
    """How many calls with the same name are tried: the second is for another message or page."""

    @property
    def start(self) -> datetime:
        """When the story begins."""
        return min(job.ended_at for job in self.jobs) - self.early

    def begin(self, world: World) -> None:
        """Sets up what is broken, and plays the jobs."""
        world.slack.script.extend(self.slack)
        world.network.broken += [
            Broken(call, fault, self.start + lasts) for call, fault, lasts in self.broken
        ]
        self.play(world, self.jobs)


def _ends(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    for job in jobs:
        world.aws.end_job(job)
    world.quiet()


def _late(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """Metrics arrive ten minutes after the end."""
    [job] = jobs
    world.aws.end_job(job, with_metrics=False)
    world.quiet(job.ended_at + timedelta(minutes=10))
    world.aws.put_metrics(job)
    world.quiet()


def _roll_up_first(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """The tuning job's event arrives before those of its children."""
    *children, tuning = jobs
    world.aws.end_job(tuning)
    world.quiet(tuning.ended_at + timedelta(minutes=10))
    for child in children:
        world.aws.end_job(child)
    world.quiet()


def _forged(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """One message next to the job's event is not an event."""
    queue = world.aws.physical_id("TriggerFinishedJobs")
    world.aws.session.client("sqs").send_message(QueueUrl=queue, MessageBody="{not json")
    _ends(world, jobs)


def _gone_notice(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """One message among the notices is not a notice."""
    queue = world.aws.physical_id("NoticesQueueSlack")
    world.aws.session.client("sqs").send_message(QueueUrl=queue, MessageBody="{not json")
    _ends(world, jobs)


def _lost_event(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """No event arrives: a sweep finds the job."""
    [job] = jobs
    world.sweep()
    world.aws.clock.advance_to(job.ended_at)
    world.aws.sagemaker.add(job)
    world.aws.put_metrics(job)
    for _ in range(4):
        world.quiet(world.now + HOUR)
        world.sweep()


def _hangs(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """A running job hangs for hours and then works again; sweeps notice both."""
    [job] = jobs
    world.aws.sagemaker.add_running(job)
    world.aws.put_metrics(job)
    for _ in range(9):
        world.quiet(world.now + HOUR)
        world.sweep()


def _digest(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """The digest starts repeatedly, eight days after the job's end."""
    _ends(world, jobs)
    world.aws.clock.advance_to(jobs[0].ended_at + DIGEST_AFTER)
    world.digest()


def _passes_budget(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """The job passes the budget; a watch of each following hour checks it."""
    _ends(world, jobs)
    for _ in range(9):
        hour = world.now.replace(minute=0, second=0, microsecond=0) + HOUR
        world.quiet(hour + timedelta(minutes=9))
        world.sweep()


def _in_turn(world: World, jobs: tuple[RecordedJob, ...]) -> None:
    """Each job is decided about before the next one ends."""
    for job in jobs:
        world.aws.end_job(job)
        world.quiet(world.now + timedelta(minutes=7))
    world.quiet()


def _to(*channels: str, max_per_hour: int = 20) -> Policy:
    """Returns the policy of the local AWS, with messages to these channels only."""
    policy = load_policy(POLICY)
    chosen = {
        name: replace(channel, max_per_hour=max_per_hour)
        for name, channel in policy.channels.items()
    }
    return replace(policy, channels=chosen, routes=Routes(channels))


def _line_to(channel: str) -> Policy:
    """Returns a policy with messages to SNS, and a line about each job to this channel."""
    policy = _to("sns")
    with_lines = replace(policy.channels[channel], job_lines=True)
    return replace(policy, channels={**policy.channels, channel: with_lines})


_TIMES = r" for .* min"
SLOWLY = WebhookAnswer(429, "rate_limited", (("Retry-After", "600"),))
DESCRIBE = Call("audit", "sagemaker.DescribeTrainingJob", 1)
DECIDES = Call("notify", "dynamodb.GetItem ALERTS ALERTS", 1)
QUEUES = Call("notify", "sqs.SendMessage NoticesQueueSns", 1)


@cache
def stories() -> tuple[Story, ...]:
    """Returns all stories; the first one is the normal case."""
    failed = a_failed_job()
    children, tuning = tuning_set("Failed")
    hung = running("hung", (15, BUSY), (375, HUNG), (210, BUSY))
    healthy = recorded("processing-051-completed")
    later = failed.ended_at + timedelta(minutes=7) - healthy.ended_at
    healthy = renamed(healthy, "features-2018", later=later)
    above = tuple(
        renamed(failed, f"family-{word}-2018", later=timedelta(minutes=minutes))
        for word, minutes in (("one", 0), ("two", 7), ("three", 14))
    )
    return (
        Story("notified", (failed,), _ends),
        Story("late metrics", (recorded("profiled-053-g4dn-xlarge"),), _late, most_of_a_call=1),
        Story("processing", (recorded("processing-067-failed"),), _ends),
        Story("transform", (recorded("transform-164-completed"),), _ends),
        Story("roll-up", (*children, tuning), _roll_up_first),
        Story("waiting", (failed,), _ends, broken=((DESCRIBE, Fault.THROTTLED_LONG, HOUR),)),
        Story("set aside", (failed,), _ends, broken=((DECIDES, Fault.THROTTLED_LONG, HOUR),)),
        Story("queued late", (failed,), _ends, broken=((QUEUES, Fault.THROTTLED_LONG, HOUR),)),
        Story("slow channel", (failed,), _ends, slack=(SLOWLY,)),
        Story("revoked", (failed,), _ends, slack=(WebhookAnswer(404, "no_service"),) * 4),
        Story("no event", (failed,), _forged),
        Story("lost event", (failed,), _lost_event, early=HOUR, most_of_a_call=1),
        Story("no notice", (failed,), _gone_notice),
        Story("digest", (failed,), _digest, most_of_a_call=1),
        Story(
            "hangs",
            (hung,),
            _hangs,
            policy=_to("sns"),
            early=10 * HOUR,
            seen_at=_TIMES,
            most_of_a_call=1,
        ),
        Story(
            "budget",
            (failed,),
            _passes_budget,
            policy=replace(_to("sns"), budgets=(Budget("all jobs", Decimal("0.01")),)),
            most_of_a_call=1,
        ),
        Story("on Teams", (failed,), _ends, policy=_to("sns", "research")),
        Story("every job", (failed, healthy), _ends, policy=_line_to("slack")),
        Story("above the most", above, _in_turn, policy=_to("sns", "slack", max_per_hour=1)),
    )


@contextmanager
def played(
    story: Story,
    breaks: Callable[[World], None] = lambda _: None,
    *,
    on_step: OnStep = lambda _: None,
) -> Iterator[World]:
    """Plays a story in which `breaks` breaks something more; yields the resulting world."""
    with open_world(story.start, policy=story.policy, on_step=on_step) as world:
        breaks(world)
        story.begin(world)
        yield world


@cache
def without_faults(story: Story) -> Story:
    """Returns the story without its own faults; the same story if it has none."""
    if not story.broken and not story.slack:
        return story
    return replace(story, broken=(), slack=())
