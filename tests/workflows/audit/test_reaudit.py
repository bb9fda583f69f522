"""A second look at a run: a new version where a figure changed, settled otherwise, and some day."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.record import RecordOutcome
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import MissingMetrics
from sageaudit.errors import AccessDenied, JobNotFound, Throttled
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import AlreadyAudited, AuditDeferred, AuditRecorded
from tests.fakes.audit_flow import END, KEY, AuditFlow, FakeMetrics
from tests.fakes.jobs import training_answer, transition
from tests.workflows.audit.test_roll_up import NOW, flow_with_trials, sweep, tuned

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
KEPT_ALIVE = {
    "ResourceConfig": {
        "InstanceType": "ml.g4dn.xlarge",
        "InstanceCount": 2,
        "VolumeSizeInGB": 30,
        "KeepAlivePeriodInSeconds": 3600,
    }
}


def pool(status: str, retained_s: int | None = None) -> dict[str, Any]:
    """The answer with a warm pool that is kept for an hour."""
    said: dict[str, Any] = {"Status": status}
    if retained_s is not None:
        said["ResourceRetainedBillableTimeInSeconds"] = retained_s
    return training_answer(**KEPT_ALIVE, WarmPoolStatus=said)


def test_a_warm_pools_dollars_are_found_after_it_ended() -> None:
    """Half an hour of two hosts, which the audit of the end could not know."""
    audit_flow = AuditFlow([pool("Available"), pool("Terminated", 1800)])
    first = audit_flow.deliver_and_record(END + 5 * MINUTE)
    assert (audit_flow.summary.settled, audit_flow.summary.due_at) == (False, END + HOUR)
    assert first.document["bill"]["complete"] is False
    assert isinstance(audit_flow.deliver(END + 30 * MINUTE), AlreadyAudited)
    second = audit_flow.deliver_and_record(END + HOUR + 10 * MINUTE)
    assert (second.result.outcome, second.result.version) == (RecordOutcome.RECORDED, 2)
    assert second.is_reaudit
    paid = first.document["bill"]["total_usd"], second.document["bill"]["total_usd"]
    assert paid[0] is not None
    assert paid[1] is not None
    assert paid[1] - paid[0] == Decimal("0.736")
    assert (audit_flow.summary.settled, audit_flow.summary.due_at) == (True, None)
    assert isinstance(audit_flow.deliver(END + 2 * HOUR), AlreadyAudited)


def test_a_second_look_keeps_the_whole_metrics_it_has() -> None:
    """CloudWatch is not asked again; what is kept stays to judge by."""
    audit_flow = AuditFlow([pool("Available"), pool("Terminated", 0)])
    audit_flow.deliver(END + 5 * MINUTE)
    stored_detail = audit_flow.history.detail(KEY)
    audit_flow.deliver(END + HOUR + MINUTE)
    again = audit_flow.history.detail(KEY)
    assert audit_flow.metrics.read_count == 1
    assert stored_detail is not None
    assert again is not None
    assert again.series == stored_detail.series
    assert again.describe["WarmPoolStatus"] != stored_detail.describe["WarmPoolStatus"]


def test_metrics_that_never_come_are_looked_for_for_a_day() -> None:
    """Not each quarter of an hour for ever; that nothing came is said, and is no new version."""
    audit_flow = AuditFlow([training_answer()], FakeMetrics(minutes=10))
    audit_flow.deliver(END + 21 * MINUTE, waited={"late_metrics": 1})
    looks = audit_flow.reaudit_due(END + 21 * MINUTE)
    assert looks <= 7
    assert audit_flow.summary.version == 2
    assert audit_flow.summary.settled
    assert (
        "closed: what was missing did not arrive within a day"
        in (audit_flow.document["audit"]["coverage"]["missing"])
    )


def trained_for(seconds: int) -> dict[str, Any]:
    """The answer of a run that fails so long after 40 minutes of download."""
    return training_answer(
        TrainingJobStatus="Failed",
        SecondaryStatusTransitions=[
            transition("Downloading", "10:00:00", "10:40:00"),
            transition("Training", "10:40:00", f"10:{40 + seconds // 60}:{seconds % 60:02}"),
        ],
    )


@pytest.mark.parametrize(("seconds", "most"), [(0, 2), (119, 2), (120, 8)])
def test_of_a_run_that_hardly_ran_metrics_are_looked_for_once_more(seconds: int, most: int) -> None:
    """There is a point or two at best; nor is CloudWatch asked when its family makes it due."""
    audit_flow = AuditFlow([trained_for(seconds)], FakeMetrics(minutes=0))
    assert isinstance(audit_flow.deliver(END + 5 * MINUTE), AuditDeferred)
    audit_flow.deliver(END + 21 * MINUTE, waited={"late_metrics": 1})
    audit_flow.reaudit_due(END + 21 * MINUTE)
    asked = audit_flow.metrics.read_count
    assert (asked <= most, asked > 2) == (True, most > 2)
    audit_flow.history.schedule_reaudit(KEY, END + DAY)
    audit_flow.reaudit_due(END + DAY)
    assert audit_flow.summary.settled
    assert audit_flow.metrics.read_count - asked == (most > 2)


def test_a_doubled_event_does_not_settle_a_run_whose_metrics_are_late() -> None:
    """The second copy comes after the time in which an event waits, and finds no metrics yet."""
    audit_flow = AuditFlow([training_answer()], FakeMetrics(minutes=0))
    assert isinstance(audit_flow.deliver(END + 14 * MINUTE), AuditDeferred)
    first = audit_flow.deliver_and_record(END + 22 * MINUTE)
    assert first.document["avoidable_usd"] is None
    assert audit_flow.is_open()
    audit_flow.metrics.minutes = 60
    audit_flow.reaudit_due(END + 22 * MINUTE)
    assert audit_flow.summary.settled
    assert audit_flow.document["avoidable_usd"] is not None


def test_a_deleted_job_that_is_due_is_judged_once_more_by_what_is_kept() -> None:
    """By the policy of that day: here with a discount of half the list price."""
    audit_flow = AuditFlow(
        [pool("Available"), JobNotFound("there is no training job")], FakeMetrics(minutes=60)
    )
    list_usd = audit_flow.deliver_and_record(END + 21 * MINUTE).document["bill"]["total_usd"]
    assert list_usd is not None
    assert audit_flow.is_open()
    half = Discounts(percent={"Training": Decimal(50)})
    audit_flow.deps = replace(audit_flow.deps, policy=Policy(discounts=half))
    audit_flow.reaudit_due(END + 21 * MINUTE)
    assert audit_flow.summary.settled
    assert audit_flow.document["bill"]["total_usd"] == list_usd / 2


DENIED = MissingMetrics("metric_denied", "cloudwatch:GetMetricData is not permitted")


@pytest.mark.parametrize(
    ("kept", "minutes"), [(True, 30), (False, 45)], ids=["with its series", "without"]
)
def test_a_look_that_may_not_read_the_metrics_takes_no_figure_back(
    kept: bool, minutes: int
) -> None:
    """It is due again; a day after the end it is settled with what was known, and says so."""
    audit_flow = AuditFlow([pool("Available")], FakeMetrics(minutes=minutes))
    first = audit_flow.deliver_and_record(END + 21 * MINUTE)
    assert first.document["judged"] == "partly"
    if not kept:
        audit_flow.history.detail = lambda _key: None
    audit_flow.metrics.missing = DENIED
    audit_flow.deliver(END + 2 * HOUR)
    assert audit_flow.is_open()
    audit_flow.reaudit_due(END + 2 * HOUR)
    assert audit_flow.summary.settled
    for figure in ("avoidable_usd", "lost_usd", "possible_usd", "judged", "findings"):
        assert audit_flow.document[figure] == first.document[figure]
    assert (
        "closed: its metrics could not be read again (cloudwatch:GetMetricData is not permitted)"
        in audit_flow.document["audit"]["coverage"]["missing"]
    )


def test_a_look_that_may_not_read_the_metrics_finds_the_pools_dollars() -> None:
    """The bill needs no metrics, and the use is judged by what is kept."""
    audit_flow = AuditFlow([pool("Available"), pool("Terminated", 1800)], FakeMetrics(minutes=30))
    first = audit_flow.deliver_and_record(END + 21 * MINUTE)
    audit_flow.metrics.missing = DENIED
    second = audit_flow.deliver_and_record(END + 2 * HOUR)
    assert (first.document["bill"]["complete"], second.document["bill"]["complete"]) == (
        False,
        True,
    )
    assert second.document["judged"] == first.document["judged"]
    audit_flow.metrics.missing = None
    audit_flow.metrics.minutes = 60
    audit_flow.reaudit_due(END + 2 * HOUR)
    assert audit_flow.document["avoidable_usd"] is not None


def test_a_look_that_reads_fewer_points_than_there_were_judges_by_those_there_were() -> None:
    """A part of CloudWatch's answer failed."""
    audit_flow = AuditFlow([pool("Available")], FakeMetrics(minutes=30))
    first = audit_flow.deliver_and_record(END + 21 * MINUTE)
    audit_flow.metrics.minutes = 5
    second = audit_flow.deliver_and_record(END + 2 * HOUR)
    assert second.document["judged"] == first.document["judged"]
    assert second.document["avoidable_usd"] == first.document["avoidable_usd"]
    assert audit_flow.is_open()


