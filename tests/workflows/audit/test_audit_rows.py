"""What becomes of events: scenarios that were written from the facts before the code was.

A row says how many runs are in the history at the end, in how many versions, what was counted and
asked, and where messages stand. Its story is a function here, named after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Missing
from sageaudit.errors import AccessDenied, Throttled, Unavailable
from sageaudit.rules.card import Ruleset
from tests.fakes.audit_world import OTHER_ACCOUNT, World, answer, at, event, running
from tests.fakes.jobs import ACCOUNT, REGION, transition

ROWS: dict[str, dict[str, Any]] = {
    row["id"]: row
    for row in map(
        json.loads,
        (Path(__file__).parent / "audits.jsonl").read_text(encoding="utf-8").splitlines(),
    )
}
DIFFERS = {
    "A85": "the history has no list of the runs of a name: a replay without creation time of a job"
    " that is gone is dropped, and the audit stands",
    "A86": "as A85",
    "A87": "a job that still runs is audited when it has ended: its replay is dropped, not refused",
    "A88": "a run that only a person names, and not Describe, is dropped, not refused",
    "A82": "made-up names are dropped and counted as UnknownJobs, not refused",
    "A06": "the bus passes no such event: it is refused, and a dead letter",
    "A43": "a wait is counted once SQS has answered; JobsAudited may be 2, as a message that failed"
    " comes back to what its copy has recorded",
    "A47": "JobsUnauditable is a part of JobsAudited",
}
"""Rows of which the counts differ, with the reason; everything else holds."""
ELSEWHERE = {
    **dict.fromkeys(("A07", "A08", "A09", "A10", "A11", "A50"), "the sweep's rows"),
    **dict.fromkeys(("A26", "A27", "A28", "A29", "A30", "A31"), "test_roll_up"),
    **dict.fromkeys(("A109", "A110"), "test_any_order"),
    **dict.fromkeys(("A111", "A119"), "notify's and the history's tests"),
    **dict.fromkeys(("A48", "A49"), "tests of the second look"),
    **dict.fromkeys(("A03", "A37", "A80", "A81", "A112", "A113"), "tests of the adapters"),
    "A76": "the template's tests: the rule passes BUS_SOURCES",
}
"""Rows that tests of other parts tell, where their story can be told."""
NEW_RUN = answer(CreationTime="2026-05-20T12:00:00Z", LastModifiedTime="2026-05-20T13:00:01Z")
NEW_RUNNING = running(CreationTime="2026-05-20T12:00:00Z")
THROTTLED, AWAY = Throttled("slow down"), Unavailable("no answer")
SWEPT = event(source="sageaudit.sweep")
REPLAYED = event(source="sageaudit.replay", CreationTime=None)
Story = Callable[[World], None]


def delivered(*bodies: str) -> Story:
    """The events of a job that SageMaker knows, each after the one before."""

    def story(world: World) -> None:
        world.job()
        for body in bodies:
            world.send(body)
            world.run()

    return story


def asked(*bodies: str) -> Story:
    """The events of names that SageMaker does not know, or that no one may send."""

    def story(world: World) -> None:
        for body in bodies:
            world.send(body)
            world.run()

    return story


def story(*arranged: Story, of: str = "") -> Story:
    """The event of the job, or another one, after some arrangements."""

    def told(world: World) -> None:
        for arrange in arranged:
            arrange(world)
        world.send(of or event())
        world.run()

    return told


def job(*answers: tuple[float, Any]) -> Story:
    """SageMaker's answers, each from a minute on; by default the job that has ended."""
    return lambda world: world.job("train-vision", *answers)


def late(minutes: float) -> Story:
    """The metrics are whole so many minutes after the end."""

    def arrange(world: World) -> None:
        world.minutes_of_metrics = [(at(-60), 5), (at(minutes), 60)]

    return arrange


def failing(operations: str, error: Exception, until_min: float) -> Story:
    """Operations that fail until a minute."""
    return lambda world: world.fails(operations, error, until_min)


def _month_later(world: World, *, deleted: bool = False) -> None:
    world.job("train-vision", (-60, answer()), *([(60, None)] if deleted else []))
    world.send()
    world.run(60 * 24 * 30)
    world.counts.clear()
    world.calls.clear()
    world.send()
    world.run(60 * 24 * 31)


