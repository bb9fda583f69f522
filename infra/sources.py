"""The functions' event source mappings, and the permissions of their pollers."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from infra.functions import HandlerFunction
from infra.names import POLL_QUEUE, POLL_STREAM, SEND_MESSAGES
from sageaudit.adapters.history.dynamo.keys import AUDIT_PREFIX, NOTICE_PREFIX, SORT_KEY

NEW_AUDITS_AND_NOTICES = {
    "eventName": ["INSERT"],
    "dynamodb": {
        "NewImage": {SORT_KEY: {"S": [{"prefix": AUDIT_PREFIX}, {"prefix": NOTICE_PREFIX}]}}
    },
}

EventSourceMapping = lambda_.CfnEventSourceMapping


def feed_from_queue(
    handler_function: HandlerFunction,
    queue: sqs.Queue,
    *,
    max_concurrency: int,
    construct_id: str = "Source",
) -> None:
    """Maps a queue to a function, with batches of one message.

    If a function times out, its whole batch is delivered again.
    """
    handler_function.allow(POLL_QUEUE, queue.queue_arn)
    EventSourceMapping(
        handler_function,
        construct_id,
        function_name=handler_function.function.function_name,
        event_source_arn=queue.queue_arn,
        batch_size=1,
        function_response_types=["ReportBatchItemFailures"],
        scaling_config=EventSourceMapping.ScalingConfigProperty(
            maximum_concurrency=max_concurrency
        ),
    )


def feed_from_stream(
    handler_function: HandlerFunction, stream_arn: str, *, failure_queue: sqs.Queue
) -> None:
    """Maps the table's stream to a function.

    The mapping delivers only INSERTs of audits and notices: other items cause no message. The
    function answers with the first record that failed; the records before it are done.
    """
    handler_function.allow(POLL_STREAM, stream_arn)
    handler_function.allow(SEND_MESSAGES, failure_queue.queue_arn)
    EventSourceMapping(
        handler_function,
        "Source",
        function_name=handler_function.function.function_name,
        event_source_arn=stream_arn,
        # Not LATEST, which would miss audits that are written while the mapping is created.
        starting_position="TRIM_HORIZON",
        batch_size=10,
        function_response_types=["ReportBatchItemFailures"],
        # notify sets failures aside. A record that it could not set aside is tried for 12 hours,
        # not a fixed number of times: during an outage of SQS, its dead letter would be lost too.
        bisect_batch_on_function_error=True,
        maximum_retry_attempts=-1,
        maximum_record_age_in_seconds=int(cdk.Duration.hours(12).to_seconds()),
        destination_config=EventSourceMapping.DestinationConfigProperty(
            on_failure=EventSourceMapping.OnFailureProperty(destination=failure_queue.queue_arn)
        ),
        filter_criteria=EventSourceMapping.FilterCriteriaProperty(
            filters=[EventSourceMapping.FilterProperty(pattern=json.dumps(NEW_AUDITS_AND_NOTICES))]
        ),
    )
