"""What becomes of events: scenarios that were written from the facts before the code was.

A row says how many runs are in the history at the end, in how many versions, what was counted and
asked, and where messages stand. Its story stands here, step by step.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.functions import ProcessKilled
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.domain.usage.measurements import MissingMetrics
from sageaudit.errors import AccessDenied, Throttled, Unavailable
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
from tests.fakes.audit_function import (
    AuditFunction,
    describe_answer,
    minutes_after_end,
    stale_answer,
)
from tests.fakes.jobs import ACCOUNT, REGION, transition
from tests.fakes.lambda_events import job_event

ROWS: dict[str, dict[str, Any]] = {
    row["story"]: row
    for row in map(
        json.loads,
        (Path(__file__).parent / "audits.jsonl").read_text(encoding="utf-8").splitlines(),
    )
}
OTHER_ACCOUNT = "222233334444"
REPLAY_OF_NOBODY = (
    "`audit` reads no list of the runs of a name: a replay without creation time of a job that is"
    " gone is dropped, and the audit stands"
)
DIFFERS = {
    "a deleted run is replayed without its creation time": REPLAY_OF_NOBODY,
    "one of two deleted runs of a name is replayed without its creation time": REPLAY_OF_NOBODY,
    "a running job is replayed": (
        "a job that still runs is audited when it has ended: its replay is dropped, not refused"
    ),
    "an earlier run that nobody knows is replayed": (
        "a run that only a person names, and not Describe, is dropped, not refused"
    ),
    "a thousand made-up names are replayed": (
        "made-up names are dropped and counted as UnknownJobs, not refused"
    ),
    "an InProgress event comes after the last one": (
        "the bus passes no such event: it is refused, and a dead letter"
    ),
    "a message that waits is sent again, and the answer is lost": (
        "a wait is counted once SQS has answered; JobsAudited may be 2, as a message that failed"
        " comes back to what its copy has recorded"
    ),
    "the name is taken by a new run, which has ended too": (
        "JobsUnauditable is a part of JobsAudited"
    ),
}
"""Rows of which the counts differ, with the reason; everything else holds."""
ELSEWHERE = {
    **dict.fromkeys(
        [
            "an event is lost, and the sweep finds the job",
            "an event is lost, and turns up after the sweep's three messages",
            "the sweep runs while the event waits in the queue",
            "the sweep runs while the job waits for late metrics",
            "two sweeps send the same lost job, as its audit is slow",
            "the name is taken by a new run, whose event is lost",
        ],
        "the sweep's rows",
    ),
    **dict.fromkeys(
        [
            "a tuning job ends before three of its 12 children are audited",
            "three children of a tuning job are found by the sweep alone",
            "a thousand children of a tuning job end in a minute",
            "a tuning job has no children",
            "a child of a tuning job was deleted before its audit",
            "the list of a tuning job's children never ends",
        ],
        "test_roll_up",
    ),
    **dict.fromkeys(
        [
            "a late audit changes a finding of its family",
            "a late audit of a family's run comes twice",
        ],
        "test_any_order",
    ),
    **dict.fromkeys(
        ["a stored document is corrupt", "an item is nearly 400 KB large"],
        "notify's and the history's tests",
    ),
    **dict.fromkeys(
        [
            "the name is taken by a new run after a provisional audit",
            "the name is taken by a new run while a warm pool is due",
        ],
        "tests of the second look",
    ),
    **dict.fromkeys(
        [
            "the same event is delivered 50 times at the same moment",
            "GetProducts is denied for ever",
            "the assumed role belongs to another account",
            "the policy names a role of another account",
            "the document of another run of the family is corrupt",
            "the summary of an audit is corrupt",
        ],
        "tests of the adapters",
    ),
    "the bus has an event of the sweep": "the template's tests: the rule passes BUS_SOURCES",
}
"""Rows that tests of other parts tell, where their story can be told."""
NEW_RUN = describe_answer(
    CreationTime="2026-05-20T12:00:00Z", LastModifiedTime="2026-05-20T13:00:01Z"
)
NEW_RUNNING = stale_answer(CreationTime="2026-05-20T12:00:00Z")
THROTTLED, AWAY = Throttled("slow down"), Unavailable("no answer")
SWEPT = job_event(source="sageaudit.sweep")
REPLAYED = job_event(source="sageaudit.replay", CreationTime=None)
Step = Callable[[AuditFunction], None]
MONTH = 60 * 24 * 30
FOREVER = 10**6


def job(*answers: tuple[float, Any]) -> Step:
    """SageMaker's answers, each from a minute on; by default the job that has ended."""
    return lambda world: world.job("train-vision", *answers)


