"""What the stack promises, where its template must fit the code, or keep data and secrets safe.

Every other value of the template is in its snapshot (`test_snapshot.py`).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.schedule import digest_schedule
from infra.template import POLICY
from sageaudit.adapters.aws.stack_outputs import (
    CHANNEL,
    QUEUE_URL_PREFIX,
    outputs_by_channel,
    pascal_case,
)
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.lambda_runtime.settings import notices_queue_variable
from sageaudit.domain.policy.scope import DigestSchedule
from sageaudit.workflows import deliver as delivering
from sweep import handler
from tests.infra.reading import of_type, only_resource, read, text

CHANNELS = load_policy(POLICY).channels
WORK_QUEUES = {
    "TriggerFinishedJobs": "Audit",
    "NoticesDecisions": "Notify",
    **{f"NoticesQueue{pascal_case(name)}": "Deliver" for name in CHANNELS},
}


def test_the_table_outlives_its_stack_and_has_the_adapters_keys(template: dict[str, Any]) -> None:
    """A retained table's keys cannot change, so they are those of the code that writes it."""
    [resource] = [r for r in template["Resources"].values() if r["Type"] == "AWS::DynamoDB::Table"]
    properties = resource["Properties"]
    # A first deployment that fails leaves none; protected, it could not be rolled back.
    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resource["UpdateReplacePolicy"] == "Retain"
    assert "DeletionProtectionEnabled" not in properties
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["TimeToLiveSpecification"] == {
        "AttributeName": keys.TTL_ATTRIBUTE,
        "Enabled": True,
    }
    assert _keys(properties) == (keys.PARTITION_KEY, keys.SORT_KEY)
    indexes = {index["IndexName"]: index for index in properties["GlobalSecondaryIndexes"]}
    assert {name: _keys(index) for name, index in indexes.items()} == {
        index.name: (index.partition_key, index.sort_key) for index in keys.INDEXES
    }
    for index in indexes.values():
        assert index["Projection"] == {"ProjectionType": "ALL"}


@pytest.mark.parametrize(("queue_id", "consumer"), WORK_QUEUES.items())
def test_a_work_queue_waits_for_its_consumer_and_gives_up_late(
    template: dict[str, Any], queue_id: str, consumer: str
) -> None:
    """Visibility is six function timeouts, as AWS asks; what is given up stays for 14 days."""
    function = only_resource(template, "AWS::Lambda::Function", consumer)
    [queue] = [
        queue
        for queue_name, queue in of_type(template, "AWS::SQS::Queue").items()
        if queue_name[:-8] == queue_id
    ]
    assert queue["VisibilityTimeout"] == 6 * function["Timeout"]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 120


def test_a_lease_to_send_outlives_its_holder(template: dict[str, Any]) -> None:
    """Else a second process could send while the first still does."""
    assert (
        only_resource(template, "AWS::Lambda::Function", "Deliver")["Timeout"] < delivering.LEASE_S
    )


def test_every_queue_is_encrypted_and_takes_tls_only(template: dict[str, Any]) -> None:
    """The policies also let EventBridge in for this rule alone."""
    queues = of_type(template, "AWS::SQS::Queue")
    assert len(queues) == 8 + len(CHANNELS)
    assert all(queue["SqsManagedSseEnabled"] is True for queue in queues.values())
    assert {queue["MessageRetentionPeriod"] for queue in queues.values()} == {14 * 24 * 3600}
    policies = of_type(template, "AWS::SQS::QueuePolicy").values()
    refusing = {text(p["Queues"][0]) for p in policies if _refuses_plain_http(p)}
    assert len(refusing) == len(queues)
    services = [s for p in policies for s in p["PolicyDocument"]["Statement"] if _is_service(s)]
    assert [s["Principal"] for s in services] == [{"Service": "events.amazonaws.com"}] * 2
    assert all(
        text(s["Condition"]["ArnEquals"]["aws:SourceArn"]) == "${TriggerJobEnded.Arn}"
        for s in services
    )