def test_tags_that_are_denied_at_a_second_look_are_those_that_are_kept() -> None:
    """The event of a sweep has none, and owner and family stay as they are."""
    audit_flow = AuditFlow([pool("Available"), pool("Terminated", 1800)])
    audit_flow.jobs.tag_answer = {"owner": "ana", "sageaudit:family": "vision"}
    first = audit_flow.deliver_and_record(END + 5 * MINUTE)
    audit_flow.jobs.tag_answer = AccessDenied(
        "sagemaker:ListTags", "sagemaker:ListTags is not permitted."
    )
    second = audit_flow.deliver_and_record(END + 2 * HOUR)
    assert second.document["bill"]["complete"] is True
    assert first.document["job"]["owner"] == "ana"
    for name in ("owner", "family"):
        assert second.document["job"][name] == first.document["job"][name]


def test_a_newer_state_of_a_run_whose_metrics_are_denied_keeps_what_was_judged() -> None:
    """A second event of the run, with a later time: its figures stay, and it is due again."""
    changed = training_answer(LastModifiedTime="2026-05-20T11:30:00Z")
    audit_flow = AuditFlow([training_answer(), changed], FakeMetrics(minutes=30))
    first = audit_flow.deliver_and_record(END + 21 * MINUTE, waited={"late_metrics": 1})
    audit_flow.metrics.missing = DENIED
    audit_flow.deliver_and_record(END + 40 * MINUTE)
    for figure in ("avoidable_usd", "lost_usd", "judged", "findings"):
        assert audit_flow.document[figure] == first.document[figure]
    assert audit_flow.is_open()