def put(*bodies: str) -> Step:
    """Messages at the same moment; by default the event of the job."""

    def step(world: AuditFunction) -> None:
        for body in bodies or (job_event(),):
            world.send(body)

    return step


def sent(*bodies: str) -> Step:
    """Messages, each when the one before is done."""

    def step(world: AuditFunction) -> None:
        for body in bodies or (job_event(),):
            world.send(body)
            world.run()

    return step


def until(minute: float) -> Step:
    """What is due until then is delivered."""
    return lambda world: world.run(minute)


def anew(world: AuditFunction) -> None:
    """Counts and calls are those from here on."""
    world.report.clear()
    world.faults.calls.clear()


def late(minutes: float) -> Step:
    """The metrics are whole so many minutes after the end."""
    return metrics(minutes=5, whole_at=minutes_after_end(minutes))


def failing(operations: str, error: Exception, until_min: float) -> Step:
    """Operations that fail until a minute."""
    return lambda world: world.outage(operations, error, until_min)


def metrics(**changes: Any) -> Step:
    """CloudWatch answers with something else."""

    def step(world: AuditFunction) -> None:
        for name, value in changes.items():
            setattr(world.metrics, name, value)

    return step


def _is_open(world: AuditFunction) -> None:
    assert [head.settled for head in world.summaries()] == [False]


def _outage(operations: str, error: Exception) -> list[Step]:
    """Of six hours, at whose begin two hundred jobs have ended."""

    def jobs(world: AuditFunction) -> None:
        for number in range(200):
            world.job(f"train-{number}")
            world.send(job_event(f"train-{number}"))

    return [jobs, failing(operations, error, 360)]


def _answer_is_lost(world: AuditFunction) -> None:
    world.faults.lose_answer("SendMessage", AWAY)


def _killed_after_the_write(world: AuditFunction) -> None:
    world.faults.lose_answer("TransactWriteItems", ProcessKilled())


def _delete_fails(world: AuditFunction) -> None:
    world.queue.deletes_fail = 1


def _redriven(world: AuditFunction) -> None:
    [letter] = world.dead.messages.values()
    assert letter.attributes["reason"] == "abandoned"
    assert letter.attributes["first-sent"]
    world.clock.now = minutes_after_end(60 * 24 * 31)
    anew(world)
    world.dead.messages.clear()
    world.send(letter.body)


def _letter_names_the_action(world: AuditFunction) -> None:
    [letter] = world.dead.attributes()
    assert DENIED.action in letter["why"]


def _tagged(text: str, *, is_lost: bool = True) -> list[Step]:
    """A job that failed, with a tag of its own."""
    failed = describe_answer(
        TrainingJobStatus="Failed",
        SecondaryStatus="Failed",
        FailureReason="AlgorithmError: exit code: 1",
        ModelArtifacts=None,
    )

    def lost(world: AuditFunction) -> None:
        [head] = world.summaries()
        assert not is_lost or (head.lost_usd and head.costliest_rule == "failed-spend")

    def tagged(world: AuditFunction) -> None:
        world.jobs.tag_answer = {"sageaudit:ignore": text}

    return [tagged, job((-60, failed)), sent(), lost]