def test_a_turn_outlives_its_sweep_and_ends_before_the_next(template: dict[str, Any]) -> None:
    """Two sweeps never work at once, and one that was killed holds up none."""
    timeout_s = only_resource(template, "AWS::Lambda::Function", "SweepFunction")["Timeout"]
    assert timeout_s < handler.LEASE_S < 15 * 60
    assert timeout_s * 1000 > handler.STOP_BEFORE_MS


def test_topics_take_tls_only_and_notices_are_encrypted(template: dict[str, Any]) -> None:
    """CloudWatch cannot publish under the AWS managed key, so alarms have a topic without it."""
    policies = of_type(template, "AWS::SNS::TopicPolicy").values()
    assert [_refuses_plain_http(policy) for policy in policies] == [True, True]
    assert (
        only_resource(template, "AWS::SNS::Topic", "Notices")["KmsMasterKeyId"] == "alias/aws/sns"
    )
    assert "KmsMasterKeyId" not in only_resource(template, "AWS::SNS::Topic", "Alarms")


def test_every_function_may_answer_for_a_part_of_its_batch(template: dict[str, Any]) -> None:
    """Lambda takes an answer that names failures for a success unless the mapping says so."""
    mappings = of_type(template, "AWS::Lambda::EventSourceMapping").values()
    assert len(mappings) == 3 + len(CHANNELS)
    assert all(m["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for m in mappings)


def test_the_stream_has_new_audits_and_notices_only_for_twelve_hours(
    template: dict[str, Any],
) -> None:
    """However often that fails; by default one poison record would stop its shard for a day."""
    mapping = only_resource(template, "AWS::Lambda::EventSourceMapping", "NotifySource")
    [entry] = mapping["FilterCriteria"]["Filters"]
    assert json.loads(entry["Pattern"]) == {
        "eventName": ["INSERT"],
        "dynamodb": {"NewImage": {"sk": {"S": [{"prefix": "AUDIT#"}, {"prefix": "NOTICE#"}]}}},
    }
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRetryAttempts"] == -1
    assert mapping["MaximumRecordAgeInSeconds"] == 12 * 3600
    failed = mapping["DestinationConfig"]["OnFailure"]["Destination"]
    assert text(failed) == "${NoticesUndecidedAudits.Arn}"


def test_handlers_get_exactly_the_environment_they_read(template: dict[str, Any]) -> None:
    """Names only: no secret's value is in an environment."""
    powertools = {"SERVICE_NAME", "METRICS_NAMESPACE", "LOG_LEVEL"}
    channels = {"CHANNELS", *map(notices_queue_variable, CHANNELS)}
    common = {f"POWERTOOLS_{name}" for name in powertools} | {"TABLE_NAME"}
    assert _environment(template, "Audit") == common | {
        "FINISHED_QUEUE_URL",
        "FINISHED_DLQ_URL",
        "ACCOUNT_ID",
        "FINGERPRINT_SECRET_ID",
    }
    assert _environment(template, "Notify") == common | {
        "DECISIONS_QUEUE_URL",
        "UNDECIDED_QUEUE_URL",
        *channels,
    }
    assert _environment(template, "Deliver") == common | {"NOTICES_DLQ_URL", "TOPIC_ARN", *channels}
    assert _environment(template, "SweepFunction") == common | {"FINISHED_QUEUE_URL", "ACCOUNT_ID"}
    assert _environment(template, "DigestFunction") == common | {"ACCOUNT_ID"}


DIGEST_AT = [
    (DigestSchedule(), ("cron(0 8,9 ? * MON *)", "UTC")),
    (DigestSchedule("friday", 17, "Europe/Berlin"), ("cron(0 17,18 ? * FRI *)", "Europe/Berlin")),
    (
        DigestSchedule("sunday", 2, "America/New_York"),
        ("cron(0 2,3 ? * SUN *)", "America/New_York"),
    ),
]


@pytest.mark.parametrize(("times", "expected"), DIGEST_AT)
def test_the_digest_is_started_at_its_hour_and_again_an_hour_later(
    times: DigestSchedule, expected: tuple[str, str]
) -> None:
    """In the policy's time zone: summer time leaves out an hour, in which nothing is started."""
    when = digest_schedule(times)
    assert (when.expression, when.timezone, when.is_enabled) == (*expected, True)
    assert not digest_schedule(None).is_enabled


def test_the_schedules_are_as_the_policy_says(
    template: dict[str, Any], quiet_template: dict[str, Any]
) -> None:
    """What fails is tried again until the next start."""
    for tested_template in (template, quiet_template):
        schedules = [
            only_resource(tested_template, "AWS::Scheduler::Schedule", f"{name}Schedule")
            for name in ("Sweep", "Watch", "Digest")
        ]
        assert [schedule["ScheduleExpression"] for schedule in schedules] == [
            "cron(2/15 * * * ? *)",
            "cron(9/15 * * * ? *)",
            "cron(0 8,9 ? * MON *)",
        ]
        assert {schedule["State"] for schedule in schedules} == {"ENABLED"}
        ages = [
            schedule["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"] for schedule in schedules
        ]
        assert ages == [900, 900, 3_600]


def test_without_channels_there_is_the_own_topic_alone(quiet_template: dict[str, Any]) -> None:
    """No queue of another, and no secret but that of fingerprints."""
    for name in ("Notify", "Deliver"):
        function = only_resource(quiet_template, "AWS::Lambda::Function", name)
        assert function["Environment"]["Variables"]["CHANNELS"] == "sns"
    queues = {name[:-8] for name in of_type(quiet_template, "AWS::SQS::Queue")}
    assert {name for name in queues if "Queue" in name} == {"NoticesQueueSns"}
    assert "sageaudit/channel" not in json.dumps(quiet_template)


def test_the_outputs_say_what_each_channel_is(template: dict[str, Any]) -> None:
    """For `doctor` and `redrive`, which read no policy."""
    outputs = {name: text(output["Value"]) for name, output in template["Outputs"].items()}
    said = outputs_by_channel(outputs, CHANNEL)
    assert (said["sns"], said["research"]) == (
        "sns ${NoticesTopic}",
        "teams sageaudit/channel/research",
    )
    assert {name: words.split()[0] for name, words in said.items()} == {
        name: channel.service for name, channel in CHANNELS.items()
    }
    assert outputs_by_channel(outputs, QUEUE_URL_PREFIX).keys() == CHANNELS.keys()


def _keys(schema: dict[str, Any]) -> tuple[str, str]:
    partition, sort = schema["KeySchema"]
    assert (partition["KeyType"], sort["KeyType"]) == ("HASH", "RANGE")
    return partition["AttributeName"], sort["AttributeName"]


def _environment(template: dict[str, Any], prefix: str) -> set[str]:
    function = only_resource(template, "AWS::Lambda::Function", prefix)
    return set(function["Environment"]["Variables"])


def _refuses_plain_http(policy: dict[str, Any]) -> bool:
    return any(
        statement["Effect"] == "Deny"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in policy["PolicyDocument"]["Statement"]
    )


def _is_service(statement: dict[str, Any]) -> bool:
    return bool(statement["Effect"] == "Allow")


def test_the_watch_runs_for_budgets_alone(templates: Path) -> None:
    """The policy has switched `[watch]` off. An alarm reports budgets that are not checked."""
    template = read(templates, "budgets.json")
    watch = only_resource(template, "AWS::Scheduler::Schedule", "WatchSchedule")
    assert watch["State"] == "ENABLED"
    names = " ".join(of_type(template, "AWS::CloudWatch::Alarm"))
    assert ("AlarmsBudgetsFailing" in names, "AlarmsWatchSilent" in names) == (True, False)
