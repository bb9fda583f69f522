"""Which events are noted for the sweep: those that came, and whose audit waits or failed."""

from datetime import datetime

import pytest

from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.sweep import SentNote
from sageaudit.errors import AccessDenied, AwsError, Throttled, Unavailable
from tests.fakes.audit_world import CREATED, World, at, event, running
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.memory_ledger import MemoryNotes

KEY = JobKey(f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/train-vision", CREATED)


def test_an_event_that_is_audited_at_once_leaves_no_note() -> None:
    """The good path makes no further request."""
    of = World()
    of.job()
    of.send()
    of.run()
    assert of.counts["JobsAudited"] == 1
    assert not of.notes.notes


@pytest.mark.parametrize("operation", ["ListTags", "Describe", "TransactWriteItems", "GetItem"])
def test_an_event_whose_audit_waits_or_fails_is_noted_once(operation: str) -> None:
    """At its first delivery, while SageMaker or the table is throttled for hours."""
    of = World()
    of.job()
    of.fails(operation, Throttled("Rate exceeded"), 240)
    of.send()
    of.run(30)
    assert of.notes.notes == {KEY: SentNote(at(5), None)}
    of.run()
    assert of.notes.notes == {KEY: SentNote(at(5), None)}
    assert of.counts["JobsAudited"] == 1


def test_a_job_that_describe_does_not_answer_is_noted_by_its_event() -> None:
    """Its creation time is in the event."""
    of = World()
    of.send()
    of.run(6)
    assert list(of.notes.notes) == [KEY]


def test_an_event_without_a_creation_time_is_not_noted() -> None:
    """It does not say of which run it is."""
    of = World()
    of.job()
    of.fails("Describe", Unavailable("no answer"), 10)
    of.send(event(CreationTime=None))
    of.run()
    assert not of.notes.notes
    assert of.counts["JobsAudited"] == 1


def test_a_persons_event_is_not_noted() -> None:
    """Its job may still run, and the event of its end be lost."""
    of = World()
    of.job("train-vision", (-60, running()))
    of.fails("Describe", Unavailable("no answer"), 10)
    of.send(event(source="sageaudit.replay"))
    of.run()
    assert of.counts["UnknownJobs"] == 1
    assert not of.notes.notes


def test_a_refused_event_is_not_noted() -> None:
    """It is a dead letter at once."""
    of = World()
    of.job("train-vision", (-60, {"TrainingJobName": "another"}))
    of.send()
    of.run(6)
    assert of.counts["RejectedEvents"] == 1
    assert not of.notes.notes


@pytest.mark.parametrize("error", [Throttled("busy"), AccessDenied("dynamodb:PutItem", "denied")])
def test_a_note_that_fails_fails_no_audit(error: AwsError) -> None:
    """The event waits as it does with its note."""

    class Away(MemoryNotes):
        """A table that does not answer."""

        def note_came(self, key: JobKey, at: datetime) -> None:
            raise error

    of = World()
    of.notes = Away()
    of.job()
    of.fails("ListTags", Throttled("Rate exceeded"), 20)
    of.send()
    of.run()
    assert (of.counts["JobsAudited"], of.counts["AuditFailed"]) == (1, 0)


def test_an_event_that_waits_keeps_the_time_at_which_it_was_first_sent() -> None:
    """Through each wait: by it a message is given up after 3.5 days, however often it was sent."""
    of = World()
    of.job("train-vision", (-60, running()), (120, None))
    of.send()
    of.run(30)
    [message] = of.queue.messages.values()
    assert int(message.attributes["waited-describe_behind"]) > 1
    assert int(message.attributes["first-sent"]) == int(at(0).timestamp() * 1000)