def _older_state(world: World) -> None:
    world.job()
    world.send()
    world.run(10)
    world.job("train-vision", (0, answer(LastModifiedTime="2026-05-20T10:59:00Z")))
    world.calls.clear()
    world.send()
    world.run()


def _touched(world: World) -> None:
    world.job()
    world.send()
    world.run(10)
    world.calls.clear()
    world.job("train-vision", (0, answer(LastModifiedTime="2026-05-20T12:00:00Z")))
    world.send()
    world.run()


def _metrics_late_for_long(world: World) -> None:
    world.job()
    late(40)(world)
    world.send()
    world.run(60)
    assert [head.settled for head in world.heads()] == [False]
    world.now = at(90)
    world.send(SWEPT)
    world.run()


def _tags_never(world: World) -> None:
    world.job()
    world.fails("ListTags", THROTTLED, 10**6)
    world.send()
    world.run()
    assert [head.settled for head in world.heads()] == [False]


def _twins_wait(world: World) -> None:
    world.job()
    late(15)(world)
    world.send()
    world.send()
    world.run()


def _outage(operations: str, hours: float, error: Exception = THROTTLED) -> Story:
    def told(world: World) -> None:
        for number in range(200):
            world.job(f"train-{number}")
            world.send(event(f"train-{number}"))
        world.fails(operations, error, hours * 60)
        world.run()

    return told


def _killed(step: str) -> Story:
    def told(world: World) -> None:
        world.job()
        world.kill_at = step
        world.send()
        world.run()
        assert world.kill_at is None

    return told


def _resent_and_kept(world: World) -> None:
    world.job("train-vision", (-60, running()), (5.5, answer()))
    world.deletes_fail = 1
    world.send()
    world.run()


def _resent_twice(world: World) -> None:
    world.job("train-vision", (-60, running()), (5.5, answer()))
    world.queue.answers_are_lost = 1
    world.send()
    world.run()


def _too_old(world: World) -> None:
    world.job()
    world.fails("Describe", THROTTLED, 60 * 24 * 30)
    world.send()
    world.run()


def _redriven(world: World) -> None:
    _too_old(world)
    [letter] = world.dead.messages.values()
    assert letter.attributes["reason"] == "gave_up"
    assert letter.attributes["first-sent"]
    world.now = at(60 * 24 * 31)
    world.counts.clear()
    world.calls.clear()
    world.dead.messages.clear()
    world.send(letter.body)
    world.run()


def _denied(world: World) -> None:
    world.job()
    action = "sagemaker:DescribeTrainingJob"
    world.fails("Describe", AccessDenied(action, f"{action} is not permitted."), 60 * 24 * 4)
    world.send()
    world.run()
    [letter] = world.letters()
    assert action in letter["why"]


def _both_runs(first: str, second: str) -> Story:
    def told(world: World) -> None:
        world.job("train-vision", (-60, NEW_RUN))
        for body in (first, second):
            world.send(body)
            world.run()

    return told


NEW_EVENT = event(CreationTime="2026-05-20T12:00:00Z")


def _old_event_after(world: World) -> None:
    world.job("train-vision", (-60, NEW_RUN))
    for body in (NEW_EVENT, event(), event()):
        world.send(body)
        world.run()
    world.calls.clear()
    world.send()
    world.run()


def _replay_of_known(world: World) -> None:
    delivered(event())(world)
    world.counts.clear()
    world.calls.clear()
    world.send(REPLAYED)
    world.run()


def _replay_of_deleted(world: World) -> None:
    world.job("train-vision", (-60, answer()), (60, None))
    world.send()
    world.run(70)
    world.counts.clear()
    world.calls.clear()
    world.send(REPLAYED)
    world.run()


def _replay_of_two_runs(world: World) -> None:
    world.job("train-vision", (-60, answer()), (60, NEW_RUN), (200, None))
    world.send()
    world.run(100)
    world.send(NEW_EVENT)
    world.run(250)
    world.calls.clear()
    world.counts.clear()
    world.send(REPLAYED)
    world.run()


def _tagged(text: str, *, is_lost: bool = False) -> Story:
    """A job that failed, with a tag of its own."""

    def told(world: World) -> None:
        failed = answer(
            TrainingJobStatus="Failed",
            SecondaryStatus="Failed",
            FailureReason="AlgorithmError: exit code: 1",
            ModelArtifacts=None,
        )
        world.tags_said = {"sageaudit:ignore": text}
        story(job((-60, failed)))(world)
        [head] = world.heads()
        if is_lost:
            assert head.lost_usd
            assert head.top_rule == "failed-spend"

    return told


