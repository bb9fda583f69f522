"""Just inside and just outside of what SQS takes in one request."""

from unittest.mock import Mock

import pytest

from sageaudit.adapters.aws.sqs import SqsQueue

KIB = 1024


@pytest.mark.parametrize(
    ("bodies", "sizes"),
    [
        (["short"] * 10, [10]),
        (["short"] * 11, [10, 1]),
        (["x" * 128 * KIB] * 2, [2]),  # 256 KiB together
        (["x" * 128 * KIB, "x" * 128 * KIB + "x"], [1, 1]),
        (["é" * 64 * KIB] * 3, [2, 1]),  # bytes count, not characters
    ],
)
def test_a_request_has_ten_messages_and_256_kib_at_most(
    bodies: list[str], sizes: list[int]
) -> None:
    """One byte or one message more makes a second request."""
    client = Mock()
    client.send_message_batch.return_value = {}
    assert SqsQueue(client, "https://sqs/queue").send_batch(bodies) == {}
    requests = client.send_message_batch.call_args_list
    assert [len(request.kwargs["Entries"]) for request in requests] == sizes


def test_the_longest_delay_and_the_longest_hiding_are_taken() -> None:
    """15 minutes, and 12 hours."""
    client = Mock()
    queue = SqsQueue(client, "https://sqs/queue")
    queue.send("later", delay_s=15 * 60)
    queue.change_visibility("handle", 12 * 3600)
    assert client.send_message.call_args.kwargs["DelaySeconds"] == 900
    assert client.change_message_visibility.call_args.kwargs["VisibilityTimeout"] == 43_200