def _defect(world: AuditFunction) -> None:
    def fails(case: object) -> Any:
        raise ZeroDivisionError

    [rule] = [rule for rule in world.deps.ruleset.rules if rule.info.name == "gpu-underused"]
    others = tuple(candidate for candidate in world.deps.ruleset.rules if candidate is not rule)
    ruleset = Ruleset((*others, replace(rule, check=fails)), "test")
    world.deps = replace(world.deps, ruleset=ruleset)


def _arn(
    account: str = ACCOUNT,
    region: str = REGION,
    rest: str = "training-job/train-vision",
    partition: str = "aws",
) -> str:
    return f"arn:{partition}:sagemaker:{region}:{account}:{rest}"


def _lies(**changes: Any) -> list[Step]:
    return [job((-60, describe_answer(**changes))), sent()]


def _refused(envelope: dict[str, Any] | None = None, **changes: Any) -> list[Step]:
    return [sent(job_event(envelope=envelope, **changes))]


SHORT = describe_answer(
    TrainingStartTime="2026-05-20T10:59:20Z",
    TrainingTimeInSeconds=40,
    BillableTimeInSeconds=40,
    SecondaryStatusTransitions=[transition("Training", "10:59:20", "11:00:00")],
)
NO_TAGS = AccessDenied("sagemaker:ListTags", "sagemaker:ListTags is not permitted.")
NO_ROLE = AccessDenied("sts:AssumeRole", "sts:AssumeRole is not permitted.")
DENIED = AccessDenied(
    "sagemaker:DescribeTrainingJob", "sagemaker:DescribeTrainingJob is not permitted."
)
NO_METRICS = MissingMetrics("metric_denied", "cloudwatch:GetMetricData is not permitted")
ENDED, BEHIND = (-60, describe_answer()), (-60, stale_answer())
NEW_EVENT = job_event(CreationTime="2026-05-20T12:00:00Z")
KILLED = [job(), _killed_after_the_write, sent()]
STORIES: dict[str, list[Step]] = {
    "an event is delivered once": [job(), sent()],
    "the same event is delivered 50 times, one after another": [
        job(),
        sent(*[job_event()] * 50),
    ],
    "the event comes again a month later": [job(), put(), until(MONTH), anew, sent()],
    "the event comes again a month later, when the job is deleted": [
        job(ENDED, (60, None)),
        put(),
        until(MONTH),
        anew,
        sent(),
    ],
    "an InProgress event comes after the last one": [
        job(),
        sent(job_event(), job_event(TrainingJobStatus="InProgress")),
    ],
    "an audited job is modified without a changed figure": [
        *(job(), sent(), anew),
        *(job((0, describe_answer(LastModifiedTime="2026-05-20T12:00:00Z"))), sent()),
    ],
    "an older state is described after a newer one": [
        *(job(), sent(), anew),
        *(job((0, describe_answer(LastModifiedTime="2026-05-20T10:59:00Z"))), sent()),
    ],
    "Describe is 90 seconds behind": [job(BEHIND, (6.4, describe_answer())), sent()],
    "Describe is two hours behind": [job(BEHIND, (120, describe_answer())), sent()],
    "metrics are six minutes late": [job(), late(6), sent()],
    "metrics are 40 minutes late": [
        job(),
        late(40),
        put(),
        until(60),
        _is_open,
        until(90),
        sent(SWEPT),
    ],
    "Describe is behind, and then metrics are late": [
        job(BEHIND, (5.5, describe_answer())),
        late(15),
        sent(),
    ],
    "Describe knows no job, is behind, tags are throttled, and then metrics are late": [
        job((-60, None), (5.5, stale_answer()), (6.5, describe_answer())),
        *(failing("ListTags", THROTTLED, 8.5), late(15), sent()),
    ],
    "metrics of a job of under a minute never come": [job((-60, SHORT)), late(FOREVER), sent()],
    "ListTags is throttled once": [job(), failing("ListTags", THROTTLED, 5.5), sent()],
    "ListTags is throttled for an hour": [job(), failing("ListTags", THROTTLED, 60), sent()],
    "ListTags is denied": [job(), failing("ListTags", NO_TAGS, FOREVER), sent()],
    "ListTags is throttled for ever": [
        job(),
        failing("ListTags", THROTTLED, FOREVER),
        sent(),
        _is_open,
    ],
    "a second message comes while the first one waits": [
        job(),
        late(15),
        put(job_event(), job_event()),
    ],
    "Describe is throttled for six hours": _outage("Describe", THROTTLED),
    "DynamoDB is away for six hours": _outage("GetItem TransactWriteItems Query", AWAY),
    "SQS is away for an hour": [
        job(BEHIND, (30, describe_answer())),
        *(failing("SendMessage ChangeMessageVisibility", AWAY, 60), sent()),
    ],
    "Describe is denied for four days": [
        job(),
        failing("Describe", DENIED, 60 * 24 * 4),
        sent(),
        _letter_names_the_action,
    ],
    "the role of another account cannot be assumed for six hours": [
        job(),
        failing("Describe", NO_ROLE, 360),
        sent(),
    ],
    "GetMetricData is denied for ever": [job(), metrics(missing=NO_METRICS), sent()],
    "GetMetricData is throttled for an hour": [
        job(),
        failing("GetMetricData", THROTTLED, 60),
        sent(),
    ],
    "the function is killed after its write": KILLED,
    "the answer to a write is lost": KILLED,
    "a message that waits is sent again, and the old one is not deleted": [
        job(BEHIND, (5.5, describe_answer())),
        _delete_fails,
        sent(),
    ],
    "a message that waits is sent again, and the answer is lost": [
        job(BEHIND, (5.5, describe_answer())),
        _answer_is_lost,
        sent(),
    ],
    "a message fails for three and a half days": [
        job(),
        failing("Describe", THROTTLED, MONTH),
        sent(),
    ],
    "a message is redriven after its failures": [
        job(),
        failing("Describe", THROTTLED, MONTH),
        sent(),
        _redriven,
    ],
    "the name is taken by a new run, which still runs, before the first audit": [
        job((-60, NEW_RUNNING)),
        sent(),
    ],
    "the name is taken by a new run, which has ended too": [
        job((-60, NEW_RUN)),
        sent(job_event(), NEW_EVENT),
    ],
    "the old run's event comes after the new run's audit": [
        *(job((-60, NEW_RUN)), sent(NEW_EVENT, job_event(), job_event())),
        *(lambda world: world.faults.calls.clear(), sent()),
    ],
    "the event's creation time differs by a rounding": [
        job(),
        sent(job_event(CreationTime="2026-05-20T09:58:00.400Z")),
    ],
    "the event has no creation time": [job(), sent(job_event(CreationTime=None))],
    "a job is deleted before its first audit": [sent()],
    "a job is being deleted": [job((-60, describe_answer(TrainingJobStatus="Deleting"))), sent()],
    "the sweep finds a job that is deleted before its audit": [sent(SWEPT)],
    "the event's account is not allowed": _refused({"account": "999988887777"}),
    "the event's ARN is of another account": _refused(TrainingJobArn=_arn(OTHER_ACCOUNT)),
    "the event's region is another than its ARN's": _refused({"region": "eu-west-1"}),
    "the event's region is not ours": _refused(
        {"region": "eu-west-1"}, TrainingJobArn=_arn(region="eu-west-1")
    ),
    "the event's ARN has another name than its job": _refused(TrainingJobName="another-name"),
    "the event's ARN is of another kind of job": _refused(
        TrainingJobArn=_arn(rest="processing-job/train-vision")
    ),
    "the event has another source": _refused(source="AWS.SageMaker"),
    "the event has another detail type": _refused(
        {"detail-type": "sagemaker training job state change"}
    ),
    "the event's account and region are nonsense": _refused({"account": "evil", "region": "x\ny"}),
    "the message is junk": [sent("junk " * 50_000)],
    "Describe answers with another name": _lies(
        TrainingJobName="another", TrainingJobArn=_arn(rest="training-job/another")
    ),
    "Describe answers with another account": _lies(TrainingJobArn=_arn(OTHER_ACCOUNT)),
    "Describe answers with another region": _lies(TrainingJobArn=_arn(region="eu-west-1")),
    "a thousand made-up names are replayed": [
        put(*(job_event(f"made-up-{n}", source="sageaudit.replay") for n in range(1000)))
    ],
    "an audited run is replayed without its creation time": [job(), sent(), anew, sent(REPLAYED)],
    "a run that was never audited is replayed without its creation time": [job(), sent(REPLAYED)],
    "a deleted run is replayed without its creation time": [
        job(ENDED, (60, None)),
        put(),
        until(70),
        anew,
        sent(REPLAYED),
    ],
    "one of two deleted runs of a name is replayed without its creation time": [
        *(job(ENDED, (60, NEW_RUN), (200, None)), put(), until(100), put(NEW_EVENT), until(250)),
        *(anew, sent(REPLAYED)),
    ],
    "a running job is replayed": [job(BEHIND), sent(REPLAYED)],
    "an earlier run that nobody knows is replayed": [
        job((-60, NEW_RUN)),
        sent(job_event(source="sageaudit.replay")),
    ],
    "an audited run is replayed": [job(), sent(), anew, sent(REPLAYED)],
    "a tag accepts a rule that no tag may accept": _tagged("failed-spend"),
    "a tag accepts a rule that tags may accept": _tagged("gpu-underused", is_lost=False),
    "a tag accepts by wildcards and ids": _tagged("all SA601 SA*"),
    "a tag accepts until a date that does not exist": _tagged("failed-spend until=2027-13-01"),
    "a rule raises on one job": [job(), _defect, sent()],
    "the function times out in the middle of its batch": KILLED,
}
CALLS = {"Describe", "GetItem", "ListTags", "GetMetricData", "TransactWriteItems"}


