"""The 25 faults that every such service meets, each by its name; more of each is in the matrix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from local.recorded import RecordedJob
from sageaudit.adapters.channels.catalogue import CHECKS
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.files.policy_file import load
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadPolicy
from sageaudit.output.text import plain, slack
from tests.fakes.hostile import documents, whole_documents
from tests.faults.calls import Call
from tests.faults.network import Broken, Fault
from tests.faults.stories import HOUR
from tests.faults.webhook import OK, Says
from tests.faults.world import REPEAT, World, renamed, world
from tests.integration.whole_flow import a_failed_job, recorded, tuning_set

JOB = a_failed_job()
START = JOB.ended_at
DAY = timedelta(days=1)
TEN_MINUTES = timedelta(minutes=10)
DESCRIBE = Call("audit", "sagemaker.DescribeTrainingJob", 1)
WEBHOOK = Call("deliver", "secrets-manager.GetSecretValue sageaudit/slack-webhook", 1)


@pytest.fixture
def one() -> Iterator[World]:
    """A world that begins as the job ends."""
    with world(START) as made:
        yield made


def changed(job: RecordedJob, **describe: Any) -> RecordedJob:
    """The job with other fields in its Describe answer; None takes one out."""
    fields = {**job.describe, **describe}
    return replace(job, describe={key: value for key, value in fields.items() if value is not None})


def sent(one: World, body: str) -> None:
    """A message in the queue of finished jobs."""
    queue = one.aws.physical("TriggerFinishedJobs")
    one.aws.session.client("sqs").send_message(QueueUrl=queue, MessageBody=body)


def event(job: RecordedJob, **changes: Any) -> str:
    """The job's event as the queue has it."""
    entry = job.event()
    made = {
        "version": "0",
        "id": "e",
        "source": entry["Source"],
        "detail-type": entry["DetailType"],
        "account": "111122223333",
        "region": "us-east-1",
        "time": job.ended_at.isoformat(),
        "detail": json.loads(entry["Detail"]),
    }
    return json.dumps(made | changes)


def audited(one: World, job: RecordedJob) -> AuditDocument:
    """The job's one audit, which needed one version."""
    found, head = one.audit(job), one.head(job)
    assert found is not None
    assert head is not None
    assert head.version == 1
    return found


def told_once(one: World) -> None:
    """Each channel has one message, and nothing waits or lies anywhere."""
    assert [len(one.told(channel)) for channel in ("slack", "sns")] == [1, 1]
    assert not one.letters()
    assert not one.waiting()


def fine(one: World) -> None:
    """No handler failed unexpectedly."""
    assert not one.count("Defects")
    assert not any(function.failures for function in one.aws.functions.values())


def test_fault_01_the_same_event_50_times(one: World) -> None:
    """One audit, one message, 49 duplicates counted, no error."""
    one.aws.ends(JOB)
    for _ in range(49):
        one.aws.put_event(JOB.event())
    one.quiet()
    audited(one, JOB)
    told_once(one)
    assert (one.count("JobsAudited"), one.count("DuplicateEvents")) == (1, 49)
    fine(one)


def test_fault_02_events_out_of_order_and_replayed_a_month_later(one: World) -> None:
    """What runs is no end, and the end of a month ago is known."""
    running = changed(JOB, TrainingJobStatus="InProgress", SecondaryStatus="Training")
    one.aws.ends(JOB)
    one.aws.put_event(running.event())
    one.quiet()
    first = audited(one, JOB)
    one.aws.clock.forward(30 * DAY.total_seconds())
    one.aws.put_event(JOB.event(source="sageaudit.replay"))
    one.aws.put_event(running.event(source="sageaudit.replay"))
    one.quiet()
    assert audited(one, JOB) == first
    told_once(one)
    fine(one)


def test_fault_03_an_event_is_lost() -> None:
    """The sweep finds the job within the hour, and says that it had to."""
    with world(START - HOUR) as one:
        one.sweep()
        one.aws.clock.forward_to(START)
        one.aws.sagemaker.add(JOB)
        for _ in range(4):
            one.aws.clock.forward(900)
            one.sweep()
        audited(one, JOB)
        assert one.count("ReconcilerFound") == 1
        told_once(one)
        fine(one)