def test_the_bill_of_a_run_that_had_not_ended_is_made_anew_where_metrics_are_denied() -> None:
    """What an audit said of a run that still ran holds no later figure back."""
    running = training_answer(
        TrainingJobStatus="InProgress",
        TrainingEndTime=None,
        BillableTimeInSeconds=None,
        TrainingTimeInSeconds=None,
        SecondaryStatusTransitions=[transition("Training", "10:00:00")],
    )
    audit_flow = AuditFlow([running, training_answer()])
    audit_flow.deliver(END - 20 * MINUTE, waited={"describe_stale": 99})
    before = audit_flow.document["bill"]["total_usd"]
    audit_flow.metrics.missing = DENIED
    audit_flow.deliver(END + 2 * HOUR)
    assert audit_flow.document["job"]["status"] == "Completed"
    assert audit_flow.document["bill"]["total_usd"] != before


def test_the_last_reaudit_is_a_day_after_the_end_and_not_later() -> None:
    """However long the pause would be: twenty hours after the end, the next one is four away."""
    audit_flow = AuditFlow([training_answer()], FakeMetrics(minutes=10))
    audit_flow.deliver(END + 21 * MINUTE, waited={"late_metrics": 1})
    audit_flow.deliver(END + 20 * HOUR)
    assert audit_flow.summary.due_at == END + DAY


def test_an_owner_that_was_tagged_meanwhile_is_a_new_version() -> None:
    """Though no dollar changed: lists and messages go by the owner."""
    audit_flow = AuditFlow([training_answer()], FakeMetrics(minutes=10))
    audit_flow.deliver(END + 21 * MINUTE, waited={"late_metrics": 1})
    assert audit_flow.summary.owner is None
    audit_flow.jobs.tag_answer = {"owner": "ana"}
    audit_flow.deliver(END + 2 * HOUR)
    assert (audit_flow.summary.version, audit_flow.summary.owner) == (2, "ana")


def test_a_pool_that_never_ends_is_closed_after_a_day() -> None:
    """SageMaker says Available for ever: the figure stays a lower bound."""
    audit_flow = AuditFlow([pool("Available")])
    audit_flow.deliver(END + 5 * MINUTE)
    audit_flow.reaudit_due(END + 5 * MINUTE)
    assert audit_flow.summary.settled
    assert audit_flow.summary.version == 2
    assert audit_flow.document["bill"]["complete"] is False