def a_world() -> AuditFunction:
    """One with a second account."""
    return AuditFunction(
        Policy(members=MemberAccounts({OTHER_ACCOUNT: f"arn:aws:iam::{OTHER_ACCOUNT}:role/read"}))
    )


def disagreements(row: dict[str, Any], world: AuditFunction) -> list[str]:
    """In what the end of a story is not as its row says."""
    heads = world.summaries()
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
        if operation in CALLS and isinstance(most, int) and world.faults.calls[operation] > most:
            found.append(f"{world.faults.calls[operation]} x {operation}, not {most}")
    if world.queue.messages:
        found.append("messages are left in the queue")
    if row["messages_end"].startswith("queue empty") and world.dead.messages:
        found.append("messages are in the dead letters")
    return found


def _count(text: str, world: AuditFunction) -> str | None:
    """What is wrong with one count, such as `EventsWaiting=1..3`; None where nothing is."""
    parsed = re.fullmatch(r"(\w+)\s*(>=|<=|=|>)\s*(\d+)(?:\.\.(\d+))?", text)
    if parsed is None or parsed[1] in {"LostEventsFound", "JobsMissing", "DueAudited"}:
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
def test_a_story_ends_as_its_row_says(name: str) -> None:
    row, world = ROWS[name], a_world()
    for step in STORIES[name]:
        step(world)
    world.run()
    assert not world.faults.unused
    if name in DIFFERS:
        row = {**row, "metrics": [], "messages_end": "elsewhere"}
    assert disagreements(row, world) == []


def test_every_row_is_told_here_or_elsewhere() -> None:
    """So that none is forgotten."""
    assert set(ROWS) == set(STORIES) | set(ELSEWHERE)
    assert set(DIFFERS) <= set(STORIES)