def _no_metrics(world: World) -> None:
    world.metrics_missing = Missing("metric_denied", "cloudwatch:GetMetricData is not permitted")


def _defect(world: World) -> None:
    def fails(case: object) -> Any:
        raise ZeroDivisionError

    [rule] = [rule for rule in world.deps.ruleset.rules if rule.name.name == "gpu-underused"]
    others = tuple(one for one in world.deps.ruleset.rules if one is not rule)
    ruleset = Ruleset((*others, replace(rule, check=fails)), "test")
    world.deps = replace(world.deps, ruleset=ruleset)


def _envelope(**envelope: Any) -> Story:
    return asked(event(envelope=envelope))


def _arn(account: str = ACCOUNT, region: str = REGION, rest: str = "training-job/train-vision",
         partition: str = "aws") -> str:  # fmt: skip
    return f"arn:{partition}:sagemaker:{region}:{account}:{rest}"


def _lies(**changes: Any) -> Story:
    return story(job((-60, answer(**changes))))


SHORT = answer(
    TrainingStartTime="2026-05-20T10:59:20Z",
    TrainingTimeInSeconds=40,
    BillableTimeInSeconds=40,
    SecondaryStatusTransitions=[transition("Training", "10:59:20", "11:00:00")],
)
NO_TAGS = AccessDenied("sagemaker:ListTags", "sagemaker:ListTags is not permitted.")
NO_ROLE = AccessDenied("sts:AssumeRole", "sts:AssumeRole is not permitted.")
FOREVER = 10**6
STORIES: dict[str, Story] = {
    "A01": delivered(event()),
    "A02": delivered(*[event()] * 50),
    "A04": _month_later,
    "A05": lambda world: _month_later(world, deleted=True),
    "A06": delivered(event(), event(TrainingJobStatus="InProgress")),
    "A12": _touched,
    "A13": _older_state,
    "A14": story(job((-60, running()), (6.4, answer()))),
    "A15": story(job((-60, running()), (120, answer()))),
    "A16": story(job(), late(6)),
    "A17": _metrics_late_for_long,
    "A18": story(job((-60, running()), (5.5, answer())), late(15)),
    "A19": story(
        job((-60, None), (5.5, running()), (6.5, answer())),
        failing("ListTags", THROTTLED, 8.5),
        late(15),
    ),
    "A20": story(job((-60, SHORT)), late(FOREVER)),
    "A21": story(job(), failing("ListTags", THROTTLED, 5.5)),
    "A22": story(job(), failing("ListTags", THROTTLED, 60)),
    "A23": story(job(), failing("ListTags", NO_TAGS, FOREVER)),
    "A24": _tags_never,
    "A25": _twins_wait,
    "A32": _outage("Describe", 6),
    "A33": _outage("GetItem TransactWriteItems Query", 6, AWAY),
    "A34": story(
        job((-60, running()), (30, answer())),
        failing("SendMessage ChangeMessageVisibility", AWAY, 60),
    ),
    "A35": _denied,
    "A36": story(job(), failing("Describe", NO_ROLE, 360)),
    "A38": story(job(), _no_metrics),
    "A39": story(job(), failing("GetMetricData", THROTTLED, 60)),
    "A40": _killed("after TransactWriteItems"),
    "A41": _killed("after TransactWriteItems"),
    "A42": _resent_and_kept,
    "A43": _resent_twice,
    "A44": _too_old,
    "A45": _redriven,
    "A46": story(job((-60, NEW_RUNNING))),
    "A47": _both_runs(event(), NEW_EVENT),
    "A51": _old_event_after,
    "A52": delivered(event(CreationTime="2026-05-20T09:58:00.400Z")),
    "A53": delivered(event(CreationTime=None)),
    "A63": asked(event()),
    "A64": story(job((-60, answer(TrainingJobStatus="Deleting")))),
    "A65": asked(SWEPT),
    "A66": _envelope(account="999988887777"),
    "A67": asked(event(TrainingJobArn=_arn(OTHER_ACCOUNT))),
    "A68": _envelope(region="eu-west-1"),
    "A69": asked(event(envelope={"region": "eu-west-1"}, TrainingJobArn=_arn(region="eu-west-1"))),
    "A70": asked(event(TrainingJobName="another-name")),
    "A71": asked(event(TrainingJobArn=_arn(rest="processing-job/train-vision"))),
    "A72": asked(event(source="AWS.SageMaker")),
    "A73": _envelope(**{"detail-type": "sagemaker training job state change"}),
    "A74": _envelope(account="evil", region="x\ny"),
    "A75": asked("junk " * 50_000),
    "A77": _lies(TrainingJobName="another", TrainingJobArn=_arn(rest="training-job/another")),
    "A78": _lies(TrainingJobArn=_arn(OTHER_ACCOUNT)),
    "A79": _lies(TrainingJobArn=_arn(region="eu-west-1")),
    "A82": asked(*(event(f"made-up-{n}", source="sageaudit.replay") for n in range(1000))),
    "A83": _replay_of_known,
    "A84": delivered(REPLAYED),
    "A85": _replay_of_deleted,
    "A86": _replay_of_two_runs,
    "A87": story(job((-60, running())), of=REPLAYED),
    "A88": story(job((-60, NEW_RUN)), of=event(source="sageaudit.replay")),
    "A89": _replay_of_known,
    "A114": _tagged("failed-spend", is_lost=True),
    "A115": _tagged("gpu-underused"),
    "A116": _tagged("all SA601 SA*", is_lost=True),
    "A117": _tagged("failed-spend until=2027-13-01", is_lost=True),
    "A118": story(job(), _defect),
    "A120": _killed("after TransactWriteItems"),
}
CALLS = {"Describe", "GetItem", "ListTags", "GetMetricData", "TransactWriteItems"}