@pytest.mark.parametrize(
    "gone",
    [
        JobNotFound("there is no training job train-vision"),
        training_answer(CreationTime="2026-05-20T12:00:00Z"),
        training_answer(TrainingJobStatus="Deleting"),
    ],
    ids=["deleted", "its name is another run's", "being deleted"],
)
def test_a_run_that_is_gone_keeps_its_figures_and_is_settled(gone: Any) -> None:
    """It becomes no job that could not be audited, and the other run's pool is not its own."""
    audit_flow = AuditFlow([pool("Available"), gone])
    first = audit_flow.deliver_and_record(END + 5 * MINUTE)
    audit_flow.deliver_and_record(END + 2 * HOUR)
    assert (
        audit_flow.summary.settled,
        audit_flow.summary.due_at,
        audit_flow.summary.unauditable,
    ) == (
        True,
        None,
        None,
    )
    assert audit_flow.document["bill"]["total_usd"] == first.document["bill"]["total_usd"]
    assert audit_flow.document["bill"]["complete"] is False
    assert audit_flow.document["audit"]["coverage"]["missing"][-1].startswith("closed: ")
    assert isinstance(audit_flow.deliver(END + 3 * HOUR), AlreadyAudited)


def test_a_run_that_is_gone_and_forgotten_is_settled_as_it_stands() -> None:
    """Its details have expired."""
    audit_flow = AuditFlow([pool("Available"), JobNotFound("gone")])
    first = audit_flow.deliver_and_record(END + 5 * MINUTE)
    audit_flow.history.detail = lambda _key: None
    result = audit_flow.deliver_and_record(END + 91 * DAY)
    assert result.document["bill"] == first.document["bill"]
    assert (audit_flow.summary.settled, audit_flow.summary.due_at) == (True, None)


def test_a_run_that_is_gone_without_a_stored_audit_is_left_as_it_is() -> None:
    """There is nothing to make final."""
    audit_flow = AuditFlow([pool("Available"), JobNotFound("gone")])
    audit_flow.deliver_and_record(END + 5 * MINUTE)
    audit_flow.history.audit = lambda *_: None
    assert isinstance(audit_flow.deliver(END + 91 * DAY), AlreadyAudited)


def test_tags_that_are_throttled_at_a_second_look_hold_it_up() -> None:
    """It is due once more."""
    audit_flow = AuditFlow([pool("Available"), pool("Terminated", 1800)])
    audit_flow.deliver(END + 5 * MINUTE)
    audit_flow.jobs.tag_answer = Throttled("sagemaker:ListTags is throttled")
    audit_flow.deliver_and_record(END + 2 * HOUR)
    assert audit_flow.is_open()
    audit_flow.jobs.tag_answer = {}
    audit_flow.reaudit_due(END + 2 * HOUR)
    assert audit_flow.summary.settled


def test_a_second_look_that_changes_nothing_is_no_version() -> None:
    """A settled run whose family was told of a further run, which changes no figure of it."""
    audit_flow = AuditFlow([training_answer()])
    audit_flow.deliver(END + 5 * MINUTE)
    audit_flow.history.schedule_reaudit(KEY, END + HOUR)
    result = audit_flow.deliver_and_record(END + 2 * HOUR)
    assert (result.result.outcome, audit_flow.summary.version) == (RecordOutcome.DUPLICATE, 1)
    assert (audit_flow.summary.settled, audit_flow.summary.due_at) == (True, None)
    assert audit_flow.metrics.read_count == 1


def test_a_job_that_still_runs_is_looked_at_each_hour_and_not_for_ever() -> None:
    """Describe stays behind; a job lasts 30 days at most."""
    running = training_answer(TrainingJobStatus="InProgress", TrainingEndTime=None)
    audit_flow = AuditFlow([running])
    audit_flow.deliver(END, waited={"describe_stale": 99})
    assert audit_flow.is_open()
    looks = audit_flow.reaudit_due(END)
    assert audit_flow.summary.settled
    assert looks <= 31 * 24 + 1


def test_a_roll_up_whose_children_never_come_is_settled_after_a_day() -> None:
    """It says how many it lacks."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    flow.deliver_and_record(NOW, "trial-1")
    tuned(flow, 3)
    last = [tuned(flow, now=END + hours * HOUR) for hours in (2, 5, 11, 23, 25)][-1]
    assert isinstance(last, AuditRecorded)
    assert (last.document["audit"]["settled"], last.result.version) == (True, 2)
    assert last.document["bill"]["missing"] == ["2 of 3 training jobs are not audited"]
