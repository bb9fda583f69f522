"""How long functions run, messages hide and outages may last fits together."""

from datetime import timedelta

from infra.names import AUDIT_TIMEOUT_S, MAX_RECEIVES, VISIBILITY_FACTOR
from sageaudit.adapters.aws.clients import RESERVE_S
from sageaudit.adapters.lambda_runtime.batch import QueueRetries
from sageaudit.adapters.lambda_runtime.records import SqsMessage
from sageaudit.domain.alert.backoff import GIVE_UP_AFTER
from tests.fakes.calls import Clock
from tests.fakes.lambda_events import sqs_record
from tests.fakes.queues import FakeQueue

_TRIES_OF_ONE_REQUEST_S = 6 * 13 + 4
"""Each hangs, with the pauses between them."""


def hidden_s(name: str) -> list[int]:
    """How long a message is hidden after each failure, until it is given up."""
    queue, clock = FakeQueue(), Clock()
    hidden: list[int] = []
    retries = QueueRetries([queue], FakeQueue(), clock)  # type: ignore[list-item]
    sent_ms = str(round(clock.now.timestamp() * 1000))
    while True:
        raw = sqs_record("{}", message_id=name, received=len(hidden) + 1)
        raw["attributes"]["SentTimestamp"] = sent_ms
        if retries.retry_later(SqsMessage(raw), "busy") is not None:
            return hidden
        hidden.append(queue.waits_s[-1])
        clock.move(hidden[-1])


def test_a_message_is_given_up_by_its_function_and_not_by_its_queue() -> None:
    """A message that fails for 3.5 days is received less often than the queue allows."""
    for number in range(20):
        hidden = hidden_s(f"m{number}")
        assert len(hidden) + 1 < MAX_RECEIVES
        assert sum(hidden) >= GIVE_UP_AFTER.total_seconds()
        assert max(hidden) <= 3600


def test_an_outage_of_six_hours_is_asked_about_a_dozen_times() -> None:
    """And is over for every message within the hour after it."""
    for number in range(20):
        hidden, request_count = hidden_s(f"m{number}"), 0
        age_s = 0
        while age_s < timedelta(hours=6).total_seconds():
            age_s += hidden[request_count]
            request_count += 1
        assert 10 <= request_count <= 15
        assert age_s <= timedelta(hours=7).total_seconds()


def test_an_audit_has_time_for_a_request_that_hangs_and_to_say_so() -> None:
    """The function ends after both; its message stays hidden for longer."""
    assert AUDIT_TIMEOUT_S - RESERVE_S > _TRIES_OF_ONE_REQUEST_S
    assert VISIBILITY_FACTOR >= 6
