"""Which events are noted for the sweep: those that came, and whose audit waits or failed."""

import pytest

from sageaudit.domain.sweep import SentEvent
from sageaudit.errors import AccessDenied, AwsError, Throttled, Unavailable
from tests.fakes.audit_flow import KEY
from tests.fakes.audit_function import AuditFunction, minutes_after_end, stale_answer
from tests.fakes.lambda_events import job_event


def test_an_event_that_is_audited_at_once_leaves_no_note() -> None:
    """The good path makes no further request."""
    function = AuditFunction()
    function.job()
    function.send()
    function.run()
    assert function.counts["JobsAudited"] == 1
    assert not function.notes.notes


@pytest.mark.parametrize("operation", ["ListTags", "Describe", "TransactWriteItems", "GetItem"])
def test_an_event_whose_audit_waits_or_fails_is_noted_once(operation: str) -> None:
    """At its first delivery, while SageMaker or the table is throttled for hours."""
    function = AuditFunction()
    function.job()
    function.outage(operation, Throttled("Rate exceeded"), 240)
    function.send()
    function.run(30)
    assert function.notes.notes == {KEY: SentEvent(minutes_after_end(5), None)}
    function.run()
    assert function.notes.notes == {KEY: SentEvent(minutes_after_end(5), None)}
    assert function.counts["JobsAudited"] == 1


def test_a_job_that_describe_does_not_answer_is_noted_by_its_event() -> None:
    """Its creation time is in the event."""
    function = AuditFunction()
    function.send()
    function.run(6)
    assert list(function.notes.notes) == [KEY]


def test_an_event_without_a_creation_time_is_not_noted() -> None:
    """It does not say of which run it is."""
    function = AuditFunction()
    function.job()
    function.outage("Describe", Unavailable("no answer"), 10)
    function.send(job_event(CreationTime=None))
    function.run()
    assert not function.notes.notes
    assert function.counts["JobsAudited"] == 1


def test_a_persons_event_is_not_noted() -> None:
    """Its job may still run, and the event of its end be lost."""
    function = AuditFunction()
    function.job("train-vision", (-60, stale_answer()))
    function.outage("Describe", Unavailable("no answer"), 10)
    function.send(job_event(source="sageaudit.replay"))
    function.run()
    assert function.counts["UnknownJobs"] == 1
    assert not function.notes.notes


def test_a_refused_event_is_not_noted() -> None:
    """It is a dead letter at once."""
    function = AuditFunction()
    function.job("train-vision", (-60, {"TrainingJobName": "another"}))
    function.send()
    function.run(6)
    assert function.counts["RejectedEvents"] == 1
    assert not function.notes.notes


@pytest.mark.parametrize("error", [Throttled("busy"), AccessDenied("dynamodb:PutItem", "denied")])
def test_a_note_that_fails_fails_no_audit(error: AwsError) -> None:
    """The event waits as it does with its note."""
    function = AuditFunction()
    function.job()
    function.outage("note_came", error, 20)
    function.outage("ListTags", Throttled("Rate exceeded"), 20)
    function.send()
    function.run()
    assert (function.counts["JobsAudited"], function.counts["AuditFailed"]) == (1, 0)


def test_an_event_that_waits_keeps_the_time_at_which_it_was_first_sent() -> None:
    """Through each wait: by it a message is given up after 3.5 days, however often it was sent."""
    function = AuditFunction()
    function.job("train-vision", (-60, stale_answer()), (120, None))
    function.send()
    function.run(30)
    [message] = function.queue.messages.values()
    assert int(message.attributes["waited-describe_stale"]) > 1
    assert int(message.attributes["first-sent"]) == int(minutes_after_end(0).timestamp() * 1000)