BODIES = [
    "",
    "null",
    "[]",
    '"text"',
    "{not json",
    "[" * 50_000,
    json.dumps({"source": "aws.sagemaker", "detail": "x" * 250_000}),
    event(JOB, detail=None),
    event(JOB, detail=[1]),
    event(JOB, detail={}),
    event(JOB, detail={"TrainingJobName": 7, "TrainingJobArn": True}),
    event(JOB, detail={**json.loads(JOB.event()["Detail"]), "CreationTime": "soon"}),
]


def test_fault_04_malformed_events(one: World) -> None:
    """Each is a dead letter with its reason at once, as it came; the job beside them is audited."""
    for body in BODIES:
        sent(one, body or " ")
    one.aws.ends(JOB)
    one.quiet()
    audited(one, JOB)
    letters = one.letters()
    assert sorted(letter.body for letter in letters) == sorted(body or " " for body in BODIES)
    assert all(letter.reason and letter.why for letter in letters)
    assert one.count("RejectedEvents") == len(BODIES)
    fine(one)


def test_fault_05_forged_events(one: World) -> None:
    """Of another account or region, with a name that is not the ARN's, from another source."""
    one.aws.sagemaker.add(JOB)
    detail = json.loads(JOB.event()["Detail"])
    arn = JOB.arn
    forged = [
        event(
            JOB, detail={**detail, "TrainingJobArn": arn.replace("111122223333", "999999999999")}
        ),
        event(JOB, detail={**detail, "TrainingJobArn": arn.replace("us-east-1", "eu-west-1")}),
        event(JOB, detail={**detail, "TrainingJobName": "another-name"}),
        event(JOB, account="999999999999"),
        event(JOB, source="my.own"),
    ]
    for body in forged:
        sent(one, body)
    one.quiet()
    assert one.head(JOB) is None
    assert one.count("RejectedEvents") == len(forged)
    assert not [call for call in one.network.seen if "Describe" in call.name]
    assert (one.told("slack"), one.told("sns")) == ([], [])
    fine(one)


@pytest.mark.parametrize(
    ("lasts", "failures"),
    [(None, 0), (TEN_MINUTES, 1), (4 * DAY, 1)],
    ids=["once", "ten minutes", "for ever"],
)
def test_fault_06_describe_is_throttled(one: World, lasts: timedelta | None, failures: int) -> None:
    """Repeated in the call, then by the queue, then a dead letter; never a wrong audit."""
    fault = Fault.THROTTLED if lasts is None else Fault.THROTTLED_LONG
    one.network.broken = [Broken(DESCRIBE, fault, None if lasts is None else START + lasts)]
    one.aws.ends(JOB)
    one.quiet(START + 4 * DAY)
    if lasts == 4 * DAY:
        assert one.head(JOB) is None
        [letter] = one.letters()
        assert letter.reason
        assert "throttled" in (letter.why or "")
        assert one.count("GivenUp") == 1
        one.redrive()
        one.quiet()
    assert bool(one.count("AuditFailed")) == bool(failures)
    audited(one, JOB)
    told_once(one)
    fine(one)


def test_fault_07_the_job_is_gone(one: World) -> None:
    """It may only be too early; then it is recorded with the reason, and nobody is told."""
    deleting = renamed(JOB, "being-deleted")
    one.aws.put_event(JOB.event())
    one.aws.ends(changed(deleting, TrainingJobStatus="Deleting"))
    sent(one, event(deleting))
    one.quiet()
    for job in (JOB, deleting):
        head = one.head(job)
        assert head is not None
        assert head.unauditable
    assert one.count("JobsUnauditable") == 2
    assert not one.told("slack")
    assert not one.letters()
    fine(one)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("sagemaker.ListTags", "ListTags"),
        ("cloudwatch.GetMetricData", "GetMetricData"),
        ("pricing.GetProducts", "GetProducts"),
    ],
)
def test_fault_08_a_permission_is_missing(call: str, said: str) -> None:
    """The audit names it; without Describe there is no audit, and it fails until somebody acts."""
    job = recorded("profiled-053-g4dn-xlarge")
    with world(job.ended_at) as one:
        broken = [Call("audit", call, 1), Call("audit", "sagemaker.DescribeTrainingJob", 1)]
        until = [job.ended_at + 30 * DAY, job.ended_at + HOUR]
        one.network.broken = [
            Broken(what, Fault.DENIED, when) for what, when in zip(broken, until, strict=True)
        ]
        one.aws.ends(job)
        one.quiet(job.ended_at + HOUR)
        assert one.head(job) is None
        assert one.count("AuditFailed")
        one.quiet()
        assert said in to_json(audited(one, job))
        assert not one.letters()
        fine(one)


