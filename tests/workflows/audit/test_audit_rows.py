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

from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import Members
from sageaudit.domain.usage.measurements import Missing
from sageaudit.errors import AccessDenied, Throttled, Unavailable
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
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
    "A85": "`audit` reads no list of the runs of a name: a replay without creation time of a job"
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
Step = Callable[[World], None]
MONTH = 60 * 24 * 30
FOREVER = 10**6


def job(*answers: tuple[float, Any]) -> Step:
    """SageMaker's answers, each from a minute on; by default the job that has ended."""
    return lambda world: world.job("train-vision", *answers)


def put(*bodies: str) -> Step:
    """Messages at the same moment; by default the event of the job."""

    def step(world: World) -> None:
        for body in bodies or (event(),):
            world.send(body)

    return step


def sent(*bodies: str) -> Step:
    """Messages, each when the one before is done."""

    def step(world: World) -> None:
        for body in bodies or (event(),):
            world.send(body)
            world.run()

    return step


def until(minute: float) -> Step:
    """What is due until then is delivered."""
    return lambda world: world.run(minute)


def anew(world: World) -> None:
    """Counts and calls are those from here on."""
    world.counts.clear()
    world.calls.clear()


def late(minutes: float) -> Step:
    """The metrics are whole so many minutes after the end."""
    return with_(minutes_of_metrics=[(at(-60), 5), (at(minutes), 60)])


def failing(operations: str, error: Exception, until_min: float) -> Step:
    """Operations that fail until a minute."""
    return lambda world: world.fails(operations, error, until_min)


def with_(**changes: Any) -> Step:
    """The world is another one in these ways."""

    def step(world: World) -> None:
        for name, value in changes.items():
            setattr(world, name, value)

    return step


def _is_open(world: World) -> None:
    assert [head.settled for head in world.heads()] == [False]


def _outage(operations: str, error: Exception) -> list[Step]:
    """Of six hours, at whose begin two hundred jobs have ended."""

    def jobs(world: World) -> None:
        for number in range(200):
            world.job(f"train-{number}")
            world.send(event(f"train-{number}"))

    return [jobs, failing(operations, error, 360)]


def _answer_is_lost(world: World) -> None:
    world.queue.answers_lost = 1


def _delete_fails(world: World) -> None:
    world.queue.deletes_fail = 1


def _redriven(world: World) -> None:
    [letter] = world.dead.messages.values()
    assert letter.attributes["reason"] == "gave_up"
    assert letter.attributes["first-sent"]
    world.now = at(60 * 24 * 31)
    anew(world)
    world.dead.messages.clear()
    world.send(letter.body)


def _letter_names_the_action(world: World) -> None:
    [letter] = world.dead.attributes()
    assert DENIED.action in letter["why"]


def _tagged(text: str, *, is_lost: bool = True) -> list[Step]:
    """A job that failed, with a tag of its own."""
    failed = answer(
        TrainingJobStatus="Failed",
        SecondaryStatus="Failed",
        FailureReason="AlgorithmError: exit code: 1",
        ModelArtifacts=None,
    )

    def lost(world: World) -> None:
        [head] = world.heads()
        assert not is_lost or (head.lost_usd and head.top_rule == "failed-spend")

    return [with_(tags_said={"sageaudit:ignore": text}), job((-60, failed)), sent(), lost]


def _defect(world: World) -> None:
    def fails(case: object) -> Any:
        raise ZeroDivisionError

    [rule] = [rule for rule in world.deps.ruleset.rules if rule.name.name == "gpu-underused"]
    others = tuple(one for one in world.deps.ruleset.rules if one is not rule)
    ruleset = Ruleset((*others, replace(rule, check=fails)), "test")
    world.deps = replace(world.deps, ruleset=ruleset)


def _arn(account: str = ACCOUNT, region: str = REGION, rest: str = "training-job/train-vision",
         partition: str = "aws") -> str:  # fmt: skip
    return f"arn:{partition}:sagemaker:{region}:{account}:{rest}"


def _lies(**changes: Any) -> list[Step]:
    return [job((-60, answer(**changes))), sent()]


def _refused(envelope: dict[str, Any] | None = None, **changes: Any) -> list[Step]:
    return [sent(event(envelope=envelope, **changes))]


