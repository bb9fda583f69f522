"""A function starts no record that it could not end before Lambda ends the function."""

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

from audit.handler import build as build_audit
from sageaudit.adapters.lambda_runtime.batch import Handler
from sageaudit.domain.policy.policy import Policy
from tests.fakes.calls import Clock
from tests.fakes.deliver_function import deliverer
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.lambda_events import Lambda, batch, failures, sqs_record, stream_record
from tests.fakes.stream import Stream

ENVIRON = {
    "POWERTOOLS_SERVICE_NAME": "stop-before-tests",
    "TABLE_NAME": "table",
    "FINISHED_QUEUE_URL": "https://sqs/finished",
    "FINISHED_DLQ_URL": "https://sqs/dead",
    "ACCOUNT_ID": ACCOUNT,
    "AWS_REGION": REGION,
}


def an_audit() -> Handler:
    """With clients that take everything."""
    return build_audit(ENVIRON, session=MagicMock(), clock=Clock(), policy=Policy())


@pytest.mark.parametrize(
    ("make", "record", "needed_s"),
    [
        (an_audit, sqs_record("{"), 80),  # 20 s for its requests, and the reserve of 60 s
        (lambda: Stream().handler(), stream_record("{"), 75),  # 15 s, and the reserve
        (lambda: deliverer(None, {}), sqs_record("{"), 50),  # one post may take 40 s
    ],
    ids=["audit", "notify", "deliver"],
)
def test_a_record_is_started_only_if_enough_time_is_left(
    make: Callable[[], Handler], record: dict[str, Any], needed_s: int
) -> None:
    """A millisecond less, and it comes back. What is started ends here: it cannot be read."""
    for left_ms, comes_back in ((needed_s * 1000, False), (needed_s * 1000 - 1, True)):
        answer = make()(batch(record), Lambda(iter([left_ms])))
        assert bool(failures(answer)) is comes_back