@pytest.mark.parametrize("fault", [Fault.ENDLESS, Fault.EMPTY, Fault.DOWN])
def test_fault_09_metrics_do_not_come(fault: Fault) -> None:
    """Pages without end, answers without series, errors: waited for, never a use of 0 percent."""
    job = recorded("profiled-053-g4dn-xlarge")
    with world(job.ended_at) as one:
        metrics = Call("audit", "cloudwatch.GetMetricData", 1)
        one.network.broken = [Broken(metrics, fault, job.ended_at + 12 * HOUR)]
        one.aws.ends(job)
        one.quiet(job.ended_at + 11 * HOUR)
        found = one.audit(job)
        if found is not None:
            share = found["audit"]["coverage"]["share"]
            assert set(share.values()) == {None}
            assert not found["audit"]["settled"]
            assert found["avoidable_usd"] is None
        one.quiet()
        one.settle()
        found = one.audit(job)
        assert found is not None
        assert "gpu-underused" in {finding["rule"] for finding in found["findings"]}
        fine(one)


TIMES = [
    {"TrainingEndTime": None},
    {"TrainingStartTime": None, "TrainingEndTime": None, "BillableTimeInSeconds": 0},
    {"TrainingEndTime": "2017-12-31T00:00:00Z"},
    {"TrainingStartTime": JOB.describe["TrainingEndTime"]},
    {"BillableTimeInSeconds": 0},
]


@pytest.mark.parametrize("times", TIMES, ids=str)
def test_fault_10_times_that_are_missing_or_impossible(one: World, times: dict[str, Any]) -> None:
    """The cost is 0 or unknown, nothing is idle, and nothing divides by zero."""
    one.aws.ends(changed(JOB, **times))
    one.quiet()
    found = one.audit(JOB)
    assert found is not None
    total = found["bill"]["total_usd"]
    assert total is None or total >= 0
    assert not {"idle-start", "idle-tail", "gpu-idle"} & {
        item["rule"] for item in found["findings"]
    }
    fine(one)


def test_fault_11_billable_seconds_are_missing() -> None:
    """They come from start and end, which is said, and no Spot saving is claimed."""
    job = changed(
        recorded("training-073-m5-4xlarge-spot-fsx-completed"), BillableTimeInSeconds=None
    )
    with world(job.ended_at) as one:
        one.aws.ends(job)
        one.quiet()
        bill = audited(one, job)["bill"]
        assert bill["basis"] in {"estimated_from_times", "upper_bound"}
        assert bill["spot_saved_usd"] is None
        fine(one)


@pytest.mark.parametrize(
    "resources",
    [
        {"InstanceType": "ml.next.96xlarge", "InstanceCount": 2, "VolumeSizeInGB": 50},
        {"InstanceGroups": [{"InstanceType": "ml.next.large", "InstanceCount": 1,
                             "InstanceGroupName": "a"}], "VolumeSizeInGB": 50},
        {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 50,
         "TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/x"},
    ],
    ids=["type", "groups", "plan"],
)  # fmt: skip
def test_fault_12_an_instance_type_or_purchase_nobody_knows(
    one: World, resources: dict[str, Any]
) -> None:
    """The bill is not complete, or says what was prepaid; a price is never 0."""
    one.aws.ends(changed(JOB, ResourceConfig=resources))
    one.quiet()
    bill = audited(one, JOB)["bill"]
    assert bill["total_usd"] is None or bill["total_usd"] > 0 or bill["prepaid_value_usd"]
    assert not bill["complete"] or "plan" in to_json(bill)
    fine(one)