SHORT = answer(
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
NO_METRICS = Missing("metric_denied", "cloudwatch:GetMetricData is not permitted")
ENDED, BEHIND = (-60, answer()), (-60, running())
NEW_EVENT = event(CreationTime="2026-05-20T12:00:00Z")
KILLED = [job(), with_(kill_at="after TransactWriteItems"), sent()]
STORIES: dict[str, list[Step]] = {
    "A01": [job(), sent()],
    "A02": [job(), sent(*[event()] * 50)],
    "A04": [job(), put(), until(MONTH), anew, sent()],
    "A05": [job(ENDED, (60, None)), put(), until(MONTH), anew, sent()],
    "A06": [job(), sent(event(), event(TrainingJobStatus="InProgress"))],
    "A12": [
        *(job(), sent(), anew),
        *(job((0, answer(LastModifiedTime="2026-05-20T12:00:00Z"))), sent()),
    ],
    "A13": [
        *(job(), sent(), anew),
        *(job((0, answer(LastModifiedTime="2026-05-20T10:59:00Z"))), sent()),
    ],
    "A14": [job(BEHIND, (6.4, answer())), sent()],
    "A15": [job(BEHIND, (120, answer())), sent()],
    "A16": [job(), late(6), sent()],
    "A17": [job(), late(40), put(), until(60), _is_open, until(90), sent(SWEPT)],
    "A18": [job(BEHIND, (5.5, answer())), late(15), sent()],
    "A19": [
        job((-60, None), (5.5, running()), (6.5, answer())),
        *(failing("ListTags", THROTTLED, 8.5), late(15), sent()),
    ],
    "A20": [job((-60, SHORT)), late(FOREVER), sent()],
    "A21": [job(), failing("ListTags", THROTTLED, 5.5), sent()],
    "A22": [job(), failing("ListTags", THROTTLED, 60), sent()],
    "A23": [job(), failing("ListTags", NO_TAGS, FOREVER), sent()],
    "A24": [job(), failing("ListTags", THROTTLED, FOREVER), sent(), _is_open],
    "A25": [job(), late(15), put(event(), event())],
    "A32": _outage("Describe", THROTTLED),
    "A33": _outage("GetItem TransactWriteItems Query", AWAY),
    "A34": [
        job(BEHIND, (30, answer())),
        *(failing("SendMessage ChangeMessageVisibility", AWAY, 60), sent()),
    ],
    "A35": [job(), failing("Describe", DENIED, 60 * 24 * 4), sent(), _letter_names_the_action],
    "A36": [job(), failing("Describe", NO_ROLE, 360), sent()],
    "A38": [job(), with_(metrics_missing=NO_METRICS), sent()],
    "A39": [job(), failing("GetMetricData", THROTTLED, 60), sent()],
    "A40": KILLED,
    "A41": KILLED,
    "A42": [job(BEHIND, (5.5, answer())), _delete_fails, sent()],
    "A43": [job(BEHIND, (5.5, answer())), _answer_is_lost, sent()],
    "A44": [job(), failing("Describe", THROTTLED, MONTH), sent()],
    "A45": [job(), failing("Describe", THROTTLED, MONTH), sent(), _redriven],
    "A46": [job((-60, NEW_RUNNING)), sent()],
    "A47": [job((-60, NEW_RUN)), sent(event(), NEW_EVENT)],
    "A51": [
        *(job((-60, NEW_RUN)), sent(NEW_EVENT, event(), event())),
        *(lambda world: world.calls.clear(), sent()),
    ],
    "A52": [job(), sent(event(CreationTime="2026-05-20T09:58:00.400Z"))],
    "A53": [job(), sent(event(CreationTime=None))],
    "A63": [sent()],
    "A64": [job((-60, answer(TrainingJobStatus="Deleting"))), sent()],
    "A65": [sent(SWEPT)],
    "A66": _refused({"account": "999988887777"}),
    "A67": _refused(TrainingJobArn=_arn(OTHER_ACCOUNT)),
    "A68": _refused({"region": "eu-west-1"}),
    "A69": _refused({"region": "eu-west-1"}, TrainingJobArn=_arn(region="eu-west-1")),
    "A70": _refused(TrainingJobName="another-name"),
    "A71": _refused(TrainingJobArn=_arn(rest="processing-job/train-vision")),
    "A72": _refused(source="AWS.SageMaker"),
    "A73": _refused({"detail-type": "sagemaker training job state change"}),
    "A74": _refused({"account": "evil", "region": "x\ny"}),
    "A75": [sent("junk " * 50_000)],
    "A77": _lies(TrainingJobName="another", TrainingJobArn=_arn(rest="training-job/another")),
    "A78": _lies(TrainingJobArn=_arn(OTHER_ACCOUNT)),
    "A79": _lies(TrainingJobArn=_arn(region="eu-west-1")),
    "A82": [put(*(event(f"made-up-{n}", source="sageaudit.replay") for n in range(1000)))],
    "A83": [job(), sent(), anew, sent(REPLAYED)],
    "A84": [job(), sent(REPLAYED)],
    "A85": [job(ENDED, (60, None)), put(), until(70), anew, sent(REPLAYED)],
    "A86": [
        *(job(ENDED, (60, NEW_RUN), (200, None)), put(), until(100), put(NEW_EVENT), until(250)),
        *(anew, sent(REPLAYED)),
    ],
    "A87": [job(BEHIND), sent(REPLAYED)],
    "A88": [job((-60, NEW_RUN)), sent(event(source="sageaudit.replay"))],
    "A89": [job(), sent(), anew, sent(REPLAYED)],
    "A114": _tagged("failed-spend"),
    "A115": _tagged("gpu-underused", is_lost=False),
    "A116": _tagged("all SA601 SA*"),
    "A117": _tagged("failed-spend until=2027-13-01"),
    "A118": [job(), _defect, sent()],
    "A120": KILLED,
}
CALLS = {"Describe", "GetItem", "ListTags", "GetMetricData", "TransactWriteItems"}


def a_world() -> World:
    """One with a second account."""
    return World(
        Policy(members=Members({OTHER_ACCOUNT: f"arn:aws:iam::{OTHER_ACCOUNT}:role/read"}))
    )


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
    for step in STORIES[name]:
        step(world)
    world.run()
    assert world.kill_at is None
    if name in DIFFERS:
        row = {**row, "metrics": [], "messages_end": "elsewhere"}
    assert disagreements(row, world) == []


def test_every_row_is_told_here_or_elsewhere() -> None:
    """So that none is forgotten."""
    assert set(ROWS) == set(STORIES) | set(ELSEWHERE)
    assert set(DIFFERS) <= set(STORIES)
