"""A stack's queues in moto, and dead letters of functions, SQS, EventBridge and Lambda."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3

from tests.fakes.aws_calls import AwsCalls

REGION = "us-east-1"
ACCOUNT = "123456789012"
URLS = {
    "FinishedJobsQueueUrl": "SageAudit-finished",
    "FinishedJobsDeadLettersUrl": "SageAudit-finished-dead",
    "DecisionsQueueUrl": "SageAudit-decisions",
    "UndecidedAuditsUrl": "SageAudit-undecided",
    "NoticesDeadLettersUrl": "SageAudit-notices-dead",
    "SweepDeadLettersUrl": "SageAudit-sweep-dead",
    "WatchDeadLettersUrl": "SageAudit-watch-dead",
    "DigestDeadLettersUrl": "SageAudit-digest-dead",
    "NoticesQueueUrlSns": "SageAudit-sns",
    "NoticesQueueUrlSlack": "SageAudit-slack",
}
DEAD = {
    "finished": "FinishedJobsDeadLettersUrl",
    "undecided": "UndecidedAuditsUrl",
    "notices": "NoticesDeadLettersUrl",
}


@dataclass
class Stack:
    """The queues of one stack by output name."""

    calls: AwsCalls
    region: str = REGION
    without: tuple[str, ...] = ()
    outputs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Creates the queues and lets DescribeStacks return their URLs."""
        sqs = self.sqs
        for output, name in URLS.items():
            if output not in self.without:
                day_s = {"MessageRetentionPeriod": str(14 * 86_400)}
                url = sqs.create_queue(QueueName=name, Attributes=day_s)["QueueUrl"]
                self.outputs[output] = url
        self.outputs["TableName"] = "SageAudit-History"
        described = [{"OutputKey": k, "OutputValue": v} for k, v in self.outputs.items()]
        self.calls.answer(
            "cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": described}]}
        )

    @property
    def sqs(self) -> Any:
        """A new SQS client."""
        return boto3.client("sqs", region_name=self.region)

    def put(self, kind: str, body: str, **attributes: str | bytes) -> None:
        """Puts a dead letter with these attributes; `_` in a name becomes `-`."""
        named = {
            (name if name.isupper() else name.replace("_", "-")): (
                {"DataType": "Binary", "BinaryValue": value}
                if isinstance(value, bytes)
                else {"DataType": "String", "StringValue": value}
            )
            for name, value in attributes.items()
        }
        url = self.outputs[DEAD[kind]]
        self.sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=named)

    def waiting(self, output: str) -> list[Mapping[str, Any]]:
        """Returns the messages that a queue delivers now, and makes them visible again."""
        messages_by_id: dict[str, Mapping[str, Any]] = {}
        while messages := self.sqs.receive_message(
            QueueUrl=self.outputs[output],
            MaxNumberOfMessages=10,
            VisibilityTimeout=60,
            MessageAttributeNames=["All"],
        ).get("Messages"):
            messages_by_id |= {message["MessageId"]: message for message in messages}
        for message in messages_by_id.values():
            self.sqs.change_message_visibility(
                QueueUrl=self.outputs[output],
                ReceiptHandle=message["ReceiptHandle"],
                VisibilityTimeout=0,
            )
        return list(messages_by_id.values())

    def count_dead_letters(self, kind: str) -> int:
        """Returns how many dead letters can be received now."""
        return len(self.waiting(DEAD[kind]))

    def bodies(self, output: str) -> list[str]:
        """Returns the bodies in a work queue, sorted."""
        return sorted(message["Body"] for message in self.waiting(output))


def arn(name: str, region: str = REGION) -> str:
    """Returns a training job's ARN."""
    return f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}"


def event(name: str = "job-1", **other: Any) -> str:
    """Returns EventBridge's event of a finished job."""
    detail = {
        "TrainingJobName": name,
        "TrainingJobArn": arn(name),
        "TrainingJobStatus": "Completed",
    }
    return json.dumps(
        {
            "source": "aws.sagemaker",
            "account": ACCOUNT,
            "region": REGION,
            "detail-type": "SageMaker Training Job State Change",
            "detail": detail,
            **other,
        }
    )


def notice(name: str = "job-1", channel: str = "slack", version: int = 1) -> str:
    """Returns a notice to a channel."""
    payloads: dict[str, dict[str, Any]] = {
        "slack": {"text": "x", "blocks": []},
        "sns": {"subject": "s", "message": "m", "attributes": {}},
    }
    return json.dumps(
        {
            "schema": 1,
            "notice_id": f"JOB#{arn(name)}#1779282000000|{version}|{channel}",
            "channel": channel,
            "payload": payloads.get(channel, {}),
        }
    )


def decision(name: str = "job-1", version: int = 1) -> str:
    """Returns a message with the keys of an audit to decide about."""
    return json.dumps({"pk": f"JOB#{arn(name)}#1779282000000", "sk": f"AUDIT#{version:05d}"})


def failed_batch() -> str:
    """Returns Lambda's record of a stream batch whose retries are exhausted."""
    place = {"shardId": "s", "startSequenceNumber": "1", "endSequenceNumber": "1", "batchSize": 1}
    return json.dumps({"requestContext": {}, "DDBStreamBatchInfo": place})