@pytest.mark.parametrize(
    "fault", [Fault.DOWN, Fault.THROTTLED_LONG, Fault.GARBLED, Fault.EMPTY, Fault.ENDLESS]
)
def test_fault_13_the_price_list_does_not_answer(one: World, fault: Fault) -> None:
    """The packaged price with its date; the audit does not wait for it."""
    lasts = None if fault in {Fault.GARBLED, Fault.EMPTY} else START + DAY
    one.network.broken = [Broken(Call("audit", "pricing.GetProducts", 1), fault, lasts)]
    one.aws.ends(JOB)
    one.quiet()
    [line, *_] = audited(one, JOB)["bill"]["lines"]
    assert (line["usd"], line["price_as_of"]) == (Decimal("0.154162"), "2026-05-20")
    assert not one.timeouts
    told_once(one)
    fine(one)


@pytest.mark.parametrize("number", [-1, 0, 10**15, 1.5, "NaN", 1e308])
def test_fault_14_numbers_that_are_none(one: World, number: Any) -> None:
    """Recorded, as unauditable with its reason where it cannot be read; the table takes it."""
    one.aws.ends(changed(JOB, BillableTimeInSeconds=number))
    one.aws.ends(renamed(JOB, "the-next-one"))
    one.quiet()
    assert one.audit(JOB) is not None
    audited(one, renamed(JOB, "the-next-one"))
    assert not one.letters()
    fine(one)


@whole_documents
@given(documents())
def test_fault_15_hostile_text(document: AuditDocument) -> None:
    """No mention, no link, no control character reaches a channel; each payload can be posted."""
    for name, write in (("slack", slack.message), ("sns", plain.message)):
        payload = dict(write(document))
        CHECKS[name](payload)
        text = json.dumps(payload, ensure_ascii=False)
        assert not set("\x1b\x00\u202e") & set(text)
        assert name == "sns" or not any(mention in text for mention in ("<!", "<@U"))


def test_fault_16_secrets_in_what_users_wrote(one: World) -> None:
    """In failure text, hyperparameters and tags: in no item, no log and no message."""
    secret = "AKIA" + "Q7" * 8
    job = changed(
        JOB,
        FailureReason=f"ClientError: refused {secret}",
        HyperParameters={"api_key": secret, "epochs": "3"},
        Environment={"DB_PASSWORD": secret},
    )
    one.aws.ends(replace(job, tags={"token": secret}))
    one.quiet()
    audited(one, job)
    table = one.aws.physical("HistoryTable")
    everything = str(one.aws.session.client("dynamodb").scan(TableName=table)["Items"])
    logs = [one.log(name) for name in one.aws.functions]
    for text in (everything, *logs, str(one.slack.seen), str(one.aws.mails)):
        assert secret not in text
    fine(one)


@whole_documents
@given(documents())
def test_fault_17_more_than_a_message_holds(document: AuditDocument) -> None:
    """Forty findings fit: 50 blocks, 3,000 characters each; a subject of fewer than 100."""
    many = document.copy()
    many["findings"] = (list(document["findings"]) * 40)[:40]
    blocks = slack.message(many)["blocks"]
    assert len(blocks) <= 50
    assert all(len(block.get("text", {}).get("text", "")) <= 3_000 for block in blocks)
    mail = plain.message(many)
    assert len(mail["subject"]) < 100
    assert len(mail["message"].encode()) <= 262_144


@pytest.mark.parametrize("seconds", [30, 600])
def test_fault_18_slack_asks_to_wait(one: World, seconds: int) -> None:
    """Nothing sleeps; the message comes when Slack allows it, once and unmarked."""
    one.slack.script = [Says(429, "rate_limited", (("Retry-After", str(seconds)),))]
    one.aws.ends(JOB)
    one.quiet()
    waited = one.slack.seen_at[0] - START - timedelta(minutes=5)
    assert waited >= timedelta(seconds=seconds)
    told_once(one)
    assert not any(REPEAT in line for line in one.told("slack"))
    fine(one)