def a_world() -> World:
    """One with a second account."""
    return World(Policy(accounts={OTHER_ACCOUNT: f"arn:aws:iam::{OTHER_ACCOUNT}:role/read"}))


def disagreements(row: dict[str, Any], world: World) -> list[str]:
    """In what the end of a story is not as its row says."""
    heads = world.heads()
    found: list[str] = []
    if len(heads) != row["audits"]:
        found.append(f"{len(heads)} runs, not {row['audits']}")
    versions = sum(head.version for head in heads)
    if isinstance(row["versions_max"], int) and versions > row["versions_max"]:
        found.append(f"{versions} versions, not {row['versions_max']}")
    final = row["final"].split()[0].rstrip(":,;")
    if final in {"yes", "no"} and any(head.settled is not (final == "yes") for head in heads):
        found.append(f"final is {[head.settled for head in heads]}, not {row['final']}")
    found += filter(None, (_count(text, world) for text in row["metrics"]))
    for operation, most in row["aws_calls_max"].items():
        if operation in CALLS and isinstance(most, int) and world.calls[operation] > most:
            found.append(f"{world.calls[operation]} x {operation}, not {most}")
    if world.queue.messages:
        found.append("messages are left in the queue")
    if row["messages_end"].startswith("queue empty") and world.dead.messages:
        found.append("messages are in the dead letters")
    return found


def _count(text: str, world: World) -> str | None:
    """What is wrong with one count, such as `EventsWaiting=1..3`; None where nothing is."""
    parsed = re.fullmatch(r"(\w+)\s*(>=|<=|=|>)\s*(\d+)(?:\.\.(\d+))?", text)
    if parsed is None or parsed[1] in {"ReconcilerFound", "JobsMissing", "DueAudited"}:
        return None
    counted, limit = world.counts[parsed[1]], int(parsed[3])
    holds = {
        ">=": counted >= limit,
        "<=": counted <= limit,
        ">": counted > limit,
        "=": limit <= counted <= int(parsed[4] or limit),
    }[parsed[2]]
    return None if holds else f"{parsed[1]} is {counted}, not {text}"


@pytest.mark.parametrize("name", STORIES)
def test_a_row(name: str) -> None:
    """Its history ends as the row says."""
    row, world = ROWS[name], a_world()
    STORIES[name](world)
    if name in DIFFERS:
        row = {**row, "metrics": [], "messages_end": "elsewhere"}
    assert disagreements(row, world) == []


def test_every_row_is_told_here_or_elsewhere() -> None:
    """So that none is forgotten."""
    assert set(ROWS) == set(STORIES) | set(ELSEWHERE)
    assert set(DIFFERS) <= set(STORIES)
