"""Just inside and just outside of what SQS takes in one request."""

from typing import Any

import pytest

from sageaudit.adapters.aws.sqs import SqsQueue

KIB = 1024


class Requests:
    """SQS, as far as it matters how many messages a request has."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.sent: list[dict[str, Any]] = []
        self.hidden_s: list[int] = []

    def send_message_batch(self, Entries: list[Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        self.sizes.append(len(Entries))
        return {}

    def send_message(self, **message: Any) -> None:
        self.sent.append(message)

    def change_message_visibility(self, VisibilityTimeout: int, **_: Any) -> None:  # noqa: N803
        self.hidden_s.append(VisibilityTimeout)


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
    client = Requests()
    assert SqsQueue(client, "https://sqs/queue").send_all(bodies) == {}
    assert client.sizes == sizes


def test_the_longest_delay_and_the_longest_hiding_are_taken() -> None:
    """15 minutes, and 12 hours."""
    client = Requests()
    queue = SqsQueue(client, "https://sqs/queue")
    queue.send("later", delay_s=15 * 60)
    queue.change_visibility("handle", 12 * 3600)
    assert [message["DelaySeconds"] for message in client.sent] == [900]
    assert client.hidden_s == [43_200]