@pytest.mark.parametrize(
    "says", [Says(403, "invalid_token"), Says(404, "no_service"), Says(410, "channel_is_archived"),
             Says(400, "invalid_payload")], ids=lambda says: says.body,
)  # fmt: skip
def test_fault_19_slack_refuses_for_good(one: World, says: Says) -> None:
    """No retry, one alarm, the secret read again once; it is kept, and one redrive sends it."""
    one.slack.always = says
    one.aws.ends(JOB)
    one.quiet()
    assert one.slack.tried <= 2
    assert one.counts()["NotifyFailed", "slack"] == 1
    [letter] = one.letters()
    assert letter.queue == "NoticesNoticesDeadLetters"
    assert letter.reason
    assert len(one.told("sns")) == 1
    one.slack.always = OK
    one.redrive()
    one.quiet()
    told_once(one)
    assert not any(REPEAT in line for line in one.told("slack"))
    fine(one)


def test_fault_20_slack_posts_and_does_not_answer(one: World) -> None:
    """One marked repeat and no more; the audit does not care."""
    one.slack.script = [Says(hangs=True)]
    one.aws.ends(JOB)
    one.quiet()
    first, second = one.told("slack")
    assert (REPEAT in first, REPEAT in second) == (False, True)
    assert not one.letters()
    audited(one, JOB)
    fine(one)


ADDRESSES = [
    None,
    "",
    "http://hooks.slack.com/services/T0/B0/x",
    "https://evil.example/services/T0/B0/x",
    "https://hooks.slack.com@evil.example/services/T0/B0/x",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_fault_21_a_webhook_that_must_not_be_used(one: World, address: str | None) -> None:
    """Nothing is sent there, no text names it, the audit is kept; a new secret and a redrive do."""
    secrets = one.aws.session.client("secretsmanager")
    name = "sageaudit/slack-webhook"
    old = secrets.get_secret_value(SecretId=name)["SecretString"]
    if address is None:
        secrets.delete_secret(SecretId=name)
    else:
        secrets.put_secret_value(SecretId=name, SecretString=address or " ")
    one.aws.ends(JOB)
    one.quiet()
    audited(one, JOB)
    assert (one.slack.tried, one.slack.strangers) == (0, [])
    [letter] = one.letters()
    said = f"{letter.reason} {letter.why} {one.log('deliver')}"
    assert not address or address not in said
    if address is None:
        secrets.restore_secret(SecretId=name)
    secrets.put_secret_value(SecretId=name, SecretString=old)
    one.aws.clock.forward(600)
    one.redrive()
    one.quiet()
    told_once(one)
    fine(one)


def test_fault_21_a_redirect_is_not_followed(one: World) -> None:
    """Not even to the address that has the credentials of machines."""
    location = (("Location", "http://169.254.169.254/latest/meta-data"),)
    one.slack.always = Says(302, "", location)
    one.aws.ends(JOB)
    one.quiet()
    assert one.slack.strangers == []
    assert [letter.queue for letter in one.letters()] == ["NoticesNoticesDeadLetters"]
    fine(one)


def test_fault_22_lambda_ends_an_invocation(one: World) -> None:
    """Twice in a row, in each function: delivered again, one audit, one message."""
    for function in ("audit", "notify", "deliver"):
        call = next(c for c in _calls() if c.function == function)
        one.network.broken.append(Broken(call, Fault.HANGS, START + timedelta(minutes=20)))
    one.aws.ends(JOB)
    one.quiet()
    audited(one, JOB)
    assert [len({line.replace(REPEAT, "").strip() for line in one.told(channel)})
            for channel in ("slack", "sns")] == [1, 1]  # fmt: skip
    assert not one.letters()
    assert not one.waiting()
    fine(one)


def _calls() -> list[Call]:
    return [
        Call("audit", "dynamodb.GetItem JOB HEAD", 1),
        Call("notify", "dynamodb.GetItem TOLD", 1),
        Call("deliver", "dynamodb.PutItem NOTICE NOTICE", 1),
    ]


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.UNANSWERED, Fault.THROTTLED_LONG])
def test_fault_23_the_table_is_busy(one: World, fault: Fault) -> None:
    """Repeated; a write whose answer was lost is known again."""
    writes = Call("audit", "dynamodb.TransactWriteItems JOB+RUNS+SUM", 1)
    lasts = START + HOUR if fault is Fault.THROTTLED_LONG else None
    one.network.broken = [Broken(writes, fault, lasts)]
    one.aws.ends(JOB)
    one.quiet()
    assert one.network.struck
    audited(one, JOB)
    told_once(one)
    fine(one)


