"""The event source mappings of the functions, and the permissions of their pollers."""

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

Mapping = lambda_.CfnEventSourceMapping


def feed_from_queue(
    worker: HandlerFunction, queue: sqs.Queue, *, max_concurrency: int, construct_id: str = "Source"
) -> None:
    """Delivers messages one by one: if a function times out, its whole batch comes again."""
    worker.allow(POLL_QUEUE, queue.queue_arn)
    Mapping(
        worker,
        construct_id,
        function_name=worker.function.function_name,
        event_source_arn=queue.queue_arn,
        batch_size=1,
        function_response_types=["ReportBatchItemFailures"],
        scaling_config=Mapping.ScalingConfigProperty(maximum_concurrency=max_concurrency),
    )


def feed_from_stream(worker: HandlerFunction, stream_arn: str, *, failure_queue: sqs.Queue) -> None:
    """Delivers INSERTs of audits and notices only: other items cause no message.

    The function answers with the first record that failed; the records before it are done.
    """
    worker.allow(POLL_STREAM, stream_arn)
    worker.allow(SEND_MESSAGES, failure_queue.queue_arn)
    Mapping(
        worker,
        "Source",
        function_name=worker.function.function_name,
        event_source_arn=stream_arn,
        # Not LATEST, which would miss an audit that is written while the mapping starts.
        starting_position="TRIM_HORIZON",
        batch_size=10,
        function_response_types=["ReportBatchItemFailures"],
        # notify sets aside what fails. What it could not set aside is tried for 12 hours, not
        # a fixed number of times: while SQS is away, its letter would not arrive either.
        bisect_batch_on_function_error=True,
        maximum_retry_attempts=-1,
        maximum_record_age_in_seconds=int(cdk.Duration.hours(12).to_seconds()),
        destination_config=Mapping.DestinationConfigProperty(
            on_failure=Mapping.OnFailureProperty(destination=failure_queue.queue_arn)
        ),
        filter_criteria=Mapping.FilterCriteriaProperty(
            filters=[Mapping.FilterProperty(pattern=json.dumps(NEW_AUDITS_AND_NOTICES))]
        ),
    )