def test_fault_23_evidence_that_is_too_large_and_a_table_that_is_gone(one: World) -> None:
    """What does not fit is left out with a note; without a table everything waits, then is kept."""
    large = changed(JOB, HyperParameters={f"name-{n}": "v" * 2_400 for n in range(100)})
    one.aws.ends(large)
    one.quiet()
    audited(one, large)
    table, dynamodb = one.aws.physical("HistoryTable"), one.aws.session.client("dynamodb")
    dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
    dynamodb.delete_table(TableName=table)
    sent(one, event(renamed(JOB, "after-that")))
    one.quiet(one.now + 4 * DAY)
    [letter] = one.letters()
    assert letter.queue == "TriggerFinishedJobsDeadLetters"
    assert letter.reason
    assert letter.why
    assert one.count("AuditFailed")
    fine(one)


def test_fault_24_many_jobs_end_together() -> None:
    """The children of a tuning job are told once, by it; the list is asked slowly; nothing ages."""
    children, tuning = tuning_set("Failed")
    first = children[0]
    many = [
        replace(renamed(first, f"{tuning.name}-{n:03d}-{n:08x}"), tags=first.tags)
        for n in range(16)
    ]
    counters = {"Completed": 0, "InProgress": 0, "RetryableError": 0,
                "NonRetryableError": len(many), "Stopped": 0}  # fmt: skip
    tuning = changed(tuning, TrainingJobStatusCounters=counters)
    with world(tuning.ended_at) as one:
        for job in (*many, tuning):
            one.aws.ends(job)
        one.quiet()
        assert one.count("JobsAudited") == len(many) + 1
        assert [len(one.told(channel)) for channel in ("slack", "sns")] == [1, 1]
        assert not one.letters()
        fine(one)


def test_fault_24_the_first_install_posts_nothing_of_what_was_before() -> None:
    """What ended in the day before is audited, at one List a second, and nobody is told."""
    jobs = [renamed(JOB, f"before-{n}") for n in range(5)]
    with world(START + 2 * HOUR) as one:
        for job in jobs:
            one.aws.sagemaker.add(job)
        one.sweep()
        one.quiet()
        assert [one.head(job) is not None for job in jobs] == [True] * 5
        assert (one.told("slack"), one.told("sns")) == ([], [])
        asked = one.aws.sagemaker.lists_requested
        gaps = [(b - a).total_seconds() for a, b in pairwise(asked)]
        assert min(gaps, default=1) >= 1
        fine(one)


POLICIES = [
    '[rules]\noff = ["gpu-unused"]\n',
    "[rules.gpu-underused]\nmean_below = -1\n",
    "floor_usd = -5\n",
    "mode = \n",
    '[[exempt]]\nrule = "spot-not-used"\nuntil = 2027-02-31\n',
    '[[exempt]]\nrule = "spot-not-used"\n',
]


@pytest.mark.parametrize("text", POLICIES)
def test_fault_25_a_bad_policy_is_refused_before_it_is_deployed(tmp_path: Path, text: str) -> None:
    """In one sentence; the policy that is deployed stays as it is."""
    file = tmp_path / "policy.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadPolicy):
        load(file)


def test_fault_25_a_tag_with_a_bad_date_mutes_nothing(one: World) -> None:
    """It is ignored with a warning: never muted for ever."""
    tags = {"sageaudit:ignore": "old-generation until=2027-13-45"}
    one.aws.ends(replace(JOB, tags=tags))
    one.quiet()
    document = audited(one, JOB)
    assert not any(finding["exempt"] for finding in document["findings"])
    assert "sageaudit:ignore" in to_json(document)
    told_once(one)
    fine(one)


def test_fault_25_new_rules_judge_old_jobs_only_when_asked(one: World) -> None:
    """The same event under another policy is a duplicate."""
    one.aws.ends(JOB)
    one.quiet()
    one.aws.functions["audit"]._wiring["policy"] = Policy()  # type: ignore[index]
    one.aws.functions["audit"]._handler = None
    one.aws.put_event(JOB.event())
    one.quiet()
    audited(one, JOB)
    told_once(one)
    assert one.count("DuplicateEvents") == 1
    fine(one)
